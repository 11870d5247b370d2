"""Questions to the target facts. Tables load on first use and are small; nothing here knows a SoC by name."""

from __future__ import annotations

import difflib
from typing import Any

from ..errors import TargetError
from ..text import Text, say
from .model import SocInfo, Target
from .overlay import imported_versions
from .tables import cann_state, table


def socs() -> tuple[str, ...]:
    """All exact ``soc_version`` names, sorted."""
    return tuple(sorted(table("socs.json")["socs"]))


def profiles() -> dict[str, dict[str, Any]]:
    """Named targets (``--target``): SoC, opset ceiling, confidence and source."""
    return dict(table("profiles.json"))


def cann_states(soc: str | None = None) -> tuple[str, ...]:
    """CANN states for which verdicts can be given, oldest first; with a SoC also the releases imported for it, at the end."""
    known = tuple(table("cann.json")["states"])
    imported = () if soc is None else imported_versions(soc_info(soc).short.lower())
    return (*known, *(cann for cann in imported if cann not in known))


def default_cann() -> str:
    """The newest state whose kernel tables are public."""
    name: str = table("cann.json")["default"]
    return name


def soc_info(name: str) -> SocInfo:
    """Facts of one SoC.

    Raises:
        TargetError: the name is no soc_version; a family name is answered with its members.
    """
    facts = table("socs.json")
    data = facts["socs"].get(name)
    if data is not None:
        return SocInfo(
            name=name,
            products=tuple(data["products"]),
            caution=_caution(name),
            **{key: data[key] for key in SocInfo.__dataclass_fields__ if key not in ("name", "products", "caution")},
        )
    members = _family(name, facts["families"])
    if members:
        raise TargetError(
            say("`{name}` is a family of SoCs, not a soc_version", "`{name}` 是一个 SoC 系列，不是 soc_version 的取值", name=name),
            say("expected one of: {members}", "应为其中之一：{members}", members=", ".join(members)),
            say("pass the exact one with --soc", "请用 --soc 指定确切型号"),
        )
    if name in facts["without_public_ini"]:
        raise TargetError(
            say(
                "`{name}` is named in newer sources but its tables are not public",
                "`{name}` 只在较新的源码中出现，没有公开的算子表",
                name=name,
            ),
            say("expected a SoC of `jumar targets list`", "应为 `jumar targets list` 中的 SoC"),
            say("nothing true can be said of it yet", "目前无法给出可靠结论"),
        )
    fact = facts["confusing"].get(name)
    near = difflib.get_close_matches(name.lower(), [soc.lower() for soc in facts["socs"]], n=3, cutoff=0.6)
    close = [soc for soc in facts["socs"] if soc.lower() in near]
    raise TargetError(
        say("`{name}` is not a soc_version{fact}", "`{name}` 不是 soc_version 的取值{fact}", name=name, fact=f" ({fact})" if fact else ""),
        say(
            "expected an exact name such as {close}",
            "应为确切的名称，例如 {close}",
            close=", ".join(close or ["Ascend310P3", "Ascend310B1"]),
        ),
        say("see `jumar targets list`", "请查看 `jumar targets list`"),
    )


def _caution(name: str) -> Text | None:
    fact = table("socs.json")["confusing"].get(name)
    return None if fact is None else say("{fact}", "{fact}", fact=fact)


def _family(name: str, families: dict[str, list[str]]) -> list[str]:
    """Members of a family given by its short name, whatever the case (``ascend310p`` -> P1, P3, P5, P7)."""
    return next((members for short, members in families.items() if short.lower() == name.lower()), [])


def _profile(profile: str, soc: str | None) -> dict[str, Any]:
    """The named profile; a SoC named beside it must be the same."""
    found = profiles().get(profile)
    if found is None:
        raise TargetError(
            say("`{name}` is not a target profile", "`{name}` 不是目标配置名", name=profile),
            say("expected one of: {known}", "应为其中之一：{known}", known=", ".join(profiles())),
            say("or name the SoC with --soc", "或用 --soc 指定 SoC"),
        )
    if soc is not None and soc != found["soc"]:
        raise TargetError(
            say(
                "--soc {soc} and --target {name} name two SoCs",
                "--soc {soc} 与 --target {name} 指向两个不同的 SoC",
                soc=soc,
                name=profile,
            ),
            say("{name} is {other}", "{name} 对应 {other}", name=profile, other=found["soc"]),
            say("give one of them", "请只给出其中一个"),
        )
    return found


def find_target(soc: str | None = None, *, profile: str | None = None, cann: str | None = None, opset_max: int | None = None) -> Target:
    """Build a target from the command line's three options.

    Raises:
        TargetError: no or two SoCs named, unknown SoC, profile or CANN state, or an impossible opset ceiling.
    """
    note = None
    if profile is not None:
        found = _profile(profile, soc)
        soc = found["soc"]
        note = say(
            "confidence {confidence}: {source}",
            "可信度 {confidence}：{source}",
            confidence=found["confidence"],
            source=Text(found["source"], found["source_zh"]),
        )
        opset_max = found["opset_max"] if opset_max is None else opset_max
    if soc is None:
        raise TargetError(
            say("no target was named", "没有指定目标"),
            say("expected --soc NAME or --target PROFILE", "应给出 --soc NAME 或 --target PROFILE"),
            say("see `jumar targets list`", "请查看 `jumar targets list`"),
        )
    info = soc_info(soc)
    cann = cann or default_cann()
    if cann not in cann_states(soc):
        raise TargetError(
            say("no operator tables for CANN {cann}", "没有 CANN {cann} 的算子表", cann=cann),
            say("expected one of: {known}", "应为其中之一：{known}", known=", ".join(cann_states(soc))),
            say("leave --cann out to use {default}", "省略 --cann 即使用 {default}", default=default_cann()),
        )
    state = cann_state(cann)
    low, high = state["opset_min"], state["opset_max"]
    if opset_max is not None and not low <= opset_max <= high:
        raise TargetError(
            say(
                "opset ceiling {given} is outside what CANN {cann} parses",
                "opset 上限 {given} 超出 CANN {cann} 的解析范围",
                given=opset_max,
                cann=cann,
            ),
            say("expected {low} to {high}", "应在 {low} 到 {high} 之间", low=low, high=high),
            say("change --opset-max", "请修改 --opset-max"),
        )
    return Target(info, cann, low, opset_max or high, profile, note)
