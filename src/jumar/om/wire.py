"""Protobuf's wire format, read without generated code: what is asked for is decoded, everything else is stepped over.

A file from a stranger decides nothing here: every length is compared with what is there, a variable-length number ends after ten bytes,
nesting follows the code and not the file, and the fields of one file are counted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ..text import Text, say

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_FIELDS = 20_000_000
"""Fields read of one file; some forty times what the largest models need."""

Span = tuple[int, int]


class Malformed(Exception):  # noqa: N818 - becomes a ModelError where the path is known
    """What is wrong with the bytes."""

    def __init__(self, what: Text) -> None:
        self.what = what
        super().__init__(str(what))


class Budget:
    """How many fields may still be read of this file."""

    def __init__(self, fields: int = MAX_FIELDS) -> None:
        self.left = fields

    def take(self, count: int = 1) -> None:
        self.left -= count
        if self.left < 0:
            raise Malformed(say("it has more fields than any model", "其中的字段多于任何模型"))


def varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """A number of up to 64 bits, and where it ends."""
    value = shift = 0
    for index in range(position, min(position + 10, end)):
        byte = data[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, index + 1
        shift += 7
    raise Malformed(say("a number does not end (byte {place})", "有一个数没有结束（字节 {place}）", place=position))


def signed(value: int) -> int:
    """A varint as int64."""
    return value - (1 << 64) if value >> 63 else value


class Wire:
    """The bytes of one message tree."""

    __slots__ = ("budget", "data")

    def __init__(self, data: bytes, budget: Budget) -> None:
        self.data, self.budget = data, budget

    @property
    def span(self) -> Span:
        return 0, len(self.data)

    def fields(self, span: Span) -> Iterator[tuple[int, int, int, int]]:
        """Number, wire type, and two values: the number and 0, or where the content begins and ends (``fixed`` types too).

        Raises:
            Malformed: a length passes the end, an unknown wire type, or field number 0.
        """
        data, budget = self.data, self.budget
        position, end = span
        while position < end:
            budget.left -= 1
            if budget.left < 0:
                budget.take()
            key = data[position]
            if key < 0x80:
                position += 1
            else:
                key, position = varint(data, position, end)
            kind = key & 7
            if kind == BYTES:
                length, start = varint(data, position, end)
                position = start + length
                if position > end:
                    raise _too_long(start, length, end)
                if key < 8:
                    raise _no_field(start)
                yield key >> 3, kind, start, position
                continue
            if key < 8:
                raise _no_field(position)
            if kind == VARINT:
                value, position = varint(data, position, end)
                yield key >> 3, kind, value, 0
            elif kind in (FIXED64, FIXED32):
                length = 8 if kind == FIXED64 else 4
                start, position = position, position + length
                if position > end:
                    raise _too_long(start, length, end)
                yield key >> 3, kind, start, position
            else:
                raise Malformed(
                    say(
                        "wire type {kind} (byte {place}) does not exist", "不存在线路类型 {kind}（字节 {place}）", kind=kind, place=position
                    )
                )

    def text(self, start: int, end: int) -> str:
        return self.data[start:end].decode("utf-8", "replace")

    def numbers(self, kind: int, first: int, last: int) -> list[int]:
        """A repeated integer field: one varint, or a packed run of them; as int64."""
        if kind == VARINT:
            return [signed(first)]
        if kind != BYTES:
            raise _no_field(first)
        found, position = [], first
        while position < last:
            value, position = varint(self.data, position, last)
            found.append(signed(value))
            self.budget.take()
        return found

    def floats(self, kind: int, first: int, last: int) -> list[float]:
        """A repeated float field: one, or a packed run."""
        if kind not in (FIXED32, BYTES) or (last - first) % 4:
            raise _no_field(first)
        count = (last - first) // 4
        self.budget.take(count)
        return list(struct.unpack_from(f"<{count}f", self.data, first))


def _too_long(start: int, length: int, end: int) -> Malformed:
    return Malformed(
        say(
            "a field at byte {start} announces {length} bytes, {left} are left",
            "字节 {start} 处的字段声明了 {length} 字节，只剩 {left} 字节",
            start=start,
            length=length,
            left=max(0, end - start),
        )
    )


def _no_field(place: int) -> Malformed:
    return Malformed(say("byte {place} begins no field of a model", "字节 {place} 处不是模型的字段", place=place))
