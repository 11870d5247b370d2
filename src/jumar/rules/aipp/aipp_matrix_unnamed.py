"""AI107: aipp matrix unnamed."""

from __future__ import annotations

from ..base import Rule


class AippMatrixUnnamed(Rule):
    code = "AI107"
    name = "aipp-matrix-unnamed"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: colour conversion is on with a matrix that belongs to no standard, or without a matrix.

    Why on Ascend: a wrong matrix shifts all colours a little, and ATC's own default gives BGR in the narrow range of BT.601.

    Fix: `jumar aipp derive --matrix 601-full` writes one by its name.

    Fix safety: advice only.

    Evidence: ITU-R BT.601, BT.709, BT.2020; the matrices in CANN's conf/aipp.
    """
    DOC_ZH = """
    问题：开启了色域转换，但矩阵不属于任何标准，或没有给出矩阵。

    在昇腾上的原因：矩阵不对会使颜色整体偏移；ATC 的默认矩阵得到 BT.601 窄范围的 BGR。

    修复：`jumar aipp derive --matrix 601-full` 可按名称生成。

    修复安全性：仅为建议。

    依据：ITU-R BT.601、BT.709、BT.2020；CANN conf/aipp 中的矩阵。
    """
