"""Logs of any size and encoding are streamed: the right lines with the right numbers, in bounded memory."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_lines import EXAMPLES

from jumar.errors import UsageError
from jumar.logs.lines import CHUNK, LONGEST, SAME, Reading, candidates, chunks, decode
from jumar.logs.patterns import PATTERNS
from jumar.logs.scan import read_log, read_text

ROOT_LINE = "EZ3003: [PID: 42] No supported Ops kernel and engine are found for [/head/Act], optype [HardSwish]."


def given_lines(data: bytes, size: int = CHUNK) -> tuple[list[tuple[int, str]], Reading]:
    reading = Reading("a")
    pieces = (data[start : start + size] for start in range(0, len(data), size))
    return list(candidates(pieces, reading)), reading


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_pattern_is_lost_before_it_is_asked(name: str) -> None:
    """Lines are chosen by words before they are decoded; every example of every pattern must get through, in GBK too."""
    for line in EXAMPLES[name]:
        for encoding in ("utf-8", "gbk"):
            assert [text for _, text in given_lines(line.encode(encoding))[0]] == [line]


def test_every_pattern_has_an_example() -> None:
    assert {*EXAMPLES} == {pattern.name for pattern in PATTERNS}


@given(
    st.lists(st.sampled_from(["", "nothing here", "E19010: a", "[ERROR] failed", "中文 失败", "x" * 50]), max_size=40), st.integers(1, 200)
)
def test_numbers_of_lines_do_not_depend_on_the_chunks(lines: list[str], size: int) -> None:
    data = "\n".join(lines).encode()
    found, reading = given_lines(data, size)
    # SAME bounds how often equal lines are given, and there are no more of them here.
    expected = [(number, line) for number, line in enumerate(lines, 1) if line and line not in ("nothing here", "x" * 50)]
    assert found == expected
    assert reading.lines in (len(lines), len(lines) - 1) or not lines  # a last empty line is none


def test_lines_alike_are_given_a_few_times_only_and_a_code_makes_a_line_another() -> None:
    data = b"".join(b"[ERROR] step %d failed\n" % number for number in range(500))
    assert len(given_lines(data)[0]) == SAME
    data += b"[ERROR] E10001: step 1 failed\n"
    assert given_lines(data)[0][-1] == (501, "[ERROR] E10001: step 1 failed")


def test_a_line_without_an_end_costs_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with path.open("wb") as file:
        file.write(b"E10001: ")
        for _ in range(40):
            file.write(b"x" * CHUNK)
        file.write(b"\n" + ROOT_LINE.encode() + b"\n")
    tracemalloc.start()
    log = read_log([("a.log", path)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * CHUNK  # 40 MiB were read
    assert [(clue.line, clue.op) for clue in log.ordered()] == [(2, "HardSwish"), (1, None)]
    assert all(len(clue.text) <= LONGEST for clue in log.clues)


def test_many_lines_cost_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with path.open("w") as file:
        file.writelines(f"[ERROR] GE({n},atc.bin): node {n * 7919:x} failed, {'pqrstuvwxyz'[n % 11] * (n % 97)}\n" for n in range(25_000))
        file.write(ROOT_LINE + "\n")
    tracemalloc.start()
    log = read_log([("a.log", path)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * CHUNK
    assert log.root is not None and (log.root.line, log.root.op) == (25_001, "HardSwish")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gbk", "utf-16"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(f"开始转换\n模型转换失败，错误码：145013\n{ROOT_LINE}\n".encode(encoding))
    log = read_log([("a.log", path)])
    assert log.root is not None
    assert (log.root.line, log.root.node) == (3, "/head/Act")
    assert next(clue.text for clue in log.clues) == "模型转换失败，错误码：145013"


def test_a_packed_log(tmp_path: Path) -> None:
    path = tmp_path / "plog.log.gz"
    path.write_bytes(gzip.compress(f"{ROOT_LINE}\n".encode() * 3))
    log = read_log([("plog.log.gz", path)])
    assert log.root is not None and log.root.count == 3
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(UsageError, match="cannot be read"):
        read_log([("plog.log.gz", path)])


def test_colours_are_taken_off() -> None:
    assert decode(b"\x1b[1;31mE10001\x1b[0m: x\r\x1b]0;title\x07") == "E10001: x "
    root = read_text("\x1b[31mE10001\x1b[0m: Value [x]\n").root
    assert root is not None and root.code is not None and root.code.code == "E10001"


@settings(max_examples=300)
@given(
    st.lists(
        st.binary(max_size=60)
        | st.sampled_from([b"E19010: Op [", b"optype [", b"]]", b"\x1b[", b"\n", b"[ERROR]", b"ret = ", b"\xff\xfe"]),
        max_size=30,
    )
)
def test_no_bytes_crash_it(pieces: list[bytes]) -> None:
    def stream() -> Iterator[bytes]:
        yield from pieces

    for number, text in candidates(stream(), Reading("a")):
        assert number >= 1 and "\x1b" not in text
    read_text(b"".join(pieces).decode("utf-8", "surrogateescape"))


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(bytes(1000) + b"E19010: by chance" + bytes(1000))
    (tmp_path / "a.log").write_text(ROOT_LINE)
    log = read_log([("weights", tmp_path / "weights"), ("a.log", tmp_path / "a.log")])
    assert [reading.name for reading in log.readings] == ["weights", "a.log"] or log.skipped == ["weights"]
    assert log.root is not None


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        list(chunks(tmp_path / "no.log", Reading("a")))
