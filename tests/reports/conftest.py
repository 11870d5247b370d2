"""A record with something in every field, and all of it hostile."""

from __future__ import annotations

import pytest

from jumar.case import Artifact, Finding, Measurement, ModelInfo, Placement, Proof, Record, Step, TensorInfo
from jumar.text import say

EVIL = "<script>alert(1)</script> & \"q\" 'a' [bold]m[/bold] :smile: \x1b[31m\x07\r\u009b2J"


@pytest.fixture
def evil() -> str:
    return EVIL


@pytest.fixture
def hostile() -> Record:
    """Every text that may come from a model, a path or a log is ``EVIL``."""
    text = say("en {evil}", "中 {evil}", evil=EVIL)
    finding = Finding("OP202", "hardswish-no-kernel", "error", text, text, text, EVIL, EVIL, "safe", EVIL, (EVIL,))
    bad = Proof(2, 0.5, 0.25, 0.9, 1e-6, False, text)
    good = Proof(3, 1e-7, 2e-7, 1.0, 1e-6, True)
    step = Step("hardswish-no-kernel", "0.1", "1" * 64, "2" * 64, 0.5, {}, bad, "OP202", "rolled-back", (EVIL, "b"))
    return Record(
        verb="migrate",
        model=ModelInfo(EVIL, "1" * 64, 14, (TensorInfo(EVIL, EVIL, (1, EVIL, None)),), (TensorInfo("y", "float", None),)),
        target={"soc": EVIL, "cann": EVIL, "opset_max": 18},
        findings=(finding, finding),
        placement=Placement(aicore=2, unknown=1),
        steps=(
            step,
            Step("redundant-node", "0.1", None, None, 0.5, {}, good, "GR504", "applied", (EVIL,)),
            Step("compile", "0.1", None, None, 0.1, {"command": ["atc", f"--model={EVIL}"]}),
        ),
        measurements=tuple(Measurement(f"{EVIL}/{key}", 0.125, "1", "reference") for key in ("max_abs", "max_rel", "cosine")),
        artifacts=(Artifact(EVIL, "3" * 64, EVIL),),
        interface={"inputs": [{"original": EVIL, "name": EVIL, "original_dtype": EVIL, "dtype": EVIL}], "outputs": []},
        notes=(text,),
        resolved=(finding,),
        data={EVIL: EVIL},
    )
