"""Rewrites that change results on purpose, to what the user says the model was meant to compute."""

from __future__ import annotations

import time
from collections.abc import Collection

import onnx_ir as ir

from .. import __version__
from ..case import Case, Step
from ..graph import Digester, copy_model
from ..rules import MeaningRule, all_rules


def restore_meaning(case: Case, codes: Collection[str]) -> tuple[ir.Model, tuple[Step, ...]]:
    """The model as it is meant, by those of these codes that are a :class:`~jumar.rules.MeaningRule`.

    It takes the place of the model as given in every proof after it; nothing proves the change itself, and the step says what it assumes.

    Returns:
        The model of the case if no such rule is named or has anything to do, and one step for each that had.
    """
    model, steps = case.model, []
    for rule in all_rules():
        if not isinstance(rule, MeaningRule) or rule.code not in codes:
            continue
        start, candidate, digester = time.perf_counter(), copy_model(model), Digester()
        change = rule.restore(candidate)
        if change is None:
            continue
        steps.append(
            Step(
                name=rule.name,
                version=__version__,
                code=rule.code,
                input_sha256=digester.model(model),
                output_sha256=digester.model(candidate),
                seconds=round(time.perf_counter() - start, 4),
                options=dict(change.options),
                status="applied",
                nodes=change.nodes,
            )
        )
        model = candidate
    return model, tuple(steps)
