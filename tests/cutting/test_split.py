"""The parts of a cut model: every node is in one of them, none waits for a later one, and the chain gives what the model gives, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar.cutting import Chain, Part, divide, outward, split
from jumar.cutting.plan import constant_nodes
from jumar.graph import Evaluator
from jumar.proof import Interface, Port
from jumar.proof.metrics import compare_all

SHAPE = [2, 3]
FLOAT = onnx.TensorProto.FLOAT


def info(name: str) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, FLOAT, SHAPE)


def branch(name: str, node: onnx.NodeProto) -> onnx.GraphProto:
    return onnx.helper.make_graph([node], name, [], [info(node.output[0])])


@st.composite
def models(draw: st.DrawFn) -> tuple[ir.Model, set[int]]:
    """A random graph: nodes with one and two outputs (the first of which may have no name), constants, weights, bodies that capture, outputs
    anywhere; and the numbers of its blocked nodes."""
    names, nodes = ["x0", "x1", "w"], []
    count = draw(st.integers(2, 9))
    for number in range(count):
        kind = draw(st.sampled_from(["Add", "Mul", "Neg", "Relu", "Constant", "Split", "If", "NoName"]))
        one, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        out = f"t{number}"
        if kind == "Constant":
            value = np.full(SHAPE, number, np.float32)
            nodes.append(onnx.helper.make_node(kind, [], [out], name=f"n{number}", value=onnx.numpy_helper.from_array(value)))
        elif kind == "Split":
            nodes += [
                onnx.helper.make_node("Concat", [one, other], [f"{out}_both"], name=f"n{number}_both", axis=0),
                onnx.helper.make_node("Split", [f"{out}_both"], [out, f"{out}_b"], name=f"n{number}", axis=0),
            ]
            names.append(f"{out}_b")
        elif kind == "If":
            bodies = {
                "then_branch": branch("then", onnx.helper.make_node("Sub", [one, other], [f"{out}_then"])),
                "else_branch": branch("else", onnx.helper.make_node("Add", [other, one], [f"{out}_else"])),
            }
            nodes.append(onnx.helper.make_node("If", ["yes"], [out], name=f"n{number}", **bodies))
        elif kind == "NoName":  # of two outputs only the second is wanted
            nodes += [
                onnx.helper.make_node("Unsqueeze", [one], [f"{out}_x"], name=f"n{number}_x", axes=[0]),
                onnx.helper.make_node("RNN", [f"{out}_x", "r", "r"], ["", f"{out}_h"], name=f"n{number}_h", hidden_size=3),
                onnx.helper.make_node("Squeeze", [f"{out}_h"], [out], name=f"n{number}", axes=[0]),
            ]
        else:
            nodes.append(onnx.helper.make_node(kind, [one, other][: 1 + (kind in ("Add", "Mul"))], [out], name=f"n{number}"))
        names.append(out)
    ends = draw(st.sets(st.sampled_from(names[3:]), min_size=1, max_size=4))
    used = {name for node in nodes for name in node.input}
    ends |= {name for node in nodes for name in node.output if name and name not in used and node.op_type != "If"}
    weights = [
        onnx.numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(SHAPE), "w"),
        onnx.numpy_helper.from_array(np.eye(3, dtype=np.float32)[None] / 2, "r"),
    ]
    inputs = [info("x0"), info("x1"), onnx.helper.make_tensor_value_info("yes", onnx.TensorProto.BOOL, [])]
    graph = onnx.helper.make_graph(nodes, "g", inputs, [info(name) for name in sorted(ends)], weights)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 11)], ir_version=8)
    return ir.from_proto(onnx.shape_inference.infer_shapes(model)), draw(st.sets(st.integers(0, len(nodes) - 1), min_size=1))


FEED = {
    "x0": np.array([[1.5, -2.0, 0.25], [3.0, -0.5, 7.0]], np.float32),
    "x1": np.array([[-1.0, 4.0, 2.0], [0.5, 0.5, -3.0]], np.float32),
    "yes": np.array(True),
}


def chain_of(model: ir.Model, blocked: set[ir.Node]) -> Chain | None:
    """The parts of the model as they are; None where nothing is left for the device."""
    division = divide(model.graph, blocked)
    if not division.device:
        return None
    parts = split(model, division)
    named = [("before", parts.before), ("device", parts.device), ("after", parts.after)]
    outputs = tuple(value.name or "" for value in model.graph.outputs)
    return Chain(tuple(Part(name, part, Interface.of(part)) for name, part in named if part is not None), outputs)


def feed_of(model: ir.Model) -> dict[str, Any]:
    return {value.name or "": FEED[value.name or ""] for value in model.graph.inputs}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(drawn=models())
def test_parts_hold_each_node_once_and_give_the_same(drawn: tuple[ir.Model, set[int]], evaluator: Evaluator) -> None:
    model, numbers = drawn
    nodes = list(model.graph)
    blocked = {nodes[number] for number in numbers if nodes[number].op_type != "Constant"}
    chain = chain_of(model, blocked)
    if chain is None:
        return
    constant = {node.name for node in constant_nodes(model.graph, blocked)}
    wanted = {node.name for node in nodes if any(value.uses() or value.is_graph_output() for value in node.outputs)} - constant
    parts = {part.name: [node.name for node in part.model.graph if node.name in {item.name for item in nodes}] for part in chain.parts}
    placed = [name for names in parts.values() for name in names if name not in constant]
    assert len(placed) == len(set(placed))
    assert set(placed) <= wanted
    assert not {node.name for node in blocked} & set(parts["device"])
    known = {"x0", "x1", "yes"}
    for part in chain.parts:
        assert set(part.interface.inputs) <= known, "it waits for a later part"
        known |= set(part.interface.outputs)
    found, expected = chain.run(evaluator, feed_of(model)), evaluator.run(model, feed_of(model))
    assert all(item.max_rel == 0.0 and item.reason is None for item in compare_all(found, expected).values())


def test_two_tensors_that_change_places_are_noticed(evaluator: Evaluator) -> None:
    """The planted error: what crosses from the device to the host arrives under the other's name."""
    model = ir.from_onnx_text(
        """<ir_version: 8, opset_import: ["" : 13]> agraph (float[2,3] x0, float[2,3] x1) => (float[2,3] y)
        { a = Relu(x0) b = Neg(x1) c = Sub(a, b) y = Tanh(c) }"""
    )
    for value in (output for node in model.graph for output in node.outputs):
        value.type, value.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape(SHAPE)
    chain = chain_of(model, {node for node in model.graph if node.op_type == "Sub"})
    assert chain is not None
    device, after = chain.parts
    assert (device.name, after.name) == ("device", "after") and set(device.interface.outputs) == {"a", "b"}
    ports = device.interface.outputs
    wrong = replace(device, interface=Interface(device.interface.inputs, {"a": ports["b"], "b": ports["a"]}))
    expected = evaluator.run(model, feed_of(model))
    right, spoilt = (
        compare_all(item.run(evaluator, feed_of(model)), expected)["y"] for item in (chain, replace(chain, parts=(wrong, after)))
    )
    assert right.max_rel == 0.0 and right.reason is None
    assert spoilt.max_rel > 1e-3


