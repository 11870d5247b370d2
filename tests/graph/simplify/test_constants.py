"""What is the same in every run becomes a weight, as long as the file does not grow beyond the limit."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from jumar.graph import Evaluator, copy_model
from jumar.graph.simplify import simplify_graph


def left(text: str, evaluator: Evaluator | None, limit: int = 64) -> list[str]:
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 13]>\n{text}')
    before = copy_model(model)
    simplify_graph(model, evaluator, fold_limit=limit)
    if evaluator is not None:
        x = {value.name or "": np.ones([int(size) for size in value.shape or ()], np.float32) for value in model.graph.inputs}
        for name, array in evaluator.run(before, x).items():
            np.testing.assert_array_equal(evaluator.run(model, x)[name], array, strict=True)
    return [node.op_type for node in model.graph]


WEIGHT = f"float[8,8] w = {{{', '.join(str(number) for number in range(64))}}}"


def test_a_transposed_weight_replaces_the_one_it_is_made_from(evaluator: Evaluator) -> None:
    text = f"agraph (float[2,8] x) => (float[2,8] y) <{WEIGHT}> {{ t = Transpose<perm=[1,0]>(w) y = MatMul(x, t) }}"
    assert left(text, evaluator) == ["MatMul"]


def test_a_weight_that_stays_is_not_stored_twice(evaluator: Evaluator) -> None:
    text = f"""agraph (float[2,8] x) => (float[2,8] y) <{WEIGHT}> {{
        t = Transpose<perm=[1,0]>(w) a = MatMul(x, t) y = MatMul(a, w) }}"""
    assert left(text, evaluator) == ["Transpose", "MatMul", "MatMul"]
    assert left(text, evaluator, limit=4096) == ["MatMul", "MatMul"]


def test_a_chain_frees_the_weight_at_its_start(evaluator: Evaluator) -> None:
    text = f"""agraph (float[2,8] x) => (float[2,8] y) <{WEIGHT}, int64[2] s = {{8, 8}}> {{
        t = Transpose<perm=[1,0]>(w) r = Reshape(t, s) u = Transpose<perm=[1,0]>(r) y = MatMul(x, u) }}"""
    assert left(text, evaluator) == ["MatMul"]


def test_an_expansion_stays_computed(evaluator: Evaluator) -> None:
    text = "agraph (float[9,9] x) => (float[9,9] y) <int64[2] s = {9, 9}> { c = ConstantOfShape(s) e = Exp(c) y = Add(x, e) }"
    assert left(text, evaluator) == ["ConstantOfShape", "Exp", "Add"]
    assert left(text, evaluator, limit=4096) == ["Add"]


def test_without_an_evaluator_shape_arithmetic_still_folds() -> None:
    text = """agraph (float[2,8] x) => (float[4,4] y) <int64[1] z = {0}, int64[1] r = {-1}> {
        s = Shape(x) n = Gather(s, z) m = Mul(n, n) t = Concat<axis=0>(m, r) y = Reshape(x, t) }"""
    assert left(text, None) == ["Reshape"]
