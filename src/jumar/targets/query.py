"""Questions to the target facts. Tables load on first use and are small; nothing here knows a SoC by name."""

from __future__ import annotations

import difflib
import json
from functools import cache
from importlib import resources
from typing import Any

from ..errors import TargetError
from ..text import Text, say
from .model import SocInfo, Status, Support, Target

DEFAULT_CANN = "8.1.RC1"
STANDARD_DOMAINS = ("", "ai.onnx")

_ENGINE_STATUS = {
    "A": (Status.SUPPORTED, "aicore"),
    "P": (Status.SUPPORTED, "aicore"),
    "L": (Status.NO_KERNEL_NEEDED, "local"),
    "C": (Status.NEEDS_CONSTANT, "aicore"),
    "H": (Status.AICPU_ONLY, "aicpu"),
    "T": (Status.AICPU_ONLY, "aicpu"),
    "N": (Status.NO_KERNEL, "none"),
}


@cache
def _table(name: str) -> dict[str, Any]:
    text = resources.files("jumar").joinpath("data", name).read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data


def socs() -> tuple[str, ...]:
    """All exact ``soc_version`` names, sorted."""
    return tuple(sorted(_table("socs.json")["socs"]))


def profiles() -> dict[str, dict[str, Any]]:
    """Named targets (``--target``): SoC, opset ceiling, confidence and source."""
    return dict(_table("profiles.json"))


def cann_states() -> tuple[str, ...]:
    """CANN states for which verdicts can be given."""
    return tuple(_table("onnx_parser.json")["cann"])


def soc_info(name: str) -> SocInfo:
    """Facts of one SoC.

    Raises:
        TargetError: the name is no soc_version; a family name is answered with its members.
    """
    table = _table("socs.json")
    data = table["socs"].get(name)
    if data is not None:
        return SocInfo(
            name=name,
            products=tuple(data["products"]),
            caution=_caution(name),
            **{key: data[key] for key in SocInfo.__dataclass_fields__ if key not in ("name", "products", "caution")},
        )
    members = _family(name, table["families"])
    if members:
        raise TargetError(
            say("`{name}` is a family of SoCs, not a soc_version", "`{name}` 是一个 SoC 系列，不是 soc_version 的取值", name=name),
            say("expected one of: {members}", "应为其中之一：{members}", members=", ".join(members)),
            say("pass the exact one with --soc", "请用 --soc 指定确切型号"),
        )
    if name in table["without_public_ini"]:
        raise TargetError(
            say(
                "`{name}` is named in newer sources but its tables are not public",
                "`{name}` 只在较新的源码中出现，没有公开的算子表",
                name=name,
            ),
            say("expected a SoC of `jumar targets list`", "应为 `jumar targets list` 中的 SoC"),
            say("nothing true can be said of it yet", "目前无法给出可靠结论"),
        )
    fact = table["confusing"].get(name)
    near = difflib.get_close_matches(name.lower(), [soc.lower() for soc in table["socs"]], n=3, cutoff=0.6)
    close = [soc for soc in table["socs"] if soc.lower() in near]
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
    fact = _table("socs.json")["confusing"].get(name)
    return None if fact is None else say("{fact}", "{fact}", fact=fact)


def _family(name: str, families: dict[str, list[str]]) -> list[str]:
    """Members of a family given by its short name, whatever the case (``ascend310p`` -> P1, P3, P5, P7)."""
    return next((members for short, members in families.items() if short.lower() == name.lower()), [])


def find_target(soc: str | None = None, *, profile: str | None = None, cann: str | None = None, opset_max: int | None = None) -> Target:
    """Build a target from the command line's three options.

    Raises:
        TargetError: no or two SoCs named, unknown SoC, profile or CANN state, or an impossible opset ceiling.
    """
    note = None
    if profile is not None:
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
    cann = cann or DEFAULT_CANN
    state = _table("onnx_parser.json")["cann"].get(cann)
    if state is None:
        raise TargetError(
            say("no operator tables for CANN {cann}", "没有 CANN {cann} 的算子表", cann=cann),
            say("expected one of: {known}", "应为其中之一：{known}", known=", ".join(cann_states())),
            say("leave --cann out to use {default}", "省略 --cann 即使用 {default}", default=DEFAULT_CANN),
        )
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


def _opsets(ranges: str) -> set[int]:
    found: set[int] = set()
    for part in filter(None, ranges.split(",")):
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return found


@cache
def _parser_opsets(key: str, cann: str) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
    """Opsets of an operator at the known state before, after, and at any state."""
    table = _table("onnx_parser.json")
    entry, state = table["ops"].get(key), table["cann"][cann]
    if entry is None:
        return frozenset(), frozenset(), frozenset()
    known = {name: _opsets(ranges) for name, ranges in entry["states"].items()}
    newer: set[int] = set(next((known[name] for name in state["newer"] if name in known), set()))
    return frozenset(known.get(state["older"], set())), frozenset(newer), frozenset().union(*known.values())


