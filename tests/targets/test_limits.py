"""Limits: every line of the data is broken by one node and kept by another, in three values; its texts and sources are there."""

from __future__ import annotations

from typing import Any

import pytest
from limit_pairs import ANY, PAIRS, constant, node, of_rank, shaped

from jumar.targets import InputFacts, NodeFacts, Status, find_target, judge
from jumar.targets.limits import check_condition, holds, violated
from jumar.targets.tables import cann_order, opset_numbers, table

CARD, EDGE, CAR, SERVER = "Ascend310P3", "Ascend310B1", "BS9SX1AA", "Ascend910B3"
LIMITS: list[dict[str, Any]] = table("limits.json")["limits"]


def name(limit: dict[str, Any]) -> str:
    return f"{limit['op']}: {limit['en']}"[:60]


def pair(limit: dict[str, Any]) -> tuple[NodeFacts, NodeFacts]:
    found = [(bad, good) for op, start, bad, good in PAIRS if op == limit["op"] and limit["en"].startswith(start)]
    assert len(found) == 1, f"limit_pairs.py needs exactly one pair of nodes for `{name(limit)}`"
    return found[0]


@pytest.mark.parametrize("limit", LIMITS, ids=name)
def test_a_limit_tells_a_node_that_breaks_it_from_one_that_keeps_it(limit: dict[str, Any]) -> None:
    bad, good = pair(limit)
    assert holds(limit["when"], bad) is True
    assert holds(limit["when"], good) is False


@pytest.mark.parametrize("limit", LIMITS, ids=name)
def test_a_limit_speaks_at_its_opsets_and_states_only(limit: dict[str, Any]) -> None:
    bad, good = pair(limit)
    order = cann_order()
    opsets = opset_numbers(limit["opsets"]) if "opsets" in limit else {*range(7, 25)}
    states = order[order.index(limit.get("since", order[0])) : order.index(limit["until"]) if "until" in limit else None]
    assert opsets and states
    for state in order:
        for opset in range(7, 25):
            spoken = [found.text.en for found, truth in violated(bad, opset, state) if truth]
            assert (limit["en"] in spoken) is (opset in opsets and state in states), (state, opset)
            assert limit["en"] not in [found.text.en for found, truth in violated(good, opset, state) if truth]


def test_every_pair_belongs_to_a_limit() -> None:
    unused = [(op, start) for op, start, _, _ in PAIRS if not any(op == item["op"] and item["en"].startswith(start) for item in LIMITS)]
    assert unused == []


@pytest.mark.parametrize("limit", LIMITS, ids=name)
def test_a_limit_is_complete_in_both_languages(limit: dict[str, Any]) -> None:
    check_condition(limit["when"])
    assert {*limit} <= {"op", "effect", "when", "en", "zh", "source", "confidence", "opsets", "since", "until"}
    assert limit["effect"] in ("reject", "ignored", "aicpu", "unproven")
    assert limit["confidence"] in ("documented", "observed", "inferred")
    assert limit["source"].strip() and limit["en"].strip() and limit["zh"].strip()
    assert any("\u4e00" <= letter <= "\u9fff" for letter in limit["zh"]) and limit["en"].isascii()
    # Chinese says the same in fewer characters; a text far outside was cut or left behind.
    assert 0.15 < len(limit["zh"]) / len(limit["en"]) < 1.2
    # What is spelled the same in both (names, values) is there in both.
    for word in ("min", "max", "axis", "scales", "linear", "SAME_LOWER", "opset"):
        if word in limit["zh"]:
            assert word in limit["en"]


@pytest.mark.parametrize(
    "condition",
    [
        {},
        {"attr": "mode"},
        {"attr": "mode", "iss": "x"},
        {"atr": "mode", "is": 1},
        {"attr": "mode", "default": 1},
        {"input": 0},
        {"input": 0, "rank": 3},
        {"output": 1},
        {"all": [{"attr": "mode", "equals": 1}]},
        {"any": [{"input": 1, "absent": True}, {"unknown": 1}]},
    ],
)
def test_an_unknown_condition_is_refused(condition: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="unknown condition"):
        check_condition(condition)


