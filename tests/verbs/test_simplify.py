"""``jumar simplify``: fewer nodes, the same function, proven; a wrong simplification is found and left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import jumar
from jumar import UsageError
from jumar.graph import Evaluator
from jumar.graph.simplify import base, moves

MODEL = """agraph (float[1,2,4,4] image, int64[2] other) => (float[1,2,4,4] y, int64[2] z)
<float[2,2,1,1] w = {1.0, 2.0, 3.0, 4.0}, float[2,1,1] scale = {2.0, -3.0}> {
    a = Identity(image)
    b = Conv(a, w)
    c = Mul(b, scale)
    d = Transpose<perm = [0, 2, 1, 3]>(c)
    e = Transpose<perm = [0, 2, 1, 3]>(d)
    y = Relu(e)
    z = Identity(other)
}"""


def operators(case: jumar.Case) -> list[str]:
    return [node.op_type for node in case.model.graph]


def test_simplifies_with_proof(save_text: Callable[..., Path], tmp_path: Path, evaluator: Evaluator) -> None:
    path = save_text(MODEL)
    case = jumar.simplify(path, output=tmp_path / "out.onnx", evaluator=evaluator)
    assert operators(case) == ["Conv", "Relu", "Identity"]  # an output must be made by a node
    exact, rounding = case.record.steps
    assert (exact.name, exact.status, exact.code) == ("exact", "applied", "GR504")
    assert exact.proof is not None
    assert exact.proof.max_abs == 0.0
    assert (rounding.name, rounding.status, rounding.code) == ("rounding", "applied", "GR505")
    assert rounding.proof is not None
    assert rounding.proof.measure == "max_scaled"
    assert rounding.subgraphs is not None
    assert rounding.subgraphs.max_scaled <= 1e-5
    counts = {item.name: item.value for item in case.record.measurements}
    assert counts == {"nodes before": 7.0, "nodes after": 3.0}
    written = onnx.load(tmp_path / "out.onnx")
    onnx.checker.check_model(written, full_check=True)
    assert [value.name for value in written.graph.input] == ["image", "other"]
    assert [value.name for value in written.graph.output] == ["y", "z"]


def test_exact_only(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    case = jumar.simplify(save_text(MODEL), exact=True, evaluator=evaluator)
    assert operators(case) == ["Conv", "Mul", "Relu", "Identity"]
    assert [step.name for step in case.record.steps] == ["exact"]


def test_without_a_kind(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    case = jumar.simplify(save_text(MODEL), exact=True, without=["merge-transposes"], evaluator=evaluator)
    assert operators(case).count("Transpose") == 2
    with pytest.raises(UsageError, match="there is no simplification `merge-all`"):
        jumar.simplify(save_text(MODEL), without=["merge-all"], evaluator=evaluator)


def test_the_model_itself_is_not_overwritten(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    path = save_text(MODEL)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="is the model itself"):
        jumar.simplify(path, output=path, evaluator=evaluator)
    assert path.read_bytes() == before


def test_without_proof_says_so(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    case = jumar.simplify(save_text(MODEL), prove=False, evaluator=evaluator)
    assert all(step.proof is None and step.input_sha256 is None for step in case.record.steps)
    assert any("nothing was proven" in str(note) for note in case.record.notes)


def test_shapes_are_pinned(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    path = save_text(
        """agraph (float[N,3,4] x) => (float[M,K] y) <int64[1] zero = {0}, int64[1] rest = {-1}>
        { s = Shape(x) n = Gather(s, zero) t = Concat<axis = 0>(n, rest) y = Reshape(x, t) }"""
    )
    case = jumar.simplify(path, shapes={"x": (2, 3, 4)}, evaluator=evaluator)
    assert operators(case) == ["Reshape"]
    assert list(case.model.graph.inputs[0].shape or ()) == [2, 3, 4]


GEARED = """agraph (float[N,C,H,W] x) => (float[M,K] y) <int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3}, int64[1] rest = {-1}> {
    s = Shape(x)
    h = Gather(s, two)
    half = Div(h, two)
    c = Gather(s, one)
    many = Mul(c, half)
    back = Div(many, half)
    t = Concat<axis = 0>(back, rest)
    y = Reshape(x, t)
}"""


def test_gears_stay_one_model_and_fold_what_they_share(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    gears = [{"x": (1, 6, 4, 4)}, {"x": (2, 6, 8, 4)}]
    case = jumar.simplify(save_text(GEARED), gears=gears, evaluator=evaluator)
    assert operators(case) == ["Reshape"]
    assert not any(isinstance(size, int) for size in case.model.graph.inputs[0].shape or ())
    assert any("2 gears" in str(note) for note in case.record.notes)
    proof = case.record.steps[-1].proof
    assert proof is not None
    assert (proof.cases, proof.max_abs) == (2, 0.0)
    before = ir.load(save_text(GEARED))
    for gear in gears:
        x = np.arange(np.prod(gear["x"]), dtype=np.float32).reshape(gear["x"])
        np.testing.assert_array_equal(evaluator.run(case.model, {"x": x})["y"], evaluator.run(before, {"x": x})["y"], strict=True)


def test_gears_that_differ_keep_the_arithmetic(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    text = GEARED.replace("t = Concat<axis = 0>(back, rest)", "t = Concat<axis = 0>(half, rest)")
    case = jumar.simplify(save_text(text), gears=[{"x": (1, 6, 4, 4)}, {"x": (2, 6, 8, 6)}, {"x": (3, 6, 8, 6)}], evaluator=evaluator)
    assert operators(case)[-1] == "Reshape"
    target = case.model.graph[-1].inputs[1]
    assert target is not None
    assert target.const_value is None


def test_gears_and_shapes_exclude_each_other(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    with pytest.raises(UsageError, match="both given"):
        jumar.simplify(save_text(GEARED), shapes={"x": (1, 6, 4, 4)}, gears=[{"x": (1, 6, 4, 4)}], evaluator=evaluator)


@pytest.fixture
def wrong_transposes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simplification that is wrong: any two Transposes in a row are taken to undo each other."""

    def match(node: ir.Node, edit: base.Edit) -> base.Action | None:
        inner = base.producer(base.given(node, 0), "Transpose")
        source = None if inner is None else inner.inputs[0]
        return None if source is None else lambda: edit.pass_through(node, source)

    entries = [base.Simplification("merge-transposes", ("Transpose",), True, match)]
    monkeypatch.setitem(base._BY_OPERATOR, "Transpose", entries)


