"""Models written as text, converted and compared; what the tests of this folder share."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, settings

from jumar.graph import Evaluator, infer_shapes
from jumar.graph.opset import Unconvertible, convert_opset

# Tolerance: the same kernels run before and after. Only where the form becomes other operators (Softmax over another axis is
# transposed) may the order of a sum differ.
TOLERANCE = 1e-6

HYPOTHESIS = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def model_of(text: str, opset: int) -> ir.Model:
    return ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')


def converted(text: str, opset: int, version: int) -> tuple[ir.Model, ir.Model, list[str]]:
    """The model before and after (which the checker accepts, types and shapes included), and the places that changed."""
    before, after = model_of(text, opset), model_of(text, opset)
    infer_shapes(after)
    places = convert_opset(after, version)
    proto = ir.to_proto(after)
    onnx.checker.check_model(proto, full_check=True)
    assert {item.domain: item.version for item in proto.opset_import} == {"": version}
    assert [value.name for value in after.graph.outputs] == [value.name for value in before.graph.outputs]
    return before, after, places


def assert_same(before: ir.Model, after: ir.Model, evaluator: Evaluator, feeds: dict[str, Any], written_out: bool = False) -> None:
    """``written_out``: other operators do the arithmetic, so that the error is relative to the largest element."""
    expected, found = evaluator.run(before, feeds), evaluator.run(after, feeds)
    for name, array in expected.items():
        assert (found[name].shape, found[name].dtype) == (array.shape, array.dtype)
        largest = np.max(np.abs(array[np.isfinite(array)]), initial=0) if written_out and array.dtype.kind == "f" else 0
        np.testing.assert_allclose(found[name], array, rtol=TOLERANCE, atol=TOLERANCE * largest, equal_nan=True)


def refusal(text: str, opset: int, version: int) -> str:
    model = model_of(text, opset)
    infer_shapes(model)
    with pytest.raises(Unconvertible) as caught:
        convert_opset(model, version)
    english, chinese = caught.value.reason.render("en"), caught.value.reason.render("zh")
    assert english.startswith("`") and chinese.startswith("`") and "\n" not in english
    return english


def x_of(*shape: int, edges: bool = True) -> np.ndarray:
    """Seeded floats; with NaN, infinities and a signed zero among them where the operator is defined on them."""
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    if edges:
        flat = array.reshape(-1)
        flat[:4] = [np.nan, np.inf, -np.inf, -0.0][: flat.size]
    return array


UNARY = "agraph (float[2,3,4] x) => (float[{out}] y) {weights} {{ {body} }}"


def unary(body: str, out: str = "2,3,4", weights: str = "") -> str:
    return UNARY.format(out=out, weights=f"<{weights}>" if weights else "", body=body)


def feeds_of(model: ir.Model, edges: bool) -> dict[str, Any]:
    feeds: dict[str, Any] = {}
    for number, value in enumerate(model.graph.inputs):
        shape = [int(dim) for dim in value.shape or ()]  # type: ignore[arg-type]
        if value.dtype == ir.DataType.FLOAT:
            feeds[value.name or ""] = x_of(*shape, edges=edges and number == 0)
        else:  # indices into dimensions of three and more, from both ends
            integers = np.random.default_rng(number).integers(-3, 3, shape)
            feeds[value.name or ""] = integers.astype(value.dtype.numpy() if value.dtype else None)
    return feeds
