"""A record survives JSON and decides the verdict."""

from __future__ import annotations

import dataclasses
import json

import onnx_ir as ir
import pytest

from jumar import Artifact, Case, Finding, Measurement, Proof, Record, Step
from jumar.case import SCHEMA, ModelInfo, Placement, Severity, TensorInfo
from jumar.text import say

PROOF = Proof(2, 1.5, 0.25, 0.75, 1e-3, False, say("max_rel {x} is over the bound", "max_rel {x} 超过界限", x=0.25), 0.125, "max_scaled")
FULL = Record(
    verb="fix",
    model=ModelInfo(
        "m.onnx", "ab", 13, (TensorInfo("x", "float", (1, "N", None)), TensorInfo("q", "sequence", None)), (TensorInfo("y", "float", ()),)
    ),
    target={"soc": "Ascend310P3", "cann": "8.1.RC1", "opset_max": 18},
    findings=(
        Finding(
            "OP101",
            "no-parser",
            "error",
            say("no parser for {op}", "没有 {op} 的解析插件", op="X"),
            say("why", "原因"),
            say("remedy", "办法"),
            node="n",
            op="X",
            fix="safe",
            source_line="model.py:3",
            evidence=("a", "b"),
        ),
    ),
    placement=Placement(aicore=3, local=1),
    steps=(Step("OP101", "0.1.0", "ab", "cd", 0.5, {"limit": 3}, PROOF, "OP101", "rolled-back", ("n",), Proof(1, 0, 0, 1, 0, True)),),
    measurements=(Measurement("latency", 1.5, "ms", "estimate"),),
    artifacts=(Artifact("model.onnx", "ef", "onnx"),),
    interface={"inputs": [], "outputs": []},
    notes=(say("a note", "注意"),),
    resolved=(Finding("OP102", "x", "info", say("m", "信"), say("w", "因"), say("r", "法")),),
    data={"table": [1, 2]},
)


def finding(severity: Severity) -> Finding:
    return Finding("OP101", "name", severity, say("m", "信"), say("w", "因"), say("r", "法"))


@pytest.mark.parametrize("record", [Record(), FULL], ids=["empty", "full"])
def test_a_record_survives_json(record: Record) -> None:
    data = json.loads(json.dumps(record.to_dict(lang=None), allow_nan=False))
    again = Record.from_dict(data)
    for lang in ("en", "zh", None):
        assert again.to_dict(lang) == record.to_dict(lang)  # type: ignore[arg-type]


def test_the_full_record_leaves_no_field_at_its_default() -> None:
    """So that a new field cannot be forgotten in the round trip."""
    empty = Record()
    assert [field.name for field in dataclasses.fields(Record) if getattr(FULL, field.name) == getattr(empty, field.name)] == []
    assert set(FULL.to_dict()) == {field.name for field in dataclasses.fields(Record)} | {"schema", "jumar", "verdict"}
    for item, item_type in ((FULL.findings[0], Finding), (FULL.steps[0], Step), (PROOF, Proof)):
        defaults = {field.name: field.default for field in dataclasses.fields(item_type) if field.default is not dataclasses.MISSING}
        assert [name for name, value in defaults.items() if getattr(item, name) == value] == []


def test_the_schema_is_that_of_the_contract() -> None:
    data = FULL.to_dict()
    assert data["schema"] == SCHEMA == 1
    assert {"code", "name", "severity", "node", "op", "message", "why", "remedy", "fix", "source_line", "evidence"} <= data["findings"][
        0
    ].keys()
    assert {"name", "version", "options", "input_sha256", "output_sha256", "proof", "seconds"} <= data["steps"][0].keys()
    assert {"cases", "max_abs", "max_rel", "cosine", "bound", "passed"} <= data["steps"][0]["proof"].keys()
    assert {"aicore", "aicpu", "host", "none", "unknown"} <= data["placement"].keys()
    assert data["model"]["inputs"][0] == {"name": "x", "dtype": "float", "shape": [1, "N", None]}
    assert data["model"]["inputs"][1]["shape"] is None and data["model"]["outputs"][0]["shape"] == []


def test_a_record_speaks_one_language_or_keeps_both() -> None:
    def spoken(lang: str | None) -> tuple[object, ...]:
        data = FULL.to_dict(lang)  # type: ignore[arg-type]
        return data["findings"][0]["message"], data["steps"][0]["proof"]["reason"], data["notes"][0]

    assert spoken("en") == ("no parser for X", "max_rel 0.25 is over the bound", "a note")
    assert spoken("zh") == ("没有 X 的解析插件", "max_rel 0.25 超过界限", "注意")
    assert spoken(None)[2] == {"en": "a note", "zh": "注意"}


@pytest.mark.parametrize(
    ("severities", "verdict"),
    [
        ((), "ready"),
        (("info",), "ready"),
        (("info", "warning"), "warnings"),
        (("warning", "error", "info"), "blocked"),
        (("error",), "blocked"),
    ],
)
def test_the_worst_finding_decides(severities: tuple[Severity, ...], verdict: str) -> None:
    record = Record(findings=tuple(map(finding, severities)))
    assert record.verdict == record.to_dict()["verdict"] == verdict


def test_what_is_resolved_does_not_block() -> None:
    assert Record(resolved=(finding("error"),)).verdict == "ready"


def test_extending_appends_tuples_and_replaces_the_rest() -> None:
    first = Record(verb="check", findings=(finding("info"),), data={"a": 1})
    second = first.extend(findings=(finding("error"),), notes=[say("n", "注")], verb="fix", data={"b": 2}, placement=Placement(aicore=1))
    assert [item.severity for item in second.findings] == ["info", "error"]
    assert (second.verb, second.data, len(second.notes)) == ("fix", {"b": 2}, 1)
    assert second.placement == Placement(aicore=1)
    assert (first.verb, len(first.findings), first.notes) == ("check", 1, ())


def test_extending_by_an_unknown_field_is_an_error() -> None:
    with pytest.raises(AttributeError):
        Record().extend(nothing=())


def test_a_stage_returns_a_new_case() -> None:
    model = ir.from_onnx_text('<ir_version: 8, opset_import: ["" : 16]>\nagraph (float[2] x) => (float[2] y) { y = Relu(x) }')
    case = Case(model, None, Record())
    changed = case.replace(record=Record(verb="fix"))
    assert changed.model is model and changed.record.verb == "fix" and case.record.verb == ""
    other = model.clone()
    assert case.replace(model=other).model is other and case.model is model
    with pytest.raises(dataclasses.FrozenInstanceError):
        case.model = other  # type: ignore[misc]
