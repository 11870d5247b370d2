"""EX114: few cases."""

from __future__ import annotations

from ..base import Rule


class FewCases(Rule):
    code = "EX114"
    name = "few-cases"
    since = "0.1"
    severity = "info"
    DOC_EN = """
    What: the module itself refused most of the inputs that were made to compare on.

    Why on Ascend: a frozen branch or number shows only on inputs that take another path.

    Fix: state the values of integer inputs with ranges (--range), or give inputs that exercise the module.

    Fix safety: advice only.

    Evidence: what the module said.
    """
    DOC_ZH = """
    问题：为对比而生成的输入大多被模块自身拒绝。

    在昇腾上的原因：被固定的分支或数值只有在走另一条路径的输入上才会暴露。

    修复：请用 ranges（--range）说明整数输入的取值，或提供能充分覆盖模块的输入。

    修复安全性：仅为建议。

    依据：模块给出的信息。
    """
