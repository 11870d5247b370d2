"""Random integer graphs whose every tensor is an output, with declared ranges of their inputs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir
from hypothesis import strategies as st

from jumar.graph import infer_shapes

WIDE = ir.DataType.INT64
TYPES = [WIDE, WIDE, ir.DataType.INT32]
SHAPES = [(), (1,), (3,), (2, 3), (2, 1), (80,)]


class Drawn:
    """A random integer graph under construction; every tensor of it is an output."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.inputs: list[ir.Value] = []
        self.declared: dict[str, tuple[int, int]] = {}
        self.weights: list[ir.Value] = []
        self.nodes: list[ir.Node] = []
        self.values: list[tuple[ir.Value, tuple[int, ...]]] = []

    def input(self) -> None:
        dtype, shape = self.draw(st.sampled_from(TYPES)), self.draw(st.sampled_from(SHAPES))
        limits = np.iinfo(dtype.numpy())
        ends = st.one_of(
            st.integers(-9, 9), st.integers(int(limits.min), int(limits.max)), st.sampled_from([int(limits.min), int(limits.max)])
        )
        low, high = sorted((self.draw(ends), self.draw(ends)))
        value = ir.Value(name=f"x{len(self.inputs)}", type=ir.TensorType(dtype), shape=ir.Shape(shape))
        self.inputs.append(value)
        self.declared[value.name or ""] = (low, high)
        self.values.append((value, shape))

    def const(self, array: Any, dtype: Any = np.int64) -> ir.Value:
        tensor = ir.tensor(np.asarray(array, dtype=dtype), name=f"w{len(self.weights)}")
        value = ir.Value(name=tensor.name, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=tensor.shape)
        self.weights.append(value)
        return value

    def add(
        self, op: str, inputs: list[ir.Value | None], dtype: ir.DataType, shape: tuple[int, ...], outputs: int = 1, **attributes: Any
    ) -> None:
        node = ir.node(op, inputs, attributes=attributes, num_outputs=outputs)
        for index, value in enumerate(node.outputs):
            value.name = f"v{len(self.nodes)}_{index}"
            value.type = ir.TensorType(dtype if index == 0 else WIDE)
            value.shape = ir.Shape(shape)
            self.values.append((value, shape))
        self.nodes.append(node)

    def pick(self, least_rank: int = 0) -> tuple[ir.Value, tuple[int, ...]]:
        choices = [item for item in self.values if len(item[1]) >= least_rank and item[0].dtype in (WIDE, ir.DataType.INT32)]
        return self.draw(st.sampled_from(choices)) if choices else (self.const([1, 5, -7, 2**40]), (4,))

    def model(self) -> ir.Model:
        outputs = [value for node in self.nodes for value in node.outputs]
        graph = ir.Graph(self.inputs, outputs, nodes=self.nodes, initializers=self.weights, opset_imports={"": 18}, name="g")
        model = ir.Model(graph, ir_version=8)
        infer_shapes(model)
        return model

    def feeds(self, seed: int) -> dict[str, Any]:
        random, feeds = np.random.default_rng(seed), {}
        for value in self.inputs:
            low, high = self.declared[value.name or ""]
            dtype, shape = value.dtype.numpy(), tuple(value.shape.numpy())
            array = random.integers(low, high, shape, dtype=np.int64, endpoint=True)
            array = np.where(random.random(shape) < 0.3, random.choice(np.array([low, high], dtype=np.int64), shape), array)
            feeds[value.name or ""] = np.asarray(array).astype(dtype)
        return feeds


def binary(graph: Drawn) -> None:
    one, shape = graph.pick()
    other = graph.draw(st.sampled_from([item for item in graph.values if item[0].dtype == one.dtype]))
    try:
        result = np.broadcast_shapes(shape, other[1])
    except ValueError:
        other, result = (one, shape), shape
    op = graph.draw(st.sampled_from(["Add", "Sub", "Mul", "Max", "Min"]))
    graph.add(op, [one, other[0]], one.dtype, result)


