"""An If that asks whether a tensor is empty, and returns an empty constant if it is: what is done otherwise does the same with nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from ..errors import EvaluationError
from .edit import Builder, copy_model, extract_model
from .evaluate import Evaluator
from .shapes import Array, constant_of, known_shape
from .simplify import Journal
from .simplify.base import Edit, given, integer, integers, producer, rank, read_values
from .simplify.control import made_by
from .simplify.inline import inline_body, replace_outputs
from .walk import bodies

RULE = "GR513"
_STANDARD = ("", "ai.onnx")
_DEPTH = 40
_COUNTS = (ir.DataType.INT32, ir.DataType.INT64, ir.DataType.FLOAT, ir.DataType.DOUBLE)
_BY_ELEMENT = frozenset(
    """Abs Add And Cast Ceil Clip Div Equal Exp Floor Greater GreaterOrEqual Identity Less LessOrEqual Log Max Min Mod Mul Neg Not Or Pow
    Relu Round Sigmoid Sign Sqrt Sub Tanh Where Xor""".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Guard:
    """An If of this kind.

    Attributes:
        branch: the name of the attribute with the branch for a tensor that is not empty.
        empty: what the other branch returns.
        reads: the tensors that the branch reads and that are computed; each has no element when the one asked about has none.
    """

    node: ir.Node
    branch: str
    empty: tuple[Array, ...]
    reads: tuple[ir.Value, ...]


def empty_guards(model: ir.Model) -> list[Guard]:
    """The Ifs of the main graph that ask whether a tensor is empty."""
    found = []
    for node in model.graph:
        if node.op_type == "If" and node.domain in _STANDARD:
            guard = _guard(node)
            if guard is not None:
                found.append(guard)
    return found


def take_full_branch(model: ir.Model, place: int, evaluator: Evaluator) -> bool:
    """Let the If that is the guard number ``place`` do what it does with tensors that are not empty, in place.

    That the same comes out for empty ones is shown by running it: with nothing in any of the tensors it reads, there is only one result. The
    largest of all elements, which an empty tensor does not have, is taken of one more element: the least number there is.

    Returns:
        Whether that could be shown; otherwise nothing is changed.
    """
    for guarded in (False, True):
        trial = copy_model(model)
        if _holds(trial, empty_guards(trial)[place], guarded, evaluator):
            _inline(model, empty_guards(model)[place], guarded)
            return True
    return False


def _guard(node: ir.Node) -> Guard | None:
    asked, when_empty = _asked(given(node, 0))
    if asked is None:
        return None
    branch = "else_branch" if when_empty else "then_branch"
    other = node.attributes["then_branch" if when_empty else "else_branch"].as_graph()
    empty = [constant_of(made_by(value)) for value in other.outputs]
    if any(array is None or array.size for array in empty):
        return None
    body = node.attributes[branch].as_graph()
    reads = {value: None for inner in body for value in read_values(inner) if _is_outside(value, body)}
    reads.update({value: None for value in body.outputs if _is_outside(value, body)})
    computed = tuple(value for value in reads if constant_of(value) is None)
    if not computed or not all(_goes_with(value, asked) for value in computed):
        return None
    return Guard(node, branch, tuple(array for array in empty if array is not None), computed)


def _asked(condition: ir.Value | None) -> tuple[ir.Value | None, bool]:
    """The tensor whose emptiness a condition tells, and whether it is true for an empty one."""
    when_empty = True
    while (node := producer(condition, "Cast", "Identity", "Not")) is not None:
        when_empty ^= node.op_type == "Not"
        condition = given(node, 0)
    node = producer(condition, "Equal", "Greater")
    if node is None:
        return None, False
    number, zero = given(node, 0), constant_of(given(node, 1))
    if zero is None and node.op_type == "Equal":
        number, zero = given(node, 1), constant_of(given(node, 0))
    if zero is None or zero.size != 1 or zero.reshape(-1)[0] != 0:
        return None, False
    return _measured(number), when_empty ^ (node.op_type == "Greater")


def _measured(number: ir.Value | None) -> ir.Value | None:
    """The tensor of whose rows or elements this is the number, if all its other dimensions are there."""
    while (node := producer(number, "Cast", "Identity", "Squeeze", "Unsqueeze", "Reshape")) is not None:
        if node.op_type == "Cast" and node.outputs[0].dtype not in _COUNTS:  # 256 in 8 bits is 0
            return None
        number = given(node, 0)
    node = producer(number, "ReduceProd", "Size", "Gather")
    if node is None:
        return None
    if node.op_type == "Size":
        value = given(node, 0)
    else:
        shape = producer(given(node, 0), "Shape")
        value = None if shape is None or shape.attributes else given(shape, 0)
        place = constant_of(given(node, 1))
        if node.op_type == "Gather" and (place is None or place.size != 1 or place.reshape(-1)[0] != 0):
            return None
        if node.op_type == "ReduceProd" and (place is not None or "axes" in node.attributes or given(node, 1) is not None):
            return None
    return value if _rest(value) is not None else None


def _rest(value: ir.Value | None) -> tuple[int, ...] | None:
    """The dimensions after the first, if they are known and none is 0."""
    shape = known_shape(value)
    if not shape or not all(isinstance(dim, int) and dim for dim in shape[1:]):
        return None
    return tuple(dim for dim in shape[1:] if isinstance(dim, int))


def _goes_with(value: ir.Value, asked: ir.Value) -> bool:
    """Whether a tensor has no element when the one asked about has none."""
    seen: dict[ir.Value, object] = {}
    return _rest(value) is not None and value.dtype is not None and _rows(value, seen) == _rows(asked, seen)


def _rows(value: ir.Value, seen: dict[ir.Value, object], depth: int = 0) -> object:
    """What decides the size of the first dimension: equal for two tensors that have as many rows."""
    if value not in seen:
        seen[value] = _decided_by(value, seen, depth)
    return seen[value]


def _decided_by(value: ir.Value, seen: dict[ir.Value, object], depth: int) -> object:
    node = value.producer()
    if node is None or node.domain not in _STANDARD or depth > _DEPTH:
        return id(value)
    if node.op_type in _BY_ELEMENT:
        several = {_rows(item, seen, depth + 1) for item in _sized(node, value)}
        return several.pop() if len(several) == 1 else id(value)
    source = _source_of_rows(node, value)
    if source is not None:
        return _rows(source, seen, depth + 1)
    if node.op_type == "Concat" and _axis(node, rank(value)) == 0:
        return "sum", tuple(_rows(item, seen, depth + 1) for item in node.inputs if item is not None)
    if node.op_type == "TopK" and rank(given(node, 0)) == 1:
        return "count", id(given(node, 1))
    return id(value)


def _sized(node: ir.Node, value: ir.Value) -> list[ir.Value]:
    """The operands that decide the rows of an elementwise result; none where that is not known. One element, or fewer dimensions, does not."""
    operands, size = [item for item in node.inputs if item is not None], rank(value)
    if size is None or any(rank(item) is None for item in operands):
        return []
    return [item for item in operands if rank(item) == size and not _is_one(item)]


def _source_of_rows(node: ir.Node, value: ir.Value) -> ir.Value | None:
    """A tensor that has as many rows as what the node makes of it; None where the node itself decides."""
    first, second, size = given(node, 0), given(node, 1), rank(value)
    if size is None:
        return None
    if node.op_type == "Gather":
        axis = _axis(node, rank(first))
        return first if axis else (second if axis == 0 and rank(second) == 1 else None)
    if node.op_type == "GatherND":
        return second if (rank(second) or 0) > 1 and not integer(node, "batch_dims", 0) else None
    if node.op_type == "ConstantOfShape":
        return _whole_shape(first)
    if node.op_type == "Expand":
        # A tensor of one row or of fewer dimensions takes the rows of the shape.
        return _whole_shape(second) if first is not None and rank(first) is not None and (rank(first) != size or _is_one(first)) else None
    if node.op_type == "Concat":
        return first if _axis(node, size) else None
    if node.op_type == "Slice":
        axes = integers(node, "axes", 3)
        return first if axes is not None and all(axis % size for axis in axes) else None
    if node.op_type == "Flatten" and integer(node, "axis", 1) in (1, 1 - (rank(first) or 0)):
        return first
    if node.op_type in ("Reshape", "Squeeze", "Unsqueeze"):
        before, after = _rest(first), _rest(value)
        return first if before is not None and after is not None and math.prod(before) == math.prod(after) else None
    return None


def _whole_shape(value: ir.Value | None) -> ir.Value | None:
    """The tensor whose whole shape a value is."""
    node = producer(value, "Shape")
    return None if node is None or node.attributes else given(node, 0)


def _axis(node: ir.Node, size: int | None) -> int | None:
    """The node's axis counted from the front; None where the rank that takes is not known."""
    return None if not size else integer(node, "axis", 0) % size


