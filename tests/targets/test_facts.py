"""The compiled facts are the shared ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jumar.targets import Status, find_target, soc_info, socs, support

ROOT = Path(__file__).resolve().parents[2]

# The class of facts/ops/onnx_soc_matrix.json -> our answer, spelled out here and not read from the code.
ANSWERS = {
    "aicore": (Status.SUPPORTED, "aicore"),
    "aicore_via_pass": (Status.SUPPORTED, "aicore"),
    "aicore_if_const": (Status.NEEDS_CONSTANT, "aicore"),
    "local": (Status.NO_KERNEL_NEEDED, "local"),
    "aicpu": (Status.AICPU_ONLY, "aicpu"),
    "aicpu_tf": (Status.AICPU_ONLY, "aicpu"),
    "none": (Status.NO_KERNEL, "none"),
}
UNKNOWN = (Status.UNKNOWN, "unknown")
VEHICLES = {"ascend610", "ascend610lite", "bs9sx1a", "bs9sx2a", "mc61am21a", "as31xm1"}


@pytest.fixture(scope="module")
def matrix(shared: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((shared / "facts" / "ops" / "onnx_soc_matrix.json").read_text(encoding="utf-8"))
    return data


@pytest.fixture(scope="module")
def parser(shared: Path) -> dict[str, dict[str, set[int]]]:
    """Registered opsets by operator of the standard domain and CANN state."""
    rows = json.loads((shared / "facts" / "ops" / "onnx_frontend.json").read_text(encoding="utf-8"))["rows"]
    return {
        row["op"]: {
            state: {opset for registration in found for opset in registration["opsets"]} for state, found in row["releases"].items()
        }
        for row in rows
        if row["domain"] == "ai.onnx"
    }


def test_every_operator_on_every_soc_is_what_the_table_says(matrix: dict[str, Any], parser: dict[str, dict[str, set[int]]]) -> None:
    """The one opset asked at is registered before and after 8.1.RC1, so that only the kernel decides."""
    by_kernels: dict[str, str] = {}
    for name in socs():
        kernels = soc_info(name).kernels
        if kernels:
            by_kernels.setdefault(kernels, name)
    compared, wrong = 0, []
    for op, entry in matrix["ops"].items():
        states = parser.get(op, {})
        both = states.get("canndev-2022-06", set()) & next((states[state] for state in ("8.5.0", "9.2.0-beta.2") if state in states), set())
        if not both:
            continue
        for kernels, alternatives in entry["soc"].items():
            if kernels not in by_kernels:
                continue
            verdicts = {ANSWERS[alternative["verdict"]] for alternative in alternatives}
            raw = {alternative["verdict"] for alternative in alternatives}
            # Two kinds of AI CPU kernels still disagree on what is needed, so only AI Core with and without a pass is one answer.
            agree = len(raw) == 1 or raw <= {"aicore", "aicore_via_pass"}
            expected = verdicts.pop() if agree else UNKNOWN
            sequence = op.startswith("Sequence") or op.endswith(("ToSequence", "FromSequence"))
            if (expected[0] is Status.NO_KERNEL and sequence) or (expected[1] == "aicpu" and kernels in VEHICLES):
                expected = UNKNOWN
            answer = support("", op, max(both), find_target(by_kernels[kernels]))
            compared += 1
            if (answer.status, answer.engine) != expected:
                wrong.append((op, kernels, sorted(raw), answer.status, expected))
    assert wrong == []
    assert compared > 1500  # nearly all of the 162 operators on the SoCs that have a public table


def test_every_kernel_table_belongs_to_a_soc(matrix: dict[str, Any]) -> None:
    """All but the tables of parts that are no soc_version of ATC's list."""
    known = {soc_info(name).kernels for name in socs()}
    tables = {kernels for entry in matrix["ops"].values() for kernels in entry["soc"]}
    assert len(tables & known) >= 10
    assert {kernels for kernels in known if kernels} <= tables


def test_an_operator_is_registered_where_the_sources_say(parser: dict[str, dict[str, set[int]]]) -> None:
    target = find_target("Ascend310P3")
    refused = {Status.NO_PARSER, Status.NO_PARSER_AT_OPSET}
    for op, states in parser.items():
        if op == "Constant":
            continue
        older = states.get("canndev-2022-06", set())
        newer = next((states[state] for state in ("8.5.0", "9.2.0-beta.2") if state in states), set())
        for opset in range(7, 25):
            status = support("", op, opset, target).status
            assert (status in refused) is (opset not in older | newer), (op, opset, status)
            if opset in older & newer and opset > 18:
                assert status is Status.UNKNOWN, (op, opset, status)


def test_every_soc_version_is_known(shared: Path) -> None:
    table = json.loads((shared / "facts" / "toolchain" / "soc_versions.json").read_text(encoding="utf-8"))
    names = {row["soc_version"] for row in table["rows"]}
    assert len(names) > 30 and {*socs()} == names
    for row in table["rows"]:
        info = soc_info(row["soc_version"])
        assert (info.short, info.family) == (row["short_soc_version"], row["family"])
        assert (info.ai_cores, info.ai_cpus, info.memory_bytes) == (row["ai_core_cnt"], row["ai_cpu_cnt"], row["memory_size_bytes"])
        assert find_target(row["soc_version"]).soc == info
        assert info.aicpu_package == ("unknown" if info.short.lower() in VEHICLES else "toolkit")


def test_compiling_the_facts_again_gives_the_same_bytes(shared: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "compile_facts.py"), str(shared / "facts"), str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made == ["onnx_parser.json", "onnx_placement.json", "socs.json"]
    for name in made:
        assert (tmp_path / name).read_bytes() == (ROOT / "src" / "jumar" / "data" / name).read_bytes(), (
            f"run tools/compile_facts.py ({name})"
        )


def test_the_facts_in_the_wheel_stay_small() -> None:
    """Limit: one megabyte in all."""
    assert sum(path.stat().st_size for path in (ROOT / "src" / "jumar" / "data").glob("*.json")) < 1_000_000
