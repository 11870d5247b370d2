"""The JSON of every verb follows data/record.schema.json, and the schema refuses what it should."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from jumar.cli.main import run
from jumar.rules import all_rules

SCHEMA: dict[str, Any] = json.loads(resources.files("jumar").joinpath("data", "record.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture
def record(capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """The record a call prints, validated."""

    def call(*words: object) -> dict[str, Any]:
        status = run([*map(str, words), "--format", "json"])
        out, err = capsys.readouterr()
        data: dict[str, Any] = json.loads(out)
        VALIDATOR.validate(data)
        assert err == ""
        assert status == (1 if data["verdict"] == "blocked" else 0)
        return data

    return call


@pytest.fixture
def model(save_text: Callable[..., Path]) -> Path:
    """Findings of all three severities on the vehicle target, changed ends, and rewrites."""
    text = """agraph (int64[2] ids, float[2,3] x) => (int64[2,1] best, float[2,3] y)
    <float[4,3] table = {0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11.}>
    { g = Gather(table, ids) s = Add(g, x) y = HardSwish(s) best = ArgMax<axis = 1>(y) }"""
    return save_text(text, opset=14)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_check(record: Callable[..., dict[str, Any]], model: Path, lang: str) -> None:
    data = record("check", model, "--target", "mdc510pro", "--lang", lang)
    assert (data["verb"], data["verdict"]) == ("check", "blocked")
    assert {item["severity"] for item in data["findings"]} >= {"error", "warning"}
    assert data["placement"] is not None


def test_fix(record: Callable[..., dict[str, Any]], model: Path, tmp_path: Path) -> None:
    data = record("fix", model, "--target", "mdc510pro", "-o", tmp_path / "o.onnx")
    assert {item["original"] for item in data["interface"]["inputs"]} == {"ids"}
    assert {step["status"] for step in data["steps"]} == {"applied"}
    assert data["resolved"]


def test_verify(record: Callable[..., dict[str, Any]], model: Path, relu: Path, save_text: Callable[..., Path]) -> None:
    assert record("verify", model, "--against", model)["verdict"] == "ready"
    other = save_text("agraph (float[2,3] x) => (float[2,3] y) { y = Exp(x) }", "other.onnx")
    data = record("verify", other, "--against", relu)
    assert (data["verdict"], data["target"], data["steps"][0]["proof"]["passed"]) == ("blocked", None, False)
    shape = save_text("agraph (float[2,3] x) => (float[6] y) <int64[1] s = {-1}> { y = Reshape(x, s) }", "shape.onnx")
    assert record("verify", shape, "--against", relu)["verdict"] == "blocked"  # an infinite difference, as JSON


def test_compile(record: Callable[..., dict[str, Any]], relu: Path, tmp_path: Path) -> None:
    data = record("compile", relu, "--soc", "Ascend310P3", "-o", tmp_path / "out", "--dry-run")
    assert [item["kind"] for item in data["artifacts"]] == ["script", "manifest"]


def test_migrate(record: Callable[..., dict[str, Any]], model: Path, tmp_path: Path) -> None:
    data = record("migrate", model, "--target", "mdc510pro", "-o", tmp_path / "b", "--dry-run")
    assert json.loads((tmp_path / "b" / "report.json").read_text(encoding="utf-8")) == data


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_explain(record: Callable[..., dict[str, Any]], rule: Any) -> None:
    data = record("explain", rule.code)
    assert data["data"]["code"] == rule.code


@pytest.mark.parametrize("words", [["claims"], ["CL003"], ["CL018"]])
def test_explain_claims(record: Callable[..., dict[str, Any]], words: list[str]) -> None:
    assert record("explain", *words)["data"]


TARGETS = [
    *(["show", name] for name in ("Ascend310P3", "mdc510pro", "Relu", "Ascend031", "npu::NPUGru", "Loop")),
    ["list"],
    ["diff", "Ascend310P3", "BS9SX1AA"],
]


@pytest.mark.parametrize("words", TARGETS, ids=" ".join)
def test_targets(record: Callable[..., dict[str, Any]], words: list[str]) -> None:
    assert record("targets", *words)["verb"] == "targets"


def mutations(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where a required key can be taken away."""
    found: list[tuple[Any, ...]] = []
    if isinstance(data, dict):
        for key, value in data.items():
            if path[:1] not in (("data",), ("interface",)) and "options" not in path and key != "reason":
                found.append((*path, key))
            found += mutations(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data[:1]):
            found += mutations(value, (*path, index))
    return found


