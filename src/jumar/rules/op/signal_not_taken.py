"""OP247: a Fourier transform."""

from __future__ import annotations

from ..base import Example
from ..expansion import ExpansionRule


class SignalNotTaken(ExpansionRule):
    code = "OP247"
    name = "signal-not-taken"
    since = "0.1"
    ops = frozenset(("DFT", "STFT", "MelWeightMatrix"))
    bound = 1e-4
    DOC_EN = """
    What: DFT, STFT or MelWeightMatrix, which no parser takes.

    Why on Ascend: there is no complex arithmetic and no parser for these operators.

    Fix: a product with constant matrices of cosines and sines; a STFT is one strided convolution whose weights are cosines and sines times the window (frames are gathered where the kernel would be too long); a mel matrix becomes a weight.

    Fix safety: safe within 1e-4 of the largest element (ONNX Runtime itself is up to 9e-5 from the definition for lengths around 1000 that are not powers of two; the matrices are within 1e-6); lengths must be known, and the matrix may have 4,194,304 elements. In half precision the error grows with the length.

    Evidence: the kernel tables and limits that `jumar targets show` cites; ONNX operator definitions and node tests.
    """
    DOC_ZH = """
    问题：模型含有 DFT、STFT 或 MelWeightMatrix，没有解析器支持。

    在昇腾上的原因：昇腾没有复数运算，也没有这些算子的解析器。

    修复：改为与余弦、正弦常量矩阵相乘；STFT 成为一次带步长的卷积，其权重是余弦、正弦乘以窗（卷积核过长时改为选取各帧）；梅尔矩阵成为权重。

    修复安全性：误差在最大元素的 1e-4 以内为安全（长度约 1000 且不是 2 的幂时，ONNX Runtime 本身与定义相差可达 9e-5；矩阵形式在 1e-6 以内）；长度必须已知，矩阵不得超过 4,194,304 个元素。半精度下误差随长度增长。

    依据：`jumar targets show` 给出的算子信息库与限制；ONNX 算子定义与节点测试。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[1,8,1] x) => (float[1,8,2] y) { y = DFT<axis = 1>(x) }
        """,
            opsets=(17, 18),
            edges=False,
        ),
    )
