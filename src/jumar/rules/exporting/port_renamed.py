"""EX103: port renamed."""

from __future__ import annotations

from ..base import Rule


class PortRenamed(Rule):
    code = "EX103"
    name = "port-renamed"
    since = "0.1"
    severity = "info"
    DOC_EN = """
    What: an input or output was given a name other than the one asked for, since it was taken by the other side or is not plain letters, digits and underscores.

    Why on Ascend: ATC finds inputs by name; torch renames silently when an output has the name of an input (`data.1`).

    Fix: use the name that is stated, or choose another with input_names or output_names.

    Fix safety: advice only.

    Evidence: the names asked for.
    """
    DOC_ZH = """
    问题：某个输入或输出的名称与要求的不同：该名称已被另一侧占用，或含有字母、数字、下划线以外的字符。

    在昇腾上的原因：ATC 按名称查找输入；当输出与输入同名时，torch 会不加提示地改名（`data.1`）。

    修复：请使用所示名称，或通过 input_names、output_names 另选名称。

    修复安全性：仅为建议。

    依据：所要求的名称。
    """
