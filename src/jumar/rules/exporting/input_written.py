"""EX112: input written."""

from __future__ import annotations

from ..base import Rule


class InputWritten(Rule):
    code = "EX112"
    name = "input-written"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: forward writes into one of its inputs.

    Why on Ascend: a graph never changes its inputs: whoever reads the changed tensor afterwards finds the old values.

    Fix: return the changed tensor, or write into a copy.

    Fix safety: advice only.

    Evidence: the inputs before and after a run.
    """
    DOC_ZH = """
    问题：forward 改写了它的某个输入。

    在昇腾上的原因：计算图不会改变输入：之后读取该张量的代码得到的仍是旧值。

    修复：请返回修改后的张量，或在副本上写入。

    修复安全性：仅为建议。

    依据：运行前后的输入。
    """