@pytest.mark.parametrize("device", ["a = Relu(x0)", "n = Neg(x1) a = Relu(n)"])
def test_blocked_nodes_that_feed_only_outputs_stay_off_the_device(device: str, evaluator: Evaluator) -> None:
    """They read what the caller gives and nothing reads what they make, so no tensor crosses to or from them."""
    model = ir.from_onnx_text(
        f'<ir_version: 8, opset_import: ["" : 13]> agraph (float[2,3] x0, float[2,3] x1) => (float[2,3] a, float[2,3] b) {{ {device} b = Tanh(x0) }}'
    )
    chain = chain_of(model, {node for node in model.graph if node.op_type == "Tanh"})
    assert chain is not None
    parts = {part.name: [node.op_type for node in part.model.graph] for part in chain.parts}
    assert "Tanh" not in parts.pop("device") and list(parts.values()) == [["Tanh"]]
    found, expected = chain.run(evaluator, feed_of(model)), evaluator.run(model, feed_of(model))
    assert all(item.max_rel == 0.0 and item.reason is None for item in compare_all(found, expected).values())


def test_a_first_output_without_a_name_is_no_tensor(evaluator: Evaluator) -> None:
    """A recurrent layer on the host of which only the last state is wanted, and another on the device."""
    model = ir.from_onnx_text(
        """<ir_version: 8, opset_import: ["" : 13]> agraph (float[2,1,3] x0, float[1,3,3] r) => (float[1,1,3] a, float[1,1,3] b) {
        , h = RNN<hidden_size = 3>(x0, r, r) b = Tanh(h) n = Neg(x0) , a = RNN<hidden_size = 3>(n, r, r) }"""
    )
    chain = chain_of(model, {model.graph[0]})
    assert chain is not None
    assert {part.name: [node.op_type for node in part.model.graph] for part in chain.parts}["device"] != ["RNN", "Tanh", "Neg", "RNN"]
    assert all("" not in {*part.interface.inputs, *part.interface.outputs} for part in chain.parts)
    feed = {"x0": np.array([[[1.5, -2.0, 0.25]], [[3.0, -0.5, 7.0]]], np.float32), "r": np.eye(3, dtype=np.float32)[None]}
    found, expected = chain.run(evaluator, feed), evaluator.run(model, feed)
    assert all(item.max_rel == 0.0 and item.reason is None for item in compare_all(found, expected).values())


def test_a_part_speaks_in_the_names_from_before_a_change(evaluator: Evaluator) -> None:
    """The model's output got another name and dtype before it was cut, and a later part reads it: both parts know it by the old name."""
    model = ir.from_onnx_text(
        """<ir_version: 8, opset_import: ["" : 13]> agraph (int32[2] x) => (int32[2] new, int32[2] z) { new = Abs(x) z = Neg(new) }"""
    )
    chain = chain_of(model, {model.graph[1]})
    assert chain is not None
    changed = Interface({"x": Port("x", "int64", "int32")}, {"old": Port("new", "int64", "int32"), "z": Port("z", "int32", "int32")})
    outer = Chain(tuple(outward(part, changed) for part in chain.parts), ("old", "z"))
    found = outer.run(evaluator, {"x": np.array([-3, 4])})
    assert found["old"].dtype == np.int64 and found["old"].tolist() == [3, 4] and found["z"].tolist() == [-3, -4]


def test_something_else_can_run_the_device_part(evaluator: Evaluator) -> None:
    model = ir.from_onnx_text(
        """<ir_version: 8, opset_import: ["" : 13]> agraph (float[2,3] x0) => (float[2,3] y) { a = Relu(x0) y = Neg(a) }"""
    )
    chain = chain_of(model, {model.graph.node(1)})
    assert chain is not None
    ran = []

    def execute(part: Part, arrays: Any) -> Any:
        ran.append((part.name, sorted(arrays)))
        return evaluator.run(part.model, arrays)

    found = chain.run_with(execute, {"x0": FEED["x0"]})
    assert ran == [("device", ["x0"]), ("after", ["a"])]
    assert np.array_equal(found["y"], -np.maximum(FEED["x0"], 0))
