"""VF609: an output is out of bound when tensors are stored in 16 bits."""

from __future__ import annotations

from ..base import Rule


class PrecisionLost(Rule):
    code = "VF609"
    name = "precision-lost"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: under the emulated precision mode an output misses the bound of the metric (`jumar verify --precision`).

    Why on Ascend: ATC stores tensors in float16 unless told otherwise, and a model that loses its results there loses them on the device.

    Fix: look at VF610 for the place; rewrite it as advised, or let --keep-list write which nodes stay in float32. A warning once such a list was found.

    Fix safety: advice only.

    Evidence: the outputs of the emulation against those in float32. What the emulation leaves out is listed (VF607); nothing was run on a device.
    """
    DOC_ZH = """
    问题：在模拟的精度模式下，某个输出未达到指标的界限（`jumar verify --precision`）。

    在昇腾上的原因：除非另行指定，ATC 以 float16 存储张量；在此丢失结果的模型在设备上同样会丢失。

    修复：查看 VF610 指出的位置；按建议改写，或用 --keep-list 写出需保持 float32 的节点。找到这样的名单后降为警告。

    修复安全性：仅为建议。

    依据：模拟输出与 float32 输出的对比。未模拟的内容见 VF607；没有在设备上运行。
    """
