"""Models left in training mode: the user says what was meant, and that is what later proofs compare with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from jumar import fix, migrate
from jumar.case import Case, Record
from jumar.graph import Evaluator, load
from jumar.targets import find_target
from jumar.verbs.meaning import restore_meaning

WEIGHTS = "float[3] s = {1, 2, 3}, float[3] b = {0, 0.5, 1}, float[3] m = {0.1, 0.2, 0.3}, float[3] v = {1, 2, 0.5}"
NORM = f"""agraph (float[2,3,4,4] x) => (float[2,3,4,4] y) <{WEIGHTS}> {{
    z, p, q = BatchNormalization<training_mode = 1, epsilon = 0.001>(x, s, b, m, v) y = Relu(z)
}}"""
DROPOUT = "agraph (float[2,3] x) => (float[2,3] y) <float half = {0.5}, bool yes = {1}> { z = Dropout(x, half, yes) y = Exp(z) }"


def codes(case: Case) -> set[str]:
    return {finding.code for finding in case.record.findings}


def test_nothing_changes_unasked(save_text: Callable[..., Path]) -> None:
    path = save_text(NORM, opset=15)
    case = fix(path, soc="Ascend310P3")
    assert "OP220" in codes(case)
    assert case.record.verdict == "blocked"
    assert case.model.graph[0].attributes["training_mode"].as_int() == 1


def test_batchnorm_as_it_is_meant(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    """Against the definition of inference, in numpy; the tolerance is two units of float32 of the largest element."""
    case = fix(save_text(NORM, opset=15), soc="Ascend310P3", unsafe=["OP220"])
    assert "OP220" not in codes(case)
    step = next(step for step in case.record.steps if step.code == "OP220")
    assert step.proof is None
    assert step.options["assumptions"]
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 4)).astype(np.float32)
    scale, bias, mean, variance = (
        np.array(item, np.float32).reshape(3, 1, 1) for item in ([1, 2, 3], [0, 0.5, 1], [0.1, 0.2, 0.3], [1, 2, 0.5])
    )
    expected = np.maximum((x - mean) / np.sqrt(variance + np.float32(0.001)) * scale + bias, 0)
    found = evaluator.run(case.model, {"x": x})["y"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2.4e-7 * np.abs(expected).max())
    assert np.abs(found - evaluator.run(load(save_text(NORM, opset=15)), {"x": x})["y"]).max() > 0.1, "the results must change"


def test_dropout_as_it_is_meant(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    case = fix(save_text(DROPOUT), soc="Ascend310P3", unsafe=["OP222"])
    assert [node.op_type for node in case.model.graph] == ["Exp"]
    x = np.array([[1, -2, 0.5], [0, 3, -1]], np.float32)
    np.testing.assert_allclose(evaluator.run(case.model, {"x": x})["y"], np.exp(x), rtol=3e-7)


def test_a_training_mode_that_is_an_input_is_bound(save_text: Callable[..., Path]) -> None:
    text = "agraph (float[2,3] x, bool train) => (float[2,3] y) <float half = {0.5}> { z = Dropout(x, half, train) y = Exp(z) }"
    path = save_text(text)
    found = [finding for finding in fix(path, soc="Ascend310P3").record.findings if finding.code == "OP222"]
    assert "--set-const train=false" in str(found[0].remedy)
    assert "OP222" not in codes(fix(path, soc="Ascend310P3", constants={"train": False}))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (NORM.replace("=> (float[2,3,4,4] y)", "=> (float[2,3,4,4] y, float[3] p)"), "are read"),
        (
            NORM.replace("float[3] m = {0.1, 0.2, 0.3}, float[3] v = {1, 2, 0.5}", "float[3] m = {0, 0, 0}, float[3] v = {1, 1, 1}"),
            "never trained",
        ),
        (NORM.replace("float[2,3,4,4] x)", "float[2,3,4,4] x, float[3] m)").replace("float[3] m = {0.1, 0.2, 0.3}, ", ""), "no weights"),
    ],
)
def test_statistics_that_cannot_stand_in(text: str, word: str, save_text: Callable[..., Path]) -> None:
    case = fix(save_text(text, opset=15), soc="Ascend310P3", unsafe=["OP220"])
    found = [finding for finding in case.record.findings if finding.code == "OP220"]
    assert word in str(found[0].remedy)
    assert not [step for step in case.record.steps if step.code == "OP220"]


def test_migrate_verifies_against_what_is_meant(save_text: Callable[..., Path], tmp_path: Path) -> None:
    case = migrate(save_text(NORM, opset=15), soc="Ascend310P3", unsafe=["OP220"], output=tmp_path / "bundle", dry_run=True)
    assert not {"OP220", "VF601"} & codes(case)


def test_random_numbers_are_never_compared_as_equal(save_text: Callable[..., Path]) -> None:
    case = fix(save_text("agraph (float[2,3] x) => (float[2,3] y) { z = RandomNormalLike(x) y = Add(x, z) }"), soc="Ascend310P3")
    assert "OP221" in codes(case)
    assert case.record.verdict == "blocked"


def test_a_model_without_such_nodes_is_the_same_object(save_text: Callable[..., Path]) -> None:
    model = load(save_text("agraph (float[2,3] x) => (float[2,3] y) { y = Relu(x) }"))
    assert restore_meaning(Case(model, find_target("Ascend310P3"), Record(verb="test")), ["OP220", "OP222"]) == (model, ())
