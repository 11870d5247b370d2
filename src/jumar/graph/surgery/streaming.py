"""A recurrent model as a model of one step: its states become inputs and outputs, for data that comes one step at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from ...errors import EvaluationError, UsageError
from ...text import Text, say
from ..edit import copy_model
from ..evaluate import Evaluator, shared_or_new
from ..fold import fold_constants
from ..shapes import constant_of, infer_shapes, known_shape
from ..walk import node_place
from .lookup import AnyModel, Names, behind, must_be_valid, opened, reads, unknown

Array = npt.NDArray[Any]
TOLERANCE = 1e-4
"""Allowed difference between the steps and the whole sequence, of the largest value of an output: kernels add in another order."""
_STEPS, _SIZE = 4, 8
_RECURRENT = frozenset({"GRU", "LSTM", "RNN"})
_LENGTHS = 4


@dataclass(frozen=True)
class StepModel:
    """One step of a recurrent model.

    Attributes:
        model: its inputs that carry time hold one step; each state is an input and an output more.
        states: the inputs that are states, and for each the output that is to be fed to it at the next step: ``NODE_state_in`` and
            ``NODE_state_out`` (of an LSTM ``NODE_cell_in`` and ``NODE_cell_out`` too), or what they are called in the given model.
        initial: what the states are at the first step ([1, batch, hidden], or as the node's layout has it); zeros for a state that the given
            model took as an input already.
    """

    model: ir.Model
    states: Mapping[str, str]
    initial: Mapping[str, Array]


def step_model(
    model: AnyModel,
    axes: Mapping[str, int],
    *,
    states: Mapping[str, str] | None = None,
    verify: bool = True,
    feeds: Mapping[str, npt.ArrayLike] | None = None,
    sizes: Mapping[str, int] | None = None,
    evaluator: Evaluator | None = None,
) -> StepModel:
    """The model of one step, with the states of its GRU, LSTM and RNN nodes as inputs and outputs.

    Args:
        axes: the inputs that carry time, and the dimension in which they do.
        states: inputs that are states already, and for each the output that is fed to it at the next step, where nodes take parts of it; an
            input that is the initial state of a node needs no mention.
        verify: run the given model on a whole sequence, the new one step by step, and compare: outputs with a dimension of time over all
            steps, others after the last. Allowed difference: 1e-4 of the largest value of an output; integers must be equal.
        feeds: a sequence for this, by input name; by default random values (integers are 0 or 1).
        sizes: sizes for open dimensions by name, for the states and the proof (default 8; 4 for the number of steps).

    Raises:
        UsageError: no such input or output, nothing recurrent, a direction that needs what comes later, lengths of sequences, a state that depends on
            the data, a place where the number of steps is fixed, or outputs that differ.
        EvaluationError: the given model could not be run (use other ``feeds`` or ``sizes``).
    """
    original = opened(model)
    infer_shapes(original)
    given = {value.name or "": value for value in original.graph.inputs if not value.is_initializer()}
    for name, axis in axes.items():
        if name not in given:
            raise unknown(say("input", "输入"), name, given)
        if not -len(known_shape(given[name]) or ()) <= axis < len(known_shape(given[name]) or ()):
            raise _refused(name, say("it has no dimension {axis}", "没有维度 {axis}", axis=axis))
    outputs = {value.name or "" for value in original.graph.outputs}
    for name, output in (states or {}).items():
        if name not in given or output not in outputs:
            raise unknown(say("state", "状态"), output if name in given else name, [*given, *outputs])
    with shared_or_new(evaluator) as running:
        result = _one_step(original, axes, sizes or {}, running)
        opened_states, initial = _open_states(result, states or {})
        made = StepModel(must_be_valid(result), opened_states, initial)
        if verify:
            _prove(original, made, axes, feeds or {}, sizes or {}, running)
    return made


def _one_step(original: ir.Model, axes: Mapping[str, int], sizes: Mapping[str, int], evaluator: Evaluator) -> ir.Model:
    """A copy whose inputs hold one step and have no open dimension, with what follows from that computed."""
    result = copy_model(original)
    for value in result.graph.inputs:
        shape = known_shape(value)
        if shape is None or value.is_initializer():
            continue
        dims = [dim if isinstance(dim, int) else sizes.get(dim or "", _SIZE) for dim in shape]
        if value.name in axes:
            dims[axes[value.name or ""]] = 1
        value.shape = ir.Shape(dims)
    for value in result.graph.outputs:
        if value.shape is not None:
            value.shape = ir.Shape([None] * len(value.shape))
    infer_shapes(result, forget=True)
    fold_constants(result, evaluator)
    infer_shapes(result)
    return result


def _open_states(model: ir.Model, known: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Array]]:
    """Make the states of all recurrent nodes inputs and outputs of the model, in place; those that ``known`` inputs hold stay."""
    names, states, initial = Names(model), dict(known), dict[str, Array]()
    for value in model.graph.inputs:
        if value.name is not None and value.name in known:
            shape = [dim for dim in known_shape(value) or () if isinstance(dim, int)]
            initial[value.name] = np.zeros(shape, (value.dtype or ir.DataType.FLOAT).numpy())
    nodes = [node for node in model.graph if node.op_type in _RECURRENT and node.domain in ("", "ai.onnx")]
    if not nodes:
        raise _refused("-", say("nothing in its main graph is recurrent", "主图中没有循环算子"))
    for node in nodes:
        _need_one_forward_step(node)
        for place, kind in ((1, "state"), (2, "cell")) if node.op_type == "LSTM" else ((1, "state"),):
            if _held(node, 4 + place, known):
                continue
            start = _initial(node, 4 + place)
            stem = f"{node.name or node.op_type}_{kind}"
            state = _input(model, node, 4 + place, start, names.tensor(f"{stem}_in"))
            if state.name in states:
                raise _refused(
                    node_place(node), say("its state `{name}` is another node's too", "其状态 `{name}` 也属于其他节点", name=state.name)
                )
            output = _output(model, node, place, names.tensor(f"{stem}_out"), start)
            states[state.name or ""] = output.name or ""
            initial[state.name or ""] = start
    return states, initial


def _need_one_forward_step(node: ir.Node) -> None:
    place = node_place(node)
    if node.attributes.get_string("direction", "forward") != "forward":
        raise _refused(place, say("its backward direction begins with the last step", "其反向计算从最后一步开始"))
    if len(node.inputs) > _LENGTHS and node.inputs[_LENGTHS] is not None:
        raise _refused(place, say("its sequences have lengths of their own", "各序列有各自的长度"))
    shape = known_shape(node.inputs[0]) if node.inputs[0] is not None else None
    steps = None if shape is None else shape[1 if node.attributes.get_int("layout", 0) else 0]
    if steps != 1:
        raise _refused(
            place,
            say(
                "it would get {steps} steps (perhaps their number is fixed inside the model; then begin with one whose shapes are open)",
                "它会得到 {steps} 步（步数可能固定在模型内部；此时请从形状开放的模型开始）",
                steps="?" if steps is None else steps,
            ),
        )


def _initial(node: ir.Node, index: int) -> Array:
    """The state before the first step."""
    place = node_place(node)
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is not None and not _is_input(value):
        found = constant_of(value)
        if found is None:
            raise _refused(place, say("its initial state `{name}` is no constant", "其初始状态 `{name}` 不是常量", name=value.name))
        return np.array(found)
    data, recurrence = node.inputs[0], node.inputs[2]
    one, two = (known_shape(item) if item is not None else None for item in (data, recurrence))
    layout = node.attributes.get_int("layout", 0)
    shape = None if one is None or two is None else (one[0] if layout else 1, 1 if layout else one[1], two[-1])
    if shape is None or not all(isinstance(dim, int) for dim in shape) or data is None or data.dtype is None:
        raise _refused(place, say("the shape of its state is not known", "其状态的形状未知"))
    return np.zeros([dim for dim in shape if isinstance(dim, int)], data.dtype.numpy())


def _held(node: ir.Node, index: int, known: Mapping[str, str]) -> bool:
    """Whether the initial state of a node is made of states that the model takes already."""
    value = node.inputs[index] if index < len(node.inputs) else None
    if value is None or value.is_initializer():
        return False
    read = {value} | {item for made in behind([value]) for item in reads(made)}
    sources = {item.name for item in read if _is_input(item)}
    return bool(sources) and sources <= set(known)


def _is_input(value: ir.Value) -> bool:
    return value.is_graph_input() and not value.is_initializer()


def _input(model: ir.Model, node: ir.Node, index: int, start: Array, name: str) -> ir.Value:
    """The state as an input of the model; one that is an input already stays it."""
    given = node.inputs[index] if index < len(node.inputs) else None
    if given is not None and _is_input(given):
        return given
    state = ir.Value(name=name, shape=ir.Shape(start.shape), type=ir.TensorType(ir.DataType.from_numpy(start.dtype)))
    if len(node.inputs) <= index:
        node.resize_inputs(index + 1)
    node.replace_input_with(index, state)
    model.graph.inputs.append(state)
    return state


def _output(model: ir.Model, node: ir.Node, index: int, name: str, start: Array) -> ir.Value:
    """The node's output, which the model returns too; one that it returns already keeps its name."""
    if len(node.outputs) <= index:
        node.resize_outputs(index + 1)
    output = node.outputs[index]
    if not output.is_graph_output():
        output.name = name
        model.graph.outputs.append(output)
    output.shape, output.type = ir.Shape(start.shape), ir.TensorType(ir.DataType.from_numpy(start.dtype))
    return output


def _prove(
    original: ir.Model,
    made: StepModel,
    axes: Mapping[str, int],
    feeds: Mapping[str, npt.ArrayLike],
    sizes: Mapping[str, int],
    evaluator: Evaluator,
) -> None:
    """Run the whole sequence and its steps, and compare."""
    feed = _sequence(original, axes, feeds, sizes)
    whole = evaluator.run(original, feed)
    parts = [found for _, found in run_steps(made, axes, feed, evaluator)]
    for value in original.graph.outputs:
        reason = _difference(np.asarray(whole[value.name or ""]), [np.asarray(part[value.name or ""]) for part in parts])
        if reason is not None:
            raise _refused(value.name or "", reason)


def run_steps(
    made: StepModel, axes: Mapping[str, int], feed: Mapping[str, npt.ArrayLike], evaluator: Evaluator
) -> Iterator[tuple[dict[str, Array], dict[str, Array]]]:
    """Inputs and outputs of every step of a sequence, each with the states that the step before left.

    Args:
        feed: the sequence, by the names of the given model's inputs; ``axes`` as for :func:`step_model`.

    Raises:
        UsageError: the inputs hold different numbers of steps, or one alone, which would show nothing; or a step could not be run.
    """
    arrays = {name: np.asarray(array) for name, array in feed.items()}
    counts = sorted({arrays[name].shape[axis] for name, axis in axes.items()})
    if len(counts) != 1 or counts[0] < 2:
        reason = say("they hold {counts} steps", "它们的步数为 {counts}", counts=", ".join(map(str, counts)))
        raise _refused(", ".join(axes), reason)
    state = {name: arrays.get(name, start) for name, start in made.initial.items()}
    try:
        with evaluator.session(made.model) as session:
            for step in range(counts[0]):
                now = {name: array.take([step], axes[name]) if name in axes else array for name, array in arrays.items()} | state
                found = {name: np.asarray(array) for name, array in session.run(now).items()}
                state = {name: found[output] for name, output in made.states.items()}
                yield now, found
    except EvaluationError as error:
        raise _refused(", ".join(axes), error.found) from None


def _sequence(model: ir.Model, axes: Mapping[str, int], feeds: Mapping[str, npt.ArrayLike], sizes: Mapping[str, int]) -> dict[str, Array]:
    """Arrays for all inputs of the given model; where the number of steps is open, a few."""
    random, feed = np.random.default_rng(0), dict[str, Array]()
    for value in model.graph.inputs:
        name = value.name or ""
        if value.is_initializer():
            continue
        shape = known_shape(value)
        if name in feeds or shape is None:
            feed[name] = np.asarray(feeds.get(name, 0))
            continue
        dims = [dim if isinstance(dim, int) else sizes.get(dim or "", _SIZE) for dim in shape]
        if name in axes and not isinstance(shape[axes[name]], int):
            dims[axes[name]] = sizes.get(str(shape[axes[name]]), _STEPS)
        dtype = np.dtype(np.float32 if value.dtype is None else value.dtype.numpy())
        feed[name] = random.integers(0, 2, dims).astype(dtype) if dtype.kind in "biu" else random.standard_normal(dims).astype(dtype)
    return feed


def join_steps(whole: Array, parts: list[Array]) -> Array:
    """What the steps give of an output of the whole sequence: put together where it has a dimension of time, else what the last one gives."""
    last = parts[-1]
    different = [axis for axis in range(whole.ndim) if whole.ndim == last.ndim and whole.shape[axis] != last.shape[axis]]
    return np.concatenate(parts, different[0]) if len(different) == 1 else last


def _difference(whole: Array, parts: list[Array]) -> Text | None:
    """How an output of the whole sequence differs from those of its steps, put together or the last of them."""
    last, joined = parts[-1], join_steps(whole, parts)
    if joined.shape != whole.shape:
        return say(
            "it has the shape {whole} for the sequence and {step} for a step",
            "整个序列的形状为 {whole}，单步为 {step}",
            whole=list(whole.shape),
            step=list(last.shape),
        )
    if whole.dtype.kind not in "fc":
        return None if np.array_equal(whole, joined) else say("the steps give other values", "逐步计算的值不同")
    largest = float(np.abs(whole[np.isfinite(whole)]).max(initial=0.0))
    if np.allclose(joined, whole, rtol=0, atol=TOLERANCE * largest + 1e-12, equal_nan=True):
        return None
    apart = float(np.nanmax(np.abs(joined - whole)))
    return say(
        "the steps differ by {apart}, largest value {largest}",
        "逐步计算相差 {apart}，最大值 {largest}",
        apart=f"{apart:.3g}",
        largest=f"{largest:.3g}",
    )


def _refused(place: str, reason: Text) -> UsageError:
    return UsageError(
        say(
            "no model of one step can be made at `{place}`: {reason}",
            "无法在 `{place}` 处生成单步模型：{reason}",
            place=place,
            reason=reason,
        ),
        say("expected a model that runs forward and treats every step alike", "模型应为正向，且对每一步作相同处理"),
        say("export the model of one step, with its state as input and output", "请导出以状态作为输入和输出的单步模型"),
    )
