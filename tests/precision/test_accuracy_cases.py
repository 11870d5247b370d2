"""The public bug reports about accuracy: the culprit is named, the remedy is applied or the keep-list written, and the bound holds after it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar import UsageError, check, explain, fix, verify, verify_precision
from jumar.graph import Evaluator
from jumar.rules.op.gru_resets_after import doubtful

SHARED = Path(__file__).resolve().parents[3] / "shared" / "cases"


def case_of(name: str, model: str) -> tuple[Path, Path]:
    if not SHARED.is_dir():
        pytest.skip("the reports are not here")
    path = SHARED / name / model
    return path, path.with_name(f"{model}.in.npz")


def test_a_guard_that_is_zero_in_half_precision(tmp_path: Path, evaluator: Evaluator) -> None:
    model, feeds = case_of("acc-fp16-l2norm-underflow", "l2n.onnx")
    found = check(model, soc="Ascend310P3").record.findings
    assert [(item.code, item.node) for item in found] == [("DT310", "Max_ne")]
    record = verify_precision(model, "fp16", feeds=feeds, keep_list=tmp_path, evaluator=evaluator).record
    born = {item.node for item in record.findings if item.code == "VF610"}
    assert {"Mul_q", "Div_y"} <= born
    kept = (tmp_path / "customize_dtypes.cfg").read_text(encoding="utf-8")
    keep = [line.partition("::")[0] for line in kept.splitlines()]
    again = verify_precision(model, "fp16", feeds=feeds, keep=keep, bound=0.999, evaluator=evaluator).record
    assert again.verdict == "ready"
    # Without them it is far out, so that the bound says something.
    assert verify_precision(model, "fp16", feeds=feeds, bound=0.5, evaluator=evaluator).record.verdict == "blocked"


def test_one_stage_of_a_decoder_collapses(tmp_path: Path, evaluator: Evaluator) -> None:
    model, feeds = case_of("acc-localise-bad-stage", "fpn.onnx")
    record = verify_precision(model, "fp16", soc="Ascend910B3", feeds=feeds, keep_list=tmp_path, evaluator=evaluator).record
    assert {item.node for item in record.findings if item.code == "VF609"} == {"out", "fpn2"}, "fpn3 is clean"
    first = next(item for item in record.findings if item.code == "VF610")
    assert first.node == "stage2_add"
    kept = {line.partition("::")[0] for line in (tmp_path / "customize_dtypes.cfg").read_text(encoding="utf-8").splitlines()}
    assert {"stage2_add", "stage2_deconv", "stage2_bias"} <= kept <= {"stage2_add", "stage2_deconv", "stage2_bias", "stage2_sub"}
    again = verify_precision(model, "fp16", soc="Ascend910B3", feeds=feeds, keep=sorted(kept), bound=0.999, evaluator=evaluator).record
    assert again.verdict == "ready"


def test_an_exporter_dropped_an_attribute(tmp_path: Path, evaluator: Evaluator) -> None:
    model, feeds = case_of("acc-gru-wrong-equation", "gru_export.onnx")
    outputs = model.with_name("gru_export.onnx.ref.npz")
    assert "OP227" in {item.code for item in check(model, soc="Ascend310P3").record.findings}
    record = verify(model, outputs, feeds=feeds, evaluator=evaluator).record
    assert [item.code for item in record.findings] == ["VF611", "VF601", "VF601"]
    assert "0.333" in str(record.findings[0].message)
    fix(model, soc="Ascend310P3", unsafe=["OP227"], output=tmp_path / "right.onnx", evaluator=evaluator)
    after = verify(tmp_path / "right.onnx", outputs, feeds=feeds, evaluator=evaluator).record
    assert after.verdict == "ready"
    assert after.steps[0].proof is not None
    assert after.steps[0].proof.max_abs < 1e-5


def test_a_difference_without_a_known_mistake_is_only_a_difference(tmp_path: Path, evaluator: Evaluator) -> None:
    model, feeds = case_of("acc-gru-wrong-equation", "gru_export.onnx")
    with np.load(model.with_name("gru_export.onnx.ref.npz")) as held:
        np.savez(tmp_path / "other.npz", **{name: array + 1 for name, array in held.items()})
    record = verify(model, tmp_path / "other.npz", feeds=feeds, evaluator=evaluator).record
    assert {item.code for item in record.findings} == {"VF601"}


def test_recorded_outputs_need_their_inputs_and_the_right_names(tmp_path: Path, evaluator: Evaluator) -> None:
    model, feeds = case_of("acc-gru-wrong-equation", "gru_export.onnx")
    with pytest.raises(UsageError, match="without their inputs"):
        verify(model, model.with_name("gru_export.onnx.ref.npz"), evaluator=evaluator)
    np.savez(tmp_path / "odd.npz", odd=np.zeros(3))
    with pytest.raises(UsageError, match="expected outputs of the model: y, h"):
        verify(model, tmp_path / "odd.npz", feeds=feeds, evaluator=evaluator)


def test_a_norm_that_overflows_gives_silent_zeros(evaluator: Evaluator) -> None:
    """Squares beyond 65504 make the variance infinite, and what is divided by it 0: no NaN tells of it."""
    text = """
    <ir_version: 8, opset_import: ["" : 13]>
    agraph (float[2,64] x) => (float[2,64] y) <float eps = {0.001}, float two = {2}> {
        mean = ReduceMean<axes = [-1]>(x)
        rest = Sub(x, mean)
        square = Pow(rest, two)
        var = ReduceMean<axes = [-1]>(square)
        safe = Add(var, eps)
        root = Sqrt(safe)
        y = Div(rest, root)
    }"""
    model = ir.from_onnx_text(text)
    for node in model.graph:
        node.name = f"make_{node.outputs[0].name}"
    from jumar.proof import FeedSet

    feeds = FeedSet(({"x": (np.random.default_rng(0).normal(size=(2, 64)) * 3000).astype(np.float32)},), "user")
    record = verify_precision(model, "fp16", feeds=feeds, evaluator=evaluator).record
    assert record.verdict == "blocked"
    born = [item.node for item in record.findings if item.code == "VF610"]
    assert born[0] == "make_square"
    keep = ["make_square", "make_var", "make_safe", "make_root", "make_y"]
    assert verify_precision(model, "fp16", feeds=feeds, keep=keep, evaluator=evaluator).record.verdict == "ready"


@settings(deadline=None, max_examples=30)
@given(st.floats(1e-30, 1e-3), st.sampled_from(["Add", "Max"]))
def test_a_guard_is_lost_exactly_where_float16_has_zero(least: float, kind: str) -> None:
    text = f"""
    <ir_version: 8, opset_import: ["" : 13]>
    agraph (float[2,3] x, float[2,1] n) => (float[2,3] y) <float least = {{{least:.40f}}}> {{ m = {kind}(n, least) y = Div(x, m) }}"""
    model = ir.from_onnx_text(text)
    value = np.float32(model.graph.initializers["least"].const_value.numpy())  # type: ignore[union-attr]
    found = "DT310" in {item.code for item in check(model, soc="Ascend310P3").record.findings}
    with np.errstate(under="ignore"):
        assert found == (value > 0 and np.float16(value) == 0)


@pytest.mark.parametrize(
    "body", ["m = Add(n, least) y = Mul(x, m)", "m = Sub(n, least) y = Div(x, m)", "m = Add(n, least) r = Neg(m) y = Div(m, x)"]
)
def test_what_guards_no_division_is_no_finding(body: str) -> None:
    text = f'<ir_version: 8, opset_import: ["" : 13]> agraph (float[2,1] x, float[2,1] n) => (float[2,1] y) <float least = {{0.000000000001}}> {{ {body} }}'
    assert "DT310" not in {item.code for item in check(ir.from_onnx_text(text), soc="Ascend310P3").record.findings}


@pytest.mark.parametrize(("bias", "attribute", "expected"), [(0.5, 0, True), (0.0, 0, False), (0.5, 1, False)])
def test_only_a_bias_of_its_own_makes_a_gru_doubtful(bias: float, attribute: int, expected: bool) -> None:
    text = f"""
    <ir_version: 8, opset_import: ["" : 14]>
    agraph (float[3,1,2] x) => (float[3,1,1,1] y)
    <float[1,3,2] w = {{1, 2, -1, 1, 0.5, 2}}, float[1,3,1] r = {{1, -1, 0.5}}, float[1,6] b = {{0, 0, 0, 0, 0, {bias}}}> {{
        y = GRU<hidden_size = 1, linear_before_reset = {attribute}>(x, w, r, b)
    }}"""
    assert bool(doubtful(ir.from_onnx_text(text))) is expected


def test_the_codes_are_explained() -> None:
    for code in ("DT310", "OP227", "VF611"):
        assert explain(code)
