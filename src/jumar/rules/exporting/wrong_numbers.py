"""EX107: wrong numbers."""

from __future__ import annotations

from ..base import Rule


class WrongNumbers(Rule):
    code = "EX107"
    name = "wrong-numbers"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: an exporter finished without an error, and its graph computes other numbers than the module on the very inputs it was exported with.

    Why on Ascend: ATC would compile it, and the device would compute the wrong numbers.

    Fix: none where the other exporter was right: the wrong graph was thrown away. Otherwise write the line named with other operators (a product with a one-hot matrix in place of an addition to repeated indices, say).

    Fix safety: advice only.

    Evidence: the comparison with the module on the given inputs, and the first call whose result no node of its line computes.
    """
    DOC_ZH = """
    问题：某个导出器没有报错，但在导出所用的输入上，其计算图的数值与模块不同。

    在昇腾上的原因：ATC 会照常编译，设备会计算出错误的数值。

    修复：若另一个导出器结果正确则无需处理：错误的计算图已被丢弃。否则请用其他算子改写所示代码行（例如用与 one-hot 矩阵的乘积代替对重复下标的累加）。

    修复安全性：仅为建议。

    依据：在给定输入上与模块的对比，以及第一个没有节点与之对应的调用。
    """
