"""Normalisation at the head of a network: found in its forms, taken out and put in without changing what the model computes."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from aipp_samples import IMAGENET_MEAN, IMAGENET_STD

from jumar.aipp.network import find_head, put_head, strip_head
from jumar.errors import UsageError
from jumar.graph import Evaluator

MEAN = np.array([255 * value for value in IMAGENET_MEAN], np.float32)
STD = np.array([255 * value for value in IMAGENET_STD], np.float32)


def model(body: str, weights: str, opset: int = 13, shape: str = "1,3,4,4") -> ir.Model:
    return ir.from_onnx_text(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[{shape}] x) => (float[1,3,4,4] y) <{weights}> {{ {body} }}'
    )


def numbers(values: np.ndarray) -> str:  # type: ignore[type-arg]
    return "{" + ", ".join(f"{value:.9g}" for value in values) + "}"


COLUMN = f"float[1,3,1,1] m = {numbers(MEAN)}, float[3,1,1] s = {numbers(STD)}"
FORMS = {
    "sub div": ("a = Sub(x, m) b = Div(a, s) y = Relu(b)", COLUMN, 2),
    "through identities": ("i = Identity(x) a = Sub(i, m) j = Identity(a) b = Div(j, s) c = Cast<to = 1>(b) y = Relu(c)", COLUMN, 2),
    "mul add": (
        "a = Mul(x, k) b = Add(a, o) y = Relu(b)",
        f"float[1,3,1,1] k = {numbers(1 / STD)}, float[1,3,1,1] o = {numbers(-MEAN / STD)}",
        2,
    ),
    "constant first": (
        "a = Mul(k, x) b = Add(o, a) y = Relu(b)",
        f"float[1,3,1,1] k = {numbers(1 / STD)}, float[1,3,1,1] o = {numbers(-MEAN / STD)}",
        2,
    ),
    "batch norm": (
        "b = BatchNormalization<epsilon = 0.0>(x, k, o, m, v) y = Relu(b)",
        f"float[3] k = {{1, 1, 1}}, float[3] o = {{0, 0, 0}}, float[3] m = {numbers(MEAN)}, float[3] v = {numbers(STD**2)}",
        1,
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_normalisation(form: str, evaluator: Evaluator) -> None:
    """Bound 1e-6: the same arithmetic in float64 against the model's own in float32."""
    body, weights, count = FORMS[form]
    original = model(body, weights)
    head = find_head(original)
    assert head is not None and len(head.nodes) == count and head.pixels is True
    assert head.subtract == pytest.approx(MEAN, rel=1e-5) and head.gain == pytest.approx(1 / STD, rel=1e-5)
    bare = strip_head(original, head)
    assert not any(node.op_type in ("Sub", "Div", "Mul", "Add", "BatchNormalization") for node in bare.graph)
    x = np.random.default_rng(0).integers(0, 256, (1, 3, 4, 4)).astype(np.float32)
    outside = (x * np.reshape(head.gain, (1, 3, 1, 1)) + np.reshape(head.offset, (1, 3, 1, 1))).astype(np.float32)
    assert np.allclose(evaluator.run(bare, {"x": outside})["y"], evaluator.run(original, {"x": x})["y"], atol=1e-6)
    back = put_head(bare, "x", head.subtract, head.gain)
    assert np.allclose(evaluator.run(back, {"x": x})["y"], evaluator.run(original, {"x": x})["y"], atol=1e-5)
    again = find_head(back)
    assert again is not None and again.subtract == pytest.approx(head.subtract, rel=1e-5)


NONE = {
    "relu first": ("y = Relu(x)", ""),
    "used twice": ("a = Sub(x, m) y = Add(a, x)", COLUMN),
    "within a channel": ("a = Sub(x, w) y = Relu(a)", "float[1,1,4,4] w = {" + ",".join(["1"] * 16) + "}"),
    "constant divided": ("a = Div(m, x) y = Relu(a)", COLUMN),
    "times zero": ("a = Mul(x, z) y = Relu(a)", "float z = {0}"),
}


@pytest.mark.parametrize("form", NONE)
def test_other_heads_are_none(form: str) -> None:
    head = find_head(model(*NONE[form]))
    assert head is None or head.nodes == ()
    if head is not None:
        with pytest.raises(UsageError, match="is not normalised by the network"):
            strip_head(model(*NONE[form]), head)


def test_what_the_numbers_belong_to() -> None:
    unit = f"float[1,3,1,1] m = {numbers(np.array(IMAGENET_MEAN))}, float[3,1,1] s = {numbers(np.array(IMAGENET_STD))}"
    head = find_head(model("a = Sub(x, m) b = Div(a, s) y = Relu(b)", unit))
    assert head is not None and head.pixels is False
    scaled = find_head(model("a = Div(x, d) y = Relu(a)", "float d = {255}"))
    assert scaled is not None and scaled.pixels is True
    learned = find_head(model("a = Mul(x, d) y = Relu(a)", "float d = {3}"))
    assert learned is not None and learned.pixels is None


def test_an_output_of_the_model_is_not_taken_away() -> None:
    original = model("y = Sub(x, m)", COLUMN)
    head = find_head(original)
    assert head is not None
    with pytest.raises(UsageError, match="makes an output of the model"):
        strip_head(original, head)


def test_inputs_that_cannot_be_normalised() -> None:
    original = model("y = Relu(x)", "")
    for name, count in (("z", 3), ("x", 1)):
        with pytest.raises(UsageError, match="cannot be normalised"):
            put_head(original, name, (0.0,) * count, (1.0,) * count)
    assert find_head(model("y = Relu(x)", "", shape="1,n,4,4")) is None
