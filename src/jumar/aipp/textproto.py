"""Protobuf's text form, as far as AIPP files use it: tokens with their lines, and a tree of fields and blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

DEEPEST = 8
"""Blocks inside blocks; AIPP files have one level."""
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\f\v]+|\#[^\n]*)|(?P<newline>\n)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<number>[+-]?[ \t]*(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?)(?![\w.])|-[ \t]*(?:inf|infinity|nan)\b)
    |(?P<name>[A-Za-z_][\w.]*)
    |(?P<mark>[{}<>\[\]:,;])
    |(?P<wrong>.)""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Token:
    """``kind`` is string, number, name or mark."""

    kind: str
    text: str
    line: int


@dataclass(frozen=True)
class Field:
    """A field as written: its value is a token, or the fields of a block."""

    name: str
    line: int
    value: Token | tuple[Field, ...]


class SyntaxFault(Exception):  # noqa: N818 - carried to the caller as a finding, not an error of the program
    """The text cannot be read from here on: ``line``, and what stands there."""

    def __init__(self, line: int, found: str, expected: str) -> None:
        self.line, self.found, self.expected = line, found, expected
        super().__init__(f"line {line}: {found}; expected {expected}")


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a text.

    Raises:
        SyntaxFault: a character that has no place here, such as a full-width colon.
    """
    line = 1
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "wrong"
        if kind == "newline":
            line += 1
        elif kind == "wrong":
            raise SyntaxFault(line, match[0], "name: value")
        elif kind != "space":
            yield Token(kind, match[0], line)


def parse(text: str) -> tuple[Field, ...]:
    """All fields of a text, in order.

    Raises:
        SyntaxFault: at the first place that cannot be read.
    """
    reader = _Reader(list(tokens(text)))
    fields = reader.fields(None, 0)
    return tuple(fields)


class _Reader:
    def __init__(self, found: list[Token]) -> None:
        self.found, self.place = found, 0

    def peek(self) -> Token | None:
        return self.found[self.place] if self.place < len(self.found) else None

    def next(self, expected: str) -> Token:
        token = self.peek()
        if token is None:
            raise SyntaxFault(self.found[-1].line if self.found else 1, "", expected)
        self.place += 1
        return token

    def fields(self, closing: str | None, depth: int) -> list[Field]:
        if depth > DEEPEST:
            raise SyntaxFault(self.found[self.place - 1].line, "{", "}")
        fields: list[Field] = []
        while (token := self.peek()) is not None and token.text != closing:
            fields += self.field(depth)
        if closing is not None:
            self.next(closing)
        return fields

    def field(self, depth: int) -> list[Field]:
        name = self.next("name: value")
        if name.kind != "name":
            raise SyntaxFault(name.line, name.text, "name: value")
        token = self.next(":")
        if token.text == ":":
            token = self.next("value")
        elif token.text not in ("{", "<"):
            raise SyntaxFault(name.line, f"{name.text} {token.text}", f"{name.text}: value")
        found = [Field(name.text, name.line, value) for value in self.values(token, name, depth)]
        after = self.peek()
        if after is not None and after.text in (",", ";"):
            self.place += 1
        return found

    def values(self, token: Token, name: Token, depth: int) -> list[Token | tuple[Field, ...]]:
        """One value, or those of a list in brackets."""
        if token.text in ("{", "<"):
            return [tuple(self.fields("}" if token.text == "{" else ">", depth + 1))]
        if token.text == "[":
            values: list[Token | tuple[Field, ...]] = []
            while (item := self.next("]")).text != "]":
                if item.text != ",":
                    values += self.values(item, name, depth + 1)
            return values
        if token.kind == "mark" or (token.line != name.line and self._begins_field()):
            raise SyntaxFault(name.line, f"{name.text}:", f"{name.text}: value")
        if token.kind == "string":  # strings side by side are one
            while (more := self.peek()) is not None and more.kind == "string":
                token = Token("string", token.text[:-1] + more.text[1:], token.line)
                self.place += 1
        return [token]

    def _begins_field(self) -> bool:
        """Whether the token just taken was the name of the next field, its own value being left out."""
        after = self.peek()
        return after is not None and after.text in (":", "{")
