"""ONNX's reference implementation stands in where ONNX Runtime has none, and nowhere else."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from jumar import fix
from jumar.child.reference import may_stand_in
from jumar.errors import EvaluationError
from jumar.graph import Evaluator


def model(text: str) -> ir.Model:
    return ir.from_onnx_text(text)


BFLOAT = """<ir_version: 10, opset_import: ["" : 18]> agraph (float[2,3] x) => (float[2,3] y) {
    a = Cast<to = 16>(x) b = Sin(a) y = Cast<to = 1>(b) }"""


def test_the_engine_is_told(evaluator: Evaluator) -> None:
    x = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
    with evaluator.session(
        model('<ir_version: 8, opset_import: ["" : 13]> agraph (float[2,3] x) => (float[2,3] y) { y = Sin(x) }')
    ) as session:
        assert session.engine == "onnxruntime"
    with evaluator.session(model(BFLOAT)) as session:
        assert session.engine == "onnx-reference"
        found = session.run({"x": x})["y"]
    assert np.abs(found - np.sin(x)).max() < 2.0**-7 * 2
    assert np.abs(found - np.cos(x)).max() > 0.1


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for Sin(7)", True),
        ("com.example:Thing(-1) is not a registered function/op", True),
        ("INVALID_ARGUMENT : Got invalid dimensions for input", False),
        ("This is an invalid model. Error: two nodes with same node name", False),
    ],
)
def test_only_a_missing_implementation_is_stood_in_for(message: str, expected: bool) -> None:
    assert may_stand_in(RuntimeError(message)) == expected


def test_operators_whose_reference_is_wrong_are_not_asked_for(evaluator: Evaluator) -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]> agraph (float[2,3] x, int64 n, bool c) => (float[2,3] y) {
        a = Cast<to = 16>(x) b = Sin(a) d = Cast<to = 1>(b)
        y = Loop (n, c, d) < body = inner (int64 i, bool go, float[2,3] v) => (bool on, float[2,3] w) { on = Identity(go) w = Neg(v) } > }"""
    with pytest.raises(EvaluationError):
        evaluator.session(model(text))


def test_large_weights_reach_it(evaluator: Evaluator) -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 18]> agraph (float[1,300] x) => (float[1,300] y) { a = MatMul(x, w) b = Cast<to = 16>(a) c = Sin(b) y = Cast<to = 1>(c) }'
    )
    weight = np.eye(300, dtype=np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    x = np.full((1, 300), 0.5, np.float32)
    found = evaluator.run(ir.from_proto(proto), {"x": x})["y"]
    assert np.abs(found - np.sin(0.5)).max() < 2.0**-7


def test_a_record_says_so(evaluator: Evaluator) -> None:
    record = fix(model(BFLOAT), soc="Ascend310P3", evaluator=evaluator).record
    assert any("reference implementation" in str(note) for note in record.notes)
    assert any(step.code == "DT309" for step in record.steps)
