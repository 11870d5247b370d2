"""What a fixed batch leaves in single nodes, and how each is freed of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from ...text import Text, say
from ..edit import Builder
from ..shapes import constant_of, known_shape

Array = npt.NDArray[np.generic]
Shape = tuple[int | str | None, ...]
Shapes = Mapping[str, Shape | None]
Fix = Callable[[ir.Model, ir.Node, "int | str"], None]
"""Changes a node of a model for a batch size."""

_RULE = "change_batch"
_END = np.iinfo(np.int64).max
_ELEMENTWISE = frozenset(
    [
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Pow",
        "Max",
        "Min",
        "Mod",
        "And",
        "Or",
        "Xor",
        "Equal",
        "Less",
        "Greater",
        "LessOrEqual",
        "GreaterOrEqual",
        "Where",
        "PRelu",
        "Sum",
        "Mean",
        "BitShift",
    ]
)
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})


class NotChangeable(Exception):  # noqa: N818 - a refusal, turned into a UsageError with the place
    def __init__(self, reason: Text) -> None:
        self.reason = reason
        super().__init__(str(reason))


def find_fix(node: ir.Node, shapes: Shapes, old: int, probe: int, source: str, *, sequence_first: bool) -> Fix | None:
    """What must change in a node, given the shapes of the original and, in its model, those at the size ``probe``.

    Args:
        source: an input of the model whose first dimension is the batch.
        sequence_first: where both readings are possible, a dimension that holds more than the batch holds it as the inner part.

    Raises:
        NotChangeable: it cannot.
    """
    if node.domain not in ("", "ai.onnx"):
        return None
    if node.op_type == "Reshape":
        return _reshape(node, shapes, old, probe, sequence_first)
    if node.op_type == "Expand":
        return _expand(node, shapes, old, probe)
    if node.op_type == "Slice":
        return _slice(node, shapes, old, probe)
    if node.op_type == "Concat":
        return _repeated(node, shapes, old, probe, source, {})
    if node.op_type in _RECURRENT:
        axis = 1 if node.attributes.get_int("layout", 0) == 0 else 0
        return _repeated(node, shapes, old, probe, source, {4: 0, 5: axis, 6: axis})
    if node.op_type in _ELEMENTWISE and old > 1:
        return _combined(node, shapes, old, probe)
    return None


def _batch_axis(value: ir.Value | None, shapes: Shapes, old: int, probe: int) -> int | None:
    """The dimension of a tensor that holds the batch (or a multiple of it); None if none does, or more than one."""
    if value is None:
        return None
    before, now = shapes.get(value.name or ""), known_shape(value)
    if before is None or now is None or len(before) != len(now):
        return None
    axes = [axis for axis, (one, two) in enumerate(zip(before, now, strict=True)) if one != two and isinstance(two, int)]
    axes = [axis for axis in axes if isinstance(before[axis], int) and before[axis] * probe == now[axis] * old]  # type: ignore[operator]
    return axes[0] if len(axes) == 1 else None


def _size_of(shape: Shape) -> tuple[int, tuple[str, ...]] | None:
    """The number of elements: a number times symbols."""
    if any(dim is None for dim in shape):
        return None
    return prod(dim for dim in shape if isinstance(dim, int)), tuple(sorted(dim for dim in shape if isinstance(dim, str)))


def _reshape(node: ir.Node, shapes: Shapes, old: int, probe: int, sequence_first: bool) -> Fix | None:
    data, out = node.inputs[0], node.outputs[0]
    target, axis = constant_of(node.inputs[1]), _batch_axis(data, shapes, old, probe)
    if target is None or axis is None or data is None:
        return None
    before, after = shapes.get(data.name or "") or (), shapes.get(out.name or "")
    if after is None:
        return None
    place = _place_of_batch(before, after, axis, old, sequence_first)
    if place is None:
        raise NotChangeable(say("its target shape mixes the batch with other dimensions", "其目标形状将 batch 与其他维度混合"))
    keeps_zero = node.attributes.get_int("allowzero", 0) == 1
    new = [int(dim) for dim in target.reshape(-1).tolist()]
    if new[place] == -1 or (new[place] == 0 and not keeps_zero and place == axis):
        return None  # it follows the batch already
    for index, dim in enumerate(new):
        known = after[index]
        if index == place or (dim == 0 and not keeps_zero and index != axis):
            continue
        if dim <= 0 and not isinstance(known, int):
            raise NotChangeable(say("its target shape leaves open what is not the batch", "其目标形状中未定的维度不是 batch"))
        new[index] = known if isinstance(known, int) else dim
    copies = not keeps_zero and place == axis and before[axis] == after[place]
    new[place] = 0 if copies else -1
    return lambda model, twin, _size: _set_constant(model, twin, 1, np.array(new, np.int64))


def _place_of_batch(before: Shape, after: Shape, axis: int, old: int, sequence_first: bool) -> int | None:
    """The dimension of a reshaped tensor in which the batch goes on: it stays where it is in memory, behind as many outer elements."""
    outer, held = _size_of(before[:axis]), before[axis]
    if outer is None or not isinstance(held, int):
        return None
    more = held // old
    slots = [index for index in range(1, len(after)) if after[index] == old and _size_of(after[:index]) == (outer[0] * more, outer[1])]
    if sequence_first and more > 1 and slots:
        return slots[0]
    places = [index for index, dim in enumerate(after) if isinstance(dim, int) and dim % old == 0 and _size_of(after[:index]) == outer]
    if axis in places and after[axis] == held:
        return axis
    if not places:
        return slots[0] if slots else None
    exact = [index for index in places if after[index] == old]
    place = exact[0] if exact else places[0]
    if place == len(after) - 1 and place > 0 and after[place] != old and isinstance(after[place - 1], int):
        return place - 1  # samples are put behind each other in the dimension before, not into the last one: those are features
    return place


def _expand(node: ir.Node, shapes: Shapes, old: int, probe: int) -> Fix | None:
    target, axis = constant_of(node.inputs[1]), _batch_axis(node.inputs[0], shapes, old, probe)
    rank = len(known_shape(node.inputs[0]) or ())
    if target is None or axis is None:
        return None
    place = axis + target.size - rank
    if place < 0 or int(target.reshape(-1)[place]) == 1:
        return None
    new = target.reshape(-1).astype(np.int64)
    new[place] = 1  # 1 leaves the dimension of the data as it is
    return lambda model, twin, _size: _set_constant(model, twin, 1, new)


def _slice(node: ir.Node, shapes: Shapes, old: int, probe: int) -> Fix | None:
    axis = _batch_axis(node.inputs[0], shapes, old, probe)
    before = shapes.get((node.inputs[0].name if node.inputs[0] is not None else "") or "")
    if axis is None or before is None:
        return None
    named = [constant_of(node.inputs[index]) if len(node.inputs) > index else None for index in (1, 2, 3, 4)]
    if len(node.inputs) == 1:  # opset 1
        named = [np.array(node.attributes[key].as_ints()) if key in node.attributes else None for key in ("starts", "ends", "axes")] + [
            None
        ]
    starts, ends, axes, steps = named
    if starts is None or ends is None:
        return None
    list_of_axes = [int(item) % len(before) for item in (range(starts.size) if axes is None else axes.reshape(-1).tolist())]
    if axis not in list_of_axes:
        return None
    at = list_of_axes.index(axis)
    start, end, step = (int(item.reshape(-1)[at]) if item is not None else 1 for item in (starts, ends, steps))
    size = before[axis]
    if start != 0 or step != 1 or not isinstance(size, int) or end < size:
        raise NotChangeable(say("it takes some samples of the batch", "它只取 batch 中的部分样本"))
    if end > np.iinfo(np.int32).max - 1:
        return None
    new = ends.reshape(-1).astype(np.int64)
    new[at] = _END
    if len(node.inputs) == 1:
        return lambda _model, twin, _size: twin.attributes.__setitem__("ends", ir.AttrInt64s("ends", new.tolist()))
    return lambda model, twin, _size: _set_constant(model, twin, 2, new)


def _repeated(node: ir.Node, shapes: Shapes, old: int, probe: int, source: str, states: dict[int, int]) -> Fix | None:
    """Operands without the batch that are joined to one with it, and initial states: repeated for every sample."""
    axes = {index: _batch_axis(value, shapes, old, probe) for index, value in enumerate(node.inputs)}
    with_batch = {axis for index, axis in axes.items() if axis is not None and index not in states}
    if not with_batch:
        return None
    if states:
        wanted = states
    else:
        axis = with_batch.pop()
        rank = len(known_shape(node.inputs[0]) or ())
        if with_batch or node.attributes["axis"].as_int() % max(rank, 1) == axis:
            raise NotChangeable(say("it joins tensors along the batch", "它沿 batch 维拼接张量"))
        wanted = dict.fromkeys(axes, axis)
    chosen = {index: axis for index, axis in wanted.items() if axes.get(index) is None and _lacks_batch(node, index, axis, shapes, old)}
    if not chosen:
        return None
    for index, axis in chosen.items():
        _must_be_alike(node.inputs[index], axis, old)

    def fix(model: ir.Model, twin: ir.Node, size: int | str) -> None:
        for index, axis in chosen.items():
            twin.replace_input_with(index, _for_every_sample(model, twin, index, axis, size, source))

    return fix


def _lacks_batch(node: ir.Node, index: int, axis: int, shapes: Shapes, old: int) -> bool:
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None:
        return False
    shape = shapes.get(value.name or "") or known_shape(value)
    return shape is not None and axis < len(shape) and shape[axis] == old


def _must_be_alike(value: ir.Value | None, axis: int, old: int) -> None:
    constant = constant_of(value)
    if old > 1 and (constant is None or not _is_alike(constant, axis)):
        raise NotChangeable(
            say("`{name}` is not the same for every sample", "`{name}` 对各样本并不相同", name="" if value is None else value.name)
        )


def _is_alike(array: Array, axis: int) -> bool:
    return bool((array == array.take([0], axis)).all())


def _for_every_sample(model: ir.Model, node: ir.Node, index: int, axis: int, size: int | str, source: str) -> ir.Value:
    builder = Builder(model, node, _RULE)
    value, constant = node.inputs[index], constant_of(node.inputs[index])
    if constant is not None:
        one = constant.take([0], axis)
        if isinstance(size, int):
            return builder.const(np.repeat(one, size, axis), name="for_every_sample")
        value = builder.const(one, name="of_one_sample")
    rank = len(known_shape(value) or ()) or axis + 1
    ones = [1] * rank
    if isinstance(size, int):
        return builder.op("Expand", value, builder.const([*ones[:axis], size, *ones[axis + 1 :]], np.int64))
    shape = builder.op("Shape", next(item for item in model.graph.inputs if item.name == source))
    batch = builder.op("Gather", shape, builder.const([0], np.int64), axis=0)
    parts = [builder.const(part, np.int64) for part in (ones[:axis], ones[axis + 1 :]) if part]
    parts.insert(1 if axis else 0, batch)
    return builder.op("Expand", value, builder.op("Concat", *parts, axis=0) if len(parts) > 1 else batch)


def _combined(node: ir.Node, shapes: Shapes, old: int, probe: int) -> Fix | None:
    """An operand that holds the same values for every sample of a fixed batch: one of them is enough, it is broadcast."""
    ranks = [len(known_shape(value) or ()) for value in node.inputs]
    axes = [_batch_axis(value, shapes, old, probe) for value in node.inputs]
    places = {axis - rank for axis, rank in zip(axes, ranks, strict=True) if axis is not None}
    if len(places) != 1:
        return None
    place = places.pop()
    chosen = {
        index: rank + place
        for index, (axis, rank) in enumerate(zip(axes, ranks, strict=True))
        if axis is None and rank + place >= 0 and _lacks_batch(node, index, rank + place, shapes, old)
    }
    if not chosen:
        return None
    for index, axis in chosen.items():
        _must_be_alike(node.inputs[index], axis, old)

    def fix(model: ir.Model, twin: ir.Node, _size: int | str) -> None:
        for index, axis in chosen.items():
            constant = constant_of(twin.inputs[index])
            if constant is not None:
                twin.replace_input_with(index, Builder(model, twin, _RULE).const(constant.take([0], axis), name="of_one_sample"))

    return fix


def _set_constant(model: ir.Model, node: ir.Node, index: int, array: Array) -> None:
    node.replace_input_with(index, Builder(model, node, _RULE).const(array, name="shape"))
