"""Words that all reports share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..case import Finding, Proof, Record, Step
from ..text import Lang, Text, say

_TARGET_VERDICTS = {
    "ready": say("ready: nothing known stands in the way of ATC", "就绪：没有已知问题妨碍 ATC"),
    "warnings": say(
        "warnings: nothing known refuses it, but what is listed is slow, assumed or not known",
        "有警告：没有已知的拒绝原因，但所列各项较慢、有前提或尚不清楚",
    ),
    "blocked": say("blocked: what is listed as an error stands in the way", "受阻：所列错误妨碍迁移"),
}
_COMPARISON_VERDICTS = {
    "ready": say("equal within the bound", "在界限内一致"),
    "warnings": say("equal within the bound, with warnings", "在界限内一致，但有警告"),
    "blocked": say("not equal within the bound", "超出界限，不一致"),
}
_PRECISION_VERDICTS = {
    "ready": say("within the bound in this precision (emulated)", "在此精度下达到界限（模拟）"),
    "warnings": say(
        "out of bound in this precision (emulated), and within it with the nodes listed kept in float32",
        "在此精度下未达到界限（模拟）；将所列节点保持 float32 后达到",
    ),
    "blocked": say("out of bound in this precision (emulated)", "在此精度下未达到界限（模拟）"),
}
_LOG_VERDICTS = {
    "ready": say("no failure", "没有失败"),
    "warnings": say("it ended in success, after the errors listed", "在所列错误之后最终成功"),
    "blocked": say("it failed; the cause comes first", "运行失败；首条为原因"),
}
_MACHINE_VERDICTS = {
    "ready": say("nothing known is wrong with this machine", "本机没有已知的问题"),
    "warnings": say("this machine may fail where listed", "本机在所列之处可能出错"),
    "blocked": say("this machine will fail until what is listed is mended", "修复所列问题之前，本机会出错"),
}


_INT8_VERDICTS = {
    "ready": say("quantised: the accuracy gate holds", "已量化：通过精度门限"),
    "warnings": say("quantised: the accuracy gate holds, with warnings", "已量化：通过精度门限，但有警告"),
    "blocked": say("not usable: what is listed as an error stands in the way", "不可用：存在所列错误"),
}


def new_port(item: Mapping[str, Any]) -> str:
    """What an input or output of ``Record.interface`` became."""
    if "constant" in item:
        values = ", ".join(map(str, item["constant"][:8])) + (", ..." if len(item["constant"]) > 8 else "")
        return f"[{values}]"
    shape = " [] -> [1]" if "shape" in item else ""
    count = f", {item['count']}" if "count" in item else ""
    return f"{item['name']} ({item['dtype']}{shape}){count}"


def verdict_text(record: Record) -> Text:
    """The verdict in words that fit the verb."""
    verify = _PRECISION_VERDICTS if "precision" in record.data else _COMPARISON_VERDICTS
    words = {"verify": verify, "diagnose": _LOG_VERDICTS, "doctor": _MACHINE_VERDICTS, "quantize": _INT8_VERDICTS}
    return words.get(record.verb, _TARGET_VERDICTS)[record.verdict]


SEVERITIES = {"error": say("error", "错误"), "warning": say("warning", "警告"), "info": say("info", "提示")}
STATUS = {"applied": say("applied", "已应用"), "rolled-back": say("rolled back", "已回滚"), "done": say("done", "完成")}
FIXES = {
    "safe": say("a proven fix exists", "有可证明的修复"),
    "unsafe": say("a fix exists under an assumption (--unsafe)", "有需要前提的修复（--unsafe）"),
    "none": say("no automatic fix", "无自动修复"),
}
HEADINGS = {
    "findings": say("What stands", "现存问题"),
    "resolved": say("What was found and repaired", "已发现并修复的问题"),
    "steps": say("What was done, with proof", "所做的改写与证明"),
    "outputs": say("Outputs against the original", "输出与原模型对比"),
    "placement": say("Where the nodes run", "节点的执行位置"),
    "command": say("ATC command", "ATC 命令"),
    "artifacts": say("Files", "文件"),
    "interface": say("Changed inputs and outputs", "输入输出的变化"),
    "notes": say("Notes", "说明"),
}


def grouped(findings: Iterable[Finding]) -> list[tuple[Finding, int]]:
    """Findings with the same code and operator are one line: the first of them and how many there are."""
    groups: dict[tuple[str, str | None, str, str], list[Finding]] = {}
    for finding in findings:
        key = (finding.code, finding.op, finding.severity, finding.fix if finding.op else str(finding.message))
        groups.setdefault(key, []).append(finding)
    return [(items[0], len(items)) for items in groups.values()]


def proof_text(proof: Proof | None, lang: Lang) -> str:
    """A proof in a few words, with its numbers."""
    if proof is None:
        return "-"
    if proof.passed and proof.max_abs == 0.0:
        return say("equal in every element ({cases} cases)", "逐元素相等（{cases} 组）", cases=proof.cases).render(lang)
    if proof.passed:
        text = say(
            "max_abs {a:.2g}, {measure} {r:.2g} <= {bound:g} ({cases} cases)",
            "max_abs {a:.2g}，{measure} {r:.2g} <= {bound:g}（{cases} 组）",
            a=proof.max_abs,
            measure=proof.measure,
            r=proof.max_rel if proof.measure == "max_rel" else proof.max_scaled,
            bound=proof.bound,
            cases=proof.cases,
        )
        return text.render(lang)
    reason = proof.reason or say("no reason given", "未说明原因")
    return say("failed: {reason}", "失败：{reason}", reason=reason).render(lang)


def command_of(record: Record) -> list[str]:
    """The ATC command of the compile step, if there is one."""
    for step in record.steps:
        if step.name == "compile" and "command" in step.options:
            return [str(part) for part in step.options["command"]]
    return []


def rewrites(record: Record) -> list[Step]:
    return [step for step in record.steps if step.code is not None]


def outputs_table(record: Record) -> dict[str, dict[str, float]]:
    """Output name -> max_abs, max_rel, cosine."""
    table: dict[str, dict[str, float]] = {}
    for item in record.measurements:
        name, _, key = item.name.rpartition("/")
        if name and key in ("max_abs", "max_rel", "cosine"):
            table.setdefault(name, {})[key] = item.value
    return table


def join(texts: Iterable[Text], lang: Lang, separator: str = "; ") -> str:
    return separator.join(text.render(lang) for text in texts)
