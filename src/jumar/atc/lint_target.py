"""The chip and the CANN version a call is for: is the soc_version a real name, does the chip take the flag, is the flag there yet?"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..targets.tables import table
from ..targets.versions import version_key
from ..text import Text, say
from .grammar import GEAR_FLAGS, parse_shape_ranges, parse_shapes
from .options import Options, Problem, atc_flags, split_symbols, symbolic

_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def check_target(options: Options, cann: str | None = None, soc: str | None = None) -> Iterator[Problem]:
    """Problems with the chip's name, with what the chip takes, and with flags that are newer than the CANN release."""
    yield from _name(options.get("soc_version"))
    given = options.get("soc_version")
    name = soc if not given or symbolic(given) else given
    chip = table("socs.json")["socs"].get(name)
    if chip is not None:
        for rule in table("atc.json")["chips"]:
            yield from _chip(rule, options, str(name), chip["short"])
    if soc is not None and given and not symbolic(given) and given != soc and given in table("socs.json")["socs"]:
        message = say("the call is for {given}, not for {soc}", "该命令面向 {given}，而不是 {soc}", given=given, soc=soc)
        why = say("an .om for another chip is refused when it is loaded", "为其他芯片构建的 .om 在加载时会被拒绝")
        remedy = say("write --soc_version={soc}", "请写成 --soc_version={soc}", soc=soc)
        yield Problem("AT909", "warning", message, why, remedy, "soc_version", (), (atc_flags()["soc_version"].source,))
    if cann is not None:
        yield from _release(options, cann)


def _soc_problem(message: Text, why: Text, remedy: Text, *, sure: bool = True, evidence: str = "") -> Problem:
    source = evidence or atc_flags()["soc_version"].source
    return Problem("AT905", "error" if sure else "warning", message, why, remedy, "soc_version", (), (source,))


def _name(value: str) -> Iterator[Problem]:
    facts = table("socs.json")
    if not value or value in facts["without_public_ini"]:
        return
    if symbolic(value):
        yield from _partly_known(value, facts)
        return
    caution = facts["confusing"].get(value)
    if value in facts["socs"]:
        if caution is not None:
            members = _members(value, facts)
            why = say(
                "as a soc_version it is a chip of the family {short}; the family {name} has other members",
                "作为 soc_version，它是 {short} 系列的芯片；{name} 系列的成员是另外一些芯片",
                name=value,
                short=facts["socs"][value]["short"],
            )
            remedy = say(
                "for one of these write its exact name: {members} (an .om for another chip is refused when it is loaded, 507008)",
                "若为以下芯片，请写确切名称：{members}（为其他芯片构建的 .om 在加载时会被拒绝，507008）",
                members=", ".join(members),
            )
            message = say("--soc_version={name} is easily mistaken", "--soc_version={name} 容易误用", name=value)
            yield _soc_problem(message, why, remedy, sure=False, evidence=facts["socs"][value]["source"])
        return
    yield from _unknown_name(value, facts)


def _unknown_name(value: str, facts: Mapping[str, Any]) -> Iterator[Problem]:
    message = say("--soc_version: `{name}` is not a name ATC knows", "--soc_version：ATC 没有名为 `{name}` 的芯片", name=value[:60])
    file = say("ATC looks for a platform file of exactly this name", "ATC 按该名称查找平台文件")
    members = _members(value, facts)
    if members:
        why = say("it names a family; the platform files are those of its members", "它是系列名；平台文件只有其成员的")
        yield _soc_problem(message, why, say("write one of: {members}", "请写成其中之一：{members}", members=", ".join(members)))
        return
    if value in facts["confusing"]:
        why = say("it names a product, not a chip", "它是产品名，不是芯片名")
        yield _soc_problem(message, why, say("take the Chip Name of `npu-smi info`", "请采用 `npu-smi info` 中的 Chip Name"))
        return
    bare = f"Ascend{value}"
    near = [name for name in (*facts["socs"], *facts["without_public_ini"]) if name.lower() in (value.lower(), bare.lower())]
    close = difflib.get_close_matches(value, facts["socs"], n=2, cutoff=0.85)
    if near:
        yield _soc_problem(message, file, say("write {name}", "请写成 {name}", name=near[0]))
    elif value.strip().lower() == "ascend":
        remedy = say("add the Chip Name of `npu-smi info`, without a blank", "请接上 `npu-smi info` 中的 Chip Name，中间不加空格")
        yield _soc_problem(message, file, remedy)
    else:
        remedy = (
            say("perhaps {names}", "也许应为 {names}", names=", ".join(close))
            if close
            else say("see `jumar targets list`", "请查看 `jumar targets list`")
        )
        # Chips of other releases have names that the public platform files do not hold; a wrong number in a known family, or a
        # word that no chip's name begins with, is a slip.
        number = "_" not in value and any(value.startswith(short) for short in facts["families"])
        slip = number or _word(value) not in map(_word, facts["socs"])
        if not slip:
            message = say("--soc_version: `{name}` is not a known name", "--soc_version：`{name}` 不是已知的名称", name=value[:60])
        why = file if slip else say("no public platform file has this name", "公开的平台文件中没有该名称")
        yield _soc_problem(message, why, remedy, sure=slip)


