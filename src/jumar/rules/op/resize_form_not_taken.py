"""OP245: Resize in a form that the target does not take or computes differently."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class ResizeFormNotTaken(ExpansionRule):
    code = "OP245"
    name = "resize-form-not-taken"
    since = "0.1"
    ops = frozenset(("Resize",))
    bound = 1e-4
    always = False
    DOC_EN = """
    What: Resize with a mode, coordinate transformation, rounding, antialiasing, axes or policy that the target refuses, ignores or is not documented to compute.

    Why on Ascend: the parser does not read nearest_mode, antialias, axes or the policy; the kernels know nearest and linear with few coordinate transformations.

    Fix: for known sizes each dimension in turn becomes a product with a constant matrix, whose rows are the weights of every new place, computed in float64; of dimensions before the last two, or where the matrix would exceed 1,048,576 elements, the neighbours are gathered, weighted and added up. Nearest places are gathered.

    Fix safety: safe within 1e-4 of the largest element: ONNX Runtime computes the places of large images in float32, and is itself that far from the formula. Refused where the last bit of the coordinates decides which place is nearest or outside, and for sizes that are not known. A NaN or infinity in a row reaches all that is computed from that row.

    Evidence: the kernel tables and limits that `jumar targets show` cites; ONNX operator definitions and node tests.
    """
    DOC_ZH = """
    问题：Resize 的模式、坐标变换、取整方式、抗锯齿、axes 或宽高比策略被目标拒绝、忽略，或没有文档说明。

    在昇腾上的原因：解析器不读取 nearest_mode、antialias、axes 和宽高比策略；算子实现只支持最近邻与线性插值以及少数坐标变换。

    修复：对已知大小，逐维与常量矩阵相乘，矩阵各行是用 float64 计算的每个新位置的权重；最后两维之前的维度，或矩阵超过 1,048,576 个元素时，改用 Gather 选取邻居加权求和。最近邻用 Gather 选取。

    修复安全性：误差在最大元素的 1e-4 以内为安全：ONNX Runtime 用 float32 计算大图像的位置，本身与公式就有这样的差距。最近位置或是否在图像外取决于坐标的末位舍入，或大小未知时拒绝。某行中的 NaN 或无穷大会影响由该行计算的所有结果。

    依据：`jumar targets show` 给出的算子信息库与限制；ONNX 算子定义与节点测试。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,1,4,4] x) => (float[1,1,8,8] y) <float[4] scales = {1.0, 1.0, 2.0, 2.0}> { y = Resize<mode = "cubic">(x, , scales) }
        """,
            opsets=(13, 18),
            edges=False,
        ),
    )
