"""Attributes of a model definition: their values, and the names that newer ATC writes as numbers."""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..text import say
from .wire import BYTES, FIXED32, VARINT, Budget, Malformed, Span, Wire, signed

_DEPTH = 4  # of attributes within attributes
_MOST = 1_000_000  # entries of a table
_LONGEST = 4096  # characters of a text that a table may lend to many attributes

Value = Any
"""None, bool, int, float, str, a list of these, or a dict of named attributes."""


@dataclass(frozen=True)
class KeyTable:
    """What ``--enable_attr_compression`` replaced by numbers in one model."""

    names: Sequence[bytes]
    texts: Sequence[str]
    are_texts: Sequence[bool]

    def name(self, code: bytes) -> tuple[bytes, bool]:
        """A coded name (NUL, then digits to base 127, each one higher, lowest first) in full, and whether its values are texts.

        Raises:
            Malformed: the table has no such entry.
        """
        number = sum((digit - 1) * 127**place for place, digit in enumerate(code[1:6]))
        if len(code) > 6 or not 0 <= number < min(len(self.names), len(self.are_texts)):
            raise Malformed(say("a compressed attribute name is in no table", "有一个压缩的属性名不在任何表中"))
        return self.names[number], self.are_texts[number]

    def text(self, number: int) -> str:
        if not 0 <= number < len(self.texts):
            raise Malformed(say("a compressed attribute value is in no table", "有一个压缩的属性值不在任何表中"))
        return self.texts[number]


@dataclass(frozen=True)
class Keys:
    """The tables that apply to a model: its own and, for the models after the first, that of the first."""

    tables: tuple[KeyTable, ...] = ()
    known: dict[bytes, tuple[str, KeyTable | None]] = field(default_factory=dict, repr=False)

    def expand(self, raw: bytes) -> tuple[str, KeyTable | None]:
        """The name of an attribute, and the table of its values if they are numbers of texts."""
        if raw[:1] != b"\0" or not self.tables:
            return raw.decode("utf-8", "replace"), None
        found = self.known.get(raw)
        if found is None:
            name, values = raw, None
            for table in self.tables:
                if name[:1] != b"\0":
                    break
                name, are_texts = table.name(name)
                if are_texts and values is None:
                    values = table
            found = self.known[raw] = (name.decode("utf-8", "replace"), values)
        return found

    def with_root(self, root: Keys) -> Keys:
        """Sub-models are coded twice: by their own table, then by that of the first model."""
        return Keys((*self.tables, *root.tables))


def entry(wire: Wire, span: Span) -> tuple[bytes, Span | None]:
    """Key and value of a map entry."""
    key, value = b"", None
    for number, kind, first, last in wire.fields(span):
        if kind == BYTES and number == 1:
            key = wire.data[first:last]
        elif kind == BYTES and number == 2:
            value = first, last
    return key, value


def read_attributes(
    wire: Wire, spans: Iterable[Span], keys: Keys, wanted: Collection[str], prefix: str = "\0", depth: int = 0
) -> dict[str, Value]:
    """The attributes of these names, or whose name begins with ``prefix``; if ``wanted`` is empty, all of them."""
    found: dict[str, Value] = {}
    data = wire.data
    for span in spans:
        start, end = span
        # Most attributes are not wanted, which their first bytes tell: the key, of less than 128 bytes.
        if wanted and end - start > 2 and data[start] == 0x0A and data[start + 1] < 0x80 and start + 2 + data[start + 1] <= end:
            name, table = keys.expand(data[start + 2 : start + 2 + data[start + 1]])
            if name not in wanted and not name.startswith(prefix):
                continue
        raw, value = entry(wire, span)
        name, table = keys.expand(raw)
        if value is not None and (name in wanted or name.startswith(prefix) or not wanted):
            found[name] = decode(wire, value, keys, table, depth)
    return found


