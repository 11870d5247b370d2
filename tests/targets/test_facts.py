"""The packaged facts are the shared ones, and the answers at every table entry are what the entry says.

What is expected is computed here from the tables of ``../shared/facts``, not by the code under test.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from jumar.targets import Status, find_target, soc_info, socs, support
from jumar.targets.kernels import KernelTable, kernel_table
from jumar.targets.parser import parser_status
from jumar.targets.tables import cann_state, table

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "src" / "jumar" / "data"
DEFAULT, OLD = "8.1.RC1", "canndev-2022-06"

# The class of facts/ops/onnx_soc_matrix.json -> our answer.
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
# State -> the whole trees before and after it; the three partial trees speak for the operators they hold.
BETWEEN = {
    "5.0.4": ("canndev-2021-06", ("canndev-2021-12",)),
    "6.0.1": ("canndev-2021-12", ("canndev-2022-06",)),
    "7.0.0": (OLD, ("8.5.0", "9.2.0-beta.2")),
    "8.0.0": (OLD, ("8.5.0", "9.2.0-beta.2")),
    DEFAULT: (OLD, ("8.5.0", "9.2.0-beta.2")),
    "8.5.0": (OLD, ("9.2.0-beta.2",)),
    "9.0.0": (OLD, ("9.2.0-beta.2",)),
    "9.1.0": (OLD, ("9.2.0-beta.2",)),
}
EXACT = ("canndev-2021-06", "canndev-2021-12", OLD, "8.5.0", "9.0.0", "9.1.0", "9.2.0-beta.2", "master")

Opsets = dict[str, set[int]]


@pytest.fixture(scope="module")
def ops(shared: Path) -> Path:
    return shared / "facts" / "ops"


@pytest.fixture(scope="module")
def matrix(ops: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((ops / "onnx_soc_matrix.json").read_text(encoding="utf-8"))["ops"]
    return data


@pytest.fixture(scope="module")
def frontend(ops: Path) -> dict[str, Opsets]:
    """Registered opsets by operator and CANN state."""
    rows = json.loads((ops / "onnx_frontend.json").read_text(encoding="utf-8"))["rows"]
    return {
        row["op"] if row["domain"] == "ai.onnx" else f"{row['domain']}::{row['op']}": {
            state: {opset for registration in found for opset in registration["opsets"]} for state, found in row["releases"].items()
        }
        for row in rows
    }


@pytest.fixture(scope="module")
def registrations(ops: Path) -> dict[str, Any]:
    """Registrations of the standard operators by CANN state."""
    rows = json.loads((ops / "onnx_frontend.json").read_text(encoding="utf-8"))["rows"]
    return {row["op"]: row["releases"] for row in rows if row["domain"] == "ai.onnx"}


def forms(releases: dict[str, Any], opset: int) -> set[frozenset[str]]:
    """The sets of IR operators that the states around 8.1.RC1 make of an operator.

    A state that does not know the opset would extend its newest form.
    """
    older, newer = BETWEEN[DEFAULT]
    found = set()
    for state in (older, next((name for name in newer if name in releases), "")):
        listed = releases.get(state, [])
        matching = [item for item in listed if opset in item["opsets"]] or listed[-1:]
        found |= {frozenset(item.get("subgraph_ir_ops") or [item["ir_op"]]) - {"Const"} for item in matching}
    return found


@pytest.fixture(scope="module")
def one_soc() -> dict[str, str]:
    """A soc_version for each kernel table of 8.1.RC1."""
    found: dict[str, str] = {}
    for name in socs():
        kernels = soc_info(name).kernels
        if kernels and (DATA / "kernels" / f"{DEFAULT}_{kernels}.json.gz").is_file():
            found.setdefault(kernels, name)
    return found


def sides(states: Opsets, state: str) -> tuple[set[int], set[int]]:
    """Opsets registered before and after a state without public parser sources."""
    older, newer = BETWEEN[state]
    return states.get(older, set()), next((states[name] for name in newer if name in states), set())


def is_sequence(op: str) -> bool:
    return op.startswith("Sequence") or op.endswith(("ToSequence", "FromSequence"))


# Operator x SoC


@pytest.mark.parametrize("kernels", sorted(path.stem.split("_", 1)[1].split(".")[0] for path in (DATA / "kernels").glob(f"{DEFAULT}_*")))
def test_every_operator_at_every_opset_is_what_the_table_of_the_soc_says(
    kernels: str, matrix: dict[str, Any], frontend: dict[str, Opsets], registrations: dict[str, Any], one_soc: dict[str, str]
) -> None:
    """Opsets registered on both sides of 8.1.RC1: what the kernels say. On one side only: unknown, if there is a kernel at all."""
    target = find_target(one_soc[kernels])
    compared, wrong = 0, []
    for op, entry in matrix.items():
        verdicts = {frozenset(alternative["kernels"]): alternative["verdict"] for alternative in entry["soc"][kernels]}
        before, after = sides(frontend[op], DEFAULT)
        for opset in sorted((before | after) & {*range(8, 19)}):
            raw = {verdicts[parts] for parts in forms(registrations[op], opset)}
            # AI Core with or without a pass is one answer, and so are the two libraries of the AI CPU.
            answers = {ANSWERS[verdict] for verdict in raw}
            expected = answers.pop() if len(answers) == 1 else UNKNOWN
            one_sided = not (opset in after and (opset in before or (before and opset > max(before))))
            if is_sequence(op) or (expected[1] == "aicpu" and kernels in VEHICLES) or (one_sided and expected[0] is not Status.NO_KERNEL):
                expected = UNKNOWN
            answer = support("", op, opset, target)
            compared += 1
            if (answer.status, answer.engine) != expected:
                wrong.append(f"{op} {opset}: {sorted(raw)} -> {answer.status.value}, expected {expected[0].value}")
    assert not wrong, "\n".join(wrong)
    assert compared > 1000


def test_every_soc_version_answers_as_its_table(matrix: dict[str, Any], one_soc: dict[str, str]) -> None:
    """All SoCs that share a table get one answer; without a table nothing that needs a kernel is known."""
    for name in socs():
        info = soc_info(name)
        first = one_soc.get(info.kernels or "")
        for op in matrix:
            answer = support("", op, 13, find_target(name))
            if first is not None:
                assert answer.status is support("", op, 13, find_target(first)).status, (name, op)
            else:
                assert answer.status in (Status.UNKNOWN, Status.NO_PARSER, Status.NO_PARSER_AT_OPSET, Status.NO_KERNEL_NEEDED), (name, op)


def test_the_join_gives_every_verdict_of_the_matrix(matrix: dict[str, Any], one_soc: dict[str, str]) -> None:
    compared = 0
    for op, entry in matrix.items():
        for kernels, alternatives in entry["soc"].items():
            held = kernels_of(one_soc[kernels])
            for alternative in alternatives:
                assert held.place_all(op, tuple(alternative["kernels"])) == alternative["verdict"], (op, kernels)
                compared += 1
    assert compared == 3043


@cache
def kernels_of(soc: str, cann: str = DEFAULT) -> KernelTable:
    found = kernel_table(cann, soc_info(soc))
    assert found is not None
    return found


def test_every_kernel_table_belongs_to_a_soc(matrix: dict[str, Any], one_soc: dict[str, str]) -> None:
    assert {*one_soc} == {kernels for entry in matrix.values() for kernels in entry["soc"]}
    assert len(one_soc) == 17


# The kernel tables themselves


def source_tables(ops: Path, state: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(ops.glob(f"ir_dtypes_{state}_*.json")):
        name = path.stem.removeprefix(f"ir_dtypes_{state}_")
        if name != "vector_core":
            yield name, json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("state", "count"), [(DEFAULT, 17), (OLD, 14)])
def test_every_kernel_and_every_dtype_of_every_input_is_kept(ops: Path, state: str, count: int) -> None:
    letters = {"AICore": "A", "DSA": "A", "AICPU": "C", "AICPU_TF": "T"}
    tables = dict(source_tables(ops, state))
    assert len(tables) == count
    for name, source in tables.items():
        data = table(f"kernels/{state}_{name}.json.gz")
        packed = KernelTable(data["cann"], data["soc"], data["source"], tuple(data["dtypes"]), data["ops"])
        assert (packed.cann, packed.soc) == (source["cann"], source["soc"]) and packed.source
        for ir, engines in source["ops"].items():
            expected = {letters[engine] for engine in engines if engine in letters}
            assert {*packed.engines(ir)} == expected, (name, ir)
            for engine, letter in (("AICore", "A"), ("AICPU", "C")):
                if engine in engines:
                    wanted = [(item["name"], frozenset(item["dtypes"])) for item in engines[engine]["inputs"]]
                    assert [(item[0], item[1]) for item in packed.inputs(ir, letter)] == wanted, (name, ir)


PLACES_2022 = [
    # read from facts/ops/ir_dtypes_canndev-2022-06_*.json by eye: SoC, IR operator, place
    ("Ascend310P3", "Conv2D", "aicore"),
    ("Ascend310P3", "NonZero", "aicore"),
    ("Ascend310", "NonZero", "aicpu"),
    ("Ascend310P3", "TopK", "aicore_via_pass"),
    ("Ascend310P3", "Sort", "aicore"),
    ("SD3403", "Conv2D", "aicore"),
    ("Ascend310", "ScatterNdUpdate", "aicore"),
    ("Ascend310", "Unique", "none"),
    ("Ascend910A", "TopKD", "aicore"),
    ("Ascend310B1", "Conv2D", "aicore"),
    ("Ascend310P3", "Reshape", "local"),
]


def test_placements_of_2022_06_follow_its_tables(ops: Path) -> None:
    """For all its operators and SoCs: an AI Core kernel places on the AI Core, and nothing is placed where no engine lists it."""
    rules = table("ir.json.gz")
    for name, source in source_tables(ops, OLD):
        data = table(f"kernels/{OLD}_{name}.json.gz")
        packed = KernelTable(data["cann"], data["soc"], data["source"], tuple(data["dtypes"]), data["ops"])
        for ir, engines in source["ops"].items():
            place = packed.place(ir)
            if ir in rules["local"]:
                assert place == "local"
            elif "AICore" in engines or "DSA" in engines:
                assert place == "aicore", (name, ir)
            elif place in ("aicpu", "aicpu_tf"):
                assert ("AICPU" if place == "aicpu" else "AICPU_TF") in engines, (name, ir)
                assert f"{ir}D" not in source["ops"] or "AICore" not in source["ops"][f"{ir}D"], (name, ir)
        assert packed.place("NoSuchOperator") == "none"


@pytest.mark.parametrize(("soc", "ir", "place"), PLACES_2022)
def test_known_placements_of_2022_06(soc: str, ir: str, place: str) -> None:
    assert kernels_of(soc, OLD).place(ir) == place


# Operator x opset x CANN state


@pytest.mark.parametrize("state", [*dict.fromkeys((*EXACT, *BETWEEN))])
def test_the_parser_answer_is_what_the_sources_of_the_state_say(state: str, frontend: dict[str, Opsets]) -> None:
    facts, compared = cann_state(state), 0
    for key, states in frontend.items():
        if key == "Constant":
            continue
        for opset in range(6, 27):
            if state in states or state not in BETWEEN:
                registered, maybe = opset in states.get(state, set()), False
            else:
                before, after = sides(states, state)
                registered = opset in after and (opset in before or (bool(before) and opset > max(before)))
                maybe = opset in before | after
            expected = Status.NO_PARSER_AT_OPSET
            if registered and facts["opset_min"] <= opset <= facts["opset_max"]:
                expected = Status.SUPPORTED
            elif registered or maybe:
                expected = Status.UNKNOWN
            assert parser_status(key, opset, state) is expected, (key, opset)
            compared += 1
    assert compared > 7000


def test_an_operator_that_no_state_registers_has_no_parser(frontend: dict[str, Opsets], ops: Path) -> None:
    missing = json.loads((ops / "onnx_missing.json").read_text(encoding="utf-8"))
    target = find_target("Ascend310P3")
    names = {op for found in missing["by_release_and_opset"].values() for op in found["no_plugin_at_any_opset"]} - {*frontend, "Constant"}
    assert len(names) > 20
    assert {op for op in names if support("", op, 13, target).status is not Status.NO_PARSER} == set()


# Operator and opsets of the peer's map that no public parser source registers, and why.
PEER_DISAGREEMENTS = {
    # Caffe2's quantised filler: its plug-in was dropped after 2022-06 (opset 15); the map is of a CANN in between, whose sources are closed.
    "Int8GivenTensorFill": [16],
    # The map's plug-in (LpNorm) is the one of 2022-06, extended to 18 in a CANN in between; from 8.5 on (LpNormV2) it ends at 17.
    "ReduceL1": [18],
    "ReduceL2": [18],
}


def test_the_map_of_a_peer_agrees_or_the_cause_is_known(shared: Path, frontend: dict[str, Opsets]) -> None:
    """Its CANN version is not stated; so each of its opsets must be registered in some state."""
    rows = json.loads((shared / "facts" / "peers" / "onnx_parser_map.json").read_text(encoding="utf-8"))["ops"]
    found = {}
    for row in rows:
        key = row["onnx_op"] if row["domain"] == "ai.onnx" else f"{row['domain']}::{row['onnx_op']}"
        missing = {
            opset
            for opset in row["opsets"]
            if all(parser_status(key, opset, s) in (Status.NO_PARSER, Status.NO_PARSER_AT_OPSET) for s in EXACT)
        }
        if missing:
            found[row["onnx_op"]] = sorted(missing)
    assert len(rows) == 263
    assert found == PEER_DISAGREEMENTS


# SoCs


def test_every_soc_version_is_known(shared: Path) -> None:
    rows = json.loads((shared / "facts" / "toolchain" / "soc_versions.json").read_text(encoding="utf-8"))["rows"]
    assert len(rows) == 45 and {*socs()} == {row["soc_version"] for row in rows}
    for row in rows:
        info = soc_info(row["soc_version"])
        assert (info.short, info.family) == (row["short_soc_version"], row["family"])
        assert (info.ai_cores, info.ai_cpus, info.memory_bytes) == (row["ai_core_cnt"], row["ai_cpu_cnt"], row["memory_size_bytes"])
        assert find_target(row["soc_version"]).soc == info
        assert info.aicpu_package == ("unknown" if info.short.lower() in VEHICLES else "toolkit")


# The files


def test_compiling_the_facts_again_gives_the_same_bytes(shared: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "compile_facts.py"), str(shared / "facts"), str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    made = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert made >= {Path("socs.json"), Path("onnx_parser.json"), Path("ir.json.gz")}
    assert {name for name in made if name.parts[0] == "kernels"} == {path.relative_to(DATA) for path in (DATA / "kernels").iterdir()}
    different = [name for name in made if (tmp_path / name).read_bytes() != (DATA / name).read_bytes()]
    assert different == [], "run tools/compile_facts.py"


def test_the_facts_in_the_wheel_stay_small() -> None:
    assert sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file()) < 4_000_000


def test_no_table_is_read_before_it_is_asked_for() -> None:
    code = """
import sys
opened = []
sys.addaudithook(lambda event, details: opened.append(str(details[0])) if event == "open" and "jumar/data" in str(details[0]) else None)
import jumar.targets as targets
assert not opened, opened
target = targets.find_target("Ascend310P3")
assert not [name for name in opened if "kernels" in name], opened
targets.support("", "Conv", 13, target)
assert [name.rsplit("/", 1)[1] for name in opened if "kernels" in name] == ["8.1.RC1_ascend310p.json.gz"], opened
"""
    subprocess.run([sys.executable, "-c", code], check=True)
