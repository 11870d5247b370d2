"""AI101: aipp unreadable."""

from __future__ import annotations

from ..base import Rule


class AippUnreadable(Rule):
    code = "AI101"
    name = "aipp-unreadable"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: an AIPP file holds something that ATC's reader refuses: a syntax error, an unknown field, a value of another type, a fraction in mean_chn, a field given twice.

    Why on Ascend: ATC reads the file as protobuf text and refuses all of it (E13018; E19018 before CANN 9; E10052 for a repeated field).

    Fix: write the line as the finding says.

    Fix safety: advice only.

    Evidence: insert_op.proto of the graph engine.
    """
    DOC_ZH = """
    问题：AIPP 文件中有 ATC 读取程序拒绝的内容：语法错误、未知字段、类型不符、mean_chn 写了小数、字段重复。

    在昇腾上的原因：ATC 按 protobuf 文本格式读取，会拒绝整个文件（E13018；CANN 9 之前为 E19018；重复字段为 E10052）。

    修复：按结果给出的写法修改该行。

    修复安全性：仅为建议。

    依据：图引擎的 insert_op.proto。
    """
