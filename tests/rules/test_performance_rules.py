"""Rules on what works and could be faster: random forms stay equal, and what they must leave alone stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from jumar.case import Case
from jumar.graph import Evaluator, infer_shapes
from jumar.proof import FeedSet
from jumar.verbs.fix import fix

quick = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def applied(model: ir.Model, code: str, feed: dict[str, Any], evaluator: Evaluator) -> tuple[Case, bool]:
    """The model after the rule alone, and whether it was applied; a failed proof fails the test, since the rules promise to be right."""
    infer_shapes(model)
    case = fix(model, soc="Ascend310P3", select=[code], feeds=FeedSet((feed,), "test"), evaluator=evaluator)
    steps = [step for step in case.record.steps if step.code == code]
    assert all(step.status == "applied" for step in steps), [str(step.proof and step.proof.reason) for step in steps]
    return case, bool(steps)


def same(model: ir.Model, after: ir.Model, feed: dict[str, Any], evaluator: Evaluator, bound: float) -> bool:
    """Within ``bound`` of the largest element, in every output."""
    one, other = evaluator.run(model, feed), evaluator.run(after, feed)
    assert one.keys() == other.keys()
    return all(np.abs(one[name] - other[name]).max(initial=0) <= bound * np.abs(one[name]).max(initial=0) for name in one)


def counts(model: ir.Model, op: str) -> int:
    return sum(node.op_type == op for node in model.graph)


def random_feed(shape: Any, seed: int = 0) -> dict[str, Any]:
    return {"x": np.random.default_rng(seed).standard_normal(shape).astype(np.float32)}


@quick
@given(data=st.data())
def test_gathers_become_a_split(data: st.DataObject, evaluator: Evaluator) -> None:
    draw = data.draw
    sizes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    rank = draw(st.integers(2, 4))
    axis = draw(st.integers(-rank, rank - 1))
    shape = [2] * rank
    shape[axis] = sum(sizes)
    nodes, outputs, weights, start = [], [], [], 0
    for number, size in enumerate(sizes):
        index = np.arange(start, start + size, dtype=draw(st.sampled_from([np.int32, np.int64])))
        index -= sum(sizes) * (index.dtype == np.int64 and draw(st.booleans()))
        if size == 1 and draw(st.booleans()):
            index = index.reshape(())
        weights.append(onnx.numpy_helper.from_array(index, f"i{number}"))
        nodes.append(helper.make_node("Gather", ["x", f"i{number}"], [f"g{number}"], axis=axis))
        nodes.append(helper.make_node("Relu", [f"g{number}"], [f"y{number}"]))
        outputs.append(onnx.ValueInfoProto(name=f"y{number}"))
        start += size
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], outputs, weights)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", draw(st.sampled_from([11, 13, 18])))], ir_version=8)
    model, feed = ir.from_proto(onnx.shape_inference.infer_shapes(proto)), random_feed(shape)
    case, done = applied(model, "PF802", feed, evaluator)
    assert done
    assert (counts(case.model, "Split"), counts(case.model, "Gather")) == (1, 0)
    assert same(model, case.model, feed, evaluator, 0.0)


@pytest.mark.parametrize("indices", [(0, 0, 1), (0, 2), (1, 2), (2, 1)])
def test_gathers_that_leave_out_or_repeat_stay(indices: tuple[int, ...], evaluator: Evaluator) -> None:
    weights = ", ".join(f"int64 i{number} = {{{index}}}" for number, index in enumerate(indices))
    body = " ".join(f"y{number} = Gather(x, i{number})" for number in range(len(indices)))
    outputs = ", ".join(f"float[4] y{number}" for number in range(len(indices)))
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 13]> agraph (float[3,4] x) => ({outputs}) <{weights}> {{ {body} }}')
    assert not applied(model, "PF802", random_feed((3, 4)), evaluator)[1]
