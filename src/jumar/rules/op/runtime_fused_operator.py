"""OP237: an operator of ONNX Runtime's own domain."""

from __future__ import annotations

from ...graph.expansions import load_expansions, operators_of
from ..base import Example
from ..expansion import ExpansionRule
from .quantised_sum import RUNTIME_ROUNDED


def _all() -> frozenset[str]:
    load_expansions()
    return operators_of("com.microsoft")


class RuntimeFusedOperator(ExpansionRule):
    code = "OP237"
    name = "runtime-fused-operator"
    since = "0.1"
    # Sums of quantised tensors have a rule of their own, since their rounding is the runtime's; OP225 speaks of recurrent operators.
    ops = (_all() | {"SimplifiedLayerNormalization"}) - RUNTIME_ROUNDED - {"com.microsoft::DynamicQuantizeLSTM"}
    bound = 1e-5
    DOC_EN = """
    What: an operator of the domain com.microsoft, which ONNX Runtime's optimiser and quantiser write; or SimplifiedLayerNormalization, which they write into the standard's domain.

    Why on Ascend: ATC's parser knows no operator of that domain, and a second domain in the model's imports is refused as such (E16005).

    Fix: the standard operators that it stands for. Once none is left, the import of the domain goes away too (GR502).

    Fix safety: safe within 1e-5 of the largest element; options that are not written out (caches whose filled length is data, 4-bit products whose data the runtime rounds too) are refused by name. Operators that ONNX Runtime has on GPUs only (GroupNorm, NhwcConv, BiasSplitGelu and others) are proven against Jumar's numpy form of their documentation, and the record says so.

    Evidence: ONNX Runtime's operator documentation; proven on the user's model against ONNX Runtime.
    """
    DOC_ZH = """
    问题：模型含有 com.microsoft 域的算子，由 ONNX Runtime 的优化器或量化器生成；或含有其写入标准域的 SimplifiedLayerNormalization。

    在昇腾上的原因：ATC 的解析器不认识该域的任何算子，且模型导入第二个域本身就会被拒绝（E16005）。

    修复：改用它所代表的标准算子。全部替换后，该域的导入也随之删除（GR502）。

    修复安全性：误差在最大元素的 1e-5 以内为安全；未展开的选项（已填充长度由数据决定的缓存、运行时同时舍入数据的 4 比特乘法等）会指明名称并拒绝。ONNX Runtime 仅在 GPU 上实现的算子（GroupNorm、NhwcConv、BiasSplitGelu 等）与 Jumar 按其文档编写的 numpy 形式对比证明，并记录在结果中。

    依据：ONNX Runtime 的算子文档；在用户的模型上与 ONNX Runtime 对比证明。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET, "com.microsoft" : 1]>
        agraph (float[2,4] x, float[4] b) => (float[2,4] y) { y = com.microsoft.BiasGelu(x, b) }
        """,
            edges=False,
        ),
    )
