"""AT906: input shape malformed."""

from __future__ import annotations

from ..base import Rule


class InputShapeMalformed(Rule):
    code = "AT906"
    name = "input-shape-malformed"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: --input_shape or --input_shape_range cannot be read: no name, a size that is no number, zero, a range that runs backwards, brackets in the wrong flag.

    Why on Ascend: ATC refuses the call (E10002, E10011, E10013, E10014, E10048).

    Fix: write `name:1,3,224,224;other:1~16,10` in quotes; brackets belong to --input_shape_range only.

    Fix safety: advice only.

    Evidence: the parser of both flags in ATC's sources.
    """
    DOC_ZH = """
    问题：--input_shape 或 --input_shape_range 无法解析：没有名称、尺寸不是数字、为零、范围颠倒，或方括号用错了参数。

    在昇腾上的原因：ATC 会拒绝命令（E10002、E10011、E10013、E10014、E10048）。

    修复：写成 `name:1,3,224,224;other:1~16,10` 并加引号；方括号只用于 --input_shape_range。

    修复安全性：仅为建议。

    依据：ATC 源码中这两个参数的解析器。
    """
