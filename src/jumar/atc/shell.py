"""Reads shell text into commands and words, as a shell would.

This is no shell: nothing runs, and what only a run can tell (loop variables, arguments, command substitutions) stays in the words as
``${name}``. It knows what decides where a word of a call ends: quotes, backslashes, continuations, comments, here-documents,
redirections, variables with defaults, arrays, and blocks whose assignments may not have happened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

DEEPEST = 8
"""Scripts inside scripts (eval, bash -c, here-documents) are followed this far."""

LONGEST_VALUE = 20_000
"""Characters that are kept of a variable: a script that doubles one in each line stays harmless."""
LONGEST_ARRAY = 1000

_NAME = re.compile(r"[A-Za-z_]\w*")
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_EXPANSION = re.compile(r"\{([A-Za-z_]\w*|[0-9]+)(?:(:?[-=])(.*))?\}", re.DOTALL)


def open_value(name: str) -> str:
    """How a value that only a run can tell stands in a word."""
    return "${" + name + "}"


@dataclass(frozen=True)
class Inner:
    """A script inside the script (a here-document, the argument of eval), with what is known of variables there."""

    text: str
    line: int
    variables: dict[str, str | None]


@dataclass
class Word:
    """A word as it is read: its pieces with a mark for those that the shell splits at blanks (expansions outside quotes)."""

    line: int
    pieces: list[tuple[str, bool]] = field(default_factory=list)
    quoted: bool = False
    unclosed: bool = False
    """A quote was opened for a value and the text ends before it is closed."""

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.pieces)

    def split(self) -> list[str]:
        """The words it becomes."""
        words = [""]
        began = self.quoted
        for text, splits in self.pieces:
            if not splits:
                words[-1] += text
                began = began or bool(text)
                continue
            parts = re.split(r"\s+", text)
            words[-1] += parts[0]
            words += parts[1:]
        return [word for word in words if word or began]


@dataclass
class Command:
    words: list[Word]
    ended_by: str
    glued: bool = False
    """True when the next word follows the separator without a blank."""


class Reader:
    """Splits text into commands and keeps what is known of variables on the way."""

    def __init__(self, text: str, line: int, variables: dict[str, str | None], depth: int) -> None:
        self.text, self.at, self.line = text, 0, line
        self.variables = variables
        self.arrays: dict[str, list[str]] = {}
        self.depth = depth
        self.inner: list[Inner] = []
        self.blocks: list[set[str]] = []
        self.heredocs: list[tuple[str, bool, bool]] = []

    # Reading words

    def commands(self) -> Iterator[Command]:
        words: list[Word] = []
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == "\n":
                self._next()
                yield Command(words, "\n")
                words = []
                self._skip_heredocs()
            elif character in " \t":
                self._next()
            elif self.text.startswith("\\\n", self.at):
                self._next(2)
            elif character == "#":
                self._skip_to("\n")
            elif character in ";&|()":
                sign = self._operator()
                if sign in (">", "<"):
                    continue
                glued = self.at < len(self.text) and not self.text[self.at].isspace()
                yield Command(words, sign, glued)
                words = []
            elif character in "<>" or (character.isdigit() and re.match(r"\d[<>]", self.text[self.at : self.at + 2])):
                self._redirection()
            else:
                word = self._word()
                array = ASSIGNMENT.fullmatch(word.text)
                if array and self.text[self.at : self.at + 1] == "(" and not words:
                    self._array(array[1], bool(array[2]))
                    continue
                words.append(word)
        yield Command(words, "\n")

    def _next(self, count: int = 1) -> str:
        taken = self.text[self.at : self.at + count]
        self.line += taken.count("\n")
        self.at += count
        return taken

    def _skip_to(self, mark: str) -> None:
        end = self.text.find(mark, self.at)
        self._next((len(self.text) if end < 0 else end) - self.at)

    def _operator(self) -> str:
        for sign in ("&&", "||", ";;", "&>", "|&"):
            if self.text.startswith(sign, self.at):
                self._next(2)
                if sign == "&>":
                    self._target()
                    return ">"
                return sign
        return self._next()

    def _redirection(self) -> None:
        match = re.compile(r"\d?(<<<|<<-?|[<>]{1,2}[&|]?)").match(self.text, self.at)
        sign = match[1] if match else self.text[self.at]
        self._next(len(match[0]) if match else 1)
        if sign in ("<<", "<<-"):
            while self.text[self.at : self.at + 1] in (" ", "\t"):
                self._next()
            word = self._word()
            if word.text:
                self.heredocs.append((word.text, word.quoted, sign == "<<-"))
        else:
            self._target()

    def _target(self) -> None:
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self._next()
        if self.text[self.at : self.at + 1] not in ("", "\n", ";", "|", "(", ")", "<", ">"):
            if self.text[self.at] == "&":
                self._next()
            else:
                self._word()

    def _skip_heredocs(self) -> None:
        """Read the bodies of here-documents; a script in one of them is looked at, too."""
        for mark, literal, tabs in self.heredocs:
            start, body = self.line, []
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                self._next(end - self.at + 1)
                if (line.lstrip("\t") if tabs else line) == mark:
                    break
                body.append(line)
            known = {} if literal else self.variables
            self.inner.append(Inner("\n".join(body), start, dict(known)))
        self.heredocs = []

    def _array(self, name: str, more: bool) -> None:
        """``NAME=( ... )``."""
        self._next()
        found: list[str] = []
        while self.at < len(self.text) and self.text[self.at] != ")":
            character = self.text[self.at]
            if character.isspace():
                self._next()
            elif self.text.startswith("\\\n", self.at):
                self._next(2)
            elif character == "#":
                self._skip_to("\n")
            elif character in ";&|(<>":
                self._next()
            else:
                found += self._word().split()
        self._next()
        self.arrays[name] = [*(self.arrays.get(name, []) if more else []), *found][:LONGEST_ARRAY]

    def _word(self) -> Word:
        word = Word(self.line)
        while self.at < len(self.text):
            character = self.text[self.at]
            if character.isspace() or character in ";&|()<>":
                break
            if character == "\\":
                taken = self._next(2)
                if taken != "\\\n":
                    word.pieces.append((taken[1:], False))
            elif character == "'":
                self._single(word)
            elif character == '"':
                self._double(word)
            elif character == "`" or character == "$":
                for piece in self._expansion():
                    word.pieces.append((piece, True))
            else:
                word.pieces.append((self._next(), False))
        return word

    def _single(self, word: Word) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            self._unclosed(word)
            return
        word.quoted = True
        word.pieces.append((self._next(end - self.at + 1)[1:-1], False))

    def _unclosed(self, word: Word) -> None:
        """A quote without an end: the value reaches to the end of the line; elsewhere it is an apostrophe in prose."""
        if not word.text.endswith("="):
            word.pieces.append((self._next(), False))
            return
        self._next()
        end = self.text.find("\n", self.at)
        word.pieces.append((self._next((len(self.text) if end < 0 else end) - self.at), False))
        word.quoted = word.unclosed = True

    def _double(self, word: Word) -> None:
        if self.text.find('"', self.at + 1) < 0:
            self._unclosed(word)
            return
        word.quoted = True
        self._next()
        while self.at < len(self.text) and self.text[self.at] != '"':
            if self.text[self.at] == "\\" and self.text[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`", "\n"):
                taken = self._next(2)
                if taken != "\\\n":
                    word.pieces.append((taken[1:], False))
            elif self.text[self.at] in "$`":
                found = self._expansion()
                # "${ARGS[@]}" stays as many words; anything else in quotes is one piece.
                word.pieces += [(piece, len(found) > 1) for piece in found]
            else:
                word.pieces.append((self._next(), False))
        self._next()

    # Expansions

    def _expansion(self) -> list[str]:
        """The value of what begins at ``$`` or a backquote; ``${name}`` where it is not known."""
        if self.text[self.at] == "`":
            end = self.text.find("`", self.at + 1)
            if end < 0:
                return [self._next()]
            self._next(end - self.at + 1)
            return [open_value("command")]
        following = self.text[self.at + 1 : self.at + 2]
        if following in ("'", '"'):  # $'...' and $"..."
            self._next()
            return []
        if following == "(":
            self._next(1)
            self._balanced("(", ")")
            return [open_value("command")]
        if following == "{":
            self._next(1)
            return self._braced(self._balanced("{", "}"))
        name = _NAME.match(self.text, self.at + 1)
        if name:
            self._next(len(name[0]) + 1)
            return [self._value(name[0])]
        if following and following in "0123456789@*#?!$-":
            self._next(2)
            return [open_value({"@": "arguments", "*": "arguments"}.get(following, following))]
        return [self._next()]

    def _balanced(self, opening: str, closing: str) -> str:
        """The text of a bracketed part, with its brackets; what is never closed ends with the text."""
        start, level = self.at, 0
        while self.at < len(self.text):
            character = self._next()
            level += (character == opening) - (character == closing)
            if level == 0:
                break
        return self.text[start : self.at]

    def _braced(self, inside: str) -> list[str]:
        array = re.fullmatch(r"\{([A-Za-z_]\w*)\[[@*]\]\}", inside)
        if array:
            found = self.arrays.get(array[1])
            return [open_value(array[1])] if found is None else [piece for value in found for piece in (value, " ")][:-1]
        match = _EXPANSION.fullmatch(inside)
        if match is None:
            name = re.match(r"\{[#!]?(\w+)", inside)
            return [open_value(name[1] if name else "expression")]
        value = self._value(match[1])
        if match[2] and (value == open_value(match[1]) or not value):
            nested = Reader(match[3], self.line, self.variables, self.depth + 1) if self.depth < DEEPEST else None
            return [match[3] if nested is None else nested.all_text()]
        return [value]

    def all_text(self) -> str:
        """The whole text with its expansions, as inside double quotes."""
        word = Word(self.line)
        while self.at < len(self.text):
            if self.text[self.at] in "$`":
                word.pieces += [(piece, False) for piece in self._expansion()]
            elif self.text[self.at] in "\"'":
                self._next()
            else:
                word.pieces.append((self._next(), False))
        return word.text

    def _value(self, name: str) -> str:
        value = self.variables.get(name)
        return open_value(name) if value is None else value

    # Variables

    def assign(self, name: str, more: bool, value: str) -> None:
        old = self.variables.get(name)
        if more:
            value = f"{open_value(name) if old is None else old}{value}"
        self.variables[name] = value[:LONGEST_VALUE]
        if self.blocks:
            self.blocks[-1].add(name)

    def unknown(self, name: str) -> None:
        self.variables[name] = None

    def open_block(self) -> None:
        self.blocks.append(set())

    def branch(self) -> None:
        """Whatever this branch assigned may not have happened."""
        if self.blocks:
            for name in self.blocks[-1]:
                self.variables[name] = None

    def close_block(self) -> None:
        self.branch()
        if self.blocks:
            assigned = self.blocks.pop()
            if self.blocks:
                self.blocks[-1] |= assigned
