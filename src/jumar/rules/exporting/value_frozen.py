"""EX105: value frozen."""

from __future__ import annotations

from ..base import Rule


class ValueFrozen(Rule):
    code = "EX105"
    name = "value-frozen"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: the graph computes what the module computes on the given inputs, but not on inputs with other values: a branch, a loop count or a number was frozen.

    Why on Ascend: the device would go on computing with the numbers of the example, without any error.

    Fix: look at the line: compute with the tensor there (`torch.where`, a mask, a fixed number of steps).

    Fix safety: advice only.

    Evidence: the comparison with the module on inputs that differ from the given ones, and the first call whose result no node of its line computes.
    """
    DOC_ZH = """
    问题：在给定输入上计算图与模块一致，但换用其他数值的输入就不一致：某个分支、循环次数或数值被固定了。

    在昇腾上的原因：设备会一直用示例中的数值计算，而且不报任何错误。

    修复：请查看所示代码行，在该处用张量计算（`torch.where`、掩码、固定步数）。

    修复安全性：仅为建议。

    依据：在不同于给定值的输入上与模块的对比，以及第一个没有节点与之对应的调用。
    """
