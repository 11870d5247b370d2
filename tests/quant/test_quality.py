"""Outputs and scores of any choice of layers, against models made for that choice alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir
import pytest

from jumar.errors import UsageError
from jumar.graph import Evaluator, infer_shapes
from jumar.precision.metrics import METRICS
from jumar.quant.layers import survey
from jumar.quant.numbers import symmetric
from jumar.quant.plan import Plan, quantise_layer
from jumar.quant.qdq import qdq_model
from jumar.quant.quality import Judge, Switchboard, find_metric
from jumar.quant.samples import Samples

TEXT = """<ir_version: 8, opset_import: ["" : 13]>
agraph (float[1,6] x) => (float[1,4] y, int64[1,1] best) { a = MatMul(x, w1) t = Tanh(a) y = MatMul(t, w2) best = ArgMax<axis = 1>(y) }"""


@pytest.fixture
def model(random: np.random.Generator) -> ir.Model:
    shapes = {"w1": (6, 8), "w2": (8, 4)}
    weights = [ir.tensor(random.standard_normal(shape).astype(np.float32), name=name) for name, shape in shapes.items()]
    made = ir.from_onnx_text(TEXT, initializers=weights)
    infer_shapes(made)
    return made


@pytest.fixture
def plan(model: ir.Model) -> Plan:
    return Plan({layer.name: quantise_layer(layer, symmetric(-3, 3)) for layer in survey(model).layers})


@pytest.fixture
def samples(model: ir.Model, random: np.random.Generator, opened: Callable[..., Samples]) -> Samples:
    return opened(list(random.standard_normal((9, 1, 6)).astype(np.float32)), model)


def test_each_choice_runs_as_its_own_model(model: ir.Model, plan: Plan, samples: Samples, evaluator: Evaluator) -> None:
    first, second = plan.items
    with Switchboard(evaluator, model, plan) as board:
        for chosen in ({first}, set(), {first, second}, {second}, {first}):
            found = board.run(samples.feeds(0), frozenset(chosen))
            own = qdq_model(model, plan.without(set(plan.items) - chosen))
            right = evaluator.run(own, samples.feeds(0))
            assert all(np.array_equal(found[name], value) for name, value in right.items())


def test_scores_by_their_definition(model: ir.Model, plan: Plan, samples: Samples, evaluator: Evaluator) -> None:
    everything = frozenset(plan.items)
    qdq = qdq_model(model, plan)
    pairs = [(evaluator.run(model, samples.feeds(n))["y"], evaluator.run(qdq, samples.feeds(n))) for n in (1, 4, 7)]
    with Switchboard(evaluator, model, plan) as board:
        judge = Judge(board, samples, (1, 4, 7), METRICS["cosine"], None)
        try:
            assert judge.reference == 1.0 and judge.score(frozenset()).loss == 0.0
            score = judge.score(everything)
            wanted = np.mean([METRICS["cosine"].measure(right, found["y"]) for right, found in pairs])
            assert score.quality == pytest.approx(wanted)
            squared = [np.square(found["y"] - right).sum() / np.square(right).sum() for right, found in pairs]
            differ = [float(found["best"][0, 0] != right.argmax()) for right, found in pairs]
            assert score.loss == pytest.approx(np.mean([(one + other) / 2 for one, other in zip(squared, differ, strict=True)]), rel=1e-3)
            assert judge.score(everything, 1).quality != score.quality  # one sample is not all
        finally:
            judge.close()


def test_a_metric_of_ones_own(model: ir.Model, plan: Plan, samples: Samples, evaluator: Evaluator) -> None:
    with Switchboard(evaluator, model, plan) as board:
        judge = Judge(board, samples, (2, 3), None, lambda number, outputs: number + float(outputs["y"].shape[1]))
        judge.close()
    assert judge.reference == 6.5


@pytest.mark.parametrize("name", ["max_abs", "sqnr", "nothing"])
def test_what_is_no_agreement(name: str) -> None:
    with pytest.raises(UsageError, match="no metric of agreement"):
        find_metric(name)