def test_no_key_can_be_taken_away_and_any_can_be_added(record: Callable[..., dict[str, Any]], model: Path, tmp_path: Path) -> None:
    data = record("fix", model, "--target", "mdc510pro", "-o", tmp_path / "o.onnx")
    optional = {("target", key) for key in data["target"] if key not in ("soc", "cann", "opset_max")}
    places = [place for place in mutations(data) if place not in optional]
    assert len(places) > 60
    for *path, key in places:
        without, added = copy.deepcopy(data), copy.deepcopy(data)
        spot, more = without, added
        for step in path:
            spot, more = spot[step], more[step]
        del spot[key]
        more["added"] = {"later": 1}
        assert not VALIDATOR.is_valid(without), (*path, key)
        assert VALIDATOR.is_valid(added), (*path, key)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), 2),
        (("verdict",), "fine"),
        (("verdict",), "ready"),
        (("findings", 0, "severity"), "fatal"),
        (("findings", 0, "fix"), "maybe"),
        (("findings", 0, "code"), "op1"),
        (("findings", 0, "message"), ""),
        (("findings", 0, "message"), {"en": "a", "zh": "b"}),
        (("findings", 0, "evidence"), "text"),
        (("placement", "aicore"), -1),
        (("placement", "aicore"), 1.5),
        (("model", "sha256"), "abc"),
        (("model", "opset"), "14"),
        (("model", "inputs", 0, "shape"), [1.5]),
        (("target", "soc"), ""),
        (("notes",), [1]),
    ],
)
def test_wrong_values_are_refused(path: tuple[Any, ...], value: Any, record: Callable[..., dict[str, Any]], model: Path) -> None:
    data = record("check", model, "--target", "mdc510pro")
    spot: Any = data
    for step in path[:-1]:
        spot = spot[step]
    spot[path[-1]] = value
    assert not VALIDATOR.is_valid(data)


@pytest.mark.parametrize(
    ("name", "value", "good"),
    [
        ("step", {"status": "applied"}, True),
        ("step", {"status": "undone"}, False),
        ("step", {"seconds": -1}, False),
        (
            "step",
            {
                "proof": {
                    "cases": 1,
                    "max_abs": 0,
                    "max_rel": 0,
                    "max_scaled": 0,
                    "measure": "max_rel",
                    "cosine": 1,
                    "bound": 0,
                    "passed": True,
                }
            },
            True,
        ),
        (
            "step",
            {
                "proof": {
                    "cases": 1,
                    "max_abs": 0,
                    "max_rel": 0,
                    "max_scaled": 0,
                    "measure": "max_rel",
                    "cosine": 1,
                    "bound": 0,
                    "passed": False,
                }
            },
            False,
        ),
        ("measurement", {"origin": "estimate"}, True),
        ("measurement", {"origin": "guess"}, False),
        ("measurement", {"value": "1"}, False),
        ("artifact", {"kind": "om"}, True),
        ("artifact", {"sha256": "A" * 64}, False),
    ],
)
def test_parts(name: str, value: dict[str, Any], good: bool) -> None:
    part: dict[str, Any] = {
        "step": {
            "name": "n", "version": "1", "options": {}, "input_sha256": None, "output_sha256": "0" * 64, "proof": None,
            "seconds": 0.5, "code": None, "status": "done", "nodes": [], "subgraphs": None,
        },
        "measurement": {"name": "y/max_abs", "value": 0.5, "unit": "1", "origin": "reference"},
        "artifact": {"path": "m.onnx", "sha256": "0" * 64, "kind": "model"},
    }[name]  # fmt: skip
    validator = jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})
    assert validator.is_valid(part)
    assert validator.is_valid({**part, **value}) == good
