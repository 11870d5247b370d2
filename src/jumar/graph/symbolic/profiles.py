"""Gears: one model, several sets of fixed input shapes, its shape arithmetic evaluated under each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from .evaluate import DEFAULT_LIMIT, SymbolicResult, evaluate_symbolically
from .known import Array
from .targets import constant_target, shape_operands


@dataclass(frozen=True)
class Profiles:
    """What is known of one model under each of several sets of shapes, in the order given."""

    model: ir.Model
    shapes: tuple[Mapping[str, tuple[int, ...]], ...]
    results: tuple[SymbolicResult, ...]

    def values(self, value: ir.Value | str) -> list[Array | None]:
        """The value of a tensor under each profile; None where it depends on more than the shapes."""
        return [result.constant(value) for result in self.results]

    def open_operands(self, index: int) -> list[ir.Value]:
        """Computed sizes, axes and bounds that stay open under a profile, because they depend on the data.

        Empty when all shape arithmetic of the main graph becomes constant.
        """
        seen: dict[ir.Value, None] = {}
        for node in self.model.graph:
            for value in shape_operands(node):
                if self.results[index].constant(value) is None:
                    seen[value] = None
        return list(seen)

    def constant_for_all(self, value: ir.Value | str) -> Array | None:
        """The value of a tensor if it is the same under all profiles, to the last bit."""
        first, *others = self.values(value)
        if first is None:
            return None
        for other in others:
            if other is None or other.dtype != first.dtype or other.shape != first.shape or other.tobytes() != first.tobytes():
                return None
        return first

    def reshape_target(self, node: ir.Node) -> list[int] | None:
        """A constant target for a Reshape (read with allowzero=0) that is right under all profiles, with 0 and -1 as needed.

        None where there is none, or a shape is not known. See :func:`jumar.graph.symbolic.reshape_target`.
        """
        pairs: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        for result in self.results:
            source, out = _numbers(result, node.inputs[0]), _numbers(result, node.outputs[0])
            if source is None or out is None:
                return None
            pairs.append((source, out))
        if len({(len(source), len(out)) for source, out in pairs}) != 1:
            return None
        if len(pairs) == 1:
            return list(pairs[0][1]) if 0 not in pairs[0][1] else constant_target(*pairs[0])
        target = []
        for axis in range(len(pairs[0][1])):
            sizes = {out[axis] for _, out in pairs}
            if len(sizes) == 1 and 0 not in sizes:
                target.append(sizes.pop())
            elif all(axis < len(source) and source[axis] == out[axis] for source, out in pairs):
                target.append(0)
            else:
                target.append(-1)
        if target.count(-1) > 1 or not all(_gives(target, source, out) for source, out in pairs):
            return None
        return target


def _numbers(result: SymbolicResult, value: ir.Value | None) -> tuple[int, ...] | None:
    shape = result.shape(value)
    if shape is None or not all(isinstance(dim, int) for dim in shape):
        return None
    return tuple(int(dim) for dim in shape if isinstance(dim, int))


def _gives(target: Sequence[int], source: tuple[int, ...], out: tuple[int, ...]) -> bool:
    """Whether Reshape makes ``out`` of ``source`` with this target."""
    copied = [source[axis] if size == 0 and axis < len(source) else size for axis, size in enumerate(target)]
    if -1 in copied:
        others = int(np.prod([size for size in copied if size != -1], dtype=object))
        if others == 0:
            return False
        copied[copied.index(-1)] = int(np.prod(source, dtype=object)) // others
    return tuple(copied) == out


def per_profile(model: ir.Model, profiles: Sequence[Mapping[str, tuple[int, ...]]], *, limit: int = DEFAULT_LIMIT) -> Profiles:
    """Evaluate the model's shape arithmetic under several sets of input shapes (gears). The model is not changed.

    Args:
        profiles: shapes by input name. An input that a profile does not name keeps its declared shape.
        limit: as of :func:`evaluate_symbolically`.

    Raises:
        ShapeError: a shape does not fit the input.
    """
    results = tuple(evaluate_symbolically(model, shapes=shapes, limit=limit) for shapes in profiles)
    return Profiles(model, tuple(profiles), results)
