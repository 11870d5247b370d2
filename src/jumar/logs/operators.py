"""What the fact tables say of an operator that a log names: which door it stopped at, and what can be done."""

from __future__ import annotations

from dataclasses import dataclass

from ..targets import Target, default_cann, support
from ..targets.kernels import tables_for
from ..targets.parser import registration
from ..targets.survey import registered
from ..text import Text, say

PARSER_CODES = frozenset({"E19010", "E13010", "EZ9010", "E16002"})
_ENGINES = {
    "aicore": say("the AI Core", "AI Core 引擎"),
    "aicore_via_pass": say("the AI Core, after a graph pass", "AI Core（经图 pass 转换）"),
    "aicore_if_const": say("the AI Core, if a parameter is constant", "AI Core（某个参数须为常量）"),
    "aicpu": say("the AI CPU only (slow)", "仅 AI CPU（较慢）"),
    "aicpu_tf": say("the AI CPU only (slow)", "仅 AI CPU（较慢）"),
    "local": say("the graph engine, without a kernel", "图引擎（不需要算子核）"),
    "none": say("nothing", "无"),
}


@dataclass(frozen=True)
class Verdict:
    """What the support list says of an operator, and the way on.

    Attributes:
        kind: ``private`` (no CANN registers it), ``opset`` (registered at others), ``taken`` (the tables take it), ``refused`` (they do not),
            ``unknown``.
    """

    kind: str
    fact: Text
    remedy: Text


def split_name(op: str) -> tuple[str, str]:
    """``domain::Type`` -> domain and type; standard operators have no domain."""
    domain, colons, name = op.partition("::")
    return (domain, name) if colons else ("", op)


def parser_verdict(op: str, opset: int | None, target: Target | None) -> Verdict:
    """Why the ONNX parser does not take an operator (``Type`` or ``domain::Type``) at an opset, by its public registrations."""
    cann = target.cann if target else default_cann()
    found = registration(op, cann)
    if found is None:
        return Verdict(
            "private",
            say("no known CANN registers {op} with its ONNX parser", "已知的 CANN 都没有为 ONNX 解析器注册 {op}", op=op),
            say(
                "export the original model without vendor fusion, or install the package that brings this operator's plug-in",
                "导出未经厂商融合的原始模型，或安装提供该算子插件的软件包",
            ),
        )
    sure, maybe = registered(op, cann)
    opsets = sure or maybe
    if not opsets:
        return Verdict(
            "opset",
            say("CANN {cann} does not register {op}; another version does", "CANN {cann} 没有注册 {op}，其他版本有", cann=cann, op=op),
            say("use a CANN that registers it (`jumar targets show {op}`)", "使用注册了它的 CANN（`jumar targets show {op}`）", op=op),
        )
    if opset is not None and str(opset) not in _numbers(opsets):
        return Verdict(
            "opset",
            say(
                "the parser of CANN {cann} takes {op} at opset {opsets}, not at {opset}",
                "CANN {cann} 的解析器在 opset {opsets} 接受 {op}，不接受 {opset}",
                cann=cann,
                op=op,
                opsets=opsets,
                opset=opset,
            ),
            say(
                "export again at an opset of {opsets}, or let `jumar fix` convert the model (OP110)",
                "用 opset {opsets} 重新导出，或由 `jumar fix` 转换模型（OP110）",
                opsets=opsets,
            ),
        )
    return Verdict(
        "taken",
        say(
            "the tables say that CANN {cann} parses {op} at opset {opsets}; this ATC does not",
            "算子表显示 CANN {cann} 在 opset {opsets} 解析 {op}，而该 ATC 不解析",
            cann=cann,
            op=op,
            opsets=opsets,
        ),
        say(
            "check that the operator package (opp) is installed and of the same version, and that set_env.sh was sourced",
            "检查算子包（opp）是否已安装且版本一致，并已 source set_env.sh",
        ),
    )


def _numbers(opsets: str) -> set[str]:
    from ..targets.tables import opset_numbers

    return {str(number) for number in opset_numbers(opsets)}


def kernel_verdict(ir: str, target: Target | None) -> Verdict:
    """Whether the kernel tables of a target have an IR operator, as ATC names it after parsing."""
    if target is None:
        return Verdict(
            "unknown",
            say("which kernels this chip has is not looked up without --soc", "没有 --soc，未查询该芯片的算子核"),
            say("give the chip with --soc, or see `jumar targets show {op}`", "用 --soc 指定芯片，或查看 `jumar targets show {op}`", op=ir),
        )
    tables, how = tables_for(target.cann, target.soc)
    if not tables:
        return Verdict(
            "unknown",
            say("no kernel table of {label} is public", "{label} 没有公开的算子核表", label=target.label),
            say("ask the support list of your CANN", "请查阅所用 CANN 的支持列表"),
        )
    places = {table.place(ir) for table in tables}
    if "none" in places:
        return Verdict(
            "refused",
            say("the kernel table of {label} has no {op}", "{label} 的算子核表中没有 {op}", label=target.label, op=ir),
            say(
                "replace the operator by an equal form, use a custom kernel, or another chip", "改用等价的算子形式、自定义算子核，或换芯片"
            ),
        )
    place = _ENGINES[max(places)]
    note = say("", "") if how == "at" else say(" (table of a near version)", "（取自相近版本的算子表）")
    return Verdict(
        "taken",
        say(
            "{label} lists {op} for {place}{note}",
            "{label} 的 {op} 由 {place} 执行{note}",
            label=target.label,
            op=ir,
            place=place,
            note=note,
        ),
        say(
            "so a type, format or shape of this node is refused, or the kernels package is not installed: read the reason in the log",
            "因此是该节点的类型、格式或形状被拒绝，或未安装 kernels 软件包：阅读日志中的 reason",
        ),
    )


def onnx_verdict(op: str, opset: int, target: Target) -> Text:
    """The answer of ``jumar check`` on an ONNX operator as such, in one line."""
    domain, name = split_name(op)
    answer = support(domain, name, opset, target)
    words = answer.reason or say("{status}", "结论 {status}", status=answer.status.value)
    return say("{op} on {label}: {words}", "{op} 在 {label} 上：{words}", op=op, label=target.label, words=words)
