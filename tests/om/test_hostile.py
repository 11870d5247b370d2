"""Files from strangers: whatever is done to the bytes, the reader answers or raises its one error, soon and in little memory."""

from __future__ import annotations

import json
import random
import resource
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from om_writer import attribute, chunk, definition, forms, graph, image, ints, op, value_of, varint

from jumar.om import OmFile
from jumar.om.attributes import Keys, decode
from jumar.om.container import Source, read_image
from jumar.om.wire import Budget, Malformed, Wire
from jumar.om.wire import varint as read_varint
from jumar.verbs.inspect_om import om_notes

SECONDS = 2.0
"""One file of a few kilobytes may take, on a busy machine; usually it is a thousandth of that."""
MEMORY = 256 << 20
"""Bytes by which the peak of this process may grow over all mutations."""
EXTREMES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


class InMemory(Source):
    def __init__(self, data: bytes) -> None:
        super().__init__(-1, len(data))
        self.data = data

    def read(self, start: int, count: int) -> bytes:
        return self.data[start : start + count]


def parse(data: bytes) -> OmFile:
    return read_image(InMemory(data), 0, len(data))


def mutate(data: bytes, chance: random.Random) -> bytes:
    """One to five changes; half of the files get a header that agrees with their new length, so that the rest is looked at."""
    out = bytearray(data)
    for _ in range(chance.randint(1, 5)):
        place, kind = chance.randrange(len(out)), chance.randrange(7)
        if kind <= 1:
            out[place] = chance.randrange(256)
        elif kind == 2:
            out[place] ^= 1 << chance.randrange(8)
        elif kind == 3:
            out[place : place + 4] = struct.pack("<I", chance.choice(EXTREMES))
        elif kind == 4:
            del out[place : place + chance.randint(1, 40)]
        elif kind == 5:
            out[place:place] = chance.choice((chance.randbytes(chance.randint(1, 12)), b"\xff" * 9 + b"\x01", out[place : place + 60]))
        else:
            del out[place:]
        if not out:
            return b"\0"
    if len(out) >= 256 and chance.random() < 0.5:
        wide = any(out[184:192])
        struct.pack_into("<Q" if wide else "<I", out, 184 if wide else 76, len(out) - 256)
    return bytes(out)


def survive(data: bytes, reader: Callable[[bytes], OmFile] = parse, seconds: float = SECONDS) -> bool:
    """Whether the file was read. Anything but an answer or ``Malformed``, and anything slow, is a failure."""
    begun = time.perf_counter()
    try:
        om = reader(data)
    except Malformed as error:
        assert "\n" not in error.what.render("en")
        return False
    finally:
        assert time.perf_counter() - begun < seconds
    json.dumps(om.to_dict(), allow_nan=False)
    for line in om_notes(om, operators=True):
        assert line.render("zh")
    return True


def mutations(count: int, seeds: list[bytes], seed: int) -> tuple[int, int]:
    """How many were read, and how many refused."""
    chance, read = random.Random(seed), 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(count):
        read += survive(mutate(chance.choice(seeds), chance))
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MEMORY
    return read, count - read


def test_mutated_files_of_every_form() -> None:
    read, refused = mutations(600, list(forms().values()), seed=6)
    assert read > 50 and refused > 50  # the mutations reach both ends


def real(shared: Path) -> Iterator[bytes]:
    """The real files without weights and kernels, which nothing reads: their definition alone."""
    for path in sorted((shared / "facts" / "toolchain" / "om_samples").glob("*.om")):
        data = path.read_bytes()
        _, offset, size = struct.unpack_from("<III", data, 260)
        yield image([[(0, data[308 + offset : 308 + offset + size])]])


@pytest.mark.slow
def test_two_hundred_thousand_mutations(shared: Path) -> None:
    read, refused = mutations(196_000, list(forms().values()), seed=7)
    assert read + refused == 196_000
    assert sum(mutations(4_000, list(real(shared)), seed=8)) == 4_000


def test_a_reader_that_crashes_or_hangs_would_be_noticed() -> None:
    def crashing(data: bytes) -> OmFile:
        return parse(data[: data.index(b"IMOD") + 4])  # a planted error: KeyError and the like come out of such slips

    with pytest.raises(ValueError, match="subsection not found"):
        survive(b"no image", crashing)
    with pytest.raises(AssertionError):
        survive(forms()["v2"], lambda data: (time.sleep(0.1), parse(data))[1], seconds=0.05)


def test_the_fields_of_a_file_are_counted() -> None:
    with pytest.raises(Malformed, match="more fields than any model"):
        list(Wire(b"\x08\x01" * 11, Budget(10)).fields((0, 22)))
    packed = ints(1, [1] * 50)
    wire = Wire(packed, Budget(20))
    with pytest.raises(Malformed, match="more fields than any model"):
        [wire.numbers(kind, first, last) for _, kind, first, last in wire.fields(wire.span)]


def test_many_empty_operators_are_refused() -> None:
    """Two bytes each in the file, a hundred in memory."""
    begun = time.perf_counter()
    with pytest.raises(Malformed, match="more than 500000 operators"):
        parse(image([[(0, chunk(7, b"\x32\x00" * 600_000))]]))
    assert time.perf_counter() - begun < 20


def test_a_text_of_the_table_cannot_be_multiplied_without_end() -> None:
    """A number of one byte that stands for four thousand characters, a hundred thousand times."""
    table = {"attr_name_enum": ["user_designate_shape_order"], "attr_value_enum": ["x" * 5000], "attrs_use_string_value": [True]}
    case = op("c", "Case", {"_batch_num": 0, b"\0\x01": [0] * 100_000})
    with pytest.raises(Malformed, match="more fields than any model"):
        parse(image([[(0, definition("n", [graph("g", [case])], table))]]))


def test_deep_attributes_are_refused() -> None:
    value = value_of(1)
    for _ in range(50):
        value = chunk(10, chunk(2, chunk(1, "a") + chunk(2, value)))
    with pytest.raises(Malformed, match="nested too deeply"):
        decode(Wire(value, Budget()), (0, len(value)), Keys())


@given(st.integers(0, 2**64 - 1))
def test_numbers_come_back(value: int) -> None:
    raw = varint(value)
    assert read_varint(raw, 0, len(raw)) == (value, len(raw))


SIMPLE = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.text(max_size=20),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5),
    st.lists(st.text(max_size=5), min_size=1, max_size=5),
    st.lists(st.booleans(), min_size=1, max_size=5),
    st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=5),
    st.lists(st.lists(st.integers(-5, 5), max_size=3), min_size=1, max_size=3),
)


@given(st.one_of(SIMPLE, st.dictionaries(st.text(max_size=5).filter(lambda name: not name.startswith("\0")), SIMPLE, max_size=4)))
def test_attributes_come_back(value: object) -> None:
    raw = value_of(value)
    assert decode(Wire(raw, Budget()), (0, len(raw)), Keys()) == value


@settings(max_examples=300)
@given(st.binary(max_size=300))
def test_any_bytes_as_a_definition(data: bytes) -> None:
    survive(image([[(0, data)]]))


def test_an_attribute_given_twice_is_the_last_one() -> None:
    twice = attribute("soc_version", "one", 11) + attribute("soc_version", "two", 11)
    assert parse(image([[(0, twice)]])).soc_version == "two"
