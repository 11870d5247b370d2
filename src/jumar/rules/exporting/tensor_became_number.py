"""EX104: tensor became number."""

from __future__ import annotations

from ..base import Rule


class TensorBecameNumber(Rule):
    code = "EX104"
    name = "tensor-became-number"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: forward turns a tensor into a Python number or truth value (`int(n)`, `if x.sum() > 0`, `.item()`, `.tolist()`).

    Why on Ascend: a graph holds the number of this one run: a branch, a loop count or an index may be frozen. On the inputs compared the export was right, which says nothing of inputs that take another path.

    Fix: compute with the tensor (`torch.where`, a mask, a fixed number of steps), or make it an argument that is no tensor, which is baked in openly.

    Fix safety: advice only.

    Evidence: the call, seen while the module ran.
    """
    DOC_ZH = """
    问题：forward 把张量变成了 Python 数值或真假值（`int(n)`、`if x.sum() > 0`、`.item()`、`.tolist()`）。

    在昇腾上的原因：计算图只保留这一次运行的数值：分支、循环次数或下标可能被固定。在所比较的输入上导出结果正确，但这不能说明走另一条路径的输入。

    修复：请用张量计算（`torch.where`、掩码、固定步数），或把它改为非张量参数，明确地固定下来。

    修复安全性：仅为建议。

    依据：模块运行时观察到的调用。
    """
