"""OP210 and OP215 from end to end: what the caller gets, what the record says, and who speaks of a node."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from jumar import check, fix
from jumar.graph import Evaluator
from jumar.proof import FeedSet, Interface, Prover

HEAD = '<ir_version: 8, opset_import: ["" : 13]> agraph'
CHOSEN = ir.from_onnx_text(f"{HEAD} (float[5,3] x, bool[5] m) => (float[n,3] y) {{ y = Compress<axis = 0>(x, m) }}")
X = np.arange(15, dtype=np.float32).reshape(5, 3)


def feeds(*masks: str) -> FeedSet:
    return FeedSet(tuple({"x": X, "m": np.array([item == "1" for item in mask])} for mask in masks), "test")


def codes(model: ir.Model, soc: str = "Ascend310P3") -> list[str]:
    return [finding.code for finding in check(model, soc=soc).record.findings]


def test_the_caller_gets_what_he_always_got(evaluator: Evaluator) -> None:
    given = feeds("10110", "00000", "11111")
    case = fix(CHOSEN, soc="Ascend310P3", unsafe=["OP215"], feeds=given, evaluator=evaluator)
    assert [value.name for value in case.model.graph.outputs] == ["y", "y_count"]
    assert case.record.interface["outputs"] == [
        {"original": "y", "name": "y", "original_dtype": "float", "dtype": "float", "count_axis": 0, "count": "y_count"}
    ]
    ports = Interface.of(CHOSEN).changed(case.record.interface)
    prover = Prover(CHOSEN, evaluator, given)
    for found, expected in prover.against_original(case.model, ports):
        assert np.array_equal(found["y"], expected["y"])
    raw = evaluator.run(case.model, dict(given.cases[0]))
    assert raw["y"].shape == (5, 3)
    assert int(raw["y_count"][0]) == 3
    assert not raw["y"][3:].any(), "zeros fill the rest"


def test_nothing_is_padded_unasked(evaluator: Evaluator) -> None:
    case = fix(CHOSEN, soc="Ascend310P3", feeds=feeds("10110"), evaluator=evaluator)
    assert [finding.code for finding in case.record.findings] == ["OP215"]
    assert not case.record.interface["outputs"]


def test_a_wrong_count_is_found(evaluator: Evaluator) -> None:
    given = feeds("10110")
    case = fix(CHOSEN, soc="Ascend310P3", unsafe=["OP215"], feeds=given, evaluator=evaluator)
    ports = Interface.of(CHOSEN).changed(case.record.interface)
    spoilt = case.model.clone()
    count = next(node for node in spoilt.graph if node.outputs[0].name == "y_count")
    one = ir.Value(name="one", const_value=ir.tensor(np.array([1], np.int32)), type=ir.TensorType(ir.DataType.INT32), shape=ir.Shape([1]))
    spoilt.graph.register_initializer(one)
    less = ir.node("Sub", [count.inputs[0], one])
    spoilt.graph.insert_before(count, less)
    count.replace_input_with(0, less.outputs[0])
    assert not Prover(CHOSEN, evaluator, given).prove_model(spoilt, ports, 1e-5).passed


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("n = NonZero(x) y = Cast<to = 1>(n)", {"OP215"}),
        ("n = NonZero(x) f = Cast<to = 1>(n) y = ReduceSum<keepdims = 1>(f)", {"OP210"}),
        ("u = Unique(x) y = ReduceMax<keepdims = 1>(u)", {"OP215"}),
        ("y = Compress<axis = 0>(x, known)", {"OP213"}),
    ],
)
def test_one_rule_speaks_of_a_node(body: str, expected: set[str]) -> None:
    text = f"{HEAD} (float[2,3] x) => (float[a,b] y) <bool[2] known = {{1, 0}}> {{ {body} }}"
    found = set(codes(ir.from_onnx_text(text)))
    assert {code for code in found if code[:3] in ("OP1", "OP2")} == expected


def test_a_constant_choice_is_left_to_folding(evaluator: Evaluator) -> None:
    text = f"{HEAD} (float[3] x) => (float[3] y) <bool[3] all = {{1, 1, 1}}> {{ n = NonZero(all) f = Reshape(n, s) y = Gather(x, f) s = Shape(x) }}"
    model = ir.from_onnx_text(
        text.replace("f = Reshape(n, s) y = Gather(x, f) s = Shape(x)", "s = Shape(x) f = Reshape(n, s) y = Gather(x, f)")
    )
    remedies = [str(finding.remedy) for finding in check(model, soc="Ascend310P3").record.findings if finding.code == "OP210"]
    assert len(remedies) == 1
    assert "SH202" in remedies[0]
    case = fix(model, soc="Ascend310P3", evaluator=evaluator)
    assert "OP210" not in {step.code for step in case.record.steps}
    assert not {finding.code for finding in case.record.findings} & {"OP210", "OP215"}


def test_a_proof_on_nothing_chosen_says_so(evaluator: Evaluator) -> None:
    """The record holds how much was chosen; where it never was anything, the proof shows nothing of what is chosen."""
    some = fix(CHOSEN, soc="Ascend310P3", unsafe=["OP215"], feeds=feeds("00000", "01100"), evaluator=evaluator).record
    assert some.steps[-1].options["chosen_elements"] == {"y": [0, 6]}
    assert "VF604" not in [finding.code for finding in some.findings]
    none = fix(CHOSEN, soc="Ascend310P3", unsafe=["OP215"], feeds=feeds("00000", "00000"), evaluator=evaluator).record
    assert [finding.code for finding in none.findings] == ["VF604"]
    assert "nothing was chosen for `y` in 2 cases" in str(none.findings[0].message)
