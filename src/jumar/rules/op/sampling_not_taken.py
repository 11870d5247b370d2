"""OP246: sampling at computed places that the target does not take."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class SamplingNotTaken(ExpansionRule):
    code = "OP246"
    name = "sampling-not-taken"
    since = "0.1"
    ops = frozenset(("Col2Im", "DeformConv", "GridSample", "RoiAlign"))
    bound = 1e-5
    DOC_EN = """
    What: GridSample, Col2Im, DeformConv or RoiAlign on a target that refuses it, runs it on the AI CPU, or may not have it.

    Why on Ascend: few SoCs have kernels for sampling at computed places, and for some modes only.

    Fix: coordinates become places and weights by plain arithmetic; the neighbours are rows of the flattened image, taken by one Gather with int32 places (half precision does not hold places above 2048), weighted and added up. Places outside give zeros, the border or the reflection, as the operator says.

    Fix safety: safe within 1e-5 of the largest element; sizes must be static, and all neighbours together at most 67,108,864 elements. It is much slower than a kernel would be: every sample is gathered.

    Evidence: the kernel tables and limits that `jumar targets show` cites; ONNX operator definitions and node tests.
    """
    DOC_ZH = """
    问题：目标不支持 GridSample、Col2Im、DeformConv 或 RoiAlign，只能在 AI CPU 上执行，或可能没有该算子。

    在昇腾上的原因：很少有 SoC 具有按计算位置采样的算子实现，且只支持部分模式。

    修复：坐标通过普通算术变为位置与权重；以 int32 位置用一次 Gather 从展平的图像中按行选取邻居（半精度无法精确表示 2048 以上的位置），加权求和。落在图像外的位置按算子规定取零、边界或反射。

    修复安全性：误差在最大元素的 1e-5 以内为安全；形状必须静态，且全部邻居合计不超过 67,108,864 个元素。比专用算子慢得多：每个采样点都要 Gather。

    依据：`jumar targets show` 给出的算子信息库与限制；ONNX 算子定义与节点测试。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,1,4,4] x, float[1,2,3,2] g) => (float[1,1,2,3] y) { y = GridSample(x, g) }
        """,
            opsets=(16, 18),
            edges=False,
        ),
    )
