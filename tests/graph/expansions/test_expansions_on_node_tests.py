"""Every expansion, whatever the target, on the standard's node tests: it refuses, or gives what the standard gives.

A quarter of the tests by default, all of them in the slow sweep.
"""

from __future__ import annotations

import sys
import zlib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from jumar.child.reference import wrong_operators
from jumar.errors import EvaluationError
from jumar.graph import Evaluator, infer_shapes, used_names
from jumar.graph.bind import bind_inputs
from jumar.graph.expansions import Expansion, expands, expansions_of, load_expansions
from jumar.graph.opset.schemas import find_schema
from jumar.graph.opset.step import Step, Unconvertible
from jumar.graph.ranges import value_ranges

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "corpus"))
from node_cases import coverage

# Of the largest element; a few operators add many terms.
BOUND = 2e-5
HALF = {"float16": 2.0**-8, "bfloat16": 2.0**-6}
# Expansions that give what ONNX Runtime gives where the standard says otherwise; a rule of their own keeps them from being used.
DIFFER = {"test_resize_downsample_scales_cubic_align_corners", "test_resize_downsample_scales_linear_align_corners"}


def expanded(proto: onnx.ModelProto, feeds: dict[str, Any], expansion: Expansion) -> ir.Model | None:
    """The model with its first node expanded; None where that is refused."""
    model = ir.from_proto(proto)
    constants, ranges = coverage().told(model, [feeds])
    model, _ = bind_inputs(model, constants)
    for value in model.graph.inputs:
        array = feeds.get(value.name or "")
        if isinstance(array, np.ndarray) and isinstance(value.type, ir.TensorType):
            value.shape = ir.Shape(list(array.shape))
    infer_shapes(model)
    node = next(item for item in model.graph if item.op_type == coverage().operator_of(proto))
    known = value_ranges(model, ranges, {})
    version = model.opset_imports[""]
    step = Step(model, node, used_names(model), version, rule="test")
    step.range_of = known.of
    schema = find_schema(node.op_type, version)
    if schema is None:
        return None
    step.source = schema
    try:
        expansion(step)
    except Unconvertible:
        return None
    return model


def differs(case: Any, expansion: Expansion, evaluator: Evaluator) -> str | None:
    """What is wrong with the expansion of one node test (None: nothing, or it refuses, or nothing can run it)."""
    for inputs, outputs in case.data:
        feeds = dict(zip([item.name for item in case.proto.graph.input], inputs, strict=False))
        model = expanded(case.proto, feeds, expansion)
        if model is None:
            return None
        wanted = {value.name for value in model.graph.inputs}
        try:
            found = evaluator.run(model, {name: array for name, array in feeds.items() if name in wanted})
        except EvaluationError as error:
            text = str(error)
            return None if "NOT_IMPLEMENTED" in text or "MLDataType" in text or "Numpy type" in text or "opset" in text else text
        for one, other in zip(found.values(), outputs, strict=False):
            if one.shape != other.shape or one.dtype != other.dtype:
                return f"{one.dtype}{one.shape} instead of {other.dtype}{other.shape}"
            first, second = (item.astype(np.float64) if item.dtype.kind in "fV" else item for item in (one, other))
            bound = HALF.get(other.dtype.name, BOUND)
            finite = np.abs(second[np.isfinite(second)]) if second.dtype.kind == "f" else np.zeros(0)
            if not np.allclose(first, second, rtol=1e-3, atol=bound * float(finite.max(initial=0.0)), equal_nan=True):
                return f"differs by {np.nanmax(np.abs(first.astype(np.float64) - second.astype(np.float64)))}"
    return None


def check(names: list[str], cases: dict[str, Any], evaluator: Evaluator) -> tuple[dict[str, str], int]:
    wrong, tried = {}, 0
    for name in names:
        case = cases[name]
        for number, expansion in enumerate(expansions_of(coverage().operator_of(case.proto))):
            tried += 1
            reason = differs(case, expansion, evaluator)
            if reason is not None and name not in DIFFER:
                wrong[f"{name} {number}"] = reason
    return wrong, tried


@pytest.fixture(scope="module")
def cases() -> dict[str, Any]:
    load_expansions()
    found: dict[str, Any] = coverage().numeric_cases()
    return {name: case for name, case in found.items() if expansions_of(coverage().operator_of(case.proto)) and not expects_wrong(name)}


def expects_wrong(name: str) -> bool:
    """Whether the installed ONNX made the outputs of a node test with an operator that a later version mended."""
    return any(
        operator in wrong_operators() and fnmatch(name, pattern)
        for operator, pattern in {"Attention": "test_attention_*_gqa*", "QLinearMatMul": "test_qlinearmatmul_*_int8_*"}.items()
    )


def test_a_quarter_of_the_node_tests(cases: dict[str, Any], evaluator: Evaluator) -> None:
    names = [name for name in sorted(cases) if zlib.crc32(name.encode()) % 4 == 1]
    wrong, tried = check(names, cases, evaluator)
    assert wrong == {}
    assert tried > 100


@pytest.mark.slow
def test_all_node_tests(cases: dict[str, Any], evaluator: Evaluator) -> None:
    wrong, tried = check(sorted(cases), cases, evaluator)
    assert wrong == {}
    assert tried > 400


def test_a_wrong_expansion_is_caught(cases: dict[str, Any], evaluator: Evaluator) -> None:
    def too_large(step: Step) -> None:
        step.finish(step.op("Mul", step.op("Trilu", *step.node.inputs, **dict(step.node.attributes)), step.like(2)))

    assert differs(cases["test_triu"], too_large, evaluator) is not None


def test_the_same_operator_may_have_several() -> None:
    load_expansions()
    before = expansions_of("Mish")

    @expands("Mish")
    def another(step: Step) -> None:
        step.finish(step.needed(0))

    after = expansions_of("Mish")
    assert set(after) == {*before, another}
    assert after.index(another) < len(after) - 1 or not before  # the function body of the schema stays last
