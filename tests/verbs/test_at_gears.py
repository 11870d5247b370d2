"""fix, verify and migrate of a model that stays open for gears: every gear is proven, and what they agree on is fixed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar import UsageError, fix, migrate, verify
from jumar.graph import Evaluator, save, static_shape

SOC = "Ascend310P3"
# The product of open sizes is written with Shape, as exporters do.
TEXT = """
<ir_version: 8, opset_import: ["" : 13]>
agraph (float[n, c, w] x, int64[n] ids) => (float[n, k] y, int64[n] z) <int64[1] zero = {0}, int64[1] rest = {-1}, int64[1] two = {2}> {
    sizes = Shape(x)
    first = Gather(sizes, zero)
    to = Concat<axis = 0>(first, rest)
    flat = Reshape(x, to)
    y = Relu(flat)
    z = Add(ids, ids)
}
"""
GEARS = ({"x": (1, 3, 4), "ids": (1,)}, {"x": (4, 3, 4), "ids": (4,)})


def model() -> ir.Model:
    return ir.from_proto(onnx.parser.parse_model(TEXT))


def shape_of(graph: ir.Model, name: str) -> tuple[object, ...]:
    value = next(item for item in graph.graph.inputs if item.name == name)
    return tuple(dim if isinstance(dim, int) else None for dim in value.shape or ())


def test_what_the_gears_agree_on_is_fixed_and_the_rest_stays_open(evaluator: Evaluator) -> None:
    case = fix(model(), soc=SOC, gears=GEARS, ranges={"ids": (0, 9)}, evaluator=evaluator)
    assert shape_of(case.model, "x") == (None, 3, 4)
    assert "SH201" not in {item.code for item in case.record.findings}
    assert not [item for item in case.record.findings if item.fix == "safe"]
    assert "Shape" not in {node.op_type for node in case.model.graph}
    (step,) = [item for item in case.record.steps if item.code == "SH201"]
    assert step.proof is not None
    assert step.proof.cases == len(GEARS)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 6)), min_size=2, max_size=4, unique=True))
def test_the_result_is_right_at_every_gear(evaluator: Evaluator, sizes: list[tuple[int, int, int]]) -> None:
    gears = [{"x": shape, "ids": (shape[0],)} for shape in sizes]
    whole = model()
    case = fix(whole, soc=SOC, gears=gears, ranges={"ids": (0, 9)}, evaluator=evaluator)
    for shape in sizes:
        feed = {"x": np.random.default_rng(0).normal(size=shape).astype(np.float32), "ids": np.arange(shape[0]) % 10}
        kinds = {value.name: np.int32 if value.dtype == ir.DataType.INT32 else None for value in case.model.graph.inputs}
        given_ = {name: array if kinds[name] is None else array.astype(np.int32) for name, array in feed.items()}
        found, expected = evaluator.run(case.model, given_), evaluator.run(whole, feed)
        for name in expected:
            np.testing.assert_array_equal(found[name], expected[name])


def test_a_model_that_is_right_at_one_gear_only_is_caught(evaluator: Evaluator) -> None:
    wrong = ir.from_proto(
        onnx.parser.parse_model(TEXT.replace("to = Concat<axis = 0>(first, rest)", "to = Constant<value = int64[2] {1, -1}>()"))
    )
    assert verify(wrong, model(), gears=GEARS[:1], evaluator=evaluator).record.verdict == "ready"
    record = verify(wrong, model(), gears=GEARS, evaluator=evaluator).record
    assert [item.code for item in record.findings] == ["VF601"]


@pytest.mark.parametrize("other", [{"shapes": {"x": (1, 3, 4)}}, {"cut": True}, {"one_step": {"x": 0}}])
def test_gears_stand_alone(other: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="gears alone"):
        fix(model(), soc=SOC, gears=GEARS, **other)  # type: ignore[arg-type]


def test_a_gear_gives_every_size() -> None:
    with pytest.raises(UsageError, match="leaves input `ids` open"):
        fix(ir.from_proto(onnx.parser.parse_model(TEXT.replace("int64[n] ids", "int64[m] ids"))), soc=SOC, gears=[{"x": (1, 3, 4)}])


def test_inputs_of_no_gear_are_refused_and_gears_without_inputs_get_some(tmp_path: Path, evaluator: Evaluator) -> None:
    np.savez(tmp_path / "odd.npz", x=np.zeros((2, 3, 4), np.float32), ids=np.zeros(2, np.int64))
    with pytest.raises(UsageError, match="sizes of no gear"):
        fix(model(), soc=SOC, gears=GEARS, feeds=tmp_path / "odd.npz", evaluator=evaluator)
    np.savez(tmp_path / "one.npz", x=np.zeros((1, 3, 4), np.float32), ids=np.zeros(1, np.int64))
    case = fix(model(), soc=SOC, gears=GEARS, feeds=tmp_path / "one.npz", evaluator=evaluator)
    assert {item.proof.cases for item in case.record.steps if item.proof is not None and item.status == "applied"} == {2}


def test_a_bundle_with_gears(tmp_path: Path) -> None:
    source = save(model(), tmp_path / "m.onnx")[0]
    case = migrate(source, output=tmp_path / "b", soc=SOC, gears="n 1,4; c 3; w 4", ranges={"ids": (0, 9)}, dry_run=True)
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text(encoding="utf-8"))
    command = " ".join(manifest["builds"][0]["command"])
    assert "--input_shape=x:-1,3,4;ids:-1" in command
    assert "--dynamic_batch_size=1,4" in command
    assert case.record.verdict != "blocked"
    assert [static_shape(value) for value in case.model.graph.inputs] == [None, None]
    (step,) = [item for item in case.record.steps if item.name == "verify"]
    assert step.proof is not None
    assert step.proof.cases == 2
    # The bundle itself says at which sizes it is right.
    again = verify(tmp_path / "b" / "model.onnx").record
    assert again.verdict == "ready"
    assert again.steps[0].proof is not None
    assert again.steps[0].proof.cases == 2


def test_a_range_cannot_be_proven(tmp_path: Path) -> None:
    source = save(model(), tmp_path / "m.onnx")[0]
    with pytest.raises(UsageError, match="each is proven"):
        migrate(source, output=tmp_path / "b", soc=SOC, gears="n 1~4; c 3; w 4")
    assert not (tmp_path / "b").exists()


def test_other_gears_do_the_work_again(tmp_path: Path) -> None:
    source = save(model(), tmp_path / "m.onnx")[0]
    migrate(source, output=tmp_path / "b", soc=SOC, gears="n 1,4; c 3; w 4", ranges={"ids": (0, 9)}, dry_run=True)
    case = migrate(source, output=tmp_path / "b", soc=SOC, gears="n 1,2; c 3; w 4", ranges={"ids": (0, 9)}, dry_run=True, resume=True)
    assert any("--dynamic_batch_size=1,2" in str(step.options) for step in case.record.steps)
