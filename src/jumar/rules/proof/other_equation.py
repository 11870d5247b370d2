"""VF611: the outputs agree with the reference once a suspected mistake of the export is undone."""

from __future__ import annotations

from ..base import Rule


class OtherEquation(Rule):
    code = "VF611"
    name = "export-changed-meaning"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: the model's outputs differ from those that were recorded in the framework, and agree with them as soon as one suspected mistake of the export is undone (OP221 and OP222: training mode; OP227: a GRU without linear_before_reset).

    Why on Ascend: the model is wrong on every runtime; no conversion can make it right.

    Fix: export again without the mistake, or let `jumar fix --unsafe CODE` (or `migrate`) undo it. That is accepted here only because the recorded outputs then agree.

    Fix safety: unsafe, see the rule named.

    Evidence: both comparisons, with the figures in the finding.
    """
    DOC_ZH = """
    问题：模型输出与框架中记录的输出不一致；撤销某个可能的导出错误后即一致（OP221、OP222：训练模式；OP227：GRU 缺少 linear_before_reset）。

    在昇腾上的原因：模型在任何运行时上都是错的，转换无法纠正。

    修复：重新正确导出，或用 `jumar fix --unsafe 代码`（或 `migrate`）撤销。之所以采纳，仅因为此时与记录的输出一致。

    修复安全性：不安全，参见所列规则。

    依据：两次对比，数值见检查结果。
    """
