"""Kernels and parsers that the user declares in ``*.toml`` files of the overlay folder. They win over all other facts.

Everything is checked: an unknown key, a wrong type or an unknown SoC is one error that names the file and the key.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar

from ..errors import UsageError
from ..text import Text, say
from .model import Confidence
from .overlay import overlay_folder
from .tables import cann_order, opset_numbers, table
from .versions import is_version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LIMIT = 1 << 20
"""Bytes of one file."""
_OPSETS = re.compile(r"[0-9]{1,2}(-[0-9]{1,2})?(,[0-9]{1,2}(-[0-9]{1,2})?)*", re.ASCII)
_DTYPES = frozenset(
    re.findall(
        r"\w+",
        "bool int4 int8 int16 int32 int64 uint1 uint4 uint8 uint16 uint32 uint64 float16 bfloat16 float32 double"
        " float8_e4m3fn float8_e5m2 complex32 complex64 complex128 string",
    )
)
Item = TypeVar("Item")


@dataclass(frozen=True)
class Declaration:
    """What kernels and parsers share. No ``cann`` means every CANN state."""

    file: Path
    key: str
    opsets: frozenset[int]
    cann: frozenset[str] | None
    confidence: Confidence
    note: str

    @property
    def evidence(self) -> str:
        return f"declared in {self.file}" + (f": {self.note}" if self.note else "")

    def at(self, cann: str) -> bool:
        return self.cann is None or cann in self.cann


@dataclass(frozen=True)
class DeclaredKernel(Declaration):
    """An operator that ATC parses and an engine runs.

    Attributes:
        socs: None for every SoC.
        dtypes: of each input, the last for all further inputs; an empty set takes any.
    """

    socs: frozenset[str] | None
    engine: Literal["aicore", "aicpu"]
    dtypes: tuple[frozenset[str], ...]


@dataclass(frozen=True)
class DeclaredParser(Declaration):
    """An operator that a parser plug-in of the user's makes into IR operators; the kernel tables say which engine runs them."""

    ir: tuple[str, ...]


@dataclass(frozen=True)
class Declarations:
    kernels: Mapping[str, tuple[DeclaredKernel, ...]]
    parsers: Mapping[str, tuple[DeclaredParser, ...]]


def declarations() -> Declarations:
    """All declarations by operator (``op`` or ``domain::op``), in the order of the files' names and of their lines.

    Raises:
        UsageError: a file cannot be read or says something that is not understood.
    """
    return _declarations(overlay_folder())


def forget() -> None:
    """Read the files anew at the next question."""
    _declarations.cache_clear()


@cache
def _declarations(folder: Path) -> Declarations:
    kernels: dict[str, list[DeclaredKernel]] = {}
    parsers: dict[str, list[DeclaredParser]] = {}
    for path in sorted(folder.glob("*.toml")) if folder.is_dir() else ():
        data = _load(path)
        for entry in _entries(path, data, "kernel"):
            kernel = _kernel(entry)
            kernels.setdefault(kernel.key, []).append(kernel)
        for entry in _entries(path, data, "parser"):
            parser = _parser(entry)
            parsers.setdefault(parser.key, []).append(parser)
    return Declarations({key: tuple(found) for key, found in kernels.items()}, {key: tuple(found) for key, found in parsers.items()})


