"""A call of ATC as data. :func:`parse_argv` reads a call as ATC's own parser does,
:func:`check` says what ATC would refuse in it, with ATC's code, and :func:`render` writes it out again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..case import Severity, TensorInfo
from ..targets.tables import table
from ..text import Text, say
from .flags import Flag, atc_flags, nearest_flag, write_instead

__all__ = [
    "Flag",
    "ModelFacts",
    "Options",
    "Problem",
    "atc_flags",
    "check",
    "masked",
    "nearest_flag",
    "parse_argv",
    "render",
    "split_symbols",
    "symbolic",
    "symbols",
    "unmasked",
]

# What stands for text that is only known when the command runs: shell and make variables, substitutions, and the placeholders that
# documents use ({batch size}, <soc>). The same pattern finds them in every value.
_SYMBOL = re.compile(r"\$\{[^}]*\}?|\$\([^)]*\)?|`[^`]*`|\$[A-Za-z_]\w*|\$[0-9@*#?]|\{[^{}]*\}|<[^<>]*>|%\([a-z_]+\)[sd]|%[sd]")


@dataclass(frozen=True)
class Options:
    """The flags of one call, in the order given; of a flag given twice the last value stands."""

    values: Mapping[str, str] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def get(self, name: str) -> str:
        """The value given, or "" when the flag is absent. ATC does not tell an empty value from an absent flag."""
        return self.values.get(name, "")

    def effective(self, name: str) -> str:
        """The value given, or ATC's default."""
        return self.get(name) or atc_flags()[name].default

    def with_(self, **changes: str | None) -> Options:
        """A copy with flags set, or removed where the value is None."""
        merged = {**self.values, **{name: value for name, value in changes.items() if value is not None}}
        return Options({name: value for name, value in merged.items() if changes.get(name, "") is not None})


@dataclass(frozen=True)
class Problem:
    """One mistake in a call.

    Attributes:
        code: Jumar's (AT901...), the kind of mistake.
        atc: ATC's own codes for it, the likeliest first; empty where ATC gives none or says nothing.
        flag: the flag to change, without dashes; None for a problem of the whole line.
        severity: ``error`` where ATC refuses the call or makes something else than what is written; else ``warning`` or ``info``.
    """

    code: str
    severity: Severity
    message: Text
    why: Text
    remedy: Text
    flag: str | None = None
    atc: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelFacts:
    """What a call can be compared with: the model's real inputs and outputs, and how many outputs each node has."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...] = ()
    nodes: Mapping[str, int] = field(default_factory=dict)
    initializers: frozenset[str] = frozenset()
    """Names of weights, also of those that old models list as inputs."""
    kind: str = "onnx"
    file: str = ""
    """Name of the model's file: a call that names another one is not compared with it."""

    def input(self, name: str) -> TensorInfo | None:
        return next((item for item in self.inputs if item.name == name), None)


def masked(value: str) -> str:
    """The value with the separators inside its symbols hidden, so that it can be split; :func:`unmasked` brings them back."""
    return _SYMBOL.sub(lambda match: match[0].translate(_HIDE), value)


def unmasked(value: str) -> str:
    return value.translate(_SHOW)


_HIDE = {ord(mark): 0xE000 + index for index, mark in enumerate(":;,~[] ")}
_SHOW = {hidden: mark for mark, hidden in _HIDE.items()}


def symbolic(value: str) -> bool:
    """Whether part of a value is only known when the command runs: ``${bs}``, ``$1``, ``{chip_name}``."""
    return _SYMBOL.search(value) is not None


def symbols(value: str) -> list[str]:
    """The symbols of a value, as written."""
    return _SYMBOL.findall(value)


def split_symbols(value: str) -> list[str]:
    """The fixed parts of a value between its symbols; there is one more of them than symbols."""
    return _SYMBOL.split(value)


def parse_argv(argv: Sequence[str]) -> tuple[Options, tuple[Problem, ...]]:
    """Read the words of a call as ATC's parser does.

    That is getopt's way: ``--name=value``, ``--name value``, ``-name`` with two letters or more, ``-`` for ``_`` inside a name, a name cut
    short where only one flag begins so, and ``--`` after which no flag follows.

    Args:
        argv: the words after the program's name, as the shell hands them over.

    Returns:
        What was read, and problems of the reading itself: unknown flags, missing values, words that belong to no flag.
    """
    values: dict[str, str] = {}
    problems: list[Problem] = []
    words = iter(list(argv))
    for word in words:
        if word == "--":
            problems += [problem for rest in words for problem in _stray(rest)]
            break
        if not word.startswith("-") or word == "-":
            problems += _stray(word)
            continue
        written, equals, value = word.lstrip("-").partition("=")
        flag = atc_flags().get(_full_name(word, written))
        if flag is None:
            if not symbolic(written):
                problems.append(_unknown(written, value))
            continue
        name = flag.name
        if written.replace("-", "_") not in (name, "h"):
            problems.append(_abbreviated(written, flag))
        if not equals and flag.type == "bool":
            value = "true"
        elif not equals:
            following = next(words, None)
            if following is None:
                problems.append(_no_value(flag))
                continue
            value = following
        if name in values and values[name] != value:
            problems.append(_twice(flag, values[name], value))
        values.pop(name, None)
        values[name] = value
    return Options(values), tuple(problems)