def _word(name: str) -> str:
    """The letters a name begins with."""
    return re.match(r"[A-Za-z]*", name)[0]  # type: ignore[index]


def _partly_known(value: str, facts: Mapping[str, Any]) -> Iterator[Problem]:
    """`Ascend310310${x}`: whatever the symbol stands for, no name begins like this."""
    first, *_, last = split_symbols(value)
    names = [*facts["socs"], *facts["without_public_ini"]]
    if not any(name.startswith(first) and name.endswith(last) for name in names) and re.fullmatch(r"[\w.-]*", first + last):
        message = say("--soc_version: no chip's name reads like `{name}`", "--soc_version：没有形如 `{name}` 的芯片名", name=value[:60])
        why = say("whatever the variable holds, ATC has no such platform file", "无论变量取何值，ATC 都没有这样的平台文件")
        yield _soc_problem(message, why, say("see `jumar targets list`", "请查看 `jumar targets list`"))


def _members(value: str, facts: Mapping[str, Any]) -> list[str]:
    families: dict[str, list[str]] = facts["families"]
    return next(
        (names for short, names in families.items() if (short.lower() == value.lower() and value not in names) or short == value), []
    )


def _chip(rule: Mapping[str, Any], options: Options, name: str, short: str) -> Iterator[Problem]:
    flag: str = rule["flag"]
    excluded = short in rule["not"] if "not" in rule else short not in rule["only"]
    if not excluded or not _concerned(rule, options):
        return
    if "~" in rule["values"]:
        yield Problem(
            "AT909",
            "error",
            say("{soc} takes no open shapes", "{soc} 不支持不带档位的可变形状", soc=name),
            say(
                "-1 and lo~hi without gears build one model for any size, for which its kernels are not made",
                "不带档位的 -1 和 lo~hi 会构建任意尺寸的动态模型，而该芯片的算子不支持",
            ),
            say(
                "fix the sizes, or list them as gears with --dynamic_batch_size, --dynamic_image_size or --dynamic_dims",
                "请固定尺寸，或用 --dynamic_batch_size、--dynamic_image_size、--dynamic_dims 列出档位",
            ),
            flag,
            (),
            (rule["sentence"], rule["source"]),
        )
        return
    value = options.get(flag)
    yield Problem(
        "AT909",
        "warning" if rule.get("mild") else "error",
        say("{soc} does not take --{flag}={value}", "{soc} 不支持 --{flag}={value}", soc=name, flag=flag, value=value),
        say("the public sources name other chips for it", "公开资料中该取值只用于其他芯片"),
        say("leave it out, or choose another value", "请去掉它或换一个取值"),
        flag,
        (rule["code"],) if "code" in rule else (),
        (rule["sentence"], rule["source"]),
    )


def _concerned(rule: Mapping[str, Any], options: Options) -> bool:
    if "~" not in rule["values"]:
        return options.get(rule["flag"]) in rule["values"]
    if any(options.get(gear) for gear in GEAR_FLAGS):
        return False  # a range beside gears is a problem of its own
    try:
        shapes = (*parse_shapes(options.get("input_shape")), *parse_shape_ranges(options.get("input_shape_range")))
    except ValueError:
        return True
    return any(shape.ranged or shape.open for shape in shapes)


def _age(cann: str) -> tuple[tuple[int, int], ...] | None:
    """A key of the release for comparing; None for a source tree that is newer than all releases."""
    if cann == "master":
        return None
    return version_key(cann) if cann[:1].isdigit() else version_key("5.1")  # the source trees of 2021 and 2022


def _release(options: Options, cann: str) -> Iterator[Problem]:
    age = _age(cann)
    if age is None:
        return
    for name, value in options.values.items():
        flag = atc_flags()[name]
        for since, what in ((flag.since, name), (flag.values_since.get(value), f"{name}={value}")):
            found = None if since is None else _NUMBERS.match(since)
            # "9.x": already the first alpha of 9.0 has it.
            if found and age < version_key(found[0] if "." in found[0] else f"{found[0]}.0.0.alpha0"):
                yield Problem(
                    "AT909",
                    "error",
                    say("CANN {cann} has no --{what}", "CANN {cann} 没有 --{what}", cann=cann, what=what),
                    say("it came with {since}", "它从 {since} 开始提供", since=since),
                    _older(name, value),
                    name,
                    (),
                    (flag.source,),
                )


def _older(name: str, value: str) -> Text:
    if name == "precision_mode_v2":
        older = next((v1 for v1, v2 in sorted(table("atc.json")["v2_of"].items()) if v2 == value), None)
        if older is not None:
            return say("write --precision_mode={older}", "请写成 --precision_mode={older}", older=older)
    return say("leave it out", "请去掉它")
