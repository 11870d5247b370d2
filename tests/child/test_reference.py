"""ONNX's reference implementation stands in where ONNX Runtime has none, and nowhere else."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from jumar import fix
from jumar.child.reference import WRONG, may_stand_in, wrong_operators
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


def test_operators_that_a_later_onnx_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    for version, expected in (
        ("1.19.0", {"Attention", "QLinearMatMul"}),
        ("1.21.0rc1", {"QLinearMatMul"}),
        ("1.22.0", set()),
    ):
        monkeypatch.setattr(onnx, "__version__", version)
        assert wrong_operators() == frozenset(WRONG) | expected


CHANNELS = """<ir_version: 8, opset_import: ["" : 13]> agraph (uint8[1,1,3,3] x) => (int32[1,2,2,2] y)
    <uint8[2,1,2,2] w = {1, 2, 3, 4, 5, 6, 7, 8}, uint8 a = {3}, uint8[2] b = {1, 2}> { y = ConvInteger(x, w, a, b) }"""


@pytest.mark.skipif("QLinearMatMul" in wrong_operators(), reason="before ONNX 1.22 its reference has no zero points of channels")
def test_a_kernel_that_gives_up_while_it_runs_is_stood_in_for(evaluator: Evaluator) -> None:
    x = np.arange(9, dtype=np.uint8).reshape(1, 1, 3, 3)
    with evaluator.session(model(CHANNELS)) as session:
        assert session.engine == "onnxruntime"  # not known before
        found = session.run({"x": x})["y"]
        assert session.engine == "onnx-reference"
        assert np.array_equal(session.run({"x": x})["y"], found)
        with pytest.raises(EvaluationError):
            session.run({"x": x[:, :, :1]})
        with pytest.raises(EvaluationError):
            session.run({"x": x.astype(np.int8)})
    windows = np.lib.stride_tricks.sliding_window_view(x[0, 0].astype(np.int64) - 3, (2, 2))
    weights = np.arange(1, 9).reshape(2, 2, 2) - np.array([1, 2]).reshape(2, 1, 1)
    assert np.array_equal(found[0], np.einsum("ijkl,ckl->cij", windows, weights))
    record = fix(model(CHANNELS), soc="Ascend310P3", evaluator=evaluator).record
    assert any("reference implementation" in str(note) for note in record.notes)


def test_float8_and_4_bits_travel() -> None:
    import ml_dtypes

    from jumar.child import wire

    for name in ("float8_e4m3fn", "float8_e5m2fnuz", "int4", "uint4", "bfloat16"):
        array = np.arange(4).astype(getattr(ml_dtypes, name))
        header, data = wire.pack_array(array)
        back = wire.unpack_array(header, data)
        assert back.dtype == array.dtype
        assert np.array_equal(back.astype(np.float32), array.astype(np.float32))


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


@pytest.mark.slow
def test_the_standards_node_tests_agree_except_where_it_is_not_asked() -> None:
    """All numeric node tests through the reference: those that differ have an operator of the list."""
    import sys
    import warnings
    from pathlib import Path

    from onnx.reference import ReferenceEvaluator

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "corpus"))
    from node_cases import coverage

    different = {}
    warnings.simplefilter("ignore")  # some implementations use what numpy has deprecated
    for name, case in coverage().numeric_cases().items():
        used = {node.op_type for node in case.proto.graph.node}
        if used & wrong_operators() or used & {"Scatter", "ImageDecoder"}:  # Scatter: it has none; ImageDecoder needs Pillow
            continue
        evaluator = ReferenceEvaluator(case.proto)
        for inputs, outputs in case.data:
            with np.errstate(all="ignore"):
                found = evaluator.run(None, dict(zip([item.name for item in case.proto.graph.input], inputs, strict=False)))
            for one, other in zip(found, outputs, strict=False):
                first, second = (np.asarray(item).astype(np.float64) if item.dtype.kind in "fV" else item for item in (one, other))
                finite = np.abs(second[np.isfinite(second)]).max(initial=0.0) if second.dtype.kind == "f" else 0.0
                if first.shape != second.shape or not np.allclose(first, second, rtol=1e-3, atol=1e-7 + 1e-6 * finite, equal_nan=True):
                    different[name] = used
    assert different == {}
