"""AT901: unknown flag."""

from __future__ import annotations

from ..base import Rule


class UnknownFlag(Rule):
    code = "AT901"
    name = "unknown-flag"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: the command has a flag that ATC does not know, or the beginning of one.

    Why on Ascend: ATC's parser refuses the whole call before it reads the model. A flag cut short passes as long as no other flag begins so (a warning).

    Fix: write the flag that the finding names; it says what stands for habits of other compilers, such as `--precision=fp16`.

    Fix safety: advice only.

    Evidence: the table of flags read off ATC's sources (CANN 9.2; the same in 8.1 unless said otherwise).
    """
    DOC_ZH = """
    问题：命令中有 ATC 不认识的参数，或只写了参数名的开头。

    在昇腾上的原因：ATC 的解析器在读取模型之前就会拒绝整条命令。只写开头的参数在没有其他参数以此开头时可以通过（警告）。

    修复：改用结果中给出的参数；对来自其他编译器的写法（如 `--precision=fp16`）会说明应写什么。

    修复安全性：仅为建议。

    依据：由 ATC 源码整理的参数表（CANN 9.2；除非另有说明，8.1 相同）。
    """
