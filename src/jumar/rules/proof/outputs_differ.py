"""VF601: the model's outputs differ from the reference's."""

from __future__ import annotations

from ..base import Rule


class OutputsDiffer(Rule):
    code = "VF601"
    name = "outputs-differ"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: on the same inputs an output differs from the reference by more than the bound.

    Why on Ascend: a model that differs before it is compiled is wrong on any device.

    Fix: look at the steps of the report for the rewrite with the largest difference, and leave it out with --select.

    Fix safety: advice only.

    Evidence: the table of outputs in the report (max_abs, max_rel, cosine; ONNX Runtime with optimisation off).
    """
    DOC_ZH = """
    问题：在相同输入下，某个输出与参考的差异超过界限。

    在昇腾上的原因：编译前就不一致的模型，在任何设备上都是错的。

    修复：在报告的步骤中找到差异最大的改写，用 --select 排除它。

    修复安全性：仅为建议。

    依据：报告中的输出对比表（max_abs、max_rel、余弦；ONNX Runtime 关闭优化）。
    """
