"""Finds the calls of ATC in shell text.

Mistakes that cut a call into pieces (an unquoted ``;``, a lost backslash, flags that are glued together) are reported and the pieces put
together again, so that one mistake is one problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..text import Text, say
from .options import Problem, atc_flags, nearest_flag, symbolic
from .shell import ASSIGNMENT, DEEPEST, Command, Inner, Reader, Word

_PLACEHOLDER = re.compile(r"[{<][A-Za-z_]+(?: [A-Za-z_]+){1,4}[}>]")
_OPEN_ANGLE = re.compile(r"(?<==)<[A-Za-z_][\w -]*>")
_FLAG_INSIDE = re.compile(r"(?<=[^\s-])(--(?:[a-z][a-z0-9_]*)=)")
_OPENING = {"if", "for", "while", "until", "case", "select"}
_CLOSING = {"fi", "done", "esac"}
_BRANCH = {"else", "elif"}
_LEADING = {"then", "do", "!", "{", "}", "(", *_BRANCH, *_CLOSING, "if", "while", "until"}
_DECLARING = {"export", "local", "declare", "readonly", "typeset"}
_SPEAKING = {
    "echo",
    "printf",
    "which",
    "man",
    "grep",
    "command",
    "type",
    "alias",
    "test",
    "[",
    "[[",
    "cp",
    "mv",
    "rm",
    "ls",
    "cd",
    "source",
}


@dataclass(frozen=True)
class AtcCall:
    """One call: the words after the program's name, the line of the first word, and what went wrong while reading them."""

    words: tuple[str, ...]
    line: int
    problems: tuple[Problem, ...] = ()


def find_calls(text: str, *, first_line: int = 1, variables: dict[str, str | None] | None = None, depth: int = 0) -> list[AtcCall]:
    """All calls of ATC in shell text, in order.

    Args:
        text: the text; lines may end in LF or CRLF.
        first_line: number of its first line in the file.
        variables: values known from outside; None for one whose value is not known.
    """
    crlf = "\r\n" in text
    text = text.replace("\r\n", "\n")
    text = _PLACEHOLDER.sub(lambda match: match[0].replace(" ", "_"), text)
    text = _OPEN_ANGLE.sub(lambda match: "{" + match[0][1:-1] + "}", text)
    reader = Reader(text, first_line, dict(variables or {}), depth)
    calls = _join(reader.commands(), reader)
    inner = [found for item in reader.inner for found in _inside(item, depth)]
    if crlf and any(call.line for call in calls) and "\\\n" in text:
        calls = [AtcCall(call.words, call.line, (*call.problems, _windows())) for call in calls[:1]] + calls[1:]
    return sorted([*calls, *inner], key=lambda call: call.line)


def broken(message: Text, why: Text, remedy: Text, *, sure: bool = True, flag: str | None = None) -> Problem:
    """A call that the shell does not hand over as it is written."""
    return Problem("AT911", "error" if sure else "warning", message, why, remedy, flag)


def _windows() -> Problem:
    return broken(
        say("the lines end in CR LF", "行尾为 CR LF"),
        say(
            "a backslash before CR continues no line, and CR becomes part of the last word",
            "CR 之前的反斜杠不起续行作用，且 CR 会成为最后一个词的一部分",
        ),
        say("convert the file (`dos2unix`)", "请转换该文件（`dos2unix`）"),
        sure=False,
    )


def _inside(item: Inner, depth: int) -> list[AtcCall]:
    return find_calls(item.text, first_line=item.line, variables=item.variables, depth=depth + 1) if depth < DEEPEST else []


def _join(commands: Iterator[Command], reader: Reader) -> list[AtcCall]:
    """Calls among the commands; the pieces of one that was cut are put together."""
    calls: list[AtcCall] = []
    before: Command | None = None
    for command in commands:
        if calls and before is not None and before.words and _continues(calls[-1], before, command):
            calls[-1] = _mended(calls[-1], before, command)
            before = command
            continue
        found = _call(command, reader)
        if found is not None:
            calls.append(found)
            before = command
        elif command.words or command.ended_by == "\n":
            before = None
    return calls


def _continues(call: AtcCall, before: Command, command: Command) -> bool:
    """Whether a command is really the rest of the call before it."""
    if not command.words:
        return False
    first = command.words[0].text
    if before.ended_by == "\n":
        # A flag at the start of a line is no program: the backslash before it is missing.
        return first.startswith("--") and first[2:].partition("=")[0].replace("-", "_") in atc_flags()
    if before.ended_by == ";" and before.glued and call.words and "=" in call.words[-1]:
        return re.fullmatch(r"[^\s=]+:[\[\]\d,~$\w{}-]*|[\d,~-]+", first) is not None
    return False


def _mended(call: AtcCall, before: Command, command: Command) -> AtcCall:
    words = [word for item in command.words for word in item.split()]
    if before.ended_by == ";":
        flag = call.words[-1].partition("=")[0]
        problem = broken(
            say("`;` in the value of {flag} is not quoted", "{flag} 的值中的 `;` 没有加引号", flag=flag),
            say(
                "the shell ends the command there: `{rest}` is run as a program",
                "shell 会在此结束命令：`{rest}` 会被当作程序执行",
                rest=words[0][:60],
            ),
            say('write {flag}="..." in quotes', '请写成 {flag}="..."，加上引号', flag=flag),
            flag=flag.lstrip("-"),
        )
        known = [item for item in call.problems if item.flag != flag.lstrip("-")]
        return AtcCall((*call.words[:-1], f"{call.words[-1]};{words[0]}", *words[1:]), call.line, (*known, problem))
    problem = broken(
        say("the call ends before `{flag}`", "命令在 `{flag}` 之前就结束了", flag=words[0].partition("=")[0]),
        say("no backslash stands at the very end of the line before it", "其上一行末尾没有反斜杠（反斜杠后不能有空格）"),
        say("end that line in ` \\`, with nothing after it", "请让上一行以 ` \\` 结尾，其后不留任何字符"),
    )
    # A backslash with a blank after it leaves that blank as a word.
    last = call.words[-1:] if call.words and call.words[-1].strip() else ()
    known = [item for item in call.problems if str(item.why) != str(problem.why)]
    return AtcCall((*call.words[:-1], *last, *words), call.line, (*known, problem))


