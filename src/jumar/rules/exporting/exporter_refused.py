"""EX108: exporter refused."""

from __future__ import annotations

from ..base import Rule


class ExporterRefused(Rule):
    code = "EX108"
    name = "exporter-refused"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: an exporter did not finish: an operator that it cannot express, control flow that depends on values, a crash, or a limit of time or memory.

    Why on Ascend: there is no graph to compile.

    Fix: none where the other exporter was right. Otherwise write the line named with other operators.

    Fix safety: advice only.

    Evidence: what the exporter said.
    """
    DOC_ZH = """
    问题：某个导出器没有完成：有它无法表达的算子、依赖数值的控制流、崩溃，或超出时间、内存限制。

    在昇腾上的原因：没有可供编译的计算图。

    修复：若另一个导出器结果正确则无需处理。否则请用其他算子改写所示代码行。

    修复安全性：仅为建议。

    依据：导出器给出的信息。
    """
