"""A Loop whose number of trips has a bound: so many copies of its body, each of which counts only while the loop goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from ..text import Text, say
from .both_branches import compute_both, scalar
from .edit import Builder, copy_model
from .fold import DEFAULT_FOLD_LIMIT
from .harmless import WHERE_OPSET, can_choose, choose, hazard
from .ranges import Interval, Ranges
from .shapes import Array, static_shape
from .simplify import Journal
from .simplify.base import Edit
from .simplify.carried import sound_shapes
from .simplify.inline import inline_body, lift_weights, replace_outputs
from .simplify.known import known_scalar
from .simplify.loops import UNROLL_LIMIT, assumptions, is_read, known_trips, like_input, why_not_unrolled
from .walk import bodies, node_place

RULE = "GR511"
_STANDARD = ("", "ai.onnx")


def runtime_loops(graph: ir.Graph) -> list[ir.Node]:
    """The Loops whose number of trips is not known, at any depth, inner ones first."""
    found = []
    for node in graph:
        for body in bodies(node):
            found += runtime_loops(body)
        if node.op_type == "Loop" and node.domain in _STANDARD and known_trips(node) is None:
            found.append(node)
    return found


def unroll_bounded(model: ir.Model, ranges_of: Callable[[ir.Model], Ranges]) -> tuple[list[str], dict[str, Text]]:
    """Rewrite, in place, every Loop that has a bound and of which no trip can do harm after the loop has ended.

    Args:
        ranges_of: analyses a model, without taking it for granted that an index lies within its axis.

    Returns:
        The places of the Loops that are gone, and by place the reason why each other one stands.
    """
    done: list[str] = []
    reasons: dict[str, Text] = {}
    passed = 0  # loops that stand: those before the next one to try
    while passed < len(loops := runtime_loops(model.graph)):
        place = node_place(loops[passed])
        trial = copy_model(model)
        reason = _unroll(trial, runtime_loops(trial.graph)[passed], ranges_of)
        if reason is None:
            _unroll(model, loops[passed], ranges_of)
            done.append(place)
        else:
            reasons[place] = reason
            passed += 1
    return done, reasons


def trip_bound(node: ir.Node, range_of: Callable[[ir.Value], Interval]) -> int | None:
    """A number of trips that a Loop never exceeds, of at most :data:`UNROLL_LIMIT`; None where there is none."""
    count = node.inputs[0] if node.inputs else None
    limit = UNROLL_LIMIT + 1
    if count is not None:
        known = known_scalar(count)
        limit = int(min(limit, range_of(count).hi if known is None else known))
    decision = node.attributes["body"].as_graph().outputs[0]
    for trip, assumed in enumerate(assumptions(node, max(limit, 0))):
        if certainty(decision, assumed, range_of) is False:
            return trip + 1
    return max(limit, 0) if limit <= UNROLL_LIMIT else None


def certainty(
    value: ir.Value | None, assumed: Mapping[ir.Value, Array], range_of: Callable[[ir.Value], Interval], depth: int = 0
) -> bool | None:
    """Whether a boolean is true, or false, in every run; None where that is not known."""
    if value is None or depth > 16:
        return None
    known = known_scalar(value, assumed)
    if known is not None:
        return bool(known)
    node = value.producer()
    if node is None or node.domain not in _STANDARD or not node.inputs:
        return None
    first = node.inputs[0]
    if node.op_type in ("Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze"):
        return certainty(first, assumed, range_of, depth + 1) if first is not None and first.dtype == ir.DataType.BOOL else None
    if node.op_type == "Not":
        inner = certainty(first, assumed, range_of, depth + 1)
        return None if inner is None else not inner
    if node.op_type in ("And", "Or"):
        decisive = node.op_type == "Or"
        sides = [certainty(item, assumed, range_of, depth + 1) for item in node.inputs]
        return decisive if decisive in sides else (None if None in sides else not decisive)
    if len(node.inputs) != 2:
        return None
    one, other = (_interval(item, assumed, range_of) for item in node.inputs)
    return _compared(node.op_type, one, other)


def _interval(value: ir.Value | None, assumed: Mapping[ir.Value, Array], range_of: Callable[[ir.Value], Interval]) -> Interval:
    known = known_scalar(value, assumed)
    if known is not None:
        return Interval(known, known)
    return Interval(-np.inf, np.inf, True) if value is None else range_of(value)


def _compared(op_type: str, one: Interval, other: Interval) -> bool | None:
    """Comparisons with NaN are false."""
    if op_type in ("Greater", "GreaterOrEqual"):
        return _compared({"Greater": "Less", "GreaterOrEqual": "LessOrEqual"}[op_type], other, one)
    nan = one.nan or other.nan
    if op_type == "Less":
        return False if one.lo >= other.hi else (True if one.hi < other.lo and not nan else None)
    if op_type == "LessOrEqual":
        return False if one.lo > other.hi else (True if one.hi <= other.lo and not nan else None)
    if op_type == "Equal" and (one.hi < other.lo or one.lo > other.hi):
        return False
    return None


@dataclass
class _State:
    """The carried tensors as of the last trip, and what was chosen on the way."""

    values: list[ir.Value]
    shapes: list[tuple[int, ...]]
    active: ir.Value | None = None
    """Whether the loop still goes on; None as long as that is certain."""
    choices: list[tuple[ir.Value, ir.Value, ir.Value]] = field(default_factory=list)


def _unroll(model: ir.Model, node: ir.Node, ranges_of: Callable[[ir.Model], Ranges]) -> Text | None:
    """Unroll one loop in place. If that is not possible the model is spoilt, and the reason is returned."""
    sound_shapes(model)
    ranges = ranges_of(model)
    edit = Edit(model, Journal(), DEFAULT_FOLD_LIMIT)
    body = node.attributes["body"].as_graph()
    bound = trip_bound(node, ranges.of)
    reason = _before(edit, node, body, bound)
    if reason is not None or bound is None:
        return reason
    graph = node.graph
    if not isinstance(graph, ir.Graph):
        return say("it is in no graph", "它不在图中")
    before = set(graph)
    state = _copies(edit, node, body, bound, ranges.of)
    sound_shapes(model)
    made = {item for item in graph if item not in before}
    compute_both(model, ranges_of, made)
    sound_shapes(model)
    ranges = ranges_of(model)
    made = {item for item in graph if item not in before}
    for item in graph:
        reason = hazard(item, ranges.of) if item in made else None
        if reason is not None:
            return say("in a trip after the last, {reason}", "最后一次循环之后的副本中，{reason}", reason=reason)
    for chosen, new, old in state.choices:
        shapes = {static_shape(value) for value in (chosen, new, old)}
        if len(shapes) > 1 or None in shapes:
            return say(
                "the shape of the carried `{name}` is not the same in every trip", "循环变量 `{name}` 的形状并非每次相同", name=new.name
            )
    return None


def _before(edit: Edit, node: ir.Node, body: ir.Graph, bound: int | None) -> Text | None:
    """What can be told without unrolling."""
    carried = len(body.inputs) - 2
    if edit.opset < WHERE_OPSET:
        return say("opset {opset} has no Where", "opset {opset} 没有 Where", opset=edit.opset)
    if bound is None:
        return say("nothing known bounds its number of trips by {limit}", "没有已知条件将循环次数限制在 {limit} 以内", limit=UNROLL_LIMIT)
    if any(is_read(value) for value in node.outputs[carried:]):
        return say("it stacks results, as many as there are trips", "它堆叠每次循环的结果，其长度取决于循环次数")
    for value in node.inputs[2:]:
        if value is None or not isinstance(value.type, ir.TensorType) or not can_choose(value.dtype):
            return say("it carries what is no tensor, or of a type that Where does not take", "其循环变量不是张量，或类型不被 Where 支持")
        if static_shape(value) is None:
            return say("the shape of the carried `{name}` is not fixed", "循环变量 `{name}` 的形状不固定", name=value.name)
    return why_not_unrolled(edit, body, bound, 2 * carried + 2)


def _copies(edit: Edit, node: ir.Node, body: ir.Graph, bound: int, range_of: Callable[[ir.Value], Interval]) -> _State:
    builder = edit.at(node, RULE)
    carried = len(body.inputs) - 2
    count, start = (node.inputs[place] if len(node.inputs) > place else None for place in (0, 1))
    states = [value for value in node.inputs[2:] if value is not None]
    state = _State(states, [static_shape(value) or () for value in states])
    is_scalar = static_shape(body.outputs[0]) == ()  # copies lose it until shapes are inferred
    state.active = None if not bound or start is None or known_scalar(start) == 1 else scalar(builder, start)
    fewest = 0 if count is None else int(range_of(count).lo)
    counted = count is not None and known_scalar(count) is None
    counter, condition = body.inputs[:2]
    if bound > 1:
        lift_weights(edit, node, body)
    trips = _count(builder, count) if counted and fewest < bound else None
    for trip in range(bound):
        if trips is not None and trip >= fewest:
            more = builder.op("Greater", trips, builder.const(trip, trips.dtype.numpy() if trips.dtype else np.int64, "trip"))
            more.type, more.shape = ir.TensorType(ir.DataType.BOOL), ir.Shape([])
            state.active = _both(builder, state.active, more)
        piece = body if trip == bound - 1 else body.clone(allow_outer_scope_values=True)
        number = builder.const(like_input(counter, trip), np.int64, "trip") if is_read(counter) else None
        goes_on = builder.const(like_input(condition, True), np.bool_, "condition") if is_read(condition) else None
        outputs = inline_body(edit, node, piece, [number, goes_on, *state.values], f"_{trip}" if bound > 1 else "")
        _advance(builder, state, outputs[1 : 1 + carried])
        if known_scalar(outputs[0]) != 1 and trip < bound - 1:
            state.active = _both(builder, state.active, outputs[0] if is_scalar else scalar(builder, outputs[0]))
    replace_outputs(edit, node, [*state.values, *node.outputs[carried:]], RULE)
    return state


def _advance(builder: Builder, state: _State, new: list[ir.Value]) -> None:
    """Take over what a trip made, if the loop still went on."""
    if state.active is None:
        state.values = new
        return
    following = []
    for old, value, shape in zip(state.values, new, state.shapes, strict=True):
        if value is old:
            following.append(old)
            continue
        chosen = choose(builder, state.active, value, old, old.dtype or ir.DataType.FLOAT, shape)
        state.choices.append((chosen, value, old))
        following.append(chosen)
    state.values = following


def _both(builder: Builder, first: ir.Value | None, second: ir.Value) -> ir.Value:
    if first is None:
        return second
    both = builder.op("And", first, second)
    both.type, both.shape = ir.TensorType(ir.DataType.BOOL), ir.Shape([])
    return both


def _count(builder: Builder, count: ir.Value | None) -> ir.Value:
    if count is None:
        raise ValueError("there is no trip count")
    if static_shape(count) == ():
        return count
    made = builder.op("Reshape", count, builder.const([], "int64", "scalar"))
    made.type, made.shape = ir.TensorType(count.dtype or ir.DataType.INT64), ir.Shape([])
    return made


__all__ = ["certainty", "runtime_loops", "trip_bound", "unroll_bounded"]
