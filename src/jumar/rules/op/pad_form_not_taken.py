"""OP212: Pad in a form that the target does not take."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class PadFormNotTaken(ExpansionRule):
    code = "OP212"
    name = "pad-form-not-taken"
    since = "0.1"
    ops = frozenset(("Pad",))
    bound = 0.0
    always = False
    DOC_EN = """
    What: Pad with axes, negative amounts, a mode or a constant that the target refuses or that is not documented for it.

    Why on Ascend: the parser reads the pads of all axes and does not read axes; only the value 0 is documented for constant padding.

    Fix: the amounts are written for all axes, a negative one becomes a Slice before anything is added. Where that is not enough, reflected, repeated and wrapped elements are gathered from constant places, and constant ones concatenated.

    Fix safety: safe; equal in every element. Amounts must be constant, and sizes known where elements are gathered.

    Evidence: the limits that `jumar targets show Pad` cites; ONNX definition of Pad.
    """
    DOC_ZH = """
    问题：Pad 使用了目标拒绝或没有文档说明的 axes、负数、模式或填充常量。

    在昇腾上的原因：解析器读取所有维的 pads 而不读取 axes；常量填充只对取值 0 有文档说明。

    修复：写出所有维的 pads，负值改为先做 Slice。若仍不够，则从固定位置用 Gather 选取反射、重复或环绕的元素，常量元素用 Concat 拼接。

    修复安全性：安全；逐元素相等。pads 必须为常量，选取元素时各维大小必须已知。

    依据：`jumar targets show Pad` 给出的限制；Pad 的 ONNX 定义。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,4] x) => (float[2,3] y) <int64[4] pads = {0, -2, 0, 1}> { y = Pad(x, pads) }
        """,
            opsets=(11, 18),
        ),
    )
