"""``--one-step``: what the verbs do to a recurrent model before anything else, so that it takes one step and hands its states on."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from .. import __version__
from ..case import Proof, Step
from ..errors import UsageError
from ..graph import Digester, Evaluator, StepModel, known_shape, step_model
from ..graph.surgery.streaming import join_steps, run_steps
from ..proof import FeedSet, load_feeds, make_feeds
from ..proof.metrics import compare, proof_of
from ..text import Text, say
from .check import pinned

BOUND = 1e-4
"""Allowed difference between the steps and the whole sequence, of the largest element: kernels add in another order."""
_MOST_INITIAL = 1 << 16
"""Elements of a first state that is not one number throughout and so is written into the manifest."""


@dataclass(frozen=True)
class Stepped:
    """A model of one step, the step of the record that says so, and inputs from the beginning, middle and end of the sequences."""

    model: ir.Model
    step: Step
    feeds: FeedSet
    note: Text


def parse_one_step(texts: Sequence[str]) -> dict[str, int | str]:
    """Read ``--one-step "x:0;h=hn"`` (repeatable): inputs with the dimension in which they carry time, and inputs that are states already with
    the output that is fed to them at the next step. A name ends at the last colon, or at the first equals sign.

    Raises:
        UsageError: not of this form.
    """
    found: dict[str, int | str] = {}
    for part in (piece.strip() for text in texts for piece in text.split(";")):
        if not part:
            continue
        name, colon, axis = part.rpartition(":")
        state, _, output = part.partition("=")
        if colon and name and axis.isdecimal() and len(axis) <= 2:
            found[name] = int(axis)
        elif state and output:
            found[state] = output
        else:
            raise UsageError(
                say(
                    "`{part}` is neither an input with its dimension of time nor a state",
                    "`{part}` 既不是“输入:时间维度”，也不是状态",
                    part=part,
                ),
                say("expected NAME:DIMENSION, counted from 0, or STATE=OUTPUT", "应为 名称:维度（从 0 开始）或 状态=输出"),
                say('for example --one-step "x:0"', '例如 --one-step "x:0"'),
            )
    return found


def to_one_step(
    model: ir.Model,
    told: Mapping[str, int | str],
    sizes: Mapping[str, tuple[int, ...]],
    feeds: str | Path | FeedSet | None,
    evaluator: Evaluator,
) -> Stepped:
    """The model of one step, proven on whole sequences: all their steps are run, and the outputs compared.

    Args:
        told: inputs that carry time, and the dimension in which they do; inputs that are states already, and the output that is fed to each.
        sizes: shapes of the inputs; their dimensions of time say how many steps the proof has.
        feeds: sequences; by default they are generated.

    Raises:
        UsageError: an input whose shape is not fixed, or a model of which no such step can be made, with the reason.
        EvaluationError: the model could not be run on a whole sequence.
    """
    start = time.perf_counter()
    axes = {name: place for name, place in told.items() if isinstance(place, int)}
    states = {name: output for name, output in told.items() if isinstance(output, str)}
    reference = pinned(model, dict(sizes)) if sizes else model
    _must_be_fixed(reference)
    made = step_model(reference, axes, states=states, verify=False, evaluator=evaluator)
    if isinstance(feeds, (str, Path)):
        feeds = load_feeds(feeds, reference)
    feeds = feeds or make_feeds(reference, evaluator)
    proof, cases, count = _prove(reference, made, axes, feeds, evaluator)
    if not proof.passed:
        raise UsageError(
            say(
                "the steps do not give what the whole sequence gives: {reason}",
                "逐步计算的结果与整个序列不同：{reason}",
                reason=proof.reason,
            ),
            say("expected a model that treats every step alike and looks at no other", "模型应对每一步作相同处理，且不涉及其他步"),
            say("export the model of one step, with its state as input and output", "请导出以状态作为输入和输出的单步模型"),
        )
    digester = Digester()
    said = {
        "inputs": dict(told),
        "sizes": {
            value.name or "": [int(dim) for dim in known_shape(value) or () if isinstance(dim, int)] for value in reference.graph.inputs
        },
        "steps": count,
        "states": [
            {"input": name, "output": output, "shape": list(made.initial[name].shape), "initial": _numbers(name, made.initial[name])}
            for name, output in made.states.items()
        ],
    }
    step = Step(
        name="one-step",
        version=__version__,
        input_sha256=digester.model(model),
        output_sha256=digester.model(made.model),
        seconds=round(time.perf_counter() - start, 4),
        options={"one_step": said},
        proof=proof,
        status="applied",
        nodes=tuple(made.states),
    )
    return Stepped(made.model, step, FeedSet(cases, feeds.origin), _note(made, axes, proof, count))


def again(model: ir.Model, told: Mapping[str, Any], feeds: str | Path | FeedSet | None, evaluator: Evaluator) -> tuple[ir.Model, FeedSet]:
    """The same model of one step of a reference, and inputs for it, as the record or a manifest tells it.

    Raises:
        UsageError: it is not told in this form, or of another model.
    """
    try:
        said = told["one_step"]
        sizes = {str(name): tuple(int(size) for size in shape) for name, shape in said["sizes"].items()}
        inputs = {str(name): place if isinstance(place, str) else int(place) for name, place in said["inputs"].items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise UsageError(
            say("the manifest does not say of which step this is the model", "manifest 没有说明这是哪一步的模型"),
            say("expected `inputs` and `sizes` under `one_step`", "应在 `one_step` 下给出 `inputs` 与 `sizes`"),
            say("make the bundle again", "请重新生成 bundle"),
        ) from None
    stepped = to_one_step(model, inputs, sizes, feeds, evaluator)
    return stepped.model, stepped.feeds


def not_together() -> UsageError:
    """The error for --one-step with --set-const."""
    return UsageError(
        say("--one-step was given with --set-const", "同时给出了 --one-step 与 --set-const"),
        say("expected one of them", "只能使用其中之一"),
        say(
            "fix the inputs first (`jumar fix --set-const`), then make the model of one step",
            "请先固定输入（`jumar fix --set-const`），再生成单步模型",
        ),
    )


def _must_be_fixed(model: ir.Model) -> None:
    for value in model.graph.inputs:
        if not value.is_initializer() and (value.shape is None or not value.shape.is_static()):
            raise UsageError(
                say("the shape of input `{name}` is not fixed", "输入 `{name}` 的形状不固定", name=value.name),
                say(
                    "expected sizes for every dimension; the number of steps is how many the proof runs",
                    "应给出每个维度的大小；步数即证明所运行的步数",
                ),
                say('give them, for example --shape "{name}:..."', '请给出，例如 --shape "{name}:..."', name=value.name),
            )


def _prove(
    reference: ir.Model, made: StepModel, axes: Mapping[str, int], feeds: FeedSet, evaluator: Evaluator
) -> tuple[Proof, tuple[dict[str, Any], ...], int]:
    """The proof, some inputs of single steps, and the number of steps."""
    comparisons, kept, count = [], list[dict[str, Any]](), 0
    with evaluator.session(reference) as session:
        wholes = [session.run(dict(feed)) for feed in feeds.cases]
    for feed, whole in zip(feeds.cases, wholes, strict=True):
        ran = list(run_steps(made, axes, feed, evaluator))
        count = len(ran)
        kept += [ran[place][0] for place in sorted({0, count // 2, count - 1})]
        for name, expected in whole.items():
            array = np.asarray(expected)
            comparisons.append(compare(join_steps(array, [found[name] for _, found in ran]), array))
    return proof_of(comparisons, len(feeds.cases), BOUND, "max_scaled"), tuple(kept), count


def _numbers(name: str, array: Any) -> Any:
    """A first state as one number, where it is the same throughout, or as nested lists."""
    if array.size and (array == array.reshape(-1)[0]).all():
        return array.reshape(-1)[0].item()
    if array.size > _MOST_INITIAL:
        raise UsageError(
            say("the first state of `{name}` has {count} elements", "`{name}` 的初始状态有 {count} 个元素", name=name, count=array.size),
            say(
                "expected {limit} at most, since they are written into the manifest",
                "最多 {limit} 个，因为要写入 manifest",
                limit=_MOST_INITIAL,
            ),
            say("make it an input of the model", "请将其作为模型的输入"),
        )
    return array.tolist()


def _note(made: StepModel, axes: Mapping[str, int], proof: Proof, count: int) -> Text:
    return say(
        "the model takes one step ({inputs}): feed {outputs} to {states} at the next step, in this order; the first values are in the record; "
        "{cases} sequences of {count} steps gave the same within {found:.2g} of the largest element",
        "模型每次只取一步（{inputs}）：将 {outputs} 依次作为下一步的 {states}；初始值见记录；{cases} 个长 {count} 步的序列结果一致，差异不超过最大元素的 {found:.2g}",
        cases=proof.cases,
        count=count,
        found=proof.max_scaled,
        inputs=", ".join(f"{name}:{axis}" for name, axis in axes.items()),
        outputs=", ".join(made.states.values()),
        states=", ".join(made.states),
    )