def _is_one(value: ir.Value) -> bool:
    shape = known_shape(value)
    return shape is not None and (not shape or shape[0] == 1)


def _is_outside(value: ir.Value, body: ir.Graph) -> bool:
    maker = value.producer()
    if maker is not None:
        return maker.graph is not body and not any(maker.graph is inner for node in body for inner in bodies(node))
    return value.graph is not body and value.name not in body.initializers


def _holds(trial: ir.Model, guard: Guard, guarded: bool, evaluator: Evaluator) -> bool:
    """Whether the branch gives the empty constants where everything it reads is empty."""
    names = [value.name or "" for value in guard.reads]
    arrays = {value.name or "": np.zeros((0, *(_rest(value) or ())), value.dtype.numpy()) for value in guard.reads if value.dtype}
    outputs = [value.name or "" for value in _inline(trial, guard, guarded)]
    try:
        found = evaluator.run(extract_model(trial, names, outputs), arrays)
    except (EvaluationError, ValueError):
        return False
    return all(
        isinstance(array := found.get(name), np.ndarray) and array.shape == empty.shape and array.dtype == empty.dtype
        for name, empty in zip(outputs, guard.empty, strict=True)
    )


def _inline(model: ir.Model, guard: Guard, guarded: bool) -> list[ir.Value]:
    """Put the branch in the place of the If; returns the tensors that take the place of its outputs."""
    edit = Edit(model, Journal(), 0)
    body = guard.node.attributes[guard.branch].as_graph()
    if guarded:
        for node in list(body):
            if node.op_type == "ReduceMax" and node.domain in _STANDARD and len(node.inputs) == 1 and "axes" not in node.attributes:
                _with_one_more(model, node, edit)
    results = inline_body(edit, guard.node, body, [])
    replace_outputs(edit, guard.node, results, RULE)
    return results


def _with_one_more(model: ir.Model, node: ir.Node, edit: Edit) -> None:
    """The largest of all elements and the least number: the same, and there for an empty tensor too."""
    value = node.inputs[0]
    if value is None or value.dtype is None or integer(node, "keepdims", 1) or value.dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16):
        return
    builder = Builder(model, node, RULE, edit.names)
    flat = builder.op("Reshape", value, builder.const([-1], np.int64, "shape"))
    kind = value.dtype.numpy()
    more = builder.op("Concat", flat, builder.const(np.array([np.finfo(kind).min], kind), name="least"), axis=0)
    for made in (flat, more):
        made.type = ir.TensorType(value.dtype)
    node.replace_input_with(0, more)


__all__ = ["Guard", "empty_guards", "take_full_branch"]
