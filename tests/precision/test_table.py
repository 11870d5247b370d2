"""The table per node: the same numbers as whole-model runs, whatever the chunks; errors of a node alone; bodies."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import numpy as np
import onnx_ir as ir
import pytest

from jumar.child.measures import measured
from jumar.graph import Evaluator, capture_model, infer_shapes
from jumar.precision import emulated, find_mode, make_plan
from jumar.precision.lanes import chunks_of
from jumar.precision.table import CSV_COLUMNS, per_node, table_csv

TEXT = """
<ir_version: 8, opset_import: ["" : 13]>
made (float[4,8] x, bool cond) => (float[4,8] z, int64[4] best) <float[8,8] w, float[4,8] big = {2048.0}> {
    p = MatMul(x, w)
    a = Add(p, big)
    b = Sub(a, big)
    r = Relu(b)
    c = If(cond) <then_branch = yes () => (float[4,8] t) { t = Mul(r, b) }, else_branch = no () => (float[4,8] e) { e = Add(r, p) }>
    s = Softmax<axis = 1>(c)
    best = ArgMax<axis = 1, keepdims = 0>(s)
    z = Add(s, p)
}
"""


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator() as running:
        yield running


def made() -> ir.Model:
    random = np.random.default_rng(0)
    text = TEXT.replace("<float[8,8] w, float[4,8] big = {2048.0}>", "")
    text = text.replace("made (float[4,8] x, bool cond)", "made (float[4,8] x, bool cond, float[8,8] w, float[4,8] big)")
    model = ir.from_onnx_text(text)
    for name, array in {"w": random.standard_normal((8, 8)), "big": np.full((4, 8), 2048.0)}.items():
        value = next(item for item in model.graph.inputs if item.name == name)
        model.graph.inputs.remove(value)
        value.const_value = ir.tensor(array.astype(np.float32), name=name)
        model.graph.register_initializer(value)
    for index, node in enumerate(ir.traversal.RecursiveGraphIterator(model.graph)):
        node.name = f"{node.op_type}_{index}"
    infer_shapes(model)
    return model


def feeds(cond: bool = True) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32), "cond": np.array(cond)}


@pytest.mark.parametrize("chunk_bytes", [1, 300, 1 << 20])
@pytest.mark.parametrize("cond", [True, False])
def test_the_entire_error_is_that_of_the_emulated_model(evaluator: Evaluator, chunk_bytes: int, cond: bool) -> None:
    model = made()
    plan = make_plan(model, find_mode("fp16"))
    table = per_node(model, plan, evaluator, [feeds(cond)], chunk_bytes=chunk_bytes)
    names = [row.tensor for row in table.rows]
    assert names == ["p", "a", "b", "r", "c", "s", "best", "z"]
    right = evaluator.run(capture_model(model, names), feeds(cond))
    device = evaluator.run(capture_model(emulated(model, plan), names), feeds(cond))
    for row in table.rows:
        expected = measured(right[row.tensor], device[row.tensor], plan.mode.storage.normal)
        assert row.entire is not None
        assert row.entire.differ == expected["differ"]
        if right[row.tensor].dtype == np.float32:
            assert row.entire.max_abs == expected["max_abs"]
            assert row.low == float(right[row.tensor].min())
    assert np.array_equal(table.device[0]["z"], device["z"])
    assert np.array_equal(table.right[0]["z"], right["z"])


def test_a_node_alone_is_fed_with_right_inputs(evaluator: Evaluator) -> None:
    model = made()
    rows = {row.tensor: row for row in per_node(model, make_plan(model, find_mode("fp16")), evaluator, [feeds()]).rows}
    whole, alone = rows["r"].entire, rows["r"].single
    assert alone is None, "Relu moves values and makes no error"
    assert whole is not None
    assert whole.max_abs > 0.1
    last = rows["z"]
    assert last.single is not None
    assert last.entire is not None
    assert last.single.max_abs < 0.01 * whole.max_abs, "its inputs are right, whatever came before"
    right = evaluator.run(capture_model(model, ["a", "p"]), feeds())
    half = right["p"].astype(np.float16) + np.float16(2048)
    assert rows["a"].single is not None
    assert rows["a"].single.max_abs == np.abs(right["a"].astype(np.float64) - half).max()


def test_several_cases_give_the_worst(evaluator: Evaluator) -> None:
    model = made()
    plan = make_plan(model, find_mode("fp16"))
    one, two = feeds(), {**feeds(), "x": feeds()["x"] * 100}
    each = [per_node(model, plan, evaluator, [feed]).rows for feed in (one, two)]
    for row, first, second in zip(per_node(model, plan, evaluator, [one, two]).rows, *each, strict=True):
        assert row.entire is not None
        assert first.entire is not None
        assert second.entire is not None
        assert row.entire.max_abs == max(first.entire.max_abs, second.entire.max_abs)
        assert row.high == max(first.high, second.high)


def test_kept_nodes_make_no_error(evaluator: Evaluator) -> None:
    model = made()
    plan = make_plan(model, find_mode("origin"))
    table = per_node(model, plan, evaluator, [feeds()])
    assert table.rows == (), "nothing differs, so there is nothing to compare"
    assert np.array_equal(table.device[0]["z"], table.right[0]["z"])


def test_csv_has_the_columns_that_msit_has(evaluator: Evaluator) -> None:
    model = made()
    rows = per_node(model, make_plan(model, find_mode("fp16")), evaluator, [feeds()]).rows
    read = list(csv.DictReader(io.StringIO(table_csv(rows))))
    assert tuple(read[0]) == CSV_COLUMNS
    assert {"CosineSimilarity", "MaxAbsoluteError", "RelativeEuclideanDistance", "KullbackLeiblerDivergence", "OpType"} <= set(read[0])
    assert [row["GroundTruth"] for row in read] == [row.node for row in rows]
    assert rows[0].entire is not None
    assert float(read[0]["MaxAbsoluteError"]) == rows[0].entire.max_abs


def test_chunks_keep_the_order_and_the_limit() -> None:
    model = made()
    chunks = chunks_of(model, 300)
    assert [node for chunk in chunks for node in chunk] == list(model.graph)
    assert len(chunks) > 1
    assert all(len(chunk) <= 3 for chunk in chunks), "two results of 128 bytes fit, and a small one"
