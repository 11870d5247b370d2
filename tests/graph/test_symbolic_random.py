"""Random shape arithmetic: what is said of a tensor before the run is compared with what ONNX Runtime makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from jumar.errors import EvaluationError
from jumar.graph import Evaluator
from jumar.graph.symbolic import (
    Expr,
    SymbolicResult,
    evaluate,
    evaluate_symbolically,
    per_profile,
    reshape_target,
    same_as_input,
)

HUGE = (2**63 - 1, -(2**63), 2**31 - 1, -(2**31))


def bare_symbol(element: object) -> str | None:
    """The name of an element that is nothing but one symbol."""
    names = element.symbols() if isinstance(element, Expr) else set()
    return element.key if isinstance(element, Expr) and names == {element.key} else None


def differences(result: SymbolicResult, sizes: Mapping[str, int], actual: Mapping[str, Any]) -> list[str]:
    """Every statement about a tensor that its actual value contradicts. ``actual`` is in the order of the graph.

    Symbols of dimensions that are not known get their size where they are seen first, and must keep it.
    """
    known, wrong = dict(sizes), []
    for name, array in actual.items():
        if not isinstance(array, np.ndarray):
            continue
        shape, elements, constant = result.shape(name), result.elements(name), result.constants.get(name)
        if shape is not None:
            if len(shape) != array.ndim:
                wrong.append(f"{name}: rank {len(shape)}, actually {array.shape}")
                continue
            for dim, size in zip(shape, array.shape, strict=True):
                symbol = bare_symbol(dim)
                if symbol is not None:
                    known.setdefault(symbol, size)
                said = evaluate(dim, known)
                if said is not None and said != size:
                    wrong.append(f"{name}: shape {shape}, actually {array.shape} where {known}")
        if constant is not None and (
            constant.dtype != array.dtype or not np.array_equal(constant, array, equal_nan=array.dtype.kind == "f")
        ):
            wrong.append(f"{name}: constant {constant!r}, actually {array!r}")
        if elements is not None and len(elements) != array.size:
            wrong.append(f"{name}: {len(elements)} elements, actually {array.shape}")
            continue
        for element, item in zip(elements or (), array.ravel().tolist() if elements is not None else (), strict=True):
            said = None if element is None else evaluate(element, known)
            if said is not None and said != item:
                wrong.append(f"{name}: element {element}, actually {item} where {known}")
    return wrong


class Drawn:
    """A graph that grows by nodes which run on the actual sizes."""

    def __init__(self, draw: Any, evaluator: Evaluator, opset: int) -> None:
        self.draw, self.evaluator, self.opset = draw, evaluator, opset
        self.arrays: dict[str, np.ndarray] = {}
        self.weights: dict[str, np.ndarray] = {}
        self.inputs: dict[str, tuple[str, ...]] = {}
        self.nodes: list[onnx.NodeProto] = []

    def __repr__(self) -> str:
        """What Hypothesis prints of a graph that fails."""
        sizes = {name: self.arrays[name].shape for name in self.inputs}
        weights = {name: array.tolist() for name, array in self.weights.items()}
        return "\n".join([f"opset {self.opset}", f"{self.inputs} {sizes}", str(weights), *map(helper.printable_node, self.nodes)])

    def one_of(self, *items: Any) -> Any:
        return self.draw(st.sampled_from(items))

    def number(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def weight(self, values: Any, dtype: Any = np.int64) -> str:
        name = f"w{len(self.arrays)}"
        self.arrays[name] = self.weights[name] = np.array(values, dtype=dtype)
        return name

    def add(self, op: str, *inputs: str, outputs: int = 1, reads: tuple[str, ...] = (), **attributes: Any) -> str | None:
        """Add a node if it runs. ``reads``: what its branches read besides the inputs."""
        names = [f"t{len(self.arrays) + index}" for index in range(outputs)]
        node = helper.make_node(op, list(inputs), names, **attributes)
        try:
            read = {name: self.arrays[name] for name in (*inputs, *reads)}
            found = self.evaluator.run(self.piece([node], read), self.feeds(read))
        except EvaluationError:
            return None
        if any(array.size > 4000 for array in found.values()):
            return None
        self.arrays.update(found)
        self.nodes.append(node)
        return names[0]

    def feeds(self, names: Any) -> dict[str, np.ndarray]:
        return {name: self.arrays[name] for name in names if name and name not in self.weights}

    def piece(self, nodes: list[onnx.NodeProto], arrays: Mapping[str, np.ndarray]) -> ir.Model:
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), None)
            for name, array in arrays.items()
            if name not in self.weights
        ]
        return self.wrapped(nodes, inputs, [name for node in nodes for name in node.output])

    def wrapped(self, nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], outputs: list[str]) -> ir.Model:
        bodies = [attribute.g for node in nodes for attribute in node.attribute if attribute.HasField("g")]
        used = {name for node in (*nodes, *(inner for body in bodies for inner in body.node)) for name in node.input}
        weights = [numpy_helper.from_array(array, name) for name, array in self.weights.items() if name in used]
        graph = helper.make_graph(nodes, "drawn", inputs, [onnx.ValueInfoProto(name=name) for name in outputs], weights)
        return ir.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8))

    def model(self) -> ir.Model:
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in self.inputs.items()]
        return self.wrapped(self.nodes, inputs, [name for node in self.nodes for name in node.output])

    def pick(self, kinds: str, rank: int | None = None) -> str | None:
        found = [name for name, array in self.arrays.items() if array.dtype.kind in kinds and (rank is None or array.ndim == rank)]
        return None if not found else self.one_of(*found[-12:])


def axes(graph: Drawn, op: str, name: str, places: list[int]) -> str | None:
    if graph.opset < 13:
        return graph.add(op, name, axes=places)
    return graph.add(op, name, graph.weight(places))


def grow(graph: Drawn) -> None:
    """One step, drawn."""
    step = graph.one_of(*STEPS)
    step(graph)


def some(graph: Drawn, kinds: str = "i", rank: int | None = None) -> str:
    found = graph.pick(kinds, rank)
    if found is not None and graph.number(0, 9):
        return found
    shape = [1] * (graph.number(0, 1) if rank is None else rank)
    return graph.weight(np.full(shape, graph.number(-3, 4)), np.int64 if kinds == "i" else np.float32)


def shape_step(graph: Drawn) -> None:
    attributes = {"start": graph.number(-2, 2), "end": graph.number(-2, 4)} if graph.opset >= 15 and graph.number(0, 1) else {}
    graph.add("Shape" if attributes else graph.one_of("Shape", "Shape", "Shape", "Size"), some(graph, "fi"), **attributes)


def gather_step(graph: Drawn) -> None:
    index: Any = graph.number(-2, 2)
    graph.add("Gather", some(graph, "if"), graph.weight([index] if graph.number(0, 1) else index), axis=graph.one_of(0, 0, -1, 1))


def slice_step(graph: Drawn) -> None:
    bounds = [some(graph, "i", 1) if graph.number(0, 3) == 0 else graph.weight([graph.one_of(*HUGE, *range(-7, 8))]) for _ in range(2)]
    graph.add(
        "Slice",
        some(graph, graph.one_of("i", "f")),
        *bounds,
        graph.weight([graph.one_of(0, -1)]),
        graph.weight([graph.one_of(1, 1, 2, -1, -2)]),
    )


def arithmetic_step(graph: Drawn) -> None:
    op = graph.one_of("Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Neg", "Abs")
    inputs = [some(graph, "i") for _ in range(1 if op in ("Neg", "Abs") else 2)]
    if op in ("Div", "Mod"):
        inputs[1] = graph.weight([graph.one_of(-7, -2, -1, 1, 2, 3, 7)], graph.arrays[inputs[0]].dtype)
        if op == "Div" and graph.number(0, 2) == 0:
            inputs[1] = some(graph, "i")
            if not graph.arrays[inputs[1]].all():
                return  # the division would end the process
    graph.add(op, *inputs, **({"fmod": 1} if op == "Mod" and graph.number(0, 1) else {}))


def concat_step(graph: Drawn) -> None:
    kind, rank = graph.one_of(("i", 1), ("i", 1), ("f", 2), ("f", 3))
    graph.add("Concat", *(some(graph, kind, rank) for _ in range(graph.number(1, 3))), axis=graph.one_of(0, -1))


def squeeze_step(graph: Drawn) -> None:
    axes(graph, graph.one_of("Unsqueeze", "Unsqueeze", "Squeeze"), some(graph, "if"), [graph.one_of(0, -1, 1)])


def cast_step(graph: Drawn) -> None:
    graph.add("Cast", some(graph, "ifb"), to=int(graph.one_of(TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT)))


def compare_step(graph: Drawn) -> None:
    op = graph.one_of("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Not", "Xor")
    logic = op in ("And", "Or", "Not", "Xor")
    inputs = [graph.pick("b") or graph.weight([True], np.bool_) if logic else some(graph, "i") for _ in range(1 if op == "Not" else 2)]
    graph.add(op, *inputs)


def where_step(graph: Drawn) -> None:
    graph.add("Where", graph.pick("b") or graph.weight(True, np.bool_), some(graph, "i"), some(graph, "i"))


def reshape_step(graph: Drawn) -> None:
    target = (
        some(graph, "i", 1) if graph.number(0, 1) else graph.weight([graph.one_of(-1, 0, 0, 1, 2, 3) for _ in range(graph.number(1, 4))])
    )
    graph.add(
        "Reshape",
        some(graph, graph.one_of("f", "f", "i")),
        target,
        **({"allowzero": 1} if graph.opset >= 14 and graph.number(0, 3) == 0 else {}),
    )


def view_step(graph: Drawn) -> None:
    """What exporters write for ``x.view(x.shape[0], -1, ...)``: dimensions taken out one by one, multiplied, joined."""
    source = some(graph, "f", graph.one_of(2, 3, 4))
    shape = graph.add("Shape", source)
    if shape is None:
        return
    dims: list[str] = []
    rank = graph.arrays[source].ndim
    place = 0
    while place < rank:
        item = graph.add("Gather", shape, graph.weight(place), axis=0) or ""
        if place + 1 < rank and graph.number(0, 2) == 0:
            place += 1
            item = graph.add("Mul", item, graph.add("Gather", shape, graph.weight(place), axis=0) or "") or ""
        place += 1
        dims.append(axes(graph, "Unsqueeze", item, [0]) or "")
    if graph.number(0, 1):
        dims[graph.number(0, len(dims) - 1)] = graph.weight([-1])
    if graph.number(0, 3) == 0:
        dims.insert(graph.number(0, len(dims)), graph.weight([1]))
    joined = graph.add("Concat", *dims, axis=0)
    if joined is not None:
        graph.add("Reshape", source, joined)


def sized_step(graph: Drawn) -> None:
    op = graph.one_of("Expand", "Tile", "ConstantOfShape", "Expand")
    if op == "ConstantOfShape":
        graph.add(op, some(graph, "i", 1), **({"value": numpy_helper.from_array(np.array([3], np.int64))} if graph.number(0, 1) else {}))
    else:
        graph.add(op, some(graph, graph.one_of("f", "i")), some(graph, "i", 1))


def range_step(graph: Drawn) -> None:
    graph.add("Range", some(graph, "i", 0), some(graph, "i", 0), graph.weight(graph.one_of(1, 1, 2, -1)))


def reduce_step(graph: Drawn) -> None:
    op = graph.one_of("ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ArgMax", "CumSum", "NonZero")
    if op == "CumSum":
        graph.add(op, some(graph, "i", 1), graph.weight(0), exclusive=graph.number(0, 1), reverse=graph.number(0, 1))
    elif op == "NonZero":
        graph.add(op, some(graph, "if"))
    else:
        graph.add(op, some(graph, "f" if op in ("ReduceMean", "ArgMax") else "if"), keepdims=graph.number(0, 1))


def pad_step(graph: Drawn) -> None:
    source = some(graph, graph.one_of("f", "i"))
    rank = graph.arrays[source].ndim
    amounts = graph.weight([graph.one_of(0, 0, 1, 2, -1) for _ in range(2 * rank)])
    if graph.number(0, 3) == 0 and rank:
        chosen = some(graph, "i", 1)
        amounts = graph.add("Concat", *([chosen] * 2), axis=0) or amounts
    graph.add("Pad", source, amounts, **({"mode": "edge"} if graph.number(0, 4) == 0 else {}))


def layout_step(graph: Drawn) -> None:
    op = graph.one_of("Transpose", "Flatten", "Split", "Identity", "Relu", "Softmax")
    source = some(graph, "f")
    rank = graph.arrays[source].ndim
    if op == "Transpose" and rank:
        graph.add(op, source, perm=graph.draw(st.permutations(range(rank))))
    elif op == "Flatten":
        graph.add(op, source, axis=graph.number(-rank, rank))
    elif op == "Transpose":
        graph.add(op, source)
    elif op == "Split":
        graph.add(op, source, outputs=2, axis=-1, **({"num_outputs": 2} if graph.opset >= 18 else {}))
    else:
        graph.add(op, source)


def dense_step(graph: Drawn) -> None:
    op = graph.one_of("Add", "MatMul", "MaxPool", "Conv", "Resize", "Scatter", "Trilu", "Gemm")
    if op in ("Add", "MatMul", "Gemm"):
        graph.add(op, some(graph, "f"), some(graph, "f"))
    elif op == "Trilu" and graph.opset >= 14:
        graph.add(op, some(graph, "fi", 2), graph.weight(graph.number(-2, 2)), upper=graph.number(0, 1))
    elif op == "Scatter":
        graph.add("ScatterElements", some(graph, "i", 1), graph.weight([graph.number(-2, 2)]), graph.weight([9]), axis=0)
    elif op == "Resize":
        source = some(graph, "f")
        scales = [graph.one_of(0.5, 1.0, 1.5, 2.0, 3.0, 1.3) for _ in range(graph.arrays[source].ndim)]
        graph.add(op, source, graph.weight([], np.float32), graph.weight(scales, np.float32))
    elif op in ("MaxPool", "Conv"):
        source = some(graph, "f", 3)
        kernel, more = graph.number(1, 4), {"strides": [graph.number(1, 3)], "pads": [graph.number(0, 1), 0]}
        if op == "Conv":
            channels = graph.arrays[source].shape[1]
            graph.add(op, source, graph.weight(np.ones((2, channels, kernel)), np.float32), **more)
        else:
            graph.add(op, source, kernel_shape=[kernel], ceil_mode=graph.number(0, 1), **more)


def more_step(graph: Drawn) -> None:
    op = graph.one_of("ConvTranspose", "DepthToSpace", "TopK", "OneHot", "Einsum", "PRelu", "AveragePool", "GlobalMaxPool", "Gather", "If")
    source = some(graph, "f", {"ConvTranspose": 3, "AveragePool": 3, "DepthToSpace": 4, "Einsum": 2}.get(op))
    shape = graph.arrays[source].shape
    if op == "ConvTranspose":
        kernel = graph.number(1, 3)
        weight = graph.weight(np.ones((shape[1], 2, kernel)), np.float32)
        graph.add(op, source, weight, strides=[graph.number(1, 3)], pads=[graph.number(0, 1), 0])
    elif op == "DepthToSpace":
        graph.add(graph.one_of(op, "SpaceToDepth"), source, blocksize=graph.number(1, 2))
    elif op == "TopK":
        graph.add(op, source, some(graph, "i", 1), outputs=2, axis=-1)
    elif op == "OneHot":
        graph.add(op, some(graph, "i"), graph.weight(3), graph.weight([0, 1]), axis=graph.one_of(-1, 0))
    elif op == "Einsum":
        graph.add(op, source, some(graph, "f", 2), equation=graph.one_of("ij,jk->ik", "ij,ij->j", "ij,ik->kj"))
    elif op in ("PRelu", "Gather"):
        graph.add(op, source, some(graph, "f" if op == "PRelu" else "i"))
    elif op == "If":
        branches = [
            helper.make_graph([helper.make_node(name, [source], ["r"])], name, [], [onnx.ValueInfoProto(name="r")])
            for name in ("Relu", "Shape")
        ]
        condition = graph.pick("b") or graph.weight(True, np.bool_)
        if graph.arrays[condition].size == 1:
            graph.add("If", condition, reads=(source,), then_branch=branches[0], else_branch=branches[0 if graph.number(0, 1) else 1])
    else:
        graph.add(
            op,
            source,
            **({"kernel_shape": [graph.number(1, 3)], "strides": [2], "ceil_mode": graph.number(0, 1)} if op == "AveragePool" else {}),
        )


STEPS = (
    more_step,
    more_step,
    shape_step,
    shape_step,
    shape_step,
    gather_step,
    gather_step,
    slice_step,
    slice_step,
    arithmetic_step,
    arithmetic_step,
    arithmetic_step,
    concat_step,
    concat_step,
    squeeze_step,
    squeeze_step,
    cast_step,
    compare_step,
    where_step,
    reshape_step,
    reshape_step,
    view_step,
    view_step,
    sized_step,
    sized_step,
    range_step,
    reduce_step,
    pad_step,
    layout_step,
    dense_step,
)
SIZES = st.sampled_from([0, 1, 1, 2, 2, 3, 4, 5, 8])


@st.composite
def drawn_graphs(draw: Any, evaluator: Evaluator) -> Drawn:
    graph = Drawn(draw, evaluator, draw(st.sampled_from([11, 13, 18])))
    for name in ("x", "z")[: graph.number(1, 2)]:
        rank = graph.one_of(1, 2, 3, 3, 4)
        shape = [draw(SIZES) for _ in range(rank)]
        # Two names for all, whatever their sizes: exporters reuse names. Some sizes are declared as numbers.
        graph.inputs[name] = tuple(draw(st.sampled_from(["n", "m", size, f"{name}{axis}"])) for axis, size in enumerate(shape))
        graph.arrays[name] = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    for _ in range(graph.number(3, 14)):
        grow(graph)
    return graph


@pytest.fixture(scope="module")
def child(evaluator: Evaluator) -> Evaluator:
    return evaluator


QUICK = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@given(data=st.data())
@QUICK
def test_nothing_said_of_a_random_graph_is_wrong(data: st.DataObject, child: Evaluator) -> None:
    graph = data.draw(drawn_graphs(child))
    assess(graph, data, child)


@pytest.mark.slow
@given(data=st.data())
@settings(QUICK, max_examples=600, derandomize=False)
def test_nothing_said_of_many_random_graphs_is_wrong(data: st.DataObject, child: Evaluator) -> None:
    graph = data.draw(drawn_graphs(child))
    assess(graph, data, child)


def assess(graph: Drawn, data: st.DataObject, child: Evaluator) -> None:
    if not graph.nodes:
        return
    model = graph.model()
    result = evaluate_symbolically(model)
    shapes = {name: graph.arrays[name].shape for name in graph.inputs}
    actual = {name: graph.arrays[name] for node in graph.nodes for name in node.output}
    assert not differences(result, result.sizes(shapes), actual)
    (static,) = per_profile(model, [shapes]).results
    assert not differences(static, {}, actual)
    # Other sizes, if the model runs with them.
    other = {
        name: np.ones([dim if isinstance(dim, int) else data.draw(SIZES) for dim in dims], dtype=np.float32)
        for name, dims in graph.inputs.items()
    }
    values = {**graph.arrays, **other}
    positive = evaluate_symbolically(model, positive=True)
    try:
        found = child.run(model, other)
    except EvaluationError:
        found = {}
    shapes = {name: array.shape for name, array in other.items()}
    if found:
        assert not differences(result, result.sizes(shapes), found)
        values |= found
        rewrites_hold(model, result, values)
        if all(size for shape in shapes.values() for size in shape):
            assert not differences(positive, positive.sizes(shapes), found)
            rewrites_hold(model, positive, values)


def rewrites_hold(model: ir.Model, result: SymbolicResult, values: Mapping[str, np.ndarray]) -> None:
    """Constant Reshape targets give the same, and operators said to change nothing change nothing."""
    for node in model.graph:
        output = values[node.outputs[0].name or ""]
        if node.op_type == "Reshape":
            source = values[node.inputs[0].name or ""]
            target = reshape_target(node, result)
            if target is not None:
                assert reshape_as_ort(source, target).shape == output.shape, (target, source.shape, output.shape)
        same = same_as_input(node, result)
        if same is not None:
            np.testing.assert_array_equal(values[same.name or ""], output, strict=True)


def reshape_as_ort(source: np.ndarray, target: list[int]) -> np.ndarray:
    """Reshape with allowzero=0; where ONNX Runtime refuses, this fails too."""
    copied = [source.shape[axis] if size == 0 else size for axis, size in enumerate(target)]
    others = int(np.prod([size for size in copied if size != -1]))
    if -1 in copied:
        assert others, "ONNX Runtime divides by the others"
        copied[copied.index(-1)] = source.size // others
    return source.reshape(copied)
