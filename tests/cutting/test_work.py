"""How much work a node is, against products counted by hand."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from jumar.cutting import is_counted, work_of
from jumar.graph import infer_shapes


def node(text: str) -> ir.Node:
    made = ir.from_onnx_text('<ir_version: 8, opset_import: ["" : 13, "own" : 1, "com.microsoft" : 1]> agraph ' + text)
    infer_shapes(made)
    return made.graph[-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(float[1,3,8,8] x, float[4,3,3,3] w) => (float[1,4,6,6] y) { y = Conv(x, w) }", 4 * 36 * 27),
        ("(float[1,4,8,8] x, float[4,1,3,3] w) => (float[1,4,6,6] y) { y = Conv<group = 4>(x, w) }", 4 * 36 * 9),
        # Every element of the input is multiplied with one filter of 2 x 3 x 3, however large the output.
        ("(float[1,5,4,4] x, float[5,2,3,3] w) => (float[1,2,9,9] y) { y = ConvTranspose<strides = [2, 2]>(x, w) }", 80 * 18),
        ("(float[2,5] x, float[5,7] w) => (float[2,7] y) { y = MatMul(x, w) }", 14 * 5),
        ("(float[5,2] x, float[5,7] w) => (float[2,7] y) { y = Gemm<transA = 1>(x, w) }", 14 * 5),
        ("(uint8[2,5] x, uint8[5,7] w) => (int32[2,7] y) { y = MatMulInteger(x, w) }", 14 * 5),
        ("(float[6,2,3] x, float[1,4,3] w, float[1,4,4] r) => (float[6,1,2,4] y) { y = RNN<hidden_size = 4>(x, w, r) }", 12 * 28),
        # The first output has no name; both directions, four gates.
        (
            """(float[6,2,3] x, float[2,16,3] w, float[2,16,4] r) => (float[2,2,4] h)
            { , h = LSTM<hidden_size = 4, direction = "bidirectional">(x, w, r) }""",
            12 * 2 * 16 * 7,
        ),
        (
            """(float[6,2,3] x, int8[2,3,16] w, int8[2,4,16] r, float[2,16] s, int8[2,16] z) => (float[2,2,4] h)
            { , h = com.microsoft.DynamicQuantizeLSTM<hidden_size = 4, direction = "bidirectional">(x, w, r, , , , , , s, z, s, z) }""",
            12 * 2 * 16 * 7,
        ),
        ("(float[2,5] x) => (float[2,5] y) { y = Relu(x) }", 10),
        ("(float[4] x) => (float[4] y) <int64 n = {3}> { y = Loop(n, , x) <body = one (int64 i, bool c, float[4] a) => (bool d, float[4] b) { d = Identity(c) b = Neg(a) }> }", 3 * 5),
        ("(float[4] s, float[2,7] x) => (float[4] y, float[2,7] z) { y, z = Scan<num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1], body = one (float[4] a, float[2] b) => (float[4] c, float[2] d) { c = Neg(a) d = Abs(b) }>(s, x) }", 7 * 6),
    ],
)  # fmt: skip
def test_work_is_what_a_hand_counts(text: str, expected: int) -> None:
    assert work_of(node(text)) == expected and is_counted(node(text))


@pytest.mark.parametrize(
    "text",
    [
        "(float[n,5] x, float[5,7] w) => (float[n,7] y) { y = MatMul(x, w) }",
        "(float[n,2,3] x, float[1,4,3] w, float[1,4,4] r) => (float[n,1,2,4] y) { y = RNN<hidden_size = 4>(x, w, r) }",
        "(float[2,5] x) => (float[2,5] y) { y = own.Thing(x) }",
        "(float[4] x, int64 n) => (float[4] y) { y = Loop(n, , x) <body = one (int64 i, bool c, float[4] a) => (bool d, float[4] b) { d = Identity(c) b = Neg(a) }> }",
        "(float[4] x) => (float[4] y) <int64 n = {9223372036854775807}> { y = Loop(n, , x) <body = one (int64 i, bool c, float[4] a) => (bool d, float[4] b) { d = Identity(c) b = Neg(a) }> }",
    ],
)
def test_what_cannot_be_counted_says_so(text: str) -> None:
    assert not is_counted(node(text))
    assert work_of(node(text)) >= 1
