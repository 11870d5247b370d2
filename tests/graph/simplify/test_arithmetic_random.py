"""Random chains of convolutions, products, padding, normalisation and arithmetic give the same results when simplified."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from arithmetic_cases import simplified
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumar.graph import Evaluator
from jumar.graph.edit import capture_model
from jumar.graph.simplify import affine

# Each layer rounds sums of up to about a hundred products of numbers near one, in another order; a wrong fusion is off by far more.
CHAIN = 5e-6
_SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

SEEDS = st.integers(0, 2**32 - 1)


class Chain:
    """Draws one layer after the other and keeps track of the shape.

    All from one seed: drawn one by one, choices would mostly be the first of each list.
    """

    def __init__(self, seed: int) -> None:
        self.random, self.dtype = np.random.default_rng(seed), np.float32
        self.opset, self.shape = self.pick(9, 11, 13, 15, 18), [0]
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, Any] = {}
        self.tip, self.kept = "x", []

    def pick(self, *items: Any) -> Any:
        return items[self.random.integers(len(items))]

    def rarely(self) -> bool:
        return bool(self.random.integers(6) == 0)

    def weight(self, array: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(array)
        return name

    def numbers(self, *shape: int) -> str:
        """Numbers of either sign whose size is between 1/2 and 2."""
        sign = self.random.choice([-1, 1], shape)
        return self.weight((sign * self.random.uniform(0.5, 2, shape)).astype(self.dtype))

    def node(self, op: str, *inputs: str, **attributes: Any) -> None:
        tip = f"t{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(op, list(inputs), [tip], **attributes))
        self.tip = tip
        if self.rarely():
            self.kept.append(tip)

    def conv(self) -> None:
        groups, dims = self.pick(*(number for number in (1, 2, self.shape[1]) if self.shape[1] % number == 0)), self.shape[2:]
        kernel, channels = [self.pick(1, min(2, size)) for size in dims], groups * self.pick(1, 2)
        pads = [self.pick(0, 0, 1) for _ in range(2 * len(dims))]
        bias = [self.numbers(channels)] if self.pick(True, False) else []
        weight = self.numbers(channels, self.shape[1] // groups, *kernel)
        self.node("Conv", self.tip, weight, *bias, group=groups, pads=pads)
        space = [size + pads[axis] + pads[axis + len(dims)] - kernel[axis] + 1 for axis, size in enumerate(dims)]
        self.shape = [self.shape[0], channels, *space]

    def conv_transpose(self) -> None:
        groups, dims = self.pick(*(number for number in (1, 2) if self.shape[1] % number == 0)), self.shape[2:]
        kernel, each = [self.pick(1, 2) for _ in dims], self.pick(1, 2)
        bias = [self.numbers(groups * each)] if self.pick(True, False) else []
        self.node("ConvTranspose", self.tip, self.numbers(self.shape[1], each, *kernel), *bias, group=groups)
        self.shape = [self.shape[0], groups * each, *(size + step - 1 for size, step in zip(dims, kernel, strict=True))]

    def norm(self) -> None:
        channels = self.shape[1]
        variance = self.weight(self.random.uniform(0.3, 2, channels).astype(self.dtype))
        self.node("BatchNormalization", self.tip, *(self.numbers(channels) for _ in range(3)), variance)

    def arithmetic(self) -> None:
        """With a constant per channel, of any other shape that broadcasts, or a neutral one; on either side."""
        op, rank = self.pick("Mul", "Add", "Sub", "Div"), len(self.shape)
        channel = [1] * (rank - 2)
        sizes = self.pick(
            [], [1], [self.shape[1], *channel], [1, self.shape[1], *channel], [size if self.pick(True, False) else 1 for size in self.shape]
        )
        other = self.numbers(*sizes)
        if self.rarely():
            self.weights[other] = np.full(sizes, 1 if op in ("Mul", "Div") else 0, self.dtype)
        operands = [self.tip, other]
        if op != "Div" and self.pick(True, False):
            operands.reverse()
        self.node(op, *operands)

    def pad(self) -> None:
        pads = [0, 0, *(self.pick(0, 1) for _ in self.shape[2:])] * 2
        if self.rarely():
            pads[self.random.integers(len(pads))] = self.pick(1, 2, -1 if min(self.shape) > 1 else 0)
        value = self.pick(0.0, 0.0, 1.0)
        if self.opset < 11:
            self.node("Pad", self.tip, pads=pads, value=value)
        else:
            self.node("Pad", self.tip, self.weight(np.array(pads, np.int64)), self.weight(np.asarray(value, self.dtype)))
        rank = len(self.shape)
        self.shape = [size + pads[axis] + pads[axis + rank] for axis, size in enumerate(self.shape)]

    def pool(self) -> None:
        if min(self.shape[2:]) >= 2:
            self.node("MaxPool", self.tip, kernel_shape=[2] * (len(self.shape) - 2))
            self.shape = [*self.shape[:2], *(size - 1 for size in self.shape[2:])]

    def bound(self) -> None:
        self.node("Relu", self.tip)

    def product(self) -> None:
        columns = self.pick(1, 3, 4)
        if len(self.shape) == 2 and self.pick(True, False):
            transposed = self.pick(0, 1)
            sizes = [columns, self.shape[1]] if transposed else [self.shape[1], columns]
            bias = (
                [self.numbers(*self.pick([columns], [1, columns], [self.shape[0], 1], [1]))]
                if self.opset < 11 or self.pick(True, False)
                else []
            )
            self.node("Gemm", self.tip, self.numbers(*sizes), *bias, transB=transposed, alpha=self.pick(1.0, 0.5), beta=self.pick(1.0, 2.0))
        else:
            self.node("MatMul", self.tip, self.numbers(self.shape[-1], columns))
        self.shape = [*self.shape[:-1], columns]

    def model(self, shape: list[int], layers: list[Callable[[], None]]) -> ir.Model:
        self.shape = list(shape)
        self.bound()
        for _ in range(self.pick(2, 3, 4, 5, 6, 7)):
            self.pick(*layers)()
        kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        names = [*dict.fromkeys([*self.kept, self.tip])]
        graph = onnx.helper.make_graph(
            self.nodes,
            "chain",
            [onnx.helper.make_tensor_value_info("x", kind, shape)],
            [onnx.helper.make_tensor_value_info(name, kind, None) for name in names],
            [onnx.numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", self.opset)], ir_version=8)
        return ir.from_proto(onnx.shape_inference.infer_shapes(model))


def convolutions(seed: int) -> ir.Model:
    chain = Chain(seed)
    shape = [2, chain.pick(1, 2, 4), *(chain.pick(3, 4, 5) for _ in range(chain.pick(1, 2, 2, 3)))]
    layers = [
        chain.conv,
        chain.conv,
        chain.conv_transpose,
        chain.norm,
        chain.arithmetic,
        chain.arithmetic,
        chain.pad,
        chain.pool,
        chain.bound,
    ]
    return chain.model(shape, layers)


def products(seed: int) -> ir.Model:
    chain = Chain(seed)
    layers = [chain.product, chain.product, chain.norm, chain.arithmetic, chain.arithmetic, chain.bound]
    return chain.model(chain.pick([2, 3], [1, 4], [2, 3, 4]), layers)


def distance(model: ir.Model, evaluator: Evaluator) -> float:
    """The largest difference of an output, relative to the largest number on the way (which may cancel later)."""
    after, _ = simplified(model)
    assert sum(1 for _ in after.graph) <= sum(1 for _ in model.graph)
    shape = [int(size) for size in model.graph.inputs[0].shape or ()]
    feeds = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
    whole = evaluator.run(capture_model(model, [node.outputs[0].name or "" for node in model.graph]), feeds)
    largest = max(float(np.abs(array).max(initial=0)) for array in whole.values())
    found = evaluator.run(after, feeds)
    assert {name: array.shape for name, array in found.items()} == {value.name: whole[value.name].shape for value in model.graph.outputs}
    return max(float(np.abs(array - whole[name]).max(initial=0)) for name, array in found.items()) / largest


@_SETTINGS
@given(seed=SEEDS)
def test_chains_of_convolutions(seed: int, evaluator: Evaluator) -> None:
    assert distance(convolutions(seed), evaluator) <= CHAIN


@_SETTINGS
@given(seed=SEEDS)
def test_chains_of_products(seed: int, evaluator: Evaluator) -> None:
    assert distance(products(seed), evaluator) <= CHAIN


@pytest.mark.slow
@settings(_SETTINGS, max_examples=800)
@given(seed=SEEDS)
def test_many_chains(seed: int, evaluator: Evaluator) -> None:
    assert distance((convolutions, products)[seed % 2](seed), evaluator) <= CHAIN


def test_a_wrong_scale_is_noticed(monkeypatch: pytest.MonkeyPatch, evaluator: Evaluator) -> None:
    """A constant along the last axis taken for one per channel: some chain shows it."""
    right = affine.per_channel

    def wrong(value: ir.Value | None, channels: affine.Channels) -> affine.Numbers | None:
        found = right(value, channels)
        return found if found is None or found.size == 1 else found[::-1]

    monkeypatch.setattr(affine, "per_channel", wrong)
    with pytest.raises(AssertionError):
        test_chains_of_convolutions(evaluator=evaluator)
