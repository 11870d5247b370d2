"""OP211: an operator in a form that the target does not take, and that has another with the same meaning."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class FormNotTaken(ExpansionRule):
    code = "OP211"
    name = "form-not-taken"
    since = "0.1"
    ops = frozenset(("Flatten", "Conv", "ConvTranspose", "Hardmax", "ArgMax", "ArgMin", "OneHot", "Slice", "IsInf", "IsNaN", "Mod"))
    bound = 1e-5
    always = False
    DOC_EN = """
    What: an operator whose parser or kernel refuses, ignores or does not document the form it has here: a negative axis, attributes left to their defaults, auto_pad or output_shape, a stride of a Slice on the last axis, select_last_index, fmod, one sign of IsInf, a convolution whose strides or kernel are longer than documented (63 and 255), as transforms of speech have them.

    Why on Ascend: the parser reads some attributes only if they are written, and kernels are documented for some forms only.

    Fix: the same operator in the form that is taken, or the few operators it means: attributes are written out, axes counted from the front, places of a strided Slice gathered, the last of equal elements found from behind, NaN and infinities found by comparison. A transposed convolution whose form is not taken becomes a plain one over an image with zeros between its elements. Elements of a long stride become channels; a long kernel is taken apart, and what its pieces give is added.

    Fix safety: safe; equal in every element, but for fmod of floats, which is computed by a division, and convolutions, whose products are the same but added in another order: within 1e-5 of the largest element.

    Evidence: the limits and parser facts that `jumar targets show` cites; ONNX operator definitions.
    """
    DOC_ZH = """
    问题：算子的形式被解析器或算子实现拒绝、忽略或没有文档说明：负的 axis、未写出的属性、auto_pad 或 output_shape、最后一维上的 Slice 步长、select_last_index、fmod、只检测一种符号的 IsInf，以及步长或卷积核超出文档范围（63 与 255）的卷积，语音变换常见。

    在昇腾上的原因：解析器只读取写出的属性，算子实现只对部分形式有文档说明。

    修复：改为受支持的形式，或改用等价的几个算子：写出属性，从前向后计 axis，用 Gather 选取步长切片的位置，从后向前查找相等元素中的最后一个，用比较检测 NaN 与无穷大。不受支持的转置卷积改为在元素之间插入零的图像上的普通卷积。过长的步长内的元素变为通道；过长的卷积核拆成几段，结果相加。

    修复安全性：安全；逐元素相等。浮点 fmod 通过除法计算，卷积的各项乘积相同但相加次序不同，二者在最大元素的 1e-5 以内得到证明。

    依据：`jumar targets show` 给出的限制与解析器事实；ONNX 算子定义。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3,4] x) => (float[6,4] y) { y = Flatten<axis = -1>(x) }
        """,
            opsets=(11, 18),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,2,5,5] x, float[3,2,3,3] w) => (float[1,3,3,3] y) { y = Conv(x, w) }
        """,
            opsets=(11, 18),
            edges=False,
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,1,4,512] x, float[2,1,1,256] w) => (float[1,2,4,3] y) { y = Conv<kernel_shape = [1, 256], strides = [1, 128]>(x, w) }
        """,
            opsets=(11, 18),
            edges=False,
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,5] x) => (int64[2,1] y) { y = ArgMax<axis = 1, select_last_index = 1>(x) }
        """,
            opsets=(13, 18),
            also=("DT301",),
            edges=False,
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[4,5] x) => (bool[4,5] y) { y = IsInf<detect_negative = 0>(x) }
        """,
            opsets=(11, 18),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x, float[2,3] z) => (float[2,3] y) { y = Mod<fmod = 1>(x, z) }
        """,
            opsets=(13, 18),
            edges=False,
        ),
    )
