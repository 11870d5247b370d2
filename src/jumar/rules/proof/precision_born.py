"""VF610: the node where an error of precision is born, and what helps."""

from __future__ import annotations

from ..base import Rule


class PrecisionBorn(Rule):
    code = "VF610"
    name = "precision-born"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: a tensor is right before this node and wrong after it, or the node errs by itself when it is given right inputs.

    Why on Ascend: later nodes only pass the error on; changing them does not help.

    Fix: as the finding says for the kind of computation: rescale, write it otherwise, or keep it in float32.

    Fix safety: advice only.

    Evidence: the errors of each node in the whole emulation and alone on right inputs; the kind is recognised by the operators around and the range of values.
    """
    DOC_ZH = """
    问题：张量在该节点之前正确、之后错误，或该节点在正确输入上自身出错。

    在昇腾上的原因：后续节点只是传递误差，修改它们没有用。

    修复：按检查结果针对该类计算的建议：重新缩放、改写，或保持 float32。

    修复安全性：仅为建议。

    依据：每个节点在整体模拟中以及在正确输入上单独运行的误差；类别由相邻算子和取值范围识别。
    """
