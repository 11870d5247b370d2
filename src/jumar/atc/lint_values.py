"""Values of single flags: is each one that ATC takes?"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator

from ..targets.tables import table
from ..text import Text, say
from .grammar import is_integer, is_number, split
from .options import Flag, Options, Problem, atc_flags, symbolic

_LONGEST_PATH = 4096
_FRAMEWORKS = {"0": "Caffe", "3": "TensorFlow", "5": "ONNX"}


def check_values(options: Options) -> Iterator[Problem]:
    """Problems of each flag's own value; values that hold symbols are not judged."""
    for name, value in options.values.items():
        flag = atc_flags()[name]
        if flag.removed and value:
            yield _removed(flag)
        elif flag.deprecated:
            yield _deprecated(flag)
        if symbolic(value):
            continue
        if not value:
            # Only values with a list in the parser are compared when they are empty; elsewhere an empty value is none.
            if flag.listed:
                yield bad_value(flag, value, _numbers(flag) if flag.meaning else one_of(flag.allowed, value))
            continue
        own = _OWN.get(name)
        yield from own(flag, value, options) if own else _plain(flag, value)


def bad_value(flag: Flag, value: str, expected: Text, *, why: Text | None = None, atc: str | None = None, sure: bool = True) -> Problem:
    """A value that the flag does not take. ``sure`` is False where only documents say so."""
    refuses = say("ATC refuses the call", "ATC 会拒绝该命令") if sure else say("no public source lists it", "公开资料中没有该值")
    code = atc or (flag.code if sure else None)
    return Problem(
        "AT902",
        "error" if sure else "warning",
        say("--{flag}: `{value}` is not a value it takes", "--{flag}：不接受取值 `{value}`", flag=flag.name, value=value[:80]),
        why or refuses,
        expected,
        flag.name,
        (code,) if code else (),
        (flag.source,),
    )


def one_of(values: tuple[str, ...] | list[str], given: str) -> Text:
    """What to write: the nearest value where one is near, else all of them."""
    # `ERROR` for `error`, `high_preformance` for `high_performance`.
    near = [value for value in values if value.lower() == given.lower()] or difflib.get_close_matches(given, values, n=1, cutoff=0.75)
    known = ", ".join(values)
    if near:
        return say("write `{near}` (it takes: {known})", "请写成 `{near}`（可取值：{known}）", near=near[0], known=known)
    return say("write one of: {known}", "请写成其中之一：{known}", known=known)


def _removed(flag: Flag) -> Problem:
    return Problem(
        "AT910",
        "error",
        say("--{flag} was removed from ATC", "--{flag} 已从 ATC 中移除", flag=flag.name),
        say("any value is refused", "任何取值都会被拒绝"),
        say("leave it out; tune with AOE instead", "请去掉该参数，调优请改用 AOE"),
        flag.name,
        (flag.code,) if flag.code else (),
        (flag.source,),
    )


def _deprecated(flag: Flag) -> Problem:
    words = (flag.deprecated or "").replace("--", "").split()
    instead = next((word for word in words if word in atc_flags()), None)
    return Problem(
        "AT910",
        "info",
        say("--{flag} is deprecated", "--{flag} 已废弃", flag=flag.name),
        say("newer ATC still takes it, with a warning", "新版 ATC 仍接受它，但会告警"),
        say("leave it out", "请去掉该参数") if instead is None else say("use --{instead} instead", "请改用 --{instead}", instead=instead),
        flag.name,
        evidence=(flag.source,),
    )


def _plain(flag: Flag, value: str) -> Iterator[Problem]:
    if flag.type == "bool" and value.lower() not in {word for words in table("atc.json")["words"].values() for word in words}:
        yield bad_value(flag, value, say("write true or false", "请写 true 或 false"), atc="E10003")
    elif flag.type == "bool-string" and value not in ("true", "false"):
        yield bad_value(flag, value, say("write true or false", "请写 true 或 false"), sure=False)
    elif flag.allowed and value not in flag.allowed:
        # A value that other parts of the code know may pass in some releases.
        expected = _numbers(flag) if flag.meaning else one_of(flag.allowed, value)
        yield bad_value(flag, value, expected, sure=flag.refused and value not in flag.extra_values)


def _numbers(flag: Flag) -> Text:
    if flag.meaning:
        return say(
            "write one of: {known}", "请写成其中之一：{known}", known=", ".join(f"{key} ({text})" for key, text in flag.meaning.items())
        )
    return say("write one of: {known}", "请写成其中之一：{known}", known=", ".join(flag.allowed))


