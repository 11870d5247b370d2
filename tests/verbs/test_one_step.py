"""``--one-step``: a recurrent model becomes a model of one step before anything else, proven on whole sequences."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar import UsageError, fix, migrate, verify
from jumar.graph import Evaluator
from jumar.verbs import one_step as one_step_module
from jumar.verbs.one_step import again, parse_one_step

SOC = "Ascend310P3"
STEPS = 500
WEIGHTS = """float[1,6,2] w = {0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, -0.8, 0.9, 0.2, 0.3, -0.4},
    float[1,6,2] r = {0.2, 0.1, -0.3, 0.5, 0.4, -0.6, 0.3, 0.7, -0.1, 0.8, 0.2, 0.6}"""


def gru(steps: object, more: str = "", first: str = "") -> str:
    """A GRU whose equations the target's kernel does not compute (linear_before_reset=0)."""
    return f"""agraph (float[{steps},1,2] x) => (float[{steps},1,1,2] y) <{WEIGHTS}{first}> {{
        y = GRU<hidden_size = 2{more}>(x, w, r{", , , h0" if first else ""}) }}"""


def test_too_long_to_unroll_becomes_a_step(save_text: Callable[..., Path], tmp_path: Path, evaluator: Evaluator) -> None:
    path = save_text(gru(STEPS, first=", float[1,1,2] h0 = {0.5, -0.25}"))
    plain = fix(path, soc=SOC, evaluator=evaluator).record
    refused = next(item for item in plain.findings if item.code == "OP225")
    assert "--one-step" in str(refused.remedy)

    case = migrate(path, output=tmp_path / "b", soc=SOC, one_step={"x": 0}, dry_run=True)
    assert case.record.verdict == "ready"
    assert {node.op_type for node in case.model.graph}.isdisjoint({"GRU"})
    step = next(item for item in case.record.steps if item.name == "one-step")
    assert step.proof is not None and step.proof.passed and step.proof.max_scaled < 1e-5
    told = json.loads((tmp_path / "b" / "manifest.json").read_text())["one_step"][0]["one_step"]
    assert told["steps"] == STEPS
    assert told["states"] == [{"input": "GRU_state_in", "output": "GRU_state_out", "shape": [1, 1, 2], "initial": [[[0.5, -0.25]]]}]

    # What the manifest says is enough to run it.
    x = np.random.default_rng(0).standard_normal((STEPS, 1, 2)).astype(np.float32)
    state, found = np.array(told["states"][0]["initial"], np.float32), []
    with evaluator.session(case.model) as session:
        for row in x:
            now = session.run({"x": row[None], "GRU_state_in": state})
            state = now["GRU_state_out"]
            found.append(now["y"])
    whole = evaluator.run(ir.load(path), {"x": x})["y"]
    np.testing.assert_allclose(np.concatenate(found), whole, rtol=0, atol=1e-5)

    assert not verify(tmp_path / "b" / "model.onnx", evaluator=evaluator).record.findings  # by the manifest alone


def test_feeds_are_whole_sequences(save_text: Callable[..., Path], tmp_path: Path, evaluator: Evaluator) -> None:
    path, feeds = save_text(gru("T")), tmp_path / "feeds.npz"
    np.savez(feeds, x=np.random.default_rng(1).standard_normal((7, 1, 2)).astype(np.float32))
    case = fix(path, soc=SOC, one_step={"x": 0}, shapes={"x": (7, 1, 2)}, feeds=feeds, evaluator=evaluator)
    assert [tuple(value.shape or ()) for value in case.model.graph.inputs] == [(1, 1, 2), (1, 1, 2)]
    assert any("sequences of 7 steps" in str(note) for note in case.record.notes)


def test_a_state_the_model_takes_already_is_named(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    path = save_text(
        f"""agraph (float[4,1,2] x, float[1,1,2] h) => (float[4,1,1,2] y, float[1,1,2] hn) <{WEIGHTS}> {{
        half = Identity(h) y, hn = GRU<hidden_size = 2>(x, w, r, , , half) }}"""
    )
    with pytest.raises(UsageError, match="no constant"):
        fix(path, soc=SOC, one_step={"x": 0}, evaluator=evaluator)
    case = fix(path, soc=SOC, one_step={"x": 0, "h": "hn"}, evaluator=evaluator)
    assert [value.name for value in case.model.graph.inputs] == ["x", "h"]


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        (gru(4), {"one_step": {"z": 0}}, "no input `z`"),
        (gru("T"), {"one_step": {"x": 0}}, "not fixed"),
        (gru(4), {"one_step": {"x": 0}, "constants": {"x": 0}}, "--set-const"),
        (gru(4), {"one_step": {"x": 7}}, "dimension 7"),
        (gru(1), {"one_step": {"x": 0}}, "1 steps"),
        (gru(4, more=', direction = "reverse"'), {"one_step": {"x": 0}}, "backward"),
        (
            f"""agraph (float[4,1,2] x) => (float[4,1,1,2] y) <{WEIGHTS}> {{
            m = ReduceMean<axes = [0], keepdims = 1>(x) c = Sub(x, m) y = GRU<hidden_size = 2>(c, w, r) }}""",
            {"one_step": {"x": 0}},
            "over the bound",
        ),
    ],
    ids=["unknown", "open", "bound", "dimension", "one step", "backward", "looks at other steps"],
)
def test_what_is_no_step_is_refused(text: str, options: dict, reason: str, save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    with pytest.raises(UsageError, match=reason):
        fix(save_text(text), soc=SOC, evaluator=evaluator, **options)


def test_a_wrong_step_is_caught(save_text: Callable[..., Path], evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = one_step_module.step_model

    def spoilt(*args: object, **options: object) -> object:
        made = plain(*args, **options)  # type: ignore[arg-type]
        weight = made.model.graph.initializers["r"]
        weight.const_value = ir.tensor(weight.const_value.numpy() * np.float32(1.01), name="r")
        return made

    monkeypatch.setattr(one_step_module, "step_model", spoilt)
    with pytest.raises(UsageError, match="over the bound"):
        fix(save_text(gru(6)), soc=SOC, one_step={"x": 0}, evaluator=evaluator)


@pytest.mark.parametrize(
    "said", [{}, {"one_step": 1}, {"one_step": {"inputs": {"x": []}, "sizes": {}}}, {"one_step": {"sizes": {"x": "ab"}}}]
)
def test_a_damaged_manifest_is_one_line(said: dict, evaluator: Evaluator) -> None:
    with pytest.raises(UsageError, match="manifest"):
        again(
            ir.from_onnx_text('<ir_version: 8, opset_import: ["" : 13]> agraph (float[1] x) => (float[1] y) { y = Relu(x) }'),
            said,
            None,
            evaluator,
        )


def test_what_is_written_is_read() -> None:
    assert parse_one_step(["x:0; a:b:1", "h=hn"]) == {"x": 0, "a:b": 1, "h": "hn"}
    for wrong in ("x", "x:", "x:-1", ":0", "=y", "h=", "x:1000"):
        with pytest.raises(UsageError, match="neither"):
            parse_one_step([wrong])


@given(text=st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse_one_step([text])
    except UsageError:
        return
    assert all(name and (place if isinstance(place, str) else place >= 0) is not False for name, place in found.items())
