"""``jumar verify --against outputs.npz``: the model against what was recorded in the framework it comes from."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from .. import __version__
from ..case import Case, Finding, Step
from ..errors import EvaluationError, UsageError
from ..graph import Digester, Evaluator, copy_model, infer_shapes
from ..proof import FeedSet, load_feeds, read_arrays
from ..proof.metrics import Comparison, compare, proof_of
from ..rules import MeaningRule, all_rules, find_rule
from ..text import say


def load_outputs(path: str | Path, model: ir.Model) -> dict[str, Any]:
    """Outputs as the framework gave them, by the names of the model's outputs; some may be missing.

    Raises:
        UsageError: unreadable file, or no output of the model in it.
    """
    arrays, names = read_arrays(path), [value.name or "" for value in model.graph.outputs]
    found = {name: arrays[name] for name in names if name in arrays}
    if len(found) < len(arrays) or not found:
        raise UsageError(
            say("`{path}` holds {names}", "`{path}` 中为 {names}", path=path, names=", ".join(sorted(set(arrays) - set(found))) or "-"),
            say("expected outputs of the model: {names}", "应为模型的输出：{names}", names=", ".join(names)),
            say("rename the arrays in the .npz", "请修改 .npz 中的数组名"),
        )
    return found


def compare_recorded(
    case: Case, recorded: Mapping[str, Any], feeds: FeedSet, bound: float, evaluator: Evaluator
) -> tuple[dict[str, Comparison], Step, tuple[Finding, ...]]:
    """Compare a model with recorded outputs; where they differ, try what is known to go wrong in exports.

    Returns:
        The comparisons by output, the step, and VF611 for a mistake whose undoing makes them agree.
    """
    start = time.perf_counter()
    comparisons = _against(case.model, recorded, feeds, evaluator)
    findings = () if _agrees(comparisons, bound) else _mistakes(case.model, recorded, feeds, bound, evaluator, comparisons)
    digest = Digester().model(case.model)
    proof = proof_of(comparisons.values(), len(feeds.cases), bound)
    options = {"bound": bound, "feeds": feeds.origin, "against": "recorded outputs"}
    return comparisons, Step("verify", __version__, digest, digest, round(time.perf_counter() - start, 4), options, proof), findings


def given_feeds(feeds: str | Path | FeedSet | None, model: ir.Model) -> FeedSet:
    """The inputs that were recorded with the outputs.

    Raises:
        UsageError: there are none, or they do not fit.
    """
    if feeds is None:
        raise UsageError(
            say("recorded outputs are given without their inputs", "给出了记录的输出，但没有对应的输入"),
            say("expected the inputs that they belong to", "应给出对应的输入"),
            say("name them with --feeds", "请用 --feeds 指定"),
        )
    return load_feeds(feeds, model) if isinstance(feeds, (str, Path)) else feeds


def _against(model: ir.Model, recorded: Mapping[str, Any], feeds: FeedSet, evaluator: Evaluator) -> dict[str, Comparison]:
    found = evaluator.run(model, feeds.cases[0])
    return {name: compare(found[name], np.asarray(array)) for name, array in recorded.items()}


def _agrees(comparisons: Mapping[str, Comparison], bound: float) -> bool:
    return all(item.within(bound) for item in comparisons.values())


def _mistakes(
    model: ir.Model, recorded: Mapping[str, Any], feeds: FeedSet, bound: float, evaluator: Evaluator, before: Mapping[str, Comparison]
) -> tuple[Finding, ...]:
    found = []
    for rule in all_rules():
        if not isinstance(rule, MeaningRule):
            continue
        candidate = copy_model(model)
        change = rule.restore(candidate)
        if change is None:
            continue
        infer_shapes(candidate)
        try:
            after = _against(candidate, recorded, feeds, evaluator)
        except EvaluationError:
            continue
        if _agrees(after, bound):
            worst, best = (max(item.max_abs for item in side.values()) for side in (before, after))
            found.append(
                find_rule("VF611").finding(
                    say(
                        "the outputs agree with the recorded ones once {code} ({name}) is undone at {nodes}: max_abs {best:.3g} instead of {worst:.3g}",
                        "在 {nodes} 撤销 {code}（{name}）后，输出与记录一致：max_abs 由 {worst:.3g} 变为 {best:.3g}",
                        code=rule.code,
                        name=rule.name,
                        nodes=", ".join(f"`{place}`" for place in change.nodes[:3]),
                        best=best,
                        worst=worst,
                    ),
                    say("the export changed what the network computes", "导出改变了网络的计算"),
                    say("export again, or `jumar fix --unsafe {code}`", "重新导出，或使用 `jumar fix --unsafe {code}`", code=rule.code),
                    place=change.nodes[0],
                )
            )
    return tuple(found)