def parser_status(domain: str, op: str, opset: int, target: Target) -> tuple[Status, str, tuple[str, ...]]:
    """Whether the ONNX parser of ``target.cann`` registers ``domain::opset::op``.

    The parser sources of 8.1.RC1 are not public. An operator registered in the last public state before it and in the first one
    after it is taken as registered (documented opset range); registered on one side only is unknown.

    Returns:
        The status (SUPPORTED, NO_PARSER, NO_PARSER_AT_OPSET or UNKNOWN), the registered opsets as text, and the evidence.
    """
    table = _table("onnx_parser.json")
    key = op if domain in STANDARD_DOMAINS else f"{domain}::{op}"
    if key == "Constant":  # bypasses the registry (becomes a Const)
        return Status.SUPPORTED, "", (f"{table['meta']['source']}: Constant bypasses the parser registry",)
    older, newer, anywhere = _parser_opsets(key, target.cann)
    state = table["cann"][target.cann]
    source = table["ops"].get(key, {}).get("source", table["meta"]["source"])
    if not anywhere:
        return Status.NO_PARSER, "", (f"no registration in any known CANN state ({table['meta']['source']})",)
    accepted = {number for number in newer if number in older or (older and number > max(older))}
    text = _as_ranges(accepted or anywhere)
    evidence = (
        f"parser opsets {text} ({source}; {state['older']} / {' / '.join(state['newer'])})",
        f"{state['confidence']}: {state['source']}",
    )
    if opset in accepted and opset <= state["opset_max"]:
        return Status.SUPPORTED, text, evidence
    if opset in newer or opset in older:
        return Status.UNKNOWN, text, evidence
    return Status.NO_PARSER_AT_OPSET, text, evidence


def _as_ranges(numbers: set[int] | frozenset[int]) -> str:
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


def support(domain: str, op: str, opset: int, target: Target) -> Support:
    """Does ``target`` take operator ``domain::op`` of a model at ``opset``?

    The answer covers parser registration and the engine that holds the kernel. Dtype, format and shape limits are not judged here.
    """
    parser, opsets, evidence = parser_status(domain, op, opset, target)
    if parser in (Status.NO_PARSER, Status.NO_PARSER_AT_OPSET):
        return Support(parser, "none", evidence, opsets)
    if op == "Constant":
        return Support(Status.NO_KERNEL_NEEDED, "local", evidence)
    table = _table("onnx_placement.json")
    letters = table["ops"].get(op) if domain in STANDARD_DOMAINS else None
    if letters is None or target.soc.kernels not in table["socs"]:
        reason = say("no public kernel table covers it", "没有公开的算子表覆盖它")
        return Support(Status.UNKNOWN, "unknown", evidence, opsets, reason)
    letter = letters[table["socs"].index(target.soc.kernels)]
    evidence = (*evidence, f"{table['meta']['classes'][letter]} for {target.soc.kernels} ({table['meta']['source']})")
    if letter == "N" and op in table["meta"]["unproven_none"]:
        reason = say("sequence operators are served outside the kernel tables", "序列算子由算子表之外的机制处理")
        return Support(Status.UNKNOWN, "unknown", evidence, opsets, reason)
    if letter == "?":
        reason = say(
            "two parser variants end in different engines and which one this CANN ships is not public",
            "两种解析方式落在不同引擎上，该 CANN 采用哪一种没有公开",
        )
        return Support(Status.UNKNOWN, "unknown", evidence, opsets, reason)
    status, engine = _ENGINE_STATUS[letter]
    if status is Status.NO_KERNEL:
        return Support(status, "none", evidence, opsets)
    if parser is Status.UNKNOWN:
        reason = say(
            "its parser is registered only on one side of CANN {cann} (in the public sources before or after it)",
            "它的解析插件只在 CANN {cann} 之前或之后的公开源码中出现",
            cann=target.cann,
        )
        return Support(Status.UNKNOWN, "unknown", evidence, opsets, reason)
    if engine == "aicpu" and target.soc.aicpu_package == "unknown":
        reason = say(
            "it runs on the AI CPU only, and whether this vehicle SoC's board image has the AI CPU kernels is not public",
            "它只能在 AI CPU 上运行，而该车载 SoC 的板端镜像是否带有 AI CPU 算子包并未公开",
        )
        return Support(Status.UNKNOWN, "unknown", evidence, opsets, reason)
    return Support(status, engine, evidence, opsets)  # type: ignore[arg-type]
