"""A right rewrite passes its proof, a wrong one and one that does not run fail."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from jumar.graph import Evaluator
from jumar.proof import FeedSet, Interface, Port, Prover

ORIGINAL = "agraph (float[2,3] x) => (float[2,3] y) { a = Mul(x, x) y = Add(a, x) }"
RIGHT = "agraph (float[2,3] x) => (float[2,3] y) <float one = {1}> { a = Add(x, one) y = Mul(a, x) }"
WRONG = "agraph (float[2,3] x) => (float[2,3] y) <float k = {1.01}> { a = Mul(x, x) b = Add(a, x) y = Mul(b, k) }"
NOT_RUNNING = "agraph (float[2,3] x) => (float[2,3] y) <int64[1] far = {9}> { y = Gather(x, far) }"
OTHER_SHAPE = "agraph (float[2,3] x) => (float[3,2] y) { a = Mul(x, x) b = Add(a, x) y = Transpose(b) }"
OTHER_OUTPUT = "agraph (float[2,3] x) => (float[2,3] z) { a = Mul(x, x) z = Add(a, x) }"

# Two forms of x*x + x in float32; far below the planted error of one percent.
BOUND = 1e-4


def model_of(text: str) -> ir.Model:
    return ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 16]>\n{text}')


@pytest.fixture
def feeds(random: np.random.Generator) -> FeedSet:
    return FeedSet(tuple({"x": random.uniform(0.5, 2, (2, 3)).astype(np.float32)} for _ in range(2)), "generated")


@pytest.fixture
def prover(evaluator: Evaluator, feeds: FeedSet) -> Prover:
    return Prover(model_of(ORIGINAL), evaluator, feeds)


@pytest.fixture
def interface() -> Interface:
    return Interface.of(model_of(ORIGINAL))


def test_a_right_rewrite_passes(prover: Prover, interface: Interface) -> None:
    proof = prover.prove_model(model_of(RIGHT), interface, BOUND)
    assert proof.passed and proof.cases == 2 and proof.bound == BOUND and proof.max_rel <= BOUND and proof.reason is None


@pytest.mark.parametrize("bound", [0.0, 1e-6, 1e-3, 5e-3])
def test_a_rewrite_that_is_one_percent_off_fails(bound: float, prover: Prover, interface: Interface) -> None:
    proof = prover.prove_model(model_of(WRONG), interface, bound)
    # Tolerance: float32 rounding of the planted factor.
    assert not proof.passed and proof.max_rel == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "says"), [(NOT_RUNNING, "could not be executed"), (OTHER_SHAPE, "shape (3, 2)"), (OTHER_OUTPUT, "output `y` is missing")]
)
def test_a_rewrite_that_cannot_be_compared_fails(text: str, says: str, prover: Prover, interface: Interface) -> None:
    proof = prover.prove_model(model_of(text), interface, 1.0)
    assert not proof.passed and says in str(proof.reason)


def test_errors_of_several_rewrites_do_not_add_up_unseen(prover: Prover, interface: Interface) -> None:
    """Each is compared with the last accepted model, and the whole still with the original."""
    text = "agraph (float[2,3] x) => (float[2,3] y) <float k = {%r}> { a = Mul(x, x) b = Add(a, x) y = Mul(b, k) }"
    assert prover.prove_model(model_of(text % 1.004), interface, 5e-3).passed
    assert prover.prove_model(model_of(text % 1.008), interface, 5e-3).passed  # 0.4 % from the accepted one
    assert not prover.prove_model(model_of(ORIGINAL), interface, 5e-3).passed  # 0.8 % from it
    pairs = prover.against_original(model_of(text % 1.008), interface)
    ratios = [found["y"] / reference["y"] for found, reference in pairs]
    np.testing.assert_allclose(ratios, 1.008, rtol=1e-5)


def test_a_failed_proof_leaves_the_accepted_model(prover: Prover, interface: Interface) -> None:
    assert not prover.prove_model(model_of(WRONG), interface, BOUND).passed
    assert prover.prove_model(model_of(ORIGINAL), interface, 0.0).passed


def test_a_changed_interface_is_followed(evaluator: Evaluator) -> None:
    before = model_of("agraph (int64[3] i) => (int64[3] j) { j = Add(i, i) }")
    after = model_of('agraph (int32[3] "i32") => (int32[3] "j32") { "j32" = Add("i32", "i32") }')
    feeds = FeedSet(({"i": np.array([1, -2, 3])},), "user")
    interface = Interface.of(before).then({"i": Port("i32", "int64", "int32")}, {"j": Port("j32", "int64", "int32")})
    assert Prover(before, evaluator, feeds).prove_model(after, interface, 0.0).passed


def test_constants_are_fed_as_the_tensors_they_were(evaluator: Evaluator, random: np.random.Generator) -> None:
    """A folded weight is fed, so that ONNX Runtime takes the kernel for tensors; the model itself is not changed."""
    before = model_of("agraph (float[2,3] x) => (float[2,3] y) <float[3] w = {1, 2, 3}> { v = Neg(w) y = Add(x, v) }")
    after = model_of("agraph (float[2,3] x) => (float[2,3] y) <float[3] v = {-1, -2, -3}> { y = Add(x, v) }")
    wrong = model_of("agraph (float[2,3] x) => (float[2,3] y) <float[3] v = {-1, -2, -4}> { y = Add(x, v) }")
    feeds = FeedSet(({"x": random.standard_normal((2, 3)).astype(np.float32)},), "generated")
    prover, interface = Prover(before, evaluator, feeds), Interface.of(before)
    assert not prover.prove_model(wrong, interface, 0.0, constants=["v"]).passed
    assert prover.prove_model(after, interface, 0.0, constants=["v", "unknown"]).passed
    assert list(after.graph.initializers) == ["v"] and [value.name for value in after.graph.inputs] == ["x"]


def test_intermediate_tensors_are_captured(prover: Prover, interface: Interface, feeds: FeedSet) -> None:
    model = model_of(ORIGINAL)
    captured = prover.capture(model, interface, ["a", "x"])
    for tensors, feed in zip(captured, feeds.cases, strict=True):
        np.testing.assert_array_equal(tensors["a"], feed["x"] * feed["x"])
        np.testing.assert_array_equal(tensors["x"], feed["x"])
    assert [list(tensors) for tensors in prover.capture(model, interface, ["x"])] == [["x"], ["x"]]


def test_a_piece_is_proven_on_captured_tensors(prover: Prover, interface: Interface) -> None:
    captured = prover.capture(model_of(ORIGINAL), interface, ["a", "x"])
    before = model_of("agraph (float[2,3] a, float[2,3] x) => (float[2,3] y) { y = Add(a, x) }")
    right = model_of("agraph (float[2,3] a, float[2,3] x) => (float[2,3] y) { y = Add(x, a) }")
    wrong = model_of("agraph (float[2,3] a, float[2,3] x) => (float[2,3] y) { y = Sub(a, x) }")
    missing = model_of("agraph (float[2,3] a, float[2,3] x) => (float[2,3] z) { z = Add(a, x) }")
    broken = model_of("agraph (float[2,3] a, float[2,3] x) => (float[2,3] y) <int64[1] far = {9}> { y = Gather(x, far) }")
    assert prover.prove_piece(before, right, captured, 0.0).passed
    for candidate in (wrong, missing, broken):
        proof = prover.prove_piece(before, candidate, captured, 1e-3)
        assert not proof.passed and proof.reason is not None


def test_nothing_captured_proves_nothing(prover: Prover) -> None:
    piece = model_of("agraph (float[2] a) => (float[2] y) { y = Neg(a) }")
    assert not prover.prove_piece(piece, piece, [], 1.0).passed


def test_a_weight_that_comes_where_a_computed_tensor_was_is_proven_exactly(evaluator: Evaluator) -> None:
    """ONNX Runtime prepacks constant weights and then rounds differently; the structure is the same and must be proven so."""
    weights = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32)

    def model(hidden: bool, factor: float = 1.0) -> ir.Model:
        text = "w2 = Identity(w) y = MatMul(x, w2)" if hidden else "y = MatMul(x, w)"
        built = model_of(f"agraph (float[7,300] x, float[300,300] w) => (float[7,300] y) {{ {text} }}")
        value = built.graph.inputs.pop(1)
        value.const_value = ir.tensor(weights * np.float32(factor), name="w")
        built.graph.register_initializer(value)
        return built

    original = model(hidden=True)
    feeds = FeedSet(({"x": np.random.default_rng(1).standard_normal((7, 300)).astype(np.float32)},), "test")
    prover = Prover(original, evaluator, feeds)
    ports = Interface.of(original)
    assert not prover.prove_model(model(hidden=False, factor=1.01), ports, 0.0).passed
    assert prover.prove_model(model(hidden=False), ports, 0.0).passed
