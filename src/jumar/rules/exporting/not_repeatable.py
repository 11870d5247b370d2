"""EX111: not repeatable."""

from __future__ import annotations

from ..base import Rule


class NotRepeatable(Rule):
    code = "EX111"
    name = "not-repeatable"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: the module gave different results for the same inputs, in eval mode.

    Why on Ascend: there is nothing to hold a graph to: random draws or a state that changes cannot be compared.

    Fix: draw random numbers outside and pass them as inputs; pass a state in and return it.

    Fix safety: advice only.

    Evidence: two runs on the given inputs.
    """
    DOC_ZH = """
    问题：在 eval 模式下，模块对相同输入给出了不同的结果。

    在昇腾上的原因：没有可供对照的基准：随机数或会改变的状态无法比较。

    修复：请在模块外生成随机数并作为输入传入；把状态作为输入传入并作为输出返回。

    修复安全性：仅为建议。

    依据：在给定输入上的两次运行。
    """
