"""QT108: the deploy form computes something else than the QDQ form."""

from __future__ import annotations

from ..base import Rule


class FormsDiffer(Rule):
    code = "QT108"
    name = "forms-differ"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: a layer of the deploy form, computed on integers, differs from the same layer of the QDQ form by more than its rounding.

    Why on Ascend: the accuracy was measured on the QDQ form; the deploy form is what runs.

    Fix: do not use the files; report the model.

    Fix safety: advice only.

    Evidence: both forms on held-out samples, layer by layer.
    """
    DOC_ZH = """
    问题：部署形式的某一层按整数计算的结果，与 QDQ 形式同一层的差异超过其舍入误差。

    在昇腾上的原因：精度是在 QDQ 形式上测得的，而运行的是部署形式。

    修复：请勿使用这些文件；请报告该模型。

    修复安全性：仅为建议。

    依据：在留出样本上逐层比较两种形式。
    """