def _call(command: Command, reader: Reader) -> AtcCall | None:
    """The call in one command, if it is one; assignments and blocks are noted on the way."""
    words = list(command.words)
    while words and not words[0].quoted and words[0].text in _LEADING:
        keyword = words.pop(0).text
        if keyword in _OPENING or keyword == "{":
            reader.open_block()
        elif keyword in _BRANCH:
            reader.branch()
        elif keyword in _CLOSING or keyword == "}":
            reader.close_block()
    if command.ended_by == ";;":
        reader.branch()
    if words and words[0].text in ("for", "select", "case", "function"):
        reader.open_block()
        if len(words) > 1 and words[0].text in ("for", "select"):
            reader.unknown(words[1].text)
        return None
    if words and words[0].text in _DECLARING:
        words = [word for word in words[1:] if not word.text.startswith("-")]
    while words:
        match = ASSIGNMENT.match(words[0].text)
        if match is None:
            break
        reader.assign(match[1], bool(match[2]), words.pop(0).text[match.end() :])
    if words and words[0].text in ("read", "getopts", "mapfile", "let"):
        for word in words[1:]:
            reader.unknown(word.text.partition("=")[0])
    if not words:
        return None
    return _program(words, reader)


def _program(words: list[Word], reader: Reader) -> AtcCall | None:
    line = words[0].line
    flat = [(text, word) for word in words for text in word.split()]
    if not flat:
        return None
    program = flat[0][0].rpartition("/")[2]
    if program in ("eval", "bash", "sh", "zsh"):
        script = next((text for text, _ in flat[1:] if re.search(r"(^|[\s/])atc\s+-", text)), None)
        if script is None and program == "eval":
            script = " ".join(text for text, _ in flat[1:])
        if script is not None:
            reader.inner.append(Inner(script, line, dict(reader.variables)))
        return None
    if program in _SPEAKING:
        return None
    texts = [text for text, _ in flat]
    place = next((i for i, text in enumerate(texts) if text.rpartition("/")[2] in ("atc", "atc.bin") and texts[i + 1 : i + 2]), None)
    if place is None or texts[place + 1][:1] not in ("-", "$", "–", "—"):
        flags = [text for text in texts[1:] if text.startswith("--") and text[2:].partition("=")[0] in atc_flags()]
        if not (symbolic(texts[0]) and len(flags) >= 2):
            return None
        place = 0
    call = _cleaned(texts[place + 1 :], flat[place][1].line)
    unclosed = next((word for word in words if word.unclosed), None)
    return call if unclosed is None else AtcCall(call.words, call.line, (*call.problems, _never_closed(unclosed)))


def _never_closed(word: Word) -> Problem:
    return broken(
        say("the quote of {flag} is never closed", "{flag} 的引号没有闭合", flag=word.text.partition("=")[0][:60]),
        say("the shell waits for the rest of the value", "shell 会继续等待值的剩余部分"),
        say("close the quote", "请闭合引号"),
    )


def _cleaned(words: list[str], line: int) -> AtcCall:
    """Words with glued flags separated and typographic marks made plain, each with its problem."""
    clean: list[str] = []
    problems: list[Problem] = []
    for word in words:
        if word[:1] in "–—" and word.lstrip("–—-"):
            problems.append(
                broken(
                    say("`{word}` begins with a typographic dash", "`{word}` 以排版用的长横线开头", word=word[:40]),
                    say("ATC takes it for no flag", "ATC 不会把它识别为参数"),
                    say("write two plain hyphens: --", "请写两个普通的减号：--"),
                )
            )
            word = "--" + word.lstrip("–—-")
        if any(mark in word for mark in "“”‘’") and "=" in word:
            problems.append(
                broken(
                    say("the value of {flag} is in typographic quotes", "{flag} 的值使用了弯引号", flag=word.partition("=")[0]),
                    say("the shell does not know them: they become part of the value", "shell 不识别弯引号，它们会成为值的一部分"),
                    say('write plain quotes: "', '请使用普通引号："'),
                )
            )
            word = re.sub("[“”‘’]", "", word)
        pieces = _FLAG_INSIDE.split(word) if word.startswith("-") else [word]
        if len(pieces) > 1 and all(nearest_flag(piece[2:-1]) for piece in pieces[1::2]):
            problems.append(
                broken(
                    say("`{flag}` is glued to the value before it", "`{flag}` 与前一个值粘连", flag=pieces[1][:-1]),
                    say("no blank stands between them, also across the backslash", "两者之间没有空格（反斜杠续行处也没有）"),
                    say("put a blank before it", "请在其前面加一个空格"),
                )
            )
            clean += [pieces[0], *(a + b for a, b in zip(pieces[1::2], pieces[2::2], strict=True))]
        else:
            clean.append(word)
    return AtcCall(tuple(clean), line, tuple(problems))
