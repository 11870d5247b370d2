"""Calls of ATC in other texts than plain shell: makefiles, Python programs, and the code blocks of documents."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace

from .calls import AtcCall, find_calls
from .shell import LONGEST_VALUE, open_value

_FENCE = re.compile(r"^[ \t>]*(```+|~~~+)[ \t]*([\w+-]*)")
_PROMPT = re.compile(r"^\s*(?:[$>]|\S*[@:]\S*[$#])\s+(?=\S)")
_ROOT_PROMPT = re.compile(r"^\s*#\s+(?=(?:\S*/)?atc\s)")
_SHELL_FENCES = {"", "sh", "bash", "shell", "console", "text", "txt", "zsh", "shell-session", "powershell", "linux", "cmd"}
_PLAIN_CALL = re.compile(r"^\s*(?:[$#>]\s+)?(?:\S*/)?atc\s+-")
_MAKE_ASSIGNMENT = re.compile(r"^(?:export\s+|override\s+)?([A-Za-z_][\w.-]*)\s*(\?|\+|::?)?=\s*(.*)$")
_MAKE_VARIABLE = re.compile(r"\$(?:\(([^()$]*)\)|\{([^{}$]*)\}|([@<^?*+|%])|(\$)|([A-Za-z0-9]))")
_CALL_IN_TEXT = re.compile(r"(?:^|[\s;&|/(])atc\s+-", re.ASCII)
_DEEPEST_VARIABLE = 12


def calls_in_make(text: str) -> list[AtcCall]:
    """Calls in the recipes of a makefile; its variables are put in first, as make does, so that a ``;`` inside one splits the line."""
    lines = text.replace("\r\n", "\n").split("\n")
    variables: dict[str, str] = {}
    recipe: list[str] = []
    pending: tuple[str, str, str] | None = None
    for line in lines:
        if pending is not None:
            name, sign, value = pending
            value += " " + line.strip().removesuffix("\\").strip()
            pending = (name, sign, value) if line.rstrip().endswith("\\") else None
            _set(variables, name, sign, value)
            recipe.append("")
            continue
        match = None if line.startswith("\t") else _MAKE_ASSIGNMENT.match(line)
        if match:
            value = match[3].rstrip()
            if value.endswith("\\"):
                pending = (match[1], match[2] or "", value[:-1].strip())
            _set(variables, match[1], match[2] or "", value.removesuffix("\\").strip())
            recipe.append("")
        elif line.startswith("\t") or (recipe and recipe[-1].rstrip().endswith("\\")):
            recipe.append(line.lstrip("\t").lstrip("@-+") if line.startswith("\t") else line)
        else:
            recipe.append("")
    return find_calls("\n".join(_expanded(line, variables) for line in recipe))


def _set(variables: dict[str, str], name: str, sign: str, value: str) -> None:
    value = re.sub(r"\s+#.*$", "", value)
    if sign == "+":
        value = f"{variables[name]} {value}" if name in variables else value
    elif sign == "?" and name in variables:
        return
    variables[name] = value[:LONGEST_VALUE]


def _expanded(line: str, variables: dict[str, str], depth: int = 0) -> str:
    """A line with make's variables put in; ``$$`` is left to the shell, functions and unknown variables stay open."""

    def one(match: re.Match[str]) -> str:
        if match[4]:
            return "$"
        name = (match[1] or match[2] or match[5] or "").strip()
        if name in variables and depth < _DEEPEST_VARIABLE:
            return _expanded(variables[name], variables, depth + 1)[:LONGEST_VALUE]
        return open_value(re.sub(r"\W+", "_", name) or "target")

    return _MAKE_VARIABLE.sub(one, line)


def calls_in_markdown(text: str) -> list[AtcCall]:
    """Calls in the code blocks of a document, and in lines outside them that begin with the program."""
    found: list[AtcCall] = []
    block: list[str] | None = None
    kind = mark = ""
    start = 0
    loose: list[str] = []
    lines = text.replace("\r\n", "\n").split("\n")
    for number, line in enumerate(lines, 1):
        fence = _FENCE.match(line)
        if block is None and fence:
            block, kind, mark, start = [], fence[2].lower(), fence[1][:3], number + 1
        elif block is not None and fence and fence[1][:3] == mark and not fence[2]:
            found += _block(block, kind, start)
            block = None
        elif block is not None:
            block.append(line)
        elif loose or _PLAIN_CALL.match(line):
            loose.append(line)
            if not line.rstrip().endswith("\\"):
                found += _block(loose, "", number - len(loose) + 1)
                loose = []
    if block:
        found += _block(block, kind, start)
    return found + (_block(loose, "", len(lines) - len(loose) + 1) if loose else [])


def _block(lines: list[str], kind: str, start: int) -> list[AtcCall]:
    if kind in ("python", "py", "python3"):
        return [replace(call, line=call.line + start - 1) for call in calls_in_python("\n".join(lines))]
    if kind in ("make", "makefile"):
        return [replace(call, line=call.line + start - 1) for call in calls_in_make("\n".join(lines))]
    if kind not in _SHELL_FENCES:
        return []
    lines = [_PROMPT.sub("", line) for line in lines]
    if kind not in ("sh", "bash", "shell", "zsh"):  # there `#` begins a comment, elsewhere it is the prompt of root
        lines = [_ROOT_PROMPT.sub("", line) for line in lines]
    return find_calls("\n".join(lines), first_line=start)


def calls_in_python(text: str) -> list[AtcCall]:
    """Calls in string literals and argument lists of a Python program; what a name holds stays open. Text that Python refuses has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old programs have invalid escapes
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    try:
        return sorted(_python_calls(tree), key=lambda call: call.line)
    except RecursionError:
        return []


def _python_calls(node: ast.AST) -> Iterator[AtcCall]:
    if isinstance(node, (ast.List, ast.Tuple)):
        words = [_python_text(item) for item in node.elts]
        if words and words[0] is not None and words[0].rpartition("/")[2] == "atc" and len(words) > 1:
            yield AtcCall(tuple(open_value("value") if word is None else word for word in words[1:]), node.lineno)
            return
    whole = _python_text(node)
    if whole is not None and isinstance(node, ast.expr):
        if _CALL_IN_TEXT.search(whole):
            yield from (replace(call, line=node.lineno) for call in find_calls(whole))
        return
    for child in ast.iter_child_nodes(node):
        yield from _python_calls(child)


def _python_text(node: ast.AST) -> str | None:
    """The text an expression makes, with its unknown parts open; None for what makes no text."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_python_text(part) or "" if isinstance(part, ast.Constant) else _python_name(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _python_text(node.left), _python_text(node.right)
        if left is None and right is None:
            return None
        return (_python_name(node.left) if left is None else left) + (_python_name(node.right) if right is None else right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return _python_text(node.left)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("format", "strip", "split"):
        return _python_text(node.func.value)
    return None


def _python_name(node: ast.AST) -> str:
    inner = node.value if isinstance(node, ast.FormattedValue) else node
    if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id in ("str", "int") and len(inner.args) == 1:
        inner = inner.args[0]
    name = inner.id if isinstance(inner, ast.Name) else inner.attr if isinstance(inner, ast.Attribute) else "value"
    return open_value(re.sub(r"\W+", "_", name) if name.isascii() else "value")
