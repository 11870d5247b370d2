"""``fix --cut`` and ``migrate --cut``: parts for host and device whose chain gives what the original gives."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from jumar import check, fix, migrate, verify
from jumar.cutting import Chain, load_chain
from jumar.errors import UsageError
from jumar.graph import Evaluator
from jumar.proof.metrics import compare_all
from jumar.targets.declared import forget


@pytest.fixture
def detector(tmp_path: Path) -> Path:
    """A product, the best of sixteen, and its name as a string, which no device has."""
    random = np.random.default_rng(0)
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "w"], ["a"], name="product"),
        onnx.helper.make_node("Sigmoid", ["a"], ["scores"], name="sigmoid"),
        onnx.helper.make_node("ArgMax", ["scores"], ["best"], name="best", axis=2, keepdims=0),
        onnx.helper.make_node(
            "LabelEncoder",
            ["best"],
            ["y"],
            name="label",
            domain="ai.onnx.ml",
            keys_int64s=list(range(16)),
            values_strings=[f"class {number}" for number in range(16)],
        ),
    ]
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes,
        "g",
        [info("x", onnx.TensorProto.FLOAT, [1, 8, 16])],
        [info("y", onnx.TensorProto.STRING, [1, 8])],
        [onnx.numpy_helper.from_array(random.standard_normal((16, 16)).astype(np.float32), "w")],
    )
    path = tmp_path / "detector.onnx"
    imports = [onnx.helper.make_opsetid("", 11), onnx.helper.make_opsetid("ai.onnx.ml", 2)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=imports, ir_version=8), path)
    return path


def test_what_the_device_lacks_goes_to_the_host(detector: Path, tmp_path: Path, evaluator: Evaluator) -> None:
    case = fix(detector, target="mdc510pro", cut=True, output=tmp_path / "out.onnx", evaluator=evaluator)
    assert case.record.verdict in ("ready", "warnings")
    assert [node.op_type for node in case.model.graph][:3] == ["MatMul", "Sigmoid", "ArgMax"]
    assert {"CU850"} <= {item.code for item in case.record.findings}
    step = next(step for step in case.record.steps if step.name == "cut")
    assert step.proof is not None and step.proof.passed
    assert [part["part"] for part in step.options["cut"]] == ["device", "after"]
    assert {Path(item.path).name for item in case.record.artifacts} == {"out.onnx", "out.after.onnx"}
    chain = load_chain(tmp_path / "out.onnx", step.options["cut"])
    assert chain is not None
    feed = {"x": np.random.default_rng(5).standard_normal((1, 8, 16)).astype(np.float32)}
    found = chain.run(evaluator, feed)
    expected = evaluator.run(ir.load(detector), feed)
    assert all(item.max_rel == 0.0 and item.reason is None for item in compare_all(found, expected).values())


def test_swapped_parts_do_not_pass(detector: Path, tmp_path: Path, evaluator: Evaluator) -> None:
    """The planted error: the device part of another model."""
    case = fix(detector, target="mdc510pro", cut=True, output=tmp_path / "out.onnx", evaluator=evaluator)
    told = next(step.options["cut"] for step in case.record.steps if step.name == "cut")
    chain = load_chain(tmp_path / "out.onnx", told)
    assert chain is not None
    wrong = ir.load(tmp_path / "out.onnx")
    weight = wrong.graph.initializers["w"]
    weight.const_value = ir.tensor(-weight.const_value.numpy(), name="w")  # type: ignore[union-attr]
    spoilt = Chain((replace(chain.parts[0], model=wrong), *chain.parts[1:]), chain.outputs)
    feed = {"x": np.random.default_rng(5).standard_normal((1, 8, 16)).astype(np.float32)}
    found, expected = spoilt.run(evaluator, feed), chain.run(evaluator, feed)
    # Other scores, so that other names are the best.
    assert any(item.reason is not None or item.max_rel > 1e-3 for item in compare_all(found, expected).values())


def test_a_bundle_of_a_cut_model_is_verified_as_a_chain(detector: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    case = migrate(detector, target="mdc510pro", output=bundle, cut=True, dry_run=True)
    assert case.record.verdict in ("ready", "warnings")
    assert any(step.name == "verify" and step.proof is not None and step.proof.passed for step in case.record.steps)
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    assert [part["file"] for part in manifest["cut_parts"][0]["cut"]] == ["model.onnx", "model.after.onnx"]
    assert {"model.onnx", "model.after.onnx"} <= {item["path"] for item in manifest["files"]}
    again = verify(bundle / "model.onnx")
    assert again.record.verdict == "ready"
    (bundle / "model.after.onnx").unlink()
    with pytest.raises(Exception, match=r"model\.after\.onnx"):
        verify(bundle / "model.onnx")


def test_nothing_to_cut_leaves_the_model_as_it_was(relu: Path) -> None:
    case = fix(relu, soc="Ascend310P3", cut=True)
    assert case.record.verdict == "ready"
    assert not any(step.name == "cut" for step in case.record.steps)


def test_where_all_is_blocked_the_findings_stand(save_text: Callable[..., Path]) -> None:
    text = '<ir_version: 8, opset_import: ["" : 13, "own" : 1]> agraph (float[2,3] x) => (float[2,3] y) { y = own.Thing(x) }'
    record = fix(save_text(text), soc="Ascend310P3", cut=True).record
    assert record.verdict == "blocked"


CUSTOM = """<ir_version: 8, opset_import: ["" : 13, "own" : 1]> agraph (float[2,8] x, float[2,3] z) => (float[2,8] y, float[2,3] t)
{ h = own.Head(z) t = Relu(h) a = HardSigmoid(x) b = Softmax<axis = 1>(a) y = own.Tail(b) }"""


@pytest.fixture
def custom(tmp_path: Path) -> Path:
    """Operators that nothing implements at both ends."""
    model = onnx.parser.parse_model(CUSTOM)
    model.graph.value_info.extend([onnx.helper.make_tensor_value_info("h", onnx.TensorProto.FLOAT, [2, 3])])
    for number, node in enumerate(model.graph.node):
        node.name = f"n{number}"
    path = tmp_path / "custom.onnx"
    onnx.save(model, path)
    return path


def test_operators_that_nothing_can_run_are_cut_off(custom: Path, tmp_path: Path, evaluator: Evaluator) -> None:
    case = fix(custom, soc="Ascend310P3", cut=True, output=tmp_path / "out.onnx", evaluator=evaluator)
    codes = {item.code for item in case.record.findings}
    assert case.record.verdict == "warnings" and {"CU850", "CU853"} <= codes and not codes & {"OP101", "VF602"}
    step = next(step for step in case.record.steps if step.name == "cut")
    assert step.proof is not None and step.proof.passed and step.proof.cases > 0
    parts = step.options["cut"]
    assert [(part["part"], part["file"]) for part in parts] == [
        ("custom-before", "out.custom-before.onnx"),
        ("device", "out.onnx"),
        ("custom-after", "out.custom-after.onnx"),
    ]
    assert parts[1]["sources"] == {"h": "custom-before", "x": "input"} and parts[2]["sources"] == {"b": "device"}
    assert {node.domain for node in case.model.graph} == {""}


def test_a_bundle_with_parts_that_cannot_be_run_is_verified_between_them(custom: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    case = migrate(custom, soc="Ascend310P3", output=bundle, cut=True, dry_run=True)
    assert case.record.verdict == "warnings"
    assert next(step.proof for step in case.record.steps if step.name == "verify").passed  # type: ignore[union-attr]
    assert verify(bundle / "model.onnx").record.verdict == "ready"


def test_given_inputs_that_do_not_reach_the_piece_are_no_error(custom: Path, tmp_path: Path) -> None:
    """The user gives what the whole reads; what lies between the custom parts also reads what the first of them makes."""
    feeds = tmp_path / "feeds.npz"
    np.savez(feeds, x=np.ones((2, 8), np.float32), z=np.ones((2, 3), np.float32))
    record = migrate(custom, soc="Ascend310P3", output=tmp_path / "bundle", cut=True, dry_run=True, feeds=feeds).record
    assert record.verdict == "warnings"
    step = next(step for step in record.steps if step.name == "verify")
    assert step.proof is not None and step.proof.passed and step.options["feeds"] == "generated"


def test_blocked_operators_that_nothing_reads_leave_the_device(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    """What is in the way reads an input and makes an output: no tensor goes from it to the device part or back."""
    text = """<ir_version: 8, opset_import: ["" : 13, "ai.onnx.ml" : 2]> agraph (float[4,16] x, int64[4] n) => (float[4,16] y, string[4] t)
    { t = ai.onnx.ml.LabelEncoder<keys_int64s = [0, 1], values_strings = ["car", "bus"], default_string = "?">(n)
      a = Relu(x) y = Softmax<axis = 1>(a) }"""
    case = fix(save_text(text), soc="Ascend310P3", cut=True, evaluator=evaluator)
    assert case.record.verdict in ("ready", "warnings")
    assert {node.domain for node in case.model.graph} == {""} and [value.name for value in case.model.graph.outputs] == ["y"]


def test_an_operator_of_ones_own_comes_with_its_declaration(custom: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "facts"
    folder.mkdir()
    monkeypatch.setenv("JUMAR_TARGETS", str(folder))
    found = [item for item in check(custom, soc="Ascend310P3").record.findings if item.code == "CU852"]
    assert [item.node for item in found] == ["own::Head", "own::Tail"]
    for item in found:
        told = re.fullmatch(r".* write this line into (?P<file>\S+): `(?P<line>.*)`", str(item.remedy))
        assert told is not None and Path(told["file"]).parent == folder
        Path(told["file"]).write_text(told["line"], encoding="utf-8")
    forget()
    record = check(custom, soc="Ascend310P3").record
    assert not {item.code for item in record.findings} & {"CU852", "OP101"}
    (folder / "own_Tail.toml").unlink()
    forget()
    # What is said to run on the device and cannot be run here cannot be proven.
    notes = [str(note) for note in fix(custom, soc="Ascend310P3", cut=True).record.notes]
    assert any("n0" in note and "cannot be run here" in note for note in notes)


def test_what_runs_on_the_ai_cpu_is_moved_when_asked(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    """A hash in int64, which int32 does not hold: what it gives fits, and that is known on the device too."""
    text = """<ir_version: 8, opset_import: ["" : 11]> agraph (int64[6] ids) => (float[6,3] y)
    <int64 factor = {2654435761}, int64 size = {7}, float[7,3] w = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}>
    { h = Mul(ids, factor) i = Mod(h, size) r = Gather(w, i) y = Relu(r) }"""
    path = save_text(text)
    assert not any(step.name == "cut" for step in fix(path, target="mdc510pro", cut=True, evaluator=evaluator).record.steps)
    case = fix(path, target="mdc510pro", cut="aicpu", evaluator=evaluator)
    assert case.record.verdict == "ready"
    assert [value.dtype for value in case.model.graph.inputs] == [ir.DataType.INT32]
    parts = next(step.options["cut"] for step in case.record.steps if step.name == "cut")
    assert [(part["part"], part["inputs"]) for part in parts] == [("before", {"ids": "int64"}), ("device", {"i": "int64"})]
    with pytest.raises(UsageError, match="cut"):
        fix(path, target="mdc510pro", cut="cpu", evaluator=evaluator)  # type: ignore[arg-type]


def test_the_side_that_stays_behind_is_told(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    """A blocked operator in the middle: one product stays on the device, the smaller one is told as what it could do instead."""
    text = """<ir_version: 8, opset_import: ["" : 13, "ai.onnx.ml" : 2]> agraph (float[4,16] x, float[16,16] w, float[8,16] v) => (float[4,8] y)
    { a = MatMul(x, w) b = ArgMax<axis = 1>(a)
      c = ai.onnx.ml.LabelEncoder<keys_int64s = [0, 1], values_floats = [1.0, 2.0], default_float = 0.5>(b)
      d = Add(c, x) e = Transpose<perm = [1, 0]>(v) y = MatMul(d, e) }"""
    case = fix(save_text(text), soc="Ascend310P3", cut=True, evaluator=evaluator)
    assert "MatMul" in {node.op_type for node in case.model.graph}
    step = next(step for step in case.record.steps if step.name == "cut")
    assert step.options["other_share"] > 0.1 and 0 < step.options["host_share"] < 0.5 and step.options["crossing_bytes"] > 0
    message = str(next(item.message for item in case.record.findings if item.code == "CU850"))
    assert "instead of its part" in message and "LabelEncoder x 1 (OP101)" in message


def test_the_model_is_not_overwritten_by_a_part(detector: Path, evaluator: Evaluator) -> None:
    given = detector.rename(detector.with_name("out.after.onnx"))
    with pytest.raises(UsageError):
        fix(given, target="mdc510pro", cut=True, output=given.with_name("out.onnx"), evaluator=evaluator)
