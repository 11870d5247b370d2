"""OP250: a pool in a form that the target does not take."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class PoolFormNotTaken(ExpansionRule):
    code = "OP250"
    name = "pool-form-not-taken"
    since = "0.1"
    ops = frozenset(("AveragePool", "LpPool", "MaxPool", "MaxUnpool"))
    bound = 1e-5
    always = False
    DOC_EN = """
    What: a pool with dilations, indices, storage_order, ceil_mode or count_include_pad in a form that the target refuses, ignores or runs on the AI CPU.

    Why on Ascend: pool kernels have no dilations, and the parser refuses the second output of MaxPool.

    Fix: what auto_pad and ceil_mode mean is written as pads, where that is the same. Otherwise averages become a convolution of each channel with ones, divided by the number of elements each window counts; maxima the largest of the neighbours gathered from constant places, one axis after the other; indices are looked up in a table; MaxUnpool is a ScatterND into zeros.

    Fix safety: safe; maxima and indices are equal in every element, averages within 1e-5 of the largest. Sizes must be known; refused where a window lies wholly in the padding, and for auto_pad with dilations, which is read in more than one way.

    Evidence: the kernel tables and limits that `jumar targets show` cites; ONNX operator definitions and node tests.
    """
    DOC_ZH = """
    问题：池化使用了 dilations、indices、storage_order、ceil_mode 或 count_include_pad，目标拒绝、忽略该形式或只能在 AI CPU 上执行。

    在昇腾上的原因：池化算子没有 dilations，解析器拒绝 MaxPool 的第二个输出。

    修复：若等价，则把 auto_pad 与 ceil_mode 的含义写成 pads。否则平均池化改为各通道与全 1 卷积再除以每个窗口的元素个数；最大池化逐维从固定位置选取邻居并取最大值；索引查表得到；MaxUnpool 改为向全零张量做 ScatterND。

    修复安全性：安全；最大值与索引逐元素相等，平均值误差在最大元素的 1e-5 以内。各维大小必须已知；若有窗口完全落在填充区域，或 auto_pad 与 dilations 同时使用（有多种解释），则拒绝。

    依据：`jumar targets show` 给出的算子信息库与限制；ONNX 算子定义与节点测试。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,2,9] x) => (float[1,2,5] y) { y = MaxPool<kernel_shape = [3], dilations = [2]>(x) }
        """,
            opsets=(11, 18),
            edges=False,
        ),
    )
