"""Where a model is cut: every node has one place, none goes back, nothing blocked is on the device, and nothing better exists."""

from __future__ import annotations

import itertools

import onnx
import onnx_ir as ir
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar.cutting import divide, work_of


@st.composite
def graphs(draw: st.DrawFn) -> tuple[ir.Model, list[int]]:
    """A random acyclic graph of sums over small tensors, and the numbers of its blocked nodes."""
    count = draw(st.integers(1, 7))
    names, nodes = ["x"], []
    for number in range(count):
        read = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2))
        nodes.append(onnx.helper.make_node("Sum", read, [f"v{number}"], name=f"n{number}"))
        names.append(f"v{number}")
    used = {name for node in nodes for name in node.input}
    ends = [name for name in names[1:] if name not in used] or [names[-1]]
    size = draw(st.integers(1, 3))

    def info(name: str) -> onnx.ValueInfoProto:
        return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [size])

    graph = onnx.helper.make_graph(nodes, "g", [info("x")], [info(name) for name in ends], value_info=[info(name) for name in names[1:]])
    model = ir.from_proto(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8))
    return model, sorted(draw(st.sets(st.integers(0, count - 1), min_size=1)))


def place(division: object, node: ir.Node) -> int:
    return [node in part for part in (division.before, division.device, division.after)].index(True)  # type: ignore[attr-defined]


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(drawn=graphs())
def test_a_division_is_in_order_and_the_best_there_is(drawn: tuple[ir.Model, list[int]]) -> None:
    model, numbers = drawn
    nodes = list(model.graph)
    blocked = {nodes[number] for number in numbers}
    division = divide(model.graph, blocked)
    assert sorted((*division.before, *division.device, *division.after), key=nodes.index) == nodes
    assert not blocked & set(division.device)
    for node in nodes:
        for value in node.inputs:
            maker = None if value is None else value.producer()
            if maker is not None:
                assert place(division, maker) <= place(division, node)
    # All other allowed divisions, one by one: none has more on the device unless it also moves more.
    best = 0
    for places in itertools.product(range(3), repeat=len(nodes)):
        where = dict(zip(nodes, places, strict=True))
        if any(where[node] == 1 for node in blocked):
            continue
        edges = [(value.producer(), node) for node in nodes for value in node.inputs if value is not None]
        if all(where[one] <= where[other] for one, other in edges if one is not None):
            best = max(best, sum(work_of(node) for node in nodes if where[node] == 1))
    if not division.device:
        assert best == 0


def test_more_work_stays_on_the_device() -> None:
    text = """<ir_version: 8, opset_import: ["" : 13]> agraph (float[1,8] x, float[8,8] w) => (float[1,8] y) { a = MatMul(x, w) b = MatMul(a, w) c = NonZero(x) d = Cast<to = 1>(c) e = ReduceSum<keepdims = 0>(d) f = Add(b, e) y = Relu(f) }"""
    model = ir.from_onnx_text(text)
    for value in (output for node in model.graph for output in node.outputs):
        value.type, value.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape([1, 8])
    blocked = {node for node in model.graph if node.op_type == "NonZero"}
    division = divide(model.graph, blocked)
    assert {node.op_type for node in division.device} >= {"MatMul"}
    assert not blocked & set(division.device)