def _full_name(word: str, written: str) -> str:
    """The flag that a word names, also where it is cut short; "" when it names none, or several."""
    known = atc_flags()
    name = written.replace("-", "_")
    if name in known:
        return name
    if word == "-h":
        return "help"
    if not word.startswith("--") and not written[:2].isalpha():
        return ""
    begins = [flag for flag in known if flag.startswith(name)] if name else []
    return begins[0] if len(begins) == 1 else ""


def _stray(word: str) -> list[Problem]:
    if symbolic(word):
        return []
    return [
        Problem(
            "AT911",
            "error",
            say("`{word}` belongs to no flag", "`{word}` 不属于任何参数", word=word[:80]),
            say("ATC refuses words beside its flags", "ATC 不接受参数以外的词"),
            say("quote the value it was cut from, or remove it", "请为被拆开的值加引号，或删除该词"),
            evidence=(table("atc.json")["meta"]["parser"],),
        )
    ]


def _abbreviated(written: str, flag: Flag) -> Problem:
    return Problem(
        "AT901",
        "warning",
        say("--{name} is short for --{flag}", "--{name} 是 --{flag} 的缩写", name=written, flag=flag.name),
        say("ATC takes it until another flag begins so", "只要没有其他参数以此开头，ATC 就会接受"),
        say("write --{flag}", "请写成 --{flag}", flag=flag.name),
        flag.name,
        evidence=(table("atc.json")["meta"]["parser"],),
    )


def _no_value(flag: Flag) -> Problem:
    return Problem(
        "AT902",
        "error",
        say("--{flag} has no value", "--{flag} 没有值", flag=flag.name),
        say("it is the last word of the command", "它是命令的最后一个词"),
        say("write --{flag}=VALUE", "请写成 --{flag}=VALUE", flag=flag.name),
        flag.name,
        evidence=(flag.source,),
    )


def _twice(flag: Flag, first: str, second: str) -> Problem:
    return Problem(
        "AT913",
        "warning",
        say(
            "--{flag} is given twice: `{first}` and `{second}`",
            "--{flag} 给出了两次：`{first}` 和 `{second}`",
            flag=flag.name,
            first=first[:60],
            second=second[:60],
        ),
        say("one of the two values has no effect", "其中一个值不起作用"),
        say("keep one of them", "请只保留一个"),
        flag.name,
    )


def _unknown(written: str, value: str) -> Problem:
    name = written.replace("-", "_")
    meant = nearest_flag(name)
    remedy = say("see `atc --help`", "请查看 `atc --help`") if meant is None else write_instead(name, meant, value)
    return Problem(
        "AT901",
        "error",
        say("ATC has no flag --{name}", "ATC 没有参数 --{name}", name=written[:80]),
        say("its parser refuses the whole call before it reads a model", "其解析器在读取模型之前就会拒绝整条命令"),
        remedy,
        meant,
        evidence=(table("atc.json")["meta"]["parser"],),
    )


def render(options: Options) -> list[str]:
    """The words of the call, without the program's name; :func:`parse_argv` reads them back as they were."""
    return [f"--{name}={value}" for name, value in options.values.items()]


def check(options: Options, *, cann: str | None = None, soc: str | None = None, model_facts: ModelFacts | None = None) -> list[Problem]:
    """What ATC would refuse, misread or ignore in a call, judged by the rules of its sources.

    Args:
        cann: judge for this release; None for the newest known.
        soc: the soc_version to judge for where the call leaves it open.
        model_facts: of the model the call names; None leaves out what only the model can tell.

    Returns:
        Problems, errors first. Values that are only known when the command runs (``${bs}``) are not judged.
    """
    from .lint_gears import check_gears
    from .lint_model import check_model
    from .lint_rules import check_rules
    from .lint_target import check_target
    from .lint_values import check_values

    found: Iterable[Problem] = (
        *check_values(options),
        *check_rules(options),
        *check_gears(options, soc),
        *check_target(options, cann, soc),
        *(check_model(options, model_facts) if model_facts is not None else ()),
    )
    order = {"error": 0, "warning": 1, "info": 2}
    return sorted(found, key=lambda problem: order[problem.severity])
