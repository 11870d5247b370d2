"""Tensors one of whose axes has as many places as a mask has ones, kept with all places of the mask."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
import onnx_ir as ir

from ...text import Text, say
from ..opset.lower.common import is_float, reduce
from ..opset.step import Array, Step
from ..shapes import known_shape, static_shape

DENSE_LIMIT = 1 << 22
"""Elements of the largest comparison of places with places; above it a form that needs one is refused."""
INT32 = np.int32


class Unmaskable(Exception):  # noqa: N818 - a refusal with its reason
    """A node that cannot work on all places in place of the chosen ones."""

    def __init__(self, reason: Text) -> None:
        self.reason = reason
        super().__init__(str(reason))


def refuse(reason: Text) -> NoReturn:
    raise Unmaskable(reason)


@dataclass(eq=False)
class Mask:
    """Which places of a dense axis are there.

    Attributes:
        value: booleans of shape [size].
        sources: names of the tensors whose data-dependent shape it comes from.
        counted: how many are there up to each place (int32, [size]), once somebody asked.
        derived: masks made from this one.
    """

    value: ir.Value
    size: int
    sources: set[str]
    counted: ir.Value | None = None
    order: ir.Value | None = None
    derived: dict[tuple[object, ...], Mask] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Packed:
    """A tensor of the model that has only the chosen places of an axis, kept with all of them.

    Attributes:
        dense: with ``mask.size`` places in ``axis``; what it holds at places that are not there means nothing.
        axis: None where every place is there (``points`` is given then).
        points: the elements are places in this mask; the model has in their stead their ranks among the places that are there.
    """

    dense: ir.Value
    axis: int | None
    mask: Mask | None
    points: Mask | None = None


@dataclass(frozen=True)
class Count:
    """How many places are there, times a factor, and no more than ``most``."""

    mask: Mask
    factor: int = 1
    most: int | None = None


@dataclass(frozen=True, eq=False)
class Sizes:
    """Integers known but for counts: shapes and what is made of them."""

    entries: tuple[int | Count, ...]
    scalar: bool = False
    dtype: ir.DataType = ir.DataType.INT64


@dataclass(frozen=True, eq=False)
class Selected:
    """Rows (batch, class, box) as NonMaxSuppression makes them; the third column holds places of a mask, which stand for ranks."""

    dense: ir.Value
    mask: Mask


@dataclass(frozen=True, eq=False)
class Emptiness:
    """A boolean scalar that says that no place is there, or that some are."""

    mask: Mask
    true_when_empty: bool


Held = Packed | Sizes | Selected | Emptiness
Result = Held | ir.Value | None
Handler = Callable[["Look"], "list[Result]"]
HANDLERS: dict[str, Handler] = {}


def masks(*operators: str) -> Callable[[Handler], Handler]:
    """Register what becomes of operators some of whose operands are :data:`Held`."""

    def register(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(operators, handler))
        return handler

    return register


class Look:
    """One node with what is known of its operands. New nodes are made with ``step``."""

    def __init__(self, step: Step, held: dict[ir.Value, Held], known: dict[object, Mask], lenient: bool = False) -> None:
        """``known``: masks by the tensor that says what is there. ``lenient``: the user accepts that NaN is not a value of its own."""
        self.step, self.held, self.node, self.known, self.lenient = step, held, step.node, known, lenient

    # Operands

    def rep(self, index: int) -> Held | None:
        value = self.step.input(index)
        return None if value is None else self.held.get(value)

    def packed(self, index: int) -> Packed | None:
        """The operand if an axis of it is masked or its elements point into one."""
        found = self.rep(index)
        return found if isinstance(found, Packed) else None

    def sizes(self, index: int) -> Sizes | None:
        """The operand as integers that are known but for counts."""
        found = self.rep(index)
        if isinstance(found, Sizes):
            return found
        known = None if found is not None else self.step.value_of(self.step.input(index))
        if known is None or known.ndim > 1 or known.dtype.kind not in "iu":
            return None
        return Sizes(tuple(int(item) for item in known.reshape(-1)), known.ndim == 0, ir.DataType.from_numpy(known.dtype))

    def plain(self, index: int) -> ir.Value:
        """The operand as an ordinary tensor of the model.

        Raises:
            Unmaskable: it has a masked axis.
        """
        value = self.step.needed(index)
        found = self.held.get(value)
        if found is None:
            return value
        if isinstance(found, (Sizes, Emptiness)):
            return self.of(found)
        if isinstance(found, Selected) or found.axis is not None:
            refuse(say("input {index} has a data-dependent shape", "输入 {index} 的形状依赖数据", index=index))
        return self.values(found)

    def of(self, item: Sizes | Emptiness) -> ir.Value:
        """What is known of counts as a tensor."""
        if isinstance(item, Sizes):
            return self.realised(item)
        nothing = self.step.op("Equal", self.total(item.mask, 0), self.int32(0, "zero"))
        return nothing if item.true_when_empty else self.step.op("Not", nothing)

    def values(self, item: Packed) -> ir.Value:
        """The dense tensor with ranks in place of places pointed at."""
        if item.points is None:
            return item.dense
        ranks = self.step.op("Sub", self.counted(item.points), self.int32(1, "one"))
        found = self.step.op("Gather", ranks, item.dense, axis=0)
        return self.step.cast(found, item.dense.dtype or ir.DataType.INT64)

    def axis(self, rank: int, name: str = "axis") -> int:
        axis = int(self.step.given(name))
        if not -rank <= axis < rank:
            refuse(say("axis {axis} of a tensor of rank {rank}", "秩为 {rank} 的张量没有第 {axis} 维", axis=axis, rank=rank))
        return axis % rank

    def constant(self, index: int) -> Array | None:
        value = self.step.input(index)
        return None if value is None or value in self.held else self.step.value_of(value)

    # Masks

    def mask(self, key: ir.Value, size: int, make: Callable[[], ir.Value]) -> Mask:
        """The mask that a tensor of the model says: one for all operators that choose by it."""
        found = self.known.get((key, size))
        if found is None:
            found = self.known[key, size] = Mask(self.step.place(make()), size, set())
        found.sources.add(self.node.outputs[0].name or "")
        return found

    def int32(self, value: object, name: str = "places") -> ir.Value:
        return self.step.const(value, INT32, name)

    def counted(self, mask: Mask) -> ir.Value:
        """How many places are there up to each one, it included."""
        if mask.counted is None:
            ones = self.step.cast(mask.value, ir.DataType.INT32)
            mask.counted = self.step.place(self.step.op("CumSum", ones, self.step.const(0, np.int64, "axis")))
        return mask.counted

    def total(self, mask: Mask, keepdims: int = 1) -> ir.Value:
        """How many places are there (int32, [1] or a scalar)."""
        return reduce(self.step, "ReduceMax", self.counted(mask), [0], keepdims)

    def order(self, mask: Mask) -> ir.Value:
        """Where the places that are there stand (int32, [size]); after them anything in range.

        Raises:
            Unmaskable: the comparison of all places with all would be too large.
        """
        if mask.order is None:
            if mask.size**2 > DENSE_LIMIT:
                refuse(
                    say(
                        "moving {size} places together needs a matrix of {count} elements; {limit} are allowed",
                        "把 {size} 个位置收拢到一起需要 {count} 个元素的矩阵，上限为 {limit}",
                        size=mask.size,
                        count=mask.size**2,
                        limit=DENSE_LIMIT,
                    )
                )
            wanted = self.int32(np.arange(1, mask.size + 1).reshape(-1, 1), "ranks")
            reached = self.step.op("Equal", self.counted(mask), wanted)
            place = self.step.op("Where", reached, self.int32(np.arange(mask.size)), self.int32(mask.size - 1, "last"))
            mask.order = self.step.place(reduce(self.step, "ReduceMin", place, [1], keepdims=0))
        return mask.order

    def compact(self, item: Packed) -> ir.Value:
        """The dense tensor with the places that are there moved to the front, in their order."""
        assert item.mask is not None
        return self.step.op("Gather", self.values(item), self.order(item.mask), axis=item.axis)

    def capped(self, mask: Mask, size: int) -> Mask:
        """The first ``size`` places of the mask's own ones moved to the front."""
        key = ("capped", size)
        if key not in mask.derived:
            there = self.step.op("Less", self.int32(np.arange(size)), self.total(mask))
            mask.derived[key] = Mask(self.step.place(there), size, set(mask.sources))
        return mask.derived[key]

    def derive(self, key: tuple[object, ...], mask: Mask, make: Callable[[], ir.Value], size: int, others: Iterable[Mask] = ()) -> Mask:
        """A mask made from another, once."""
        if key not in mask.derived:
            sources = set(mask.sources).union(*(other.sources for other in others))
            mask.derived[key] = Mask(self.step.place(make()), size, sources)
        return mask.derived[key]

    def realised(self, item: Sizes) -> ir.Value:
        """Sizes as a tensor."""
        parts = []
        for entry in item.entries:
            if isinstance(entry, int):
                parts.append(self.step.const([entry], np.int64, "size"))
                continue
            count = self.total(entry.mask)
            if entry.factor != 1:
                count = self.step.op("Mul", count, self.int32([entry.factor], "factor"))
            if entry.most is not None:
                count = self.least(count, self.int32([entry.most], "most"))
            parts.append(self.step.cast(count, ir.DataType.INT64))
        whole = parts[0] if len(parts) == 1 else self.step.op("Concat", *parts, axis=0)
        if item.scalar:
            whole = self.step.op("Reshape", whole, self.step.const([], np.int64, "scalar"))
        return self.step.cast(whole, item.dtype)

    def least(self, one: ir.Value, other: ir.Value) -> ir.Value:
        return self.step.op("Where", self.step.op("Less", one, other), one, other)

    def along(self, mask: Mask, axis: int, rank: int) -> ir.Value:
        """The mask in a shape that broadcasts with a tensor of ``rank`` along ``axis``."""
        if axis == rank - 1:
            return mask.value
        return self.step.op("Reshape", mask.value, self.step.ints([mask.size, *[1] * (rank - 1 - axis)], "shape"))

    def filled(self, item: Packed, number: object) -> ir.Value:
        """The dense tensor with a number in the places that are not there."""
        assert item.mask is not None
        assert item.axis is not None
        data = self.values(item)
        dtype = data.dtype or ir.DataType.FLOAT
        return self.step.op(
            "Where", self.along(item.mask, item.axis, rank_of(data)), data, self.step.const(number, dtype.numpy(), "nothing")
        )


def rank_of(value: ir.Value) -> int:
    """The rank of a tensor.

    Raises:
        Unmaskable: it is not known.
    """
    shape = known_shape(value)
    if shape is None:
        refuse(say("the rank of `{name}` is not known", "`{name}` 的秩未知", name=value.name))
    return len(shape)


def shape_of(value: ir.Value) -> list[int]:
    """The sizes of a tensor.

    Raises:
        Unmaskable: they are not fixed.
    """
    shape = static_shape(value)
    if shape is None:
        refuse(say("the shape of `{name}` is not static", "`{name}` 的形状不是静态的", name=value.name))
    return list(shape)


def dim_of(value: ir.Value, axis: int) -> int | None:
    shape = known_shape(value)
    size = None if shape is None or not -len(shape) <= axis < len(shape) else shape[axis]
    return size if isinstance(size, int) else None


def lowest(dtype: ir.DataType) -> object:
    """What is below everything else of a dtype."""
    return -np.inf if is_float(dtype) else False if dtype == ir.DataType.BOOL else int(np.iinfo(dtype.numpy()).min)


def highest(dtype: ir.DataType) -> object:
    return np.inf if is_float(dtype) else True if dtype == ir.DataType.BOOL else int(np.iinfo(dtype.numpy()).max)
