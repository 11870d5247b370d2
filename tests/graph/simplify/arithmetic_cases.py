"""Models for the tests of arithmetic, and what they check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from jumar.graph import Evaluator
from jumar.graph.edit import copy_model
from jumar.graph.simplify import Journal, simplify_graph

OPSETS = (9, 11, 13, 18)
# Of the largest element. Both models are computed in float32; the fused weights are rounded once more.
ROUNDING = 5e-6
RANDOM = np.random.default_rng(4)
NORM = ("gamma", "beta", "mean", "var")


def numbers(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


def norm_weights(channels: int, dtype: Any = np.float32) -> dict[str, Any]:
    values = {name: numbers(channels) for name in NORM}
    values["var"] = np.abs(values["var"]) + 0.1
    return {name: array.astype(dtype) for name, array in values.items()}


def build(text: str, opset: int, weights: Mapping[str, Any] | None = None) -> ir.Model:
    """A model from ONNX text, in which weights are named but not declared."""
    proto = onnx.parser.parse_model(f'<ir_version: {4 if opset < 10 else 8}, opset_import: ["" : {opset}]>\n{text}')
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in (weights or {}).items())
    return ir.from_proto(proto)


def simplified(model: ir.Model, kinds: set[str] | None = None, **options: Any) -> tuple[ir.Model, Journal]:
    copy = copy_model(model)
    journal = simplify_graph(copy, journal=Journal(kinds=None if kinds is None else frozenset(kinds)), **options)
    onnx.checker.check_model(ir.to_proto(copy), full_check=True)
    return copy, journal


def far(found: Mapping[str, Any], expected: Mapping[str, Any]) -> float:
    """The largest difference, relative to the largest element; NaN and infinity have to be in the same places."""
    largest = 0.0
    for name, array in expected.items():
        other = found[name]
        assert other.shape == array.shape
        assert other.dtype == array.dtype
        a, b = other.astype(np.float64), array.astype(np.float64)
        finite = np.isfinite(b)
        np.testing.assert_array_equal(a[~finite], b[~finite])
        if finite.any():
            largest = max(largest, float(np.abs(a[finite] - b[finite]).max() / max(np.abs(b[finite]).max(), 1e-30)))
    return largest


def feeds_of(model: ir.Model) -> dict[str, Any]:
    """Normal numbers, with open dimensions of 3."""
    return {
        value.name: RANDOM.standard_normal([dim if isinstance(dim, int) else 3 for dim in value.shape]).astype(value.dtype.numpy()) * 2
        for value in model.graph.inputs
    }


def check(model: ir.Model, evaluator: Evaluator, kinds: dict[str, int], left: list[str], tolerance: float = ROUNDING) -> ir.Model:
    """These kinds apply so often, these operators remain, and the results are the same; a second run finds nothing more."""
    after, journal = simplified(model, set(kinds) | {"unused-node"})
    assert Counter(item.kind for item in journal.rewrites if item.kind != "unused-node") == Counter(kinds)
    assert [node.op_type for node in after.graph] == left
    feeds = feeds_of(model)
    assert far(evaluator.run(after, feeds), evaluator.run(model, feeds)) <= tolerance
    assert not simplified(after, set(kinds))[1].rewrites
    return after


def left_alone(model: ir.Model, *kinds: str, **options: Any) -> None:
    _, journal = simplified(model, set(kinds), **options)
    assert not journal.rewrites


def unchecked(model: ir.Model, *kinds: str) -> tuple[ir.Model, Journal]:
    """As :func:`simplified`, for models the checker or ONNX Runtime does not take."""
    copy = copy_model(model)
    return copy, simplify_graph(copy, journal=Journal(kinds=frozenset(kinds)))
