"""The ONNX standard's node tests through the simplifier: every result is valid and equals the original's.

Each model is tried as it is, with all inputs but the first made weights (there the fusions and folds apply), and with all inputs made
weights (there everything folds). Models that ONNX Runtime does not run, or that are random, cannot be compared and are left out.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest

from jumar import JumarError
from jumar.graph import Evaluator, copy_model, load
from jumar.graph.simplify import KINDS, Journal, Rewrite, simplify_graph
from jumar.proof.metrics import compare_all

EXACT = frozenset(kind for kind, exact in KINDS.items() if exact)
# Of the largest element of an output, where a kind that rounds differently applied.
ROUNDING = 1e-5
# ONNX Runtime's CPU computes half precision in float32 and leaves the rounding out between neighbours, so that a node which goes away
# moves its own result by the last bit of a half.
HALF = 2.0**-10
STEP = 15
RANDOM = "random"
FORMS = ("as it is", "weights", "constants")


@dataclass(frozen=True)
class NodeTest:
    """A model with inputs."""

    name: str
    model: ir.Model
    feeds: Mapping[str, Any]

    def form(self, name: str) -> NodeTest:
        """A variant; what is no array stays an input."""
        if name == "as it is":
            return self
        model = copy_model(self.model)
        kept = {}
        for number, value in enumerate(list(model.graph.inputs)):
            array = self.feeds[value.name]
            if (number == 0 and name == "weights") or not isinstance(array, np.ndarray) or not isinstance(value.type, ir.TensorType):
                kept[value.name] = array
                continue
            model.graph.inputs.remove(value)
            value.const_value = ir.from_proto(onnx.numpy_helper.from_array(array, value.name))
            value.shape = value.const_value.shape
            model.graph.register_initializer(value)
        return NodeTest(self.name, model, kept)


@pytest.fixture(scope="module")
def cases() -> list[NodeTest]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some cases overflow on purpose
        found = [case for case in collect_testcases(None) if case.model is not None]
    tests = []
    for case in found:
        names = [item.name for item in case.model.graph.input]
        for feeds, _ in case.data_sets[:1]:
            tests.append(NodeTest(case.name, ir.from_proto(case.model), dict(zip(names, feeds, strict=False))))
    return tests


def run(model: ir.Model, feeds: Mapping[str, Any], evaluator: Evaluator) -> dict[str, Any]:
    """Outputs by name. Sequences and optionals, which the evaluator does not carry, are run here.

    Raises:
        JumarError: ONNX Runtime refuses.
    """
    types = [value.type for value in (*model.graph.inputs, *model.graph.outputs)]
    if not any(isinstance(kind, (ir.SequenceType, ir.OptionalType)) for kind in types):
        return evaluator.run(model, {name: np.asarray(array) for name, array in feeds.items()})
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString(), options, providers=["CPUExecutionProvider"])
        return dict(zip([value.name for value in session.get_outputs()], session.run(None, dict(feeds)), strict=True))
    except Exception as error:  # the runtime has an exception class for every status
        raise Refused(str(error)) from error


class Refused(Exception):  # noqa: N818 - a model that the runtime does not take
    """ONNX Runtime does not run a model."""


def interface(model: ir.Model) -> list[tuple[str | None, Any]]:
    return [(value.name, value.type) for value in (*model.graph.inputs, *model.graph.outputs)]


def bits(found: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    """Whether all elements are equal, +0 and -0 told apart."""

    def same(one: Any, other: Any) -> bool:
        if isinstance(one, list) and isinstance(other, list):
            return len(one) == len(other) and all(map(same, one, other))
        if one is None or other is None:
            return one is other
        one, other = np.asarray(one), np.asarray(other)
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        if one.dtype.kind in "OUS":
            return bool(np.array_equal(one, other))
        return one.tobytes() == other.tobytes() or bool(
            np.array_equal(np.isnan(one.astype(np.float64)), np.isnan(other.astype(np.float64)))
            and np.array_equal(*(np.nan_to_num(item.astype(np.complex128)) for item in (one, other)))
            and np.array_equal(*(np.signbit(np.nan_to_num(item.astype(np.float64))) for item in (one, other)))
        )

    return found.keys() == expected.keys() and all(same(found[name], array) for name, array in expected.items())


def distance(found: Mapping[str, Any], expected: Mapping[str, Any]) -> float:
    """Of the largest element of each output; 1 where they cannot be compared."""
    items = compare_all(found, expected).values()
    return max((1.0 if item.reason else item.max_scaled for item in items), default=0.0)


def invalid(model: ir.Model, full: bool = True) -> str | None:
    """Why the checker refuses a model."""
    try:
        onnx.checker.check_model(ir.to_proto(model), full_check=full)
    except Exception as error:  # of the checker, of shape inference, or of the serialisation
        return f"{type(error).__name__}: {error}"
    return None


def is_half(model: ir.Model) -> bool:
    return any(value.dtype == ir.DataType.FLOAT16 for node in model.graph for value in node.outputs)


def judge(test: NodeTest, expected: Mapping[str, Any], after: ir.Model, rewrites: Sequence[Rewrite], evaluator: Evaluator) -> str | None:
    """What is wrong with a simplified model, None if nothing is."""
    reason = invalid(after) if invalid(test.model) is None else invalid(after, full=False)
    if reason is not None:
        return f"invalid: {reason}"
    if interface(after) != interface(test.model):
        return f"interface: {interface(after)} instead of {interface(test.model)}"
    try:
        found = run(after, test.feeds, evaluator)
    except (JumarError, Refused) as error:
        return f"does not run: {error}"
    exact = all(item.exact for item in rewrites)
    if bits(found, expected) or (not exact and distance(found, expected) <= ROUNDING):
        return None
    if is_half(test.model) and distance(found, expected) <= HALF:
        return None
    if not bits(run(test.model, test.feeds, evaluator), expected):
        return RANDOM
    return f"wrong: {distance(found, expected):.3g} by {sorted({item.kind for item in rewrites})}"


def simplified(test: NodeTest, kinds: frozenset[str] | None, evaluator: Evaluator) -> tuple[ir.Model, list[Rewrite]] | str:
    """The model and what was done, or how it crashed."""
    after = copy_model(test.model)
    try:
        return after, simplify_graph(after, evaluator, journal=Journal(kinds=kinds)).rewrites
    except Exception as error:  # every crash is a fault to report
        return f"crash: {type(error).__name__}: {error}"


def faults_of(test: NodeTest, expected: Mapping[str, Any], evaluator: Evaluator) -> Iterator[str]:
    """With all kinds, and if one of them rounded differently, with the exact ones alone."""
    for kinds in (None, EXACT):
        made = simplified(test, kinds, evaluator)
        fault = made if isinstance(made, str) else judge(test, expected, *made, evaluator)
        if fault is not None:
            yield fault
        if isinstance(made, str) or all(item.exact for item in made[1]):
            return


def sweep(tests: Sequence[NodeTest], evaluator: Evaluator) -> tuple[Counter[str], dict[str, str]]:
    """How many models were compared or not, and the faults by name of the test."""
    counts: Counter[str] = Counter()
    faults = {}
    for test in tests:
        for form in FORMS:
            variant = test.form(form)
            try:
                expected = run(variant.model, variant.feeds, evaluator)
            except (JumarError, Refused):
                counts["does not run"] += 1
                continue
            found = list(faults_of(variant, expected, evaluator))
            counts[RANDOM if RANDOM in found else form] += 1
            faults.update({f"{test.name}, {form}": fault for fault in found if fault != RANDOM})
    return counts, faults


def test_a_sample_stays_right(cases: list[NodeTest], evaluator: Evaluator) -> None:
    sample = cases[::STEP]
    counts, faults = sweep(sample, evaluator)
    assert faults == {}
    assert min(counts[form] for form in FORMS) > 0.6 * len(sample)


@pytest.mark.slow
def test_all_stay_right(cases: list[NodeTest], evaluator: Evaluator) -> None:
    counts, faults = sweep(cases, evaluator)
    assert faults == {}
    assert min(counts[form] for form in FORMS) > 0.7 * len(cases)


def test_a_wrong_result_would_be_noticed(evaluator: Evaluator) -> None:
    model = ir.from_onnx_text('<ir_version: 8, opset_import: ["" : 13]> agraph (float[2] x) => (float[2] y) { y = Neg(x) }')
    test = NodeTest("planted", model, {"x": np.array([1.0, 0.0], np.float32)})
    expected = run(model, test.feeds, evaluator)
    planted = {
        "wrong": "(float[2] x) => (float[2] y) { y = Identity(x) }",
        "interface": "(float[2] x) => (float[2] z) { z = Neg(x) }",
        "invalid": "(float[2] x) => (float[3] y) { y = Neg(x) }",
        "does not run": "(float[2] x) => (float[2] y) <int64[2] k = {0, 2}> { y = Gather(x, k) }",
    }
    for fault, text in planted.items():
        after = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 13]> agraph {text}')
        assert (judge(test, expected, after, [], evaluator) or "").startswith(fault)
    rounded = ir.from_onnx_text(
        '<ir_version: 8, opset_import: ["" : 13]> agraph (float[2] x) => (float[2] y) <float k = {-1.000001}> { y = Mul(x, k) }'
    )
    assert judge(test, expected, rounded, [Rewrite("planted", "", False)], evaluator) is None
    assert judge(test, expected, rounded, [Rewrite("planted", "", True)], evaluator) is not None
    assert not bits({"y": np.array([0.0])}, {"y": np.array([-0.0])})


def test_constant_texts_fold(tmp_path: Path, evaluator: Evaluator) -> None:
    """No sample has them: texts among the weights are read, folded, merged and written like numbers."""
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 20]>
        agraph (string[2] x) => (string[2] y) <string[1] k = {"a"}, string[1] l = {"b"}> { c = StringConcat(k, l) i = Identity(c) y = StringConcat(i, x) }""")
    onnx.save(model, tmp_path / "model.onnx")
    test = NodeTest("texts", load(tmp_path / "model.onnx"), {"x": np.array(["p", "q"], object)})
    assert list(faults_of(test, {"y": np.array(["abp", "abq"], object)}, evaluator)) == []