def _input_format(flag: Flag, value: str, options: Options) -> Iterator[Problem]:
    by_framework: dict[str, list[str]] = table("atc.json")["flags"]["input_format"]["by_framework"]
    framework = _FRAMEWORKS.get(options.get("framework"))
    taken = by_framework[framework] if framework else sorted({item for items in by_framework.values() for item in items})
    if value not in taken:
        yield bad_value(flag, value, one_of(taken, value), atc="E10001")


def _output_type(flag: Flag, value: str, options: Options) -> Iterator[Problem]:
    """``FP16``, or ``node:0:FP16;other:0:FP32``."""
    nodes = [node.strip() for node in split(options.get("out_nodes"), ";")]
    for entry in split(value, ";"):
        parts = entry.strip().rsplit(":", 2)
        kind = parts[-1].strip()
        if len(parts) == 2:
            expected = say("write TYPE, or NODE:INDEX:TYPE;...", "请写 TYPE，或 NODE:INDEX:TYPE;...")
            yield bad_value(flag, entry, expected)
            continue
        if kind not in flag.allowed:
            yield bad_value(flag, kind, one_of(flag.allowed, kind))
        if len(parts) == 3 and not is_number(parts[1]):
            yield bad_value(flag, entry, say("the index must be a number from 0 on", "序号应为从 0 开始的数字"))
        elif len(parts) == 3 and nodes and f"{parts[0]}:{parts[1]}" not in nodes and not symbolic(options.get("out_nodes")):
            yield bad_value(flag, entry, say("name it in --out_nodes too", "请同时写入 --out_nodes"))


def _booleans(flag: Flag, value: str, _options: Options) -> Iterator[Problem]:
    for word in value.split(","):
        if word not in ("true", "false"):
            yield bad_value(flag, value, say("write true or false, separated by commas", "请写 true 或 false，以逗号分隔"), atc="E10005")
            return


def _out_nodes(flag: Flag, value: str, _options: Options) -> Iterator[Problem]:
    for entry in split(value, ";"):
        name, colon, index = entry.strip().rpartition(":")
        if not entry.strip() or (colon and not name):
            yield bad_value(flag, entry, say("write NODE:INDEX;NODE:INDEX", "请写 NODE:INDEX;NODE:INDEX"), atc="E11017")
        elif colon and not is_number(index):
            yield bad_value(flag, entry, say("the index must be a number from 0 on", "序号应为从 0 开始的数字"), atc="E10014")


def _output(flag: Flag, value: str, options: Options) -> Iterator[Problem]:
    if value.endswith("/"):
        expected = say("add a file name after the last `/`", "请在最后的 `/` 之后加上文件名")
        yield bad_value(flag, value, expected, why=say("it names a directory", "它是一个目录"), atc="E10022")
    elif len(value.encode()) >= _LONGEST_PATH:
        yield bad_value(flag, value, say("choose a shorter path", "请使用更短的路径"), atc="E10021")
    elif value.endswith(".om") and options.get("mode") in ("", "0"):
        yield Problem(
            "AT913",
            "warning",
            say("--output ends in .om", "--output 以 .om 结尾"),
            say("ATC appends .om itself: the file will be `{name}.om`", "ATC 会自动追加 .om：文件将是 `{name}.om`", name=value[-60:]),
            say("leave the suffix out", "请去掉后缀"),
            "output",
            evidence=(flag.source,),
        )


def _model(flag: Flag, value: str, _options: Options) -> Iterator[Problem]:
    if len(value.encode()) >= _LONGEST_PATH:
        yield bad_value(flag, value, say("choose a shorter path", "请使用更短的路径"), atc="E10021")


def _lower_limit(flag: Flag, value: str, _options: Options) -> Iterator[Problem]:
    if not is_integer(value) or int(value) < -1:
        yield bad_value(flag, value, say("write a whole number from -1 on", "请写不小于 -1 的整数"), sure=False)


def _core_numbers(flag: Flag, value: str, _options: Options) -> Iterator[Problem]:
    counts = value.split("|")
    if len(counts) > 2 or not all(is_number(count) or (not count and len(counts) == 2) for count in counts):
        yield bad_value(flag, value, say("write CUBE|VECTOR, two numbers", "请写 CUBE|VECTOR 两个数字"), sure=False)


_OWN: dict[str, Callable[[Flag, str, Options], Iterator[Problem]]] = {
    "input_format": _input_format,
    "output_type": _output_type,
    "is_input_adjust_hw_layout": _booleans,
    "is_output_adjust_hw_layout": _booleans,
    "out_nodes": _out_nodes,
    "output": _output,
    "model": _model,
    "static_model_ops_lower_limit": _lower_limit,
    "aicore_num": _core_numbers,
}