def by_constant(graph: Drawn) -> None:
    one, shape = graph.pick()
    op = graph.draw(st.sampled_from(["Div", "Mod", "Mod fmod", "Mul", "Add"]))
    other = graph.const(graph.draw(st.sampled_from([2, 3, -3, 7, 1000])), one.dtype.numpy())
    name, _, fmod = op.partition(" ")
    graph.add(name, [one, other], one.dtype, shape, **({"fmod": 1} if fmod else {}))


def unary(graph: Drawn) -> None:
    one, shape = graph.pick()
    graph.add(graph.draw(st.sampled_from(["Neg", "Abs", "Sign", "Identity", "Relu"])), [one], one.dtype, shape)


def clipped(graph: Drawn) -> None:
    one, shape = graph.pick()
    bounds = [graph.const(graph.draw(st.integers(-20, 20)), one.dtype.numpy()) if graph.draw(st.booleans()) else None for _ in "ab"]
    graph.add("Clip", [one, *bounds], one.dtype, shape)


def chosen(graph: Drawn) -> None:
    one, shape = graph.pick()
    graph.add("Greater", [one, graph.const(0, one.dtype.numpy())], ir.DataType.BOOL, shape)
    condition = graph.values[-1][0]
    graph.add("Where", [condition, one, graph.const(3, one.dtype.numpy())], one.dtype, shape)
    graph.add("Cast", [condition], WIDE, shape, to=WIDE.value)


def through_float(graph: Drawn) -> None:
    one, shape = graph.pick()
    wanted = graph.draw(st.sampled_from(TYPES))
    graph.add("Cast", [one], ir.DataType.FLOAT, shape, to=ir.DataType.FLOAT.value)
    factor = graph.const(graph.draw(st.sampled_from([0.1, 0.5, -2.7, 3.0])), np.float32)
    graph.add("Mul", [graph.values[-1][0], factor], ir.DataType.FLOAT, shape)
    graph.add(graph.draw(st.sampled_from(["Floor", "Ceil", "Round", "Neg", "Abs"])), [graph.values[-1][0]], ir.DataType.FLOAT, shape)
    graph.add("Cast", [graph.values[-1][0]], wanted, shape, to=wanted.value)


def cast(graph: Drawn) -> None:
    one, shape = graph.pick()
    wanted = graph.draw(st.sampled_from([*TYPES, ir.DataType.UINT8, ir.DataType.INT8, ir.DataType.BOOL]))
    graph.add("Cast", [one], wanted, shape, to=wanted.value)
    graph.add("Cast", [graph.values[-1][0]], WIDE, shape, to=WIDE.value)


def reduced(graph: Drawn) -> None:
    one, shape = graph.pick(1)
    op = graph.draw(st.sampled_from(["ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceSumSquare", "ReduceMean"]))
    keep = graph.draw(st.integers(0, 1))
    if op in ("ReduceL1", "ReduceSumSquare", "ReduceMean") and one.dtype == WIDE:
        op = "ReduceSum"
    axis = graph.draw(st.integers(-len(shape), len(shape) - 1))
    left = tuple(1 if index == axis % len(shape) else size for index, size in enumerate(shape) if keep or index != axis % len(shape))
    graph.add(op, [one, graph.const([axis])], one.dtype, left, keepdims=keep)


def running(graph: Drawn) -> None:
    one, shape = graph.pick(1)
    options = {"exclusive": graph.draw(st.integers(0, 1)), "reverse": graph.draw(st.integers(0, 1))}
    graph.add("CumSum", [one, graph.const(graph.draw(st.integers(-len(shape), len(shape) - 1)))], one.dtype, shape, **options)


def positions(graph: Drawn) -> None:
    one, shape = graph.pick(1)
    graph.add("TopK", [one, graph.const([1])], one.dtype, (*shape[:-1], 1), outputs=2)
    if one.dtype == ir.DataType.INT32:
        graph.add("ArgMax", [one], WIDE, (1, *shape[1:]))
    graph.add("Shape", [one], WIDE, (len(shape),))
    graph.add("Size", [one], WIDE, ())