UNKNOWN_RANK = InputFacts(dtype="FLOAT")
OPEN = [
    # what is not known, condition, node, truth
    ("rank", {"input": 0, "rank_in": [1]}, node("X", UNKNOWN_RANK), None),
    ("rank", {"input": 0, "rank_not_in": [4]}, node("X", UNKNOWN_RANK), None),
    ("rank", {"input": 0, "rank_over": 8}, node("X", UNKNOWN_RANK), None),
    ("open sizes have a rank", {"input": 0, "rank_in": [2]}, node("X", shaped(None, None)), True),
    ("dtype", {"input": 0, "dtype_in": ["FLOAT"]}, node("X", InputFacts()), None),
    ("a large constant", {"input": 0, "constant_any_under": 0}, node("X", InputFacts(is_constant=True)), None),
    ("a computed value is no fact", {"input": 0, "constant_any_under": 0}, node("X", ANY), False),
    ("an input that is not there", {"input": 3, "rank_in": [1]}, node("X", ANY), False),
    ("last axis of an unknown rank", {"attr": "axis", "default": 1, "not_last_axis": True}, node("X", UNKNOWN_RANK), None),
    ("ones behind the axis", {"attr": "axis", "default": 1, "not_last_axis": True}, node("X", shaped(1, 1000, 1, 1)), False),
    ("an open size behind it", {"attr": "axis", "default": 1, "not_last_axis": True}, node("X", shaped(1, 9, None)), None),
    ("counted from the end", {"attr": "axis", "default": 1, "not_last_axis": True}, node("X", shaped(1, 9, 2), axis=-2), True),
    ("all: False wins", {"all": [{"input": 0, "rank_in": [1]}, {"attr": "a", "present": True}]}, node("X", UNKNOWN_RANK), False),
    ("all: then None", {"all": [{"input": 0, "rank_in": [1]}, {"attr": "a", "absent": True}]}, node("X", UNKNOWN_RANK), None),
    ("any: True wins", {"any": [{"input": 0, "rank_in": [1]}, {"attr": "a", "absent": True}]}, node("X", UNKNOWN_RANK), True),
    ("any: then None", {"any": [{"input": 0, "rank_in": [1]}, {"attr": "a", "present": True}]}, node("X", UNKNOWN_RANK), None),
]


@pytest.mark.parametrize(("what", "condition", "facts", "truth"), OPEN, ids=[item[0] for item in OPEN])
def test_what_is_not_known_is_neither_true_nor_false(what: str, condition: dict[str, Any], facts: NodeFacts, truth: bool | None) -> None:
    assert holds(condition, facts) is truth


def answers(facts: NodeFacts, opset: int = 13, soc: str = CARD, cann: str | None = None) -> list[tuple[Status, str]]:
    return [(answer.status, answer.engine) for answer in judge(facts, opset, find_target(soc, cann=cann))]


EFFECTS = [
    (node("Transpose", of_rank(2)), Status.LIMIT_VIOLATED, "none"),
    (node("Shape", of_rank(2), start=1), Status.ATTRIBUTE_IGNORED, "local"),
    (node("MaxPool", of_rank(4), kernel_shape=[2, 2], strides=[64, 64]), Status.AICPU_ONLY, "aicpu"),
    (node("Flatten", of_rank(3), axis=-1), Status.LIMIT_UNPROVEN, "local"),
    (node("Conv", UNKNOWN_RANK, UNKNOWN_RANK, kernel_shape=[3, 3]), Status.LIMIT_UNJUDGED, "aicore"),
]


@pytest.mark.parametrize(("facts", "status", "engine"), EFFECTS, ids=lambda value: getattr(value, "op", None))
def test_each_effect_becomes_its_answer(facts: NodeFacts, status: Status, engine: str) -> None:
    first = judge(facts, 15, find_target(CARD))[0]
    assert (first.status, first.engine) == (status, engine)
    assert first.reason is not None and first.evidence and first.reason.render("zh") != first.reason.render("en")


def test_a_limit_of_the_standard_operator_does_not_judge_a_namesake() -> None:
    assert [answer.status for answer in judge(NodeFacts("npu", "Transpose"), 13, find_target(CARD))] == [Status.NO_PARSER]


