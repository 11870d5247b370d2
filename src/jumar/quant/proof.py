"""That both forms compute the same: each layer of the deploy form, bit by bit, on the integers that the other form feeds it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from ..graph import Evaluator, capture_model, static_shape
from ..reference.integer import as_int32, convolved, convolved_back, multiplied
from .numbers import along, quantised
from .plan import Plan, Quantised

BOUND = 2e-5
"""Of the largest element of a layer's output: what summing in float32 leaves beside the exact sum of integers."""
TIE = 1e-4
"""How near to a tie, in steps, a number must be for the two ways of scaling (times the reciprocal, or divided) to round it differently."""
_GROUP_BYTES = 64 << 20


@dataclass(frozen=True)
class LayerProof:
    """One layer on one sample.

    Attributes:
        differ: the largest difference of its outputs, in parts of the largest element.
        ties: how many of its integer inputs the two ways round differently; ``far``: of these, how many were no tie.
        elements: of the input.
    """

    name: str
    differ: float
    ties: int
    far: int
    elements: int

    @property
    def passed(self) -> bool:
        return self.differ <= BOUND and self.far == 0


def integer_layer(item: Quantised, q: np.ndarray) -> np.ndarray:
    """The float32 output of AscendDequant for the int8 output of AscendQuant."""
    attributes, layer, offset = item.layer.node.attributes, item.layer, item.activation.offset
    named: dict[str, Any] = {
        key: attributes[key].as_ints() for key in ("strides", "pads", "dilations", "output_padding") if key in attributes
    }
    if layer.op == "Conv":
        auto = attributes["auto_pad"].as_string() if "auto_pad" in attributes else "NOTSET"
        sums = convolved(q, item.weight.data, offset=offset, group=layer.group, auto_pad=auto, **named)
    elif layer.op == "ConvTranspose":
        sums = convolved_back(q, item.weight.data, offset=offset, group=layer.group, **named)
    else:
        sums = multiplied(q, item.weight.data.T if layer.transposed else item.weight.data, offset=offset)
    axis = 1 if layer.op in ("Conv", "ConvTranspose") else sums.ndim - 1
    if item.bias is not None:
        sums = as_int32(sums.astype(np.int64) + along(item.bias, axis, sums.ndim))
    deq = item.deq
    return np.asarray(sums.astype(np.float32) * along(deq, axis if deq.size > 1 else None, sums.ndim))


def prove_layers(qdq: ir.Model, plan: Plan, feeds: Sequence[Mapping[str, Any]], evaluator: Evaluator) -> Iterator[LayerProof]:
    """Every layer of the plan on every sample; ``qdq`` is the model that :func:`~jumar.quant.qdq.qdq_model` made of this plan."""
    made = {value.name: node for node in qdq.graph for value in node.outputs}
    for group in _groups(plan):
        names: dict[str, tuple[str, str, str]] = {}
        for item in group:
            output = item.layer.output.name or ""
            node = made[output]
            if item.layer.bias_add is not None:
                node = next(value.producer() for value in node.inputs if value is not None and value.producer() is not None)  # type: ignore[assignment]
            restored_by = node.inputs[0].producer() if node.inputs[0] is not None else None
            assert restored_by is not None and restored_by.inputs[0] is not None
            names[item.layer.name] = (item.layer.data.name or "", restored_by.inputs[0].name or "", output)
        inputs = {value.name for value in qdq.graph.inputs}
        wanted = {name for triple in names.values() for name in triple} - inputs
        with evaluator.session(capture_model(qdq, wanted)) as session:
            for feed in feeds:
                found = {**feed, **session.run(feed, sorted(wanted))}
                for item in group:
                    x, q, y = (found[name] for name in names[item.layer.name])
                    yield _compare(item, x, q, y)


def _groups(plan: Plan) -> Iterator[list[Quantised]]:
    group: list[Quantised] = []
    held = 0
    for item in plan.items.values():
        shapes = [static_shape(value) for value in (item.layer.data, item.layer.output)]
        held += sum(_GROUP_BYTES // 8 if shape is None else math.prod(shape) * 5 for shape in shapes)
        group.append(item)
        if held > _GROUP_BYTES:
            yield group
            group, held = [], 0
    if group:
        yield group


def _compare(item: Quantised, x: np.ndarray, q: np.ndarray, y: np.ndarray) -> LayerProof:
    own = quantised(x, item.activation)
    odd = own != q
    exact = x[odd].astype(np.float64) / item.activation.scale
    far = np.abs(np.abs(exact - np.floor(exact)) - 0.5) > TIE
    found = integer_layer(item, q)
    largest = float(np.abs(y).max(initial=0.0))
    differ = float(np.abs(found - y).max(initial=0.0))
    return LayerProof(item.layer.name, differ / largest if largest else differ, int(odd.sum()), int(far.sum()), int(q.size))