def _load(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            raw = file.read(_LIMIT + 1)
        if len(raw) > _LIMIT:
            raise ValueError("more than 1 MB")
        data = tomllib.loads(raw.decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(
            say(
                "your declarations `{path}` cannot be read: {error}",
                "无法读取您的声明文件 `{path}`：{error}",
                path=path,
                error=str(error)[:120] or type(error).__name__,
            ),
            say("expected a TOML file with [[kernel]] or [[parser]] tables", "应为含 [[kernel]] 或 [[parser]] 的 TOML 文件"),
            say("mend it or move it out of the folder", "请修正，或移出该目录"),
        ) from error
    for name in data:
        if name not in ("kernel", "parser"):
            _wrong(path, name, say("it is not known", "未知的键"), say("kernel or parser", "kernel 或 parser"))
    return data


def _wrong(path: Path, key: str, problem: Text, expected: Text) -> NoReturn:
    raise UsageError(
        say("`{path}`: `{key}`: {problem}", "`{path}`：`{key}`：{problem}", path=path, key=key, problem=problem),
        say("expected {expected}", "应为 {expected}", expected=expected),
        say("see the page about targets for the keys", "各键的含义见目标文档"),
    )


@dataclass(frozen=True)
class _Entry:
    """One table of a file; ``place`` is what an error calls it."""

    path: Path
    place: str
    data: Mapping[str, Any]

    def wrong(self, key: str, expected: Text) -> NoReturn:
        found = str(self.data.get(key, ""))[:80]
        problem = (
            say("{found} is not understood", "无法理解 {found}", found=found) if key in self.data else say("it is missing", "缺少该键")
        )
        _wrong(self.path, f"{self.place}.{key}", problem, expected)

    def only(self, known: Iterable[str]) -> None:
        for key in self.data:
            if key not in known:
                expected = say("one of {known}", "以下之一：{known}", known=", ".join(known))
                _wrong(self.path, f"{self.place}.{key}", say("it is not known", "未知的键"), expected)

    def get(self, key: str, read: Callable[[Any], Item | None], expected: Text, default: Any = ...) -> Item:
        """The value as ``read`` understands it (None: not at all)."""
        value = read(self.data[key]) if key in self.data else None if default is ... else read(default)
        if value is None:
            self.wrong(key, expected)
        return value


def _entries(path: Path, data: Mapping[str, Any], kind: str) -> list[_Entry]:
    found = data.get(kind, [])
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        _wrong(path, kind, say("it is not a list of tables", "不是表的列表"), say("[[{kind}]]", "[[{kind}]]", kind=kind))
    return [_Entry(path, f"{kind}[{index}]", item) for index, item in enumerate(found)]


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and value and value.isprintable() and "::" not in value else None


def _note(value: Any) -> str | None:
    return value if isinstance(value, str) and value.isprintable() else None


def _opsets(value: Any) -> frozenset[int] | None:
    if not isinstance(value, str) or not _OPSETS.fullmatch(value):
        return None
    return frozenset(opset_numbers(value)) or None


def _names(value: Any, known: Callable[[str], bool]) -> frozenset[str] | None:
    """A name or a list of names, all known."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and known(name) for name in names):
        return None
    return frozenset(names)


def _dtypes(value: Any) -> tuple[frozenset[str], ...] | None:
    if not isinstance(value, list):
        return None
    inputs = [frozenset(item) for item in value if isinstance(item, list) and all(isinstance(dtype, str) for dtype in item)]
    return tuple(inputs) if len(inputs) == len(value) and all(item <= _DTYPES for item in inputs) else None


def _choice(*choices: str) -> Callable[[Any], Any]:
    return lambda value: value if value in choices else None


def _ir(value: Any) -> tuple[str, ...] | None:
    names = [_name(item) for item in value] if isinstance(value, list) else []
    found = tuple(name for name in names if name is not None)
    return found if found and len(found) == len(names) else None


def _cann_known(name: str) -> bool:
    return name == "*" or name in cann_order() or is_version(name)


def _soc_known(name: str) -> bool:
    return name == "*" or name in table("socs.json")["socs"]


_COMMON = ("domain", "op", "opsets", "cann", "confidence", "note")


def _common(entry: _Entry) -> dict[str, Any]:
    domain: str = entry.get("domain", lambda value: value if value == "" else _name(value), say("a text", "文本"), "")
    op = entry.get("op", _name, say("the name of an ONNX operator", "ONNX 算子名"))
    cann = entry.get(
        "cann",
        lambda value: _names(value, _cann_known),
        say('"*", a CANN version or a list of them', '"*"、CANN 版本或版本列表'),
        "*",
    )
    return {
        "file": entry.path,
        "key": op if domain in ("", "ai.onnx") else f"{domain}::{op}",
        "opsets": entry.get("opsets", _opsets, say('opsets such as "11-18" or "13,15"', 'opset 范围，例如 "11-18" 或 "13,15"')),
        "cann": None if "*" in cann else cann,
        "confidence": entry.get(
            "confidence",
            _choice("documented", "observed", "inferred"),
            say('"documented", "observed" or "inferred"', '"documented"、"observed" 或 "inferred"'),
            "documented",
        ),
        "note": entry.get("note", _note, say("one line of text", "一行文本"), ""),
    }


def _kernel(entry: _Entry) -> DeclaredKernel:
    entry.only((*_COMMON, "socs", "engine", "dtypes"))
    socs = entry.get(
        "socs",
        lambda value: _names(value, _soc_known),
        say('"*" or soc_version names of `jumar targets list`', '"*" 或 `jumar targets list` 中的 soc_version'),
    )
    return DeclaredKernel(
        **_common(entry),
        socs=None if "*" in socs else socs,
        engine=entry.get("engine", _choice("aicore", "aicpu"), say('"aicore" or "aicpu"', '"aicore" 或 "aicpu"')),
        dtypes=entry.get(
            "dtypes", _dtypes, say("a list for each input, of {known}", "每个输入一个列表，取值：{known}", known=_dtype_words()), []
        ),
    )


def _parser(entry: _Entry) -> DeclaredParser:
    entry.only((*_COMMON, "ir"))
    return DeclaredParser(**_common(entry), ir=entry.get("ir", _ir, say("a list of IR operators", "IR 算子的列表")))


def _dtype_words() -> str:
    return ", ".join(sorted(_DTYPES))