def decode(wire: Wire, span: Span, keys: Keys, table: KeyTable | None = None, depth: int = 0) -> Value:
    """The value of an attribute; None for a kind that says nothing here (tensors, graphs, types, bytes)."""
    value: Value = None
    for number, kind, first, last in wire.fields(span):
        if number == 1 and kind == BYTES:
            value = _list(wire, (first, last))
        elif number == 2 and kind == BYTES:
            value = wire.text(first, last)
        elif number == 3 and kind == VARINT:
            value = signed(first)
        elif number == 4 and kind == FIXED32:
            value = _finite(struct.unpack_from("<f", wire.data, first)[0])
        elif number == 5 and kind == VARINT:
            value = bool(first)
        elif number == 10 and kind == BYTES:
            value = _named(wire, (first, last), keys, depth)
        elif number == 14 and kind == BYTES:
            value = _list_of_lists(wire, (first, last))
    if table is not None:
        value = _texts(value, table, wire.budget)
    return value


def _texts(value: Value, table: KeyTable, budget: Budget) -> Value:
    """Texts for numbers. What a few bytes of the file can make long is counted."""
    if isinstance(value, list):
        return [_texts(item, table, budget) for item in value]
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    text = table.text(value)
    budget.take(len(text) // 8)
    return text


def _finite(value: float) -> float | str:
    """JSON has no NaN and no infinity."""
    return value if math.isfinite(value) else str(value)


def _list(wire: Wire, span: Span) -> list[Value]:
    found: list[Value] = []
    for number, kind, first, last in wire.fields(span):
        if number == 2 and kind == BYTES:
            found.append(wire.text(first, last))
        elif number == 3:
            found += wire.numbers(kind, first, last)
        elif number == 4:
            found += map(_finite, wire.floats(kind, first, last))
        elif number == 5:
            found += map(bool, wire.numbers(kind, first, last))
    return found


def _list_of_lists(wire: Wire, span: Span) -> list[Value]:
    found: list[Value] = []
    for number, kind, first, last in wire.fields(span):
        if number == 1 and kind == BYTES:
            found.append(
                [item for part, how, low, high in wire.fields((first, last)) if part == 1 for item in wire.numbers(how, low, high)]
            )
    return found


def _named(wire: Wire, span: Span, keys: Keys, depth: int) -> dict[str, Value]:
    if depth >= _DEPTH:
        raise Malformed(say("attributes are nested too deeply", "属性嵌套过深"))
    spans = [(first, last) for number, kind, first, last in wire.fields(span) if number == 2 and kind == BYTES]
    return read_attributes(wire, spans, keys, (), depth=depth + 1)


def key_table(wire: Wire, spans: Sequence[Span]) -> KeyTable | None:
    """The table of a model's attributes, if it has one."""
    found: dict[bytes, Span] = {}
    for span in spans:
        key, value = entry(wire, span)
        if value is not None and key in (b"om_compress_version", b"attr_name_enum", b"attr_value_enum", b"attrs_use_string_value"):
            found[key] = value
    if b"attr_name_enum" not in found:
        return None
    names = [wire.data[first:last] for first, last in _items(wire, found[b"attr_name_enum"])]
    texts = [wire.text(first, last)[:_LONGEST] for first, last in _items(wire, found.get(b"attr_value_enum"))]
    flags = decode(wire, found[b"attrs_use_string_value"], Keys()) if b"attrs_use_string_value" in found else []
    flags = flags if isinstance(flags, list) else []
    return KeyTable([name[:_LONGEST] for name in names], texts, [bool(flag) for flag in flags])


def _items(wire: Wire, span: Span | None) -> list[Span]:
    """The strings of a list attribute, where they lie."""
    found: list[Span] = []
    if span is None:
        return found
    for number, kind, first, last in wire.fields(span):
        if number == 1 and kind == BYTES:
            found += [(low, high) for part, how, low, high in wire.fields((first, last)) if part == 2 and how == BYTES]
    if len(found) > _MOST:
        raise Malformed(say("a table of attribute names has {count} entries", "属性名表有 {count} 项", count=len(found)))
    return found
