"""reduce: a large model becomes the few nodes that fail, with the values they had in the whole; a stopped run goes on."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from jumar import ToolError, UsageError, reduce
from jumar.graph import Evaluator, load

# Fails where the file holds the operator: the cheapest program there is.
HAS_CELU = "sh -c '! grep -q Celu {model}'"
RUNS = """
import sys
import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
found = session.run(None, dict(np.load(sys.argv[2])))
bad = not all(np.isfinite(array).all() for array in found)
print("not finite" if bad else "finite")
sys.exit(1 if bad else 0)
"""


def chain(folder: Path, count: int, **planted: int) -> Path:
    """Convolutions, sums of two branches and shape arithmetic; an operator at each place that is named."""
    rng = np.random.default_rng(1)
    nodes, weights, last, older = [], [], "x", "x"
    at = {place: name for name, place in planted.items()}
    while len(nodes) < count:
        place, name = len(nodes), f"t{len(nodes)}"
        if place in at:
            nodes.append(helper.make_node(at[place], [last], [name], f"n{place}"))
        elif place % 5 == 3:
            weights.append(helper.make_tensor(f"w{place}", TensorProto.FLOAT, [4, 4, 1, 1], rng.normal(size=16) / 4))
            nodes.append(helper.make_node("Conv", [last, f"w{place}"], [name], f"n{place}"))
        elif place % 5 == 4:
            nodes.append(helper.make_node("Add", [last, older], [name], f"n{place}"))
            older = name
        elif place % 5 == 0:
            nodes.append(helper.make_node("Shape", [last], [name], f"n{place}"))
            continue
        elif place % 5 == 1 and place - 1 not in at and nodes[-1].op_type == "Shape":
            nodes.append(helper.make_node("Reshape", [last, f"t{place - 1}"], [name], f"n{place}"))
        else:
            nodes.append(helper.make_node("Tanh", [last], [name], f"n{place}"))
        last = name
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4, 3, 3]) for name in ("x", last))
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y], weights), ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    onnx.checker.check_model(model)
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("place", [0, 431, 899])
def test_nine_hundred_nodes_become_one_in_few_tries(tmp_path: Path, place: int, evaluator: Evaluator) -> None:
    path = chain(tmp_path, 900, Celu=place)
    case = reduce(path, check=HAS_CELU, output=tmp_path / "small.onnx", evaluator=evaluator)
    assert [node.op_type for node in case.model.graph] == ["Celu"]
    assert case.record.steps[0].options["tries"] < 60
    assert case.record.verdict == "ready"
    onnx.checker.check_model(str(tmp_path / "small.onnx"), full_check=True)
    assert not (tmp_path / "small.onnx.tries.json").exists()
    (given,) = case.model.graph.inputs
    assert list(given.shape or ()) == [1, 4, 3, 3]


def test_two_that_must_come_together(tmp_path: Path, evaluator: Evaluator) -> None:
    path = chain(tmp_path, 60, Celu=7, Selu=42)
    both = "sh -c '! (grep -q Celu {model} && grep -q Selu {model})'"
    case = reduce(path, check=both, output=tmp_path / "small.onnx", evaluator=evaluator)
    assert [node.op_type for node in case.model.graph] == ["Celu", "Selu"]


def test_the_inputs_have_the_values_of_the_whole(tmp_path: Path, evaluator: Evaluator) -> None:
    """Log of what Tanh left negative: the fault is there with these values alone."""
    path = chain(tmp_path, 24, Log=11)
    (tmp_path / "check.py").write_text(RUNS, encoding="utf-8")
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(0).normal(size=(1, 4, 3, 3)).astype(np.float32))
    command = f"{sys.executable} {tmp_path / 'check.py'} {{model}} {{inputs}}"
    case = reduce(
        path,
        check=command,
        output=tmp_path / "small.onnx",
        feeds=tmp_path / "x.npz",
        fail_codes=[1],
        fail_text="not finite",
        evaluator=evaluator,
    )
    assert [node.op_type for node in case.model.graph] == ["Log"]
    with np.load(tmp_path / "small.inputs.npz") as held:
        assert {item.kind for item in case.record.artifacts} == {"model", "inputs"}
        assert (dict(held)[case.model.graph.inputs[0].name or ""] <= 0).any()
        assert np.isnan(evaluator.run(case.model, dict(held))["t11"]).any()


def test_shape_arithmetic_that_is_cut_off_becomes_a_weight(tmp_path: Path, evaluator: Evaluator) -> None:
    path = chain(tmp_path, 12)
    case = reduce(path, check="sh -c '! grep -q Reshape {model}'", output=tmp_path / "small.onnx", evaluator=evaluator)
    assert [node.op_type for node in case.model.graph] == ["Reshape"]
    assert len(case.model.graph.inputs) == 1
    assert [value.const_value.numpy().tolist() for value in case.model.graph.initializers.values() if value.const_value] == [[1, 4, 3, 3]]


def test_bodies_keep_what_they_read_from_outside(tmp_path: Path, evaluator: Evaluator) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 13]>
    agraph (float[2] x, bool c) => (float[2] y) {
        a = Tanh(x)
        b = Neg(a)
        z = If(c) <then_branch = one () => (float[2] p) { p = Celu(b) }, else_branch = two () => (float[2] q) { q = Identity(a) }>
        y = Relu(z)
    }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    case = reduce(tmp_path / "m.onnx", check=HAS_CELU, output=tmp_path / "small.onnx", evaluator=evaluator)
    assert [node.op_type for node in case.model.graph] == ["If"]
    assert {value.name for value in case.model.graph.inputs} == {"c", "a", "b"}


def test_sequences_are_not_cut(tmp_path: Path, evaluator: Evaluator) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 13]>
    agraph (float[4] x) => (float[1] y) <int64 one = {1}> { a = Tanh(x) s = SplitToSequence<axis = 0>(a) b = SequenceAt(s, one) y = Relu(b) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    check = "sh -c '! grep -q SequenceAt {model}'"
    case = reduce(tmp_path / "m.onnx", check=check, output=tmp_path / "small.onnx", evaluator=evaluator)
    assert [node.op_type for node in case.model.graph] == ["SplitToSequence", "SequenceAt"]


def test_a_model_that_cannot_be_run_is_reduced_by_inferred_sizes(tmp_path: Path, evaluator: Evaluator) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 13, "mine" : 1]>
    agraph (float[2,3] x) => (float[2,3] y) { a = Tanh(x) b = Celu(a) c = Relu(b) y = mine.Odd(c) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    case = reduce(tmp_path / "m.onnx", check=HAS_CELU, output=tmp_path / "small.onnx", evaluator=evaluator)
    assert [node.op_type for node in case.model.graph] == ["Celu"]
    with pytest.raises(UsageError, match="cannot be run"):
        reduce(tmp_path / "m.onnx", check="false {model} {inputs}", output=tmp_path / "small.onnx", evaluator=evaluator)


def test_a_stopped_run_goes_on(tmp_path: Path, evaluator: Evaluator) -> None:
    path, out = chain(tmp_path, 200, Celu=123), tmp_path / "small.onnx"
    first = reduce(path, check=HAS_CELU, output=out, tries=6, evaluator=evaluator)
    assert first.record.steps[0].options["stopped"]
    assert 1 < len(first.model.graph) < 200
    assert "Celu" in {node.op_type for node in load(out).graph}
    second = reduce(path, check=HAS_CELU, output=out, resume=True, evaluator=evaluator)
    whole = reduce(path, check=HAS_CELU, output=tmp_path / "other.onnx", evaluator=evaluator)
    assert [node.op_type for node in second.model.graph] == ["Celu"]
    assert second.record.steps[0].options["tries"] + 6 == whole.record.steps[0].options["tries"]


def test_a_state_of_another_command_is_not_taken_over(tmp_path: Path, evaluator: Evaluator) -> None:
    path, out = chain(tmp_path, 50, Celu=20, Selu=30), tmp_path / "small.onnx"
    reduce(path, check=HAS_CELU, output=out, tries=3, evaluator=evaluator)
    case = reduce(path, check=HAS_CELU.replace("Celu", "Selu"), output=out, resume=True, evaluator=evaluator)
    assert [node.op_type for node in case.model.graph] == ["Selu"]


def test_a_check_that_hangs_decides_nothing(tmp_path: Path, evaluator: Evaluator) -> None:
    path = chain(tmp_path, 20, Celu=3)
    with pytest.raises(UsageError, match="decides nothing"):
        reduce(path, check="sh -c 'sleep 60'", output=tmp_path / "small.onnx", timeout=0.2, evaluator=evaluator)
    assert not (tmp_path / "small.onnx").exists()


def test_a_check_that_does_not_fail_is_refused(tmp_path: Path, evaluator: Evaluator) -> None:
    path = chain(tmp_path, 20)
    with pytest.raises(UsageError, match="does not fail"):
        reduce(path, check=HAS_CELU, output=tmp_path / "small.onnx", evaluator=evaluator)
    with pytest.raises(ToolError, match="cannot be started"):
        reduce(path, check="/nowhere/at/all", output=tmp_path / "small.onnx", evaluator=evaluator)
    with pytest.raises(UsageError, match="is empty"):
        reduce(path, check=" ", output=tmp_path / "small.onnx", evaluator=evaluator)
    with pytest.raises(UsageError, match="cannot be read"):
        reduce(path, check="a 'b", output=tmp_path / "small.onnx", evaluator=evaluator)


def test_the_model_itself_is_left_alone(tmp_path: Path, evaluator: Evaluator) -> None:
    path = chain(tmp_path, 20, Celu=3)
    before = path.read_bytes()
    reduce(path, check=HAS_CELU, output=tmp_path / "small.onnx", evaluator=evaluator)
    assert path.read_bytes() == before
    with pytest.raises(UsageError):
        reduce(path, check=HAS_CELU, output=path, evaluator=evaluator)
    assert isinstance(load(path), ir.Model)
