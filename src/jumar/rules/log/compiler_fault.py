"""LG811: compiler fault."""

from __future__ import annotations

from ..base import Rule


class CompilerFault(Rule):
    code = "LG811"
    name = "compiler-fault"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: the operator compiler or a fusion pass failed on an operator that was accepted before.

    Why on Ascend: the kernel of the operator is made for its exact shapes and types; limits that no table states show only here. The Python traceback before it holds the reason.

    Fix: other shapes or attributes, the fusion pass switched off, another precision mode, or an equal form of the operator.

    Fix safety: advice only.

    Evidence: the lines of the log.
    """
    DOC_ZH = """
    问题：算子编译器或融合 pass 在一个已被接受的算子上失败。

    在昇腾上的原因：算子核按具体形状和类型生成；没有写入任何表的限制只在此处显现。原因在它之前的 Python 调用栈中。

    修复：更换形状或属性、关闭融合 pass、更换精度模式，或改用等价的算子形式。

    修复安全性：仅为建议。

    依据：日志行。
    """
