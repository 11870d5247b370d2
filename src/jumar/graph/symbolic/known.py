"""What is known of one tensor, and the walk that collects it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from .expr import Element, Expr, Unknowable, product, symbol

Array = npt.NDArray[Any]
Shape = tuple[Element, ...]

MAX_ELEMENTS = 256
"""Tensors with more elements are not kept element by element (constants are, up to the limit in bytes)."""


class Known:
    """What is known of a tensor.

    Attributes:
        shape: its dimensions, or None when not even the rank is known.
        data: its elements. An array of the tensor's own dtype when all are known numbers; an array of objects
            (``int``, ``bool``, :class:`Expr`, or None for "not known") when some are expressions; None when nothing is known.
        dtype: the dtype of ``data``.
    """

    __slots__ = ("data", "dtype", "shape")

    def __init__(self, shape: Shape | None, data: Array | None = None, dtype: np.dtype[Any] | None = None) -> None:
        self.shape, self.data, self.dtype = shape, data, dtype

    def __repr__(self) -> str:
        return f"Known(shape={self.shape}, data={self.data}, dtype={self.dtype})"

    @property
    def constant(self) -> Array | None:
        """The elements when every one is a number."""
        return None if self.data is None or self.data.dtype == object else self.data

    @property
    def elements(self) -> tuple[Element | None, ...] | None:
        """The elements in order, as ints, expressions and None; None when nothing is known (or they are no integers)."""
        if self.data is None or self.data.size > MAX_ELEMENTS or (self.dtype is not None and self.dtype.kind not in "iub"):
            return None
        return tuple(self.data.ravel().tolist())


UNKNOWN = Known(None)


def constant(array: Array) -> Known:
    return Known(array.shape, array, array.dtype)


def of_elements(elements: Any, dtype: Any) -> Known:
    """A tensor from an array (or list) of elements; one of plain numbers becomes a constant of that dtype."""
    array = np.asarray(elements, dtype=object)
    kind = np.dtype(dtype)
    if array.size > MAX_ELEMENTS:
        return Known(array.shape)
    flat = array.ravel().tolist()
    if kind.kind != "b":
        limits = np.iinfo(kind)
        # Expressions are exact integers; where the runtime would wrap around, nothing is claimed.
        flat = [None if isinstance(item, int) and not limits.min <= item <= limits.max else item for item in flat]
    if all(isinstance(item, int) for item in flat):
        return constant(np.array(flat, dtype=kind).reshape(array.shape))
    if all(item is None for item in flat):
        return Known(array.shape)
    data = np.empty(len(flat), dtype=object)
    data[:] = flat
    return Known(array.shape, data.reshape(array.shape), kind)


class Walk:
    """One pass over a graph: what is known so far, and what the rules need to know it.

    Attributes:
        known: by value.
        opset: of the standard operators.
        overridable: whether a weight that is listed among the inputs may be overridden (in IR versions below 4 it may not).
        limit: bytes a computed constant may have beyond those it is made from.
        decided: for each If whose condition is known, the branch that runs.
    """

    def __init__(self, opset: int, limit: int, positive: bool, taken: set[str], inferred: bool, overridable: bool = True) -> None:
        self.known: dict[ir.Value, Known] = {}
        self.overridable = overridable
        self.opset, self.limit, self.inferred = opset, limit, inferred
        self.low = 1 if positive else 0
        self.decided: dict[ir.Node, str] = {}
        self._taken = taken

    def get(self, value: ir.Value | None) -> Known:
        """What is known of a value. Weights are looked at on first use."""
        if value is None:
            return UNKNOWN
        found = self.known.get(value)
        if found is None:
            found = self.known[value] = self._weight(value)
        return found

    def data(self, value: ir.Value | None) -> Array | None:
        """The elements as far as they are known (see :class:`Known`). Of a weight, its numbers."""
        known = self.get(value)
        if known.data is None and value is not None and value.const_value is not None and not self.may_change(value):
            array = _array(value.const_value)
            if array is not None:
                known.data, known.dtype = array, array.dtype
        return known.data

    def may_change(self, value: ir.Value) -> bool:
        """Whether the caller may feed this value."""
        return value.is_graph_input() and (self.overridable or value.const_value is None)

    def _weight(self, value: ir.Value) -> Known:
        tensor = value.const_value
        if tensor is None or self.may_change(value):
            return Known(None)
        return Known(tuple(int(dim) for dim in tensor.shape.numpy()))

    def numbers(self, value: ir.Value | None) -> Array | None:
        """The elements when all are numbers."""
        data = self.data(value)
        return None if data is None or data.dtype == object else data

    def integers(self, value: ir.Value | None) -> list[int] | None:
        """The elements of a small integer tensor when all are numbers."""
        data = self.numbers(value)
        return None if data is None or data.dtype.kind not in "iu" or data.size > MAX_ELEMENTS else [int(item) for item in data.ravel()]

    def fresh(self, value: ir.Value, axis: int, low: int = 0) -> Expr:
        """A symbol of its own for a dimension of which nothing is known."""
        return symbol(self.new_name(f"{value.name}[{axis}]"), low)

    def new_name(self, stem: str) -> str:
        name, number = stem, 1
        while name in self._taken:
            number += 1
            name = f"{stem}#{number}"
        self._taken.add(name)
        return name

    def unknown(self, value: ir.Value, rank: int) -> Known:
        """A tensor of which the rank alone is known."""
        return Known(tuple(self.fresh(value, axis) for axis in range(rank)))

    def fits(self, count: int, dtype: np.dtype[Any], *sources: Array) -> bool:
        """Whether a constant of this many elements may be made from these."""
        return count * dtype.itemsize <= self.limit + sum(source.nbytes for source in sources)


Rule = Callable[[Walk, ir.Node], "Known | list[Known]"]
RULES: dict[str, Rule] = {}


def rule(*operators: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule of these operators (``domain:operator`` outside of the standard domain)."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(operators, function))
        return function

    return register


def attribute(node: ir.Node, name: str, default: Any = None) -> Any:
    """The value of an attribute (numbers, tuples, text), or the default where it is not set."""
    found = node.attributes.get(name)
    if found is None:
        return default
    if found.is_ref():
        raise Unknowable("the attribute belongs to the function's caller")
    return found.value


def first_input(node: ir.Node, index: int = 0) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def element_count(shape: Shape) -> Element:
    return product(shape)


def rank_of(known: Known) -> int:
    if known.shape is None:
        raise Unknowable("the rank is not known")
    return len(known.shape)


def shape_of(known: Known) -> Shape:
    if known.shape is None:
        raise Unknowable("the rank is not known")
    return known.shape


def proper_axis(axis: int, rank: int) -> int:
    """A negative axis counts from the end.

    Raises:
        Unknowable: there is no such axis.
    """
    if not -rank <= axis < rank:
        raise Unknowable("there is no such axis")
    return axis % rank if rank else 0


def axes_of(walk: Walk, node: ir.Node, position: int = 1) -> list[int] | None:
    """The axes of Squeeze and its like: an attribute in old versions, an input in new ones. None when they are left out.

    Raises:
        Unknowable: they are computed and not known.
    """
    given = attribute(node, "axes")
    if given is not None:
        return [int(axis) for axis in given]
    value = first_input(node, position)
    if value is None:
        return None
    found = walk.integers(value)
    if found is None:
        raise Unknowable("the axes are not known")
    return found


def _array(tensor: ir.TensorProtocol) -> Array | None:
    if tensor.dtype in (ir.DataType.STRING, ir.DataType.UNDEFINED):
        return None
    return tensor.numpy()
