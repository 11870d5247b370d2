"""Another batch size: the first dimension of the inputs, and what was baked for it into the nodes behind them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import numpy.typing as npt
import onnx_ir as ir

from ...errors import UsageError
from ...text import Text, say
from ..edit import copy_model
from ..evaluate import Evaluator, shared_or_new
from ..fold import fold_constants
from ..shapes import infer_shapes, known_shape
from ..walk import node_place
from .batch_fixes import Fix, NotChangeable, find_fix
from .batch_proof import Differs, prove_batch
from .lookup import AnyModel, must_be_valid, opened, reads, unknown

_PROBE = 7919
"""A size no real dimension has: a prime, so that what scales with the batch shows. The model is never run at it."""


def change_batch(
    model: AnyModel,
    size: int | str,
    *,
    inputs: Sequence[str] | None = None,
    verify: bool = True,
    feeds: Mapping[str, npt.ArrayLike] | None = None,
    sizes: Mapping[str, int] | None = None,
    evaluator: Evaluator | None = None,
) -> ir.Model:
    """The model for another batch size: a number, or a name for an open one.

    The first dimension of the inputs is changed, and what a fixed batch left in the main graph: constant targets of Reshape and Expand,
    ends of Slice, initial states of recurrent nodes, constants that are joined to or combined with a batch (they are repeated, where they
    are the same for each sample).

    Args:
        inputs: which inputs have the batch as their first dimension; by default all that have a dimension.
        verify: run the new model on a batch, the given one on its samples one after the other (or by its own batch size), and compare.
            Allowed difference: 1e-4 of the largest value of an output, because kernels add in another order; integers must be equal.
        feeds: samples for this, by input name, the first dimension being the samples; by default random ones (integers are 0 or 1).
        sizes: sizes for it of other open dimensions, by name (default 8).

    Raises:
        UsageError: no such input, inputs of different batch sizes, a place that cannot be changed (it is named), or outputs that differ.
        EvaluationError: the given model could not be run (use other ``feeds`` or ``sizes``, or ``verify=False``).
    """
    if (isinstance(size, int) and size < 1) or not size:
        raise UsageError(
            say("`{size}` is no batch size", "`{size}` 不是有效的 batch 大小", size=size),
            say("expected a number above 0 or a name", "应为大于 0 的数或名称"),
            say("give such a size", "请给出有效大小"),
        )
    original = opened(model)
    infer_shapes(original)
    chosen = _batch_inputs(original, inputs)
    old = _old_size(original, chosen)
    with shared_or_new(evaluator) as running:
        refusals: list[UsageError] = []
        for base in _bases(original, chosen, old, running):
            for sequence_first in (False, True) if isinstance(old, int) else (False,):
                with _noting(refusals):
                    result, doubtful = _changed(base, chosen, old, size, sequence_first)
                    _prove(original, result, chosen, old, size, doubtful, running if verify else None, feeds or {}, sizes or {})
                    return result
        raise refusals[-1]


@contextlib.contextmanager
def _noting(refusals: list[UsageError]) -> Iterator[None]:
    try:
        yield
    except UsageError as refusal:
        refusals.append(refusal)


def _bases(original: ir.Model, chosen: Sequence[str], old: int | None, evaluator: Evaluator) -> Iterator[ir.Model]:
    """Forms of the model in which the batch may be found, the least changed first.

    Where exporters compute shapes from constants, these are folded. If that is not enough, also what follows from the sizes of the model
    as it is: then a shape that was computed right from the input may first be fixed by folding and then be freed like the others.
    """
    if not isinstance(old, int):
        yield copy_model(original)
        return
    base = copy_model(original)
    _declare(base, chosen, "\0batch")
    fold_constants(base, evaluator)
    _declare(base, chosen, old)
    yield base
    base = copy_model(base)
    if fold_constants(base, evaluator):
        infer_shapes(base)
        yield base


def _changed(base: ir.Model, chosen: Sequence[str], old: int | None, size: int | str, sequence_first: bool) -> tuple[ir.Model, list[str]]:
    """The model at the new size, and places that could not be followed."""
    result = copy_model(base)
    doubtful = _unbake(base, result, chosen, old, size, sequence_first) if isinstance(old, int) else []
    _declare(result, chosen, size)
    return must_be_valid(result), doubtful


def _prove(
    original: ir.Model,
    result: ir.Model,
    chosen: Sequence[str],
    old: int | None,
    size: int | str,
    doubtful: Sequence[str],
    evaluator: Evaluator | None,
    feeds: Mapping[str, npt.ArrayLike],
    sizes: Mapping[str, int],
) -> None:
    if evaluator is not None:
        try:
            proven = prove_batch(original, result, chosen, old, size, evaluator, feeds, sizes)
        except Differs as difference:
            raise _refused(doubtful[0] if doubtful else difference.place, difference.reason) from None
        for value, before, axis in zip(result.graph.outputs, original.graph.outputs, proven, strict=True):
            _write_size(value, known_shape(before), axis, old, size)
    elif doubtful:
        raise _refused(doubtful[0], say("what the batch does there cannot be followed", "无法推断 batch 在此处的作用"))


def _write_size(value: ir.Value, before: tuple[int | str | None, ...] | None, axis: int | None, old: int | None, size: int | str) -> None:
    """Write the size into an output whose dimension was seen to be the batch, where inference lost it."""
    shape = known_shape(value)
    if shape is None or axis is None or before is None or isinstance(shape[axis], int) or (old is not None and before[axis] != old):
        return
    value.shape = ir.Shape([size if index == axis else dim for index, dim in enumerate(shape)])


def _batch_inputs(model: ir.Model, inputs: Sequence[str] | None) -> list[str]:
    given = {value.name or "": value for value in model.graph.inputs if not value.is_initializer()}
    if inputs is None:
        return [name for name, value in given.items() if known_shape(value)]
    for name in inputs:
        if name not in given:
            raise unknown(say("input", "输入"), name, given)
        if not known_shape(given[name]):
            raise UsageError(
                say("`{name}` has no dimension", "`{name}` 没有维度", name=name),
                say("expected an input with a batch", "应为带 batch 的输入"),
                say("leave it out", "请去掉它"),
            )
    return list(inputs)


def _old_size(model: ir.Model, chosen: Sequence[str]) -> int | None:
    """The fixed batch size, None for an open one."""
    firsts = {value.name or "": (known_shape(value) or (None,))[0] for value in model.graph.inputs if value.name in chosen}
    if not firsts or len(set(firsts.values())) > 1:
        listed = ", ".join(f"`{name}`: {'?' if dim is None else dim}" for name, dim in firsts.items())
        raise UsageError(
            say("the inputs have no common batch size ({listed})", "各输入没有共同的 batch 大小（{listed}）", listed=listed or "-"),
            say("expected inputs with the same first dimension", "各输入的首维应相同"),
            say("name those that have the batch with inputs=", "请用 inputs= 指明带 batch 的输入"),
        )
    first = next(iter(firsts.values()))
    return first if isinstance(first, int) else None


def _declare(model: ir.Model, chosen: Sequence[str], size: int | str) -> None:
    """Write the new size into the inputs; outputs follow by inference."""
    for value in model.graph.inputs:
        if value.name in chosen:
            value.shape = ir.Shape([size, *(known_shape(value) or ())[1:]])
    for value in model.graph.outputs:
        if value.shape is not None:
            value.shape = ir.Shape([None] * len(value.shape))
    infer_shapes(model, forget=True)


def _unbake(original: ir.Model, result: ir.Model, chosen: Sequence[str], old: int, size: int | str, sequence_first: bool) -> list[str]:
    """Change what a fixed batch left behind; returns places whose new shape could not be followed.

    A second copy with an impossible batch size shows where the batch goes: dimensions that are a multiple of it. Whatever is found there
    is changed in both. One change at a time on each path, as what comes behind is only then inferred right.
    """
    probe = copy_model(original)
    twins = dict(zip(probe.graph, result.graph, strict=True))
    shapes = {value.name or "": known_shape(value) for value in [*original.graph.inputs, *(v for n in original.graph for v in n.outputs)]}
    source = chosen[0]
    fixed = set[ir.Node]()
    while True:
        _declare(probe, chosen, _PROBE)
        unsure, count = set[ir.Value](), len(fixed)
        for node in list(probe.graph):
            if node not in twins or reads(node) & unsure:
                unsure.update(node.outputs)
                continue
            fix = None if node in fixed else _fix_of(node, shapes, old, source, sequence_first)
            if fix is not None:
                fix(probe, node, _PROBE)
                fix(result, twins[node], size)
                fixed.add(node)
                unsure.update(node.outputs)
        if len(fixed) == count:
            break
    lost = [
        node for node in probe.graph for value in node.outputs if known_shape(value) is None and shapes.get(value.name or "") is not None
    ]
    return [node_place(node) for node in lost]


def _fix_of(
    node: ir.Node, shapes: Mapping[str, tuple[int | str | None, ...] | None], old: int, source: str, sequence_first: bool
) -> Fix | None:
    try:
        return find_fix(node, shapes, old, _PROBE, source, sequence_first=sequence_first)
    except NotChangeable as refusal:
        raise _refused(node_place(node), refusal.reason) from None


def _refused(place: str, reason: Text) -> UsageError:
    return UsageError(
        say(
            "the batch size cannot be changed at `{place}`: {reason}",
            "无法在 `{place}` 处更改 batch 大小：{reason}",
            place=place,
            reason=reason,
        ),
        say("expected nodes that treat every sample alike", "节点应对每个样本作相同处理"),
        say("simplify the model first, or export it again with an open batch", "请先简化模型，或以动态 batch 重新导出"),
    )