I64, I32, F32, F16, F64, BF16, BOOL = (
    shaped(2, 3, dtype=dtype) for dtype in ("INT64", "INT32", "FLOAT", "FLOAT16", "DOUBLE", "BFLOAT16", "BOOL")
)
TAKEN = [(Status.SUPPORTED, "aicore")]
CPU, NOT_TAKEN, NOBODY_KNOWS = (Status.AICPU_ONLY, "aicpu"), (Status.DTYPE_NOT_TAKEN, "none"), (Status.UNKNOWN, "unknown")
DTYPES = [
    # Read from facts/ops/ir_dtypes_8.1.RC1_*.json, and its compile-time words and prototypes: node, SoC, answers.
    (node("Add", I64, I64), CARD, TAKEN),  # chosen when compiled; the choosing code knows int64
    (node("Add", F64, F64), CARD, [CPU, CPU]),
    (node("Add", F64, F64), CAR, [NOBODY_KNOWS, NOBODY_KNOWS]),  # no one knows whether the board has the AI CPU kernels
    (node("Add", BF16, BF16), CARD, [NOT_TAKEN, NOT_TAKEN]),  # the code that chooses knows bfloat16, this AI Core does not
    (node("Add", BF16, BF16), SERVER, TAKEN),
    (node("Relu", BF16), SERVER, TAKEN),
    (node("Relu", BF16), EDGE, [NOT_TAKEN]),
    (node("Relu", BOOL), CARD, [NOT_TAKEN]),
    (node("Not", BOOL), CARD, TAKEN),
    (node("Not", F32), CARD, [NOT_TAKEN]),
    (node("Sqrt", F64), CARD, [CPU]),
    (node("Exp", F64), CARD, [CPU]),  # only the TensorFlow library of the AI CPU lists double
    (node("Exp", F16), CARD, TAKEN),
    (node("MatMul", I32, I32), CARD, TAKEN),
    (node("MatMul", F64, F64), CARD, [CPU, CPU]),  # the same
    (node("MatMul", BF16, BF16), CARD, [NOT_TAKEN, NOT_TAKEN]),
    (node("Mod", I64, constant(3)), CARD, [CPU]),  # the TensorFlow library; the constant is converted while the graph is built
    (node("Mod", I32, constant(3)), CARD, TAKEN),
    (node("TopK", F32, constant(2)), CARD, TAKEN),
    (node("TopK", I64, constant(2)), CARD, [CPU]),  # the pass makes TopKD of floats only
    (node("ScatterND", F32, constant(0), F32), CARD, TAKEN),
    (node("ScatterND", I32, constant(0), I32), CARD, [CPU]),  # as ScatterNdUpdate it takes half, float and bool
    (node("ScatterND", I64, constant(0), I64), SERVER, TAKEN),
    (node("Concat", BF16, BF16, axis=0), EDGE, [NOT_TAKEN, NOT_TAKEN]),
    (node("MaxPool", F64, kernel_shape=[1, 1]), CARD, [CPU]),
    (node("ReduceMax", BOOL, constant(1)), CARD, TAKEN),  # the attribute form ReduceMaxD takes bool
    (node("ReduceSumSquare", F32, I64), CARD, TAKEN),  # its kernel lists no second input: nothing is said of it
    (node("Concat", F32, F32, I64, axis=0), CARD, TAKEN),  # a variadic kernel lists one input
]


@pytest.mark.parametrize(("facts", "soc", "expected"), DTYPES, ids=[f"{item[0].op}-{item[0].inputs[0].dtype}-{item[1]}" for item in DTYPES])
def test_dtypes_are_judged_by_the_kernels(facts: NodeFacts, soc: str, expected: list[tuple[Status, str]]) -> None:
    assert answers(facts, 18 if facts.op == "ReduceSumSquare" else 13, soc) == expected


def test_a_convolution_of_floats_runs_through_half_and_of_doubles_does_not() -> None:
    images = [shaped(1, 3, 8, 8, dtype=dtype) for dtype in ("FLOAT", "FLOAT16", "DOUBLE")]
    found = [answers(node("Conv", image, constant(1.0, dtype=str(image.dtype)), kernel_shape=[1, 1])) for image in images]
    assert found == [TAKEN, TAKEN, [NOT_TAKEN]]


def test_an_answer_on_a_dtype_names_the_input_and_what_is_taken() -> None:
    first = judge(node("Not", F64), 13, find_target(CARD))[0]
    assert first.reason is not None
    for lang in ("en", "zh"):
        assert all(word in first.reason.render(lang) for word in ("0", "double", "bool"))  # type: ignore[arg-type]
    assert "LogicalNot input 0" in first.evidence[0]
