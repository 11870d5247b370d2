"""QT104: a layer is not quantised, and why."""

from __future__ import annotations

from ..base import Rule


class LayerLeftInFloats(Rule):
    code = "QT104"
    name = "layer-left-in-floats"
    since = "0.1"
    severity = "info"
    DOC_EN = """
    What: a layer that multiplies stays in floats: its form cannot be quantised, the target has no operator for it, or the configuration says so.

    Why on Ascend: ATC parses int8 only for layers with a constant weight between AscendQuant and AscendDequant.

    Fix: none is needed; the finding says what stands in the way.

    Fix safety: advice only.

    Evidence: AMCT's list of quantisable operators and the operator tables.
    """
    DOC_ZH = """
    问题：某个含乘法的层保持浮点：其形式无法量化、目标没有相应算子，或配置如此规定。

    在昇腾上的原因：ATC 只解析位于 AscendQuant 与 AscendDequant 之间、权重为常量的 int8 层。

    修复：无需处理；结果中说明了原因。

    修复安全性：仅为建议。

    依据：AMCT 的可量化算子列表与算子表。
    """
