"""A node as the transfer functions see it, and their table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product as cartesian

import numpy as np
import onnx_ir as ir

from ..shapes import known_shape
from .interval import LARGEST_EXTENT, SMALL, UNKNOWN, Cells, Interval, Known, cells_of, hull, whole

Dims = tuple[int | str | None, ...]


@dataclass(frozen=True)
class View:
    """A node with what is known of its inputs.

    Attributes:
        inputs: None where an optional input is left out.
        opset: of the standard domain.
        shapes: of tensors whose sizes the caller gave.
    """

    node: ir.Node
    inputs: tuple[Known | None, ...]
    opset: int
    shapes: Mapping[ir.Value, Dims]

    def hull(self, index: int) -> Interval:
        """One interval for all elements of an input; unknown where it is missing."""
        known = self.inputs[index] if index < len(self.inputs) else None
        return UNKNOWN if known is None else hull(known)

    def present(self, index: int) -> bool:
        return index < len(self.inputs) and self.inputs[index] is not None

    def dtype(self, index: int) -> ir.DataType | None:
        value = self.node.inputs[index] if index < len(self.node.inputs) else None
        return None if value is None else value.dtype

    def result_dtype(self, index: int = 0) -> ir.DataType | None:
        return self.node.outputs[index].dtype

    def whole(self, index: int = 0) -> Interval:
        """All that the type of an output holds."""
        return whole(self.result_dtype(index))

    def shape_of(self, value: ir.Value | None) -> Dims | None:
        return shape_in(self.shapes, value)

    def shape(self, index: int) -> Dims | None:
        return self.shape_of(self.node.inputs[index]) if index < len(self.node.inputs) else None

    def static_shape(self, index: int) -> tuple[int, ...] | None:
        return _static(self.shape(index))

    def result_shape(self, index: int = 0) -> tuple[int, ...] | None:
        return _static(self.shape_of(self.node.outputs[index]))

    def extent(self, index: int, axis: int) -> Interval:
        """The size of one axis of an input."""
        shape = self.shape(index)
        if shape is None or not -len(shape) <= axis < len(shape):
            return Interval(0, LARGEST_EXTENT)
        return extent_of(shape[axis])

    def size(self, index: int) -> Interval:
        """The number of elements of an input."""
        shape = self.shape(index)
        if shape is None:
            return Interval(0, 2**63 - 1)
        extents = [extent_of(dim) for dim in shape]
        return Interval(math.prod(int(item.lo) for item in extents), min(math.prod(int(item.hi) for item in extents), 2**63 - 1))

    def integer(self, name: str, default: int) -> int:
        attribute = self.node.attributes.get(name)
        return attribute.as_int() if attribute is not None and attribute.type == ir.AttributeType.INT else default

    def integers(self, name: str) -> tuple[int, ...] | None:
        attribute = self.node.attributes.get(name)
        return None if attribute is None or attribute.type != ir.AttributeType.INTS else tuple(attribute.as_ints())

    def constants(self, index: int) -> tuple[int, ...] | None:
        """The elements of a small integer input whose every element is certain, flat."""
        known = self.inputs[index] if index < len(self.inputs) else None
        if not isinstance(known, np.ndarray) or not all(cell.is_point for cell in known.flat):
            return None
        return tuple(int(cell.lo) for cell in known.flat)


def shape_in(shapes: Mapping[ir.Value, Dims], value: ir.Value | None) -> Dims | None:
    """The shape the caller gave of a tensor, else what the model says."""
    given = None if value is None else shapes.get(value)
    return known_shape(value) if given is None else given


def extent_of(dim: int | str | None) -> Interval:
    return Interval(dim, dim) if isinstance(dim, int) else Interval(0, LARGEST_EXTENT)


def _static(shape: Dims | None) -> tuple[int, ...] | None:
    return None if shape is None or not all(isinstance(dim, int) for dim in shape) else tuple(int(dim) for dim in shape if dim is not None)


Result = Known | None
"""None: anything that the output's type holds."""
Transfer = Callable[[View], Result | Sequence[Result]]
"""One result, or a list with one for each output."""

TRANSFER: dict[str, Transfer] = {}
"""By standard operator: what is known of the outputs, given what is known of the inputs. Bounds that leave the output's type count as
wrapped around; the functions need not care. An operator that is not here may give anything."""


def transfer(*op_types: str) -> Callable[[Transfer], Transfer]:
    """Enter a transfer function in the table."""

    def enter(function: Transfer) -> Transfer:
        TRANSFER.update(dict.fromkeys(op_types, function))
        return function

    return enter


def elementwise(view: View, combine: Callable[..., Interval], operands: Sequence[Known] | None = None) -> Known:
    """A broadcasting operator: element by element where the result is small and an operand is known so, else on the hulls."""
    given = [known for known in view.inputs if known is not None] if operands is None else list(operands)
    shape = view.result_shape()
    if shape is not None and math.prod(shape) <= SMALL and any(isinstance(known, np.ndarray) for known in given):
        arrays = [known if isinstance(known, np.ndarray) else cells_of([known], ()) for known in given]
        try:
            spread: list[Cells] = [np.broadcast_to(array, shape) for array in arrays]
        except ValueError:
            spread = []
        if spread:
            return cells_of((combine(*(array[place] for array in spread)) for place in cartesian(*map(range, shape))), shape)
    return combine(*(hull(known) for known in given))
