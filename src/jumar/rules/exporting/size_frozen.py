"""EX106: size frozen."""

from __future__ import annotations

from ..base import Rule


class SizeFrozen(Rule):
    code = "EX106"
    name = "size-frozen"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: a dimension that was declared open has one size only in the graph, or the graph is wrong at other sizes.

    Why on Ascend: gears need a graph that is right at every size they name.

    Fix: look at the line: take sizes from `x.shape` where they are used, and do not turn them into Python lists or numbers before; or leave the dimension out of --dynamic and export once for each size.

    Fix safety: advice only.

    Evidence: the comparison with the module at other sizes.
    """
    DOC_ZH = """
    问题：声明为可变的维度在计算图中只有一种大小，或者计算图在其他大小下结果错误。

    在昇腾上的原因：分档（gears）要求计算图在每一档大小下都正确。

    修复：请查看所示代码行：在使用处从 `x.shape` 取大小，不要提前转换成 Python 列表或数值；或者不在 --dynamic 中声明该维度，按每种大小分别导出。

    修复安全性：仅为建议。

    依据：在其他大小下与模块的对比。
    """
