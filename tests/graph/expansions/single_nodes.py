"""One node with random attributes and shapes, what ONNX Runtime makes of it, and what every expansion of it makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper

from jumar.graph import Evaluator, infer_shapes, used_names
from jumar.graph.expansions import Expansion, expansions_of, load_expansions
from jumar.graph.opset.schemas import find_schema
from jumar.graph.opset.step import Step, Unconvertible

Arrays = Mapping[str, Any]
# Of the largest element: sums of a few dozen products in float32.
BOUND = 2e-5
HALF = 2.0**-8


def single(
    op: str, opset: int, order: Sequence[str], feed: Arrays, constants: Arrays, outputs: int = 1, **attributes: Any
) -> onnx.ModelProto:
    """A model of one node whose inputs are called ``order`` ("": absent)."""
    names = [f"y{index}" for index in range(outputs)]
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in feed.items()
    ]
    weights = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    graph = helper.make_graph(
        [helper.make_node(op, order, names, name="node", **attributes)],
        "g",
        inputs,
        [onnx.ValueInfoProto(name=name) for name in names],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return onnx.shape_inference.infer_shapes(model)


def expanded(proto: onnx.ModelProto, expansion: Expansion) -> ir.Model | None:
    """The model with its node written out; None where the expansion refuses."""
    model = ir.from_proto(proto)
    infer_shapes(model)
    node, version = model.graph[0], model.opset_imports[""]
    step = Step(model, node, used_names(model), version, rule="test")
    schema = find_schema(node.op_type, version)
    assert schema is not None
    step.source = schema
    try:
        expansion(step)
    except Unconvertible:
        return None
    return model


def differences(proto: onnx.ModelProto, feeds: Sequence[Arrays], evaluator: Evaluator) -> tuple[list[str], int]:
    """What is wrong with the expansions of the node, and how many of them do not refuse."""
    load_expansions()
    original = ir.from_proto(proto)
    expected = [list(evaluator.run(original, dict(feed)).values()) for feed in feeds]
    wrong, made = [], 0
    for expansion in expansions_of(proto.graph.node[0].op_type):
        model = expanded(proto, expansion)
        if model is None:
            continue
        made += 1
        onnx.checker.check_model(ir.to_proto(model), full_check=True)
        for feed, wanted in zip(feeds, expected, strict=True):
            for one, other in zip(evaluator.run(model, dict(feed)).values(), wanted, strict=True):
                reason = unequal(one, other)
                if reason:
                    wrong.append(f"{expansion.__name__}: {reason}")
    return wrong, made


def unequal(one: Any, other: Any) -> str | None:
    if one.shape != other.shape or one.dtype != other.dtype:
        return f"{one.dtype}{one.shape} instead of {other.dtype}{other.shape}"
    if one.dtype.kind != "f":
        return None if np.array_equal(one, other) else "other integers"
    scale = max(float(np.abs(other.astype(np.float64)).max(initial=0.0)), 1e-3)
    error = float(np.abs(one.astype(np.float64) - other.astype(np.float64)).max(initial=0.0)) / scale
    return None if error <= (HALF if one.dtype == np.float16 else BOUND) else f"differs by {error:.2g} of the largest"