def test_a_wrong_rewrite_is_found_left_out_and_reported(
    save_text: Callable[..., Path], evaluator: Evaluator, wrong_transposes: None
) -> None:
    text = """agraph (float[2,2,2] x) => (float[2,2,2] y) {
        a = Transpose<perm = [1, 0, 2]>(x)
        b = Transpose<perm = [1, 0, 2]>(a)
        c = Identity(b)
        d = Neg(c)
        e = Transpose<perm = [2, 0, 1]>(d)
        f = Transpose<perm = [0, 2, 1]>(e)
        g = Identity(f)
        y = Exp(g)
    }"""
    case = jumar.simplify(save_text(text), evaluator=evaluator)
    rolled_back = [step for step in case.record.steps if step.status == "rolled-back"]
    assert [(step.name, step.nodes) for step in rolled_back] == [("merge-transposes", ("Transpose -> f",))]
    assert rolled_back[0].proof is not None
    assert not rolled_back[0].proof.passed
    assert operators(case) == ["Neg", "Transpose", "Transpose", "Exp"]
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    np.testing.assert_array_equal(
        evaluator.run(case.model, {"x": x})["y"], evaluator.run(ir.load(save_text(text)), {"x": x})["y"], strict=True
    )


def test_moves_are_registered() -> None:
    """The fixture above replaces what is really there."""
    assert any(entry.match is moves._transposes for entry in base.matches_of("Transpose"))
    assert isinstance(base.KINDS, dict)
