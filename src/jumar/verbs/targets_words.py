"""The words in which facts are shown."""

from __future__ import annotations

from ..targets import Status
from ..text import Text, say

STATUSES = {
    Status.NO_PARSER: say("not parsed", "不可解析"),
    Status.NO_PARSER_AT_OPSET: say("not parsed", "不可解析"),
    Status.NO_KERNEL: say("no kernel", "无算子实现"),
    Status.UNKNOWN: say("unknown", "未知"),
    Status.NEEDS_CONSTANT: say("AI Core if constant", "参数为常量时 AI Core"),
    Status.AICPU_ONLY: Text("AI CPU", "AI CPU"),
    Status.SUPPORTED: Text("AI Core", "AI Core"),
    Status.NO_KERNEL_NEEDED: say("no kernel needed", "无需算子实现"),
}
ENGINES = {"aicore": Text("AI Core", "AI Core"), "aicpu": Text("AI CPU", "AI CPU")}
EFFECTS = {
    "reject": say("refused", "拒绝"),
    "ignored": say("ignored, result differs", "被忽略，结果不同"),
    "aicpu": say("on the AI CPU", "改由 AI CPU 执行"),
    "unproven": say("not proven", "未经证实"),
}
# What the answers for one CANN version rest on; docs/en/targets.md explains the words.
BASES = {
    "exact": say("exact", "确切"),
    "partial": say("partial", "部分"),
    "between": say("between", "居间"),
}
KERNELS = {
    "exact": say("exact", "确切"),
    "near": say("of the same time", "同时期"),
    "between": say("between", "居间"),
    "older": say("older only", "仅有较旧的"),
    "none": say("none", "无"),
}
