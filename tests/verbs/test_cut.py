"""``fix --cut`` and ``migrate --cut``: parts for host and device whose chain gives what the original gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from jumar import fix, migrate, verify
from jumar.cutting import Chain, load_chain
from jumar.graph import Evaluator
from jumar.proof.metrics import compare_all


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