def moved(graph: Drawn) -> None:
    one, shape = graph.pick(1)
    kind = graph.draw(st.sampled_from(["Transpose", "Reshape", "Concat", "Slice", "Gather", "Expand", "Tile", "Pad", "Unsqueeze", "Split"]))
    size = math.prod(shape)
    if kind == "Transpose":
        graph.add(kind, [one], one.dtype, shape[::-1])
    elif kind == "Reshape":
        graph.add(kind, [one, graph.const([-1])], one.dtype, (size,))
    elif kind == "Concat":
        fixed = graph.const(np.full(shape, 4), one.dtype.numpy())
        graph.add(kind, [one, fixed], one.dtype, (2 * shape[0], *shape[1:]), axis=0)
    elif kind == "Slice":
        start, end, step = graph.draw(
            st.sampled_from([(0, 2**63 - 1, 1), (-1, -(2**63), -1), (1, 2**63 - 1, 1), (0, 1, 1), (-2, 9, 2), (5, -9, -2)])
        )
        left = len(range(shape[0])[slice(start if start < 99 else None, None if abs(end) > 99 else end, step)])
        graph.add(
            kind, [one, graph.const([start]), graph.const([end]), graph.const([0]), graph.const([step])], one.dtype, (left, *shape[1:])
        )
        graph.nodes[-1].outputs[0].shape = None
        graph.values.pop()
    elif kind == "Gather":
        graph.add(kind, [one, graph.const([-1, 0])], one.dtype, (2, *shape[1:]), axis=0)
    elif kind == "Expand":
        graph.add(kind, [one, graph.const([2, *shape])], one.dtype, (2, *shape))
    elif kind == "Tile":
        graph.add(kind, [one, graph.const([2] * len(shape))], one.dtype, tuple(2 * size for size in shape))
    elif kind == "Pad":
        graph.add(
            kind, [one, graph.const([1] * 2 * len(shape)), graph.const(-3, one.dtype.numpy())], one.dtype, tuple(2 + size for size in shape)
        )
    elif kind == "Unsqueeze":
        graph.add(kind, [one, graph.const([0])], one.dtype, (1, *shape))
    elif shape[0] > 1:
        graph.add("Split", [one, graph.const([1, shape[0] - 1])], one.dtype, (1, *shape[1:]), outputs=2, axis=0)
        second = graph.nodes[-1].outputs[1]
        second.type, second.shape = ir.TensorType(one.dtype), ir.Shape((shape[0] - 1, *shape[1:]))
        graph.values[-1] = (second, (shape[0] - 1, *shape[1:]))


def counted(graph: Drawn) -> None:
    start, limit, step = graph.draw(st.integers(-5, 5)), graph.draw(st.integers(-5, 90)), graph.draw(st.sampled_from([1, 2, 7, -1, -3]))
    graph.add("Range", [graph.const(start), graph.const(limit), graph.const(step)], WIDE, (len(range(start, limit, step)),))
    if not len(range(start, limit, step)):
        graph.values.pop()


def set_elements(graph: Drawn) -> None:
    one, shape = graph.pick(1)
    update = graph.const(np.full((1, *shape[1:]), 77), one.dtype.numpy())
    reduction = graph.draw(st.sampled_from(["none", "add", "max", "mul"]))
    graph.add("ScatterND", [one, graph.const([[0]]), update], one.dtype, shape, reduction=reduction)
    graph.add("NonZero", [one], WIDE, (len(shape), 1))
    graph.nodes[-1].outputs[0].shape = None
    graph.values.pop()


STEPS = [
    binary,
    binary,
    by_constant,
    unary,
    clipped,
    chosen,
    through_float,
    cast,
    reduced,
    running,
    positions,
    moved,
    moved,
    counted,
    set_elements,
]


@st.composite
def graphs(draw: Any) -> Drawn:
    graph = Drawn(draw)
    for _ in range(draw(st.integers(1, 3))):
        graph.input()
    for step in draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=10)):
        step(graph)
    return graph
