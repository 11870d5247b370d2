"""Models that read what NonMaxSuppression chose: the same results with all the rows there could be, in ONNX and as the device has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from jumar import check, fix
from jumar.graph import Evaluator, copy_model
from jumar.proof import Interface

HEAD = """
<ir_version: 8, opset_import: ["" : 11]>
agraph (float[{images},40,4] boxes, float[{images},{classes},40] scores) => ({outputs})
<int64[1] most = {{10}}, float[1] iou = {{0.4}}, float[1] least = {{0.3}}, int64 column = {{2}}, int64[2] flat = {{-1,4}}, int64[2] tail = {{-1,1}},
 int64[1] zero = {{0}}, int64[1] ten = {{10}}, int64 first = {{0}}, int64 limit = {{10}}, int64[2] pairs = {{-1, 2}}, int64[1] minus = {{-1}},
 int64[1] lowest = {{-9223372036854775807}}, int64[3] noughts = {{0,0,0}}, float[1] value = {{0.25}}, int64[1] line = {{-1}}>
{{
    picked = NonMaxSuppression(boxes, scores, most, iou, least)
    places = Gather<axis = 1>(picked, column)
    allb = Reshape(boxes, flat)
    {body}
}}"""
PADDED = """
    keep = Slice(places, zero, ten, zero)
    alls = Reshape(scores, tail)
    b = Gather<axis = 0>(allb, keep)
    s = Gather<axis = 0>(alls, keep)
    dets = Concat<axis = 1>(b, s)
    shape = Shape(dets)
    n = Gather<axis = 0>(shape, first)
    rest = Sub(limit, n)
    restu = Unsqueeze<axes = [0]>(rest)
    front = Concat<axis = 0>(noughts, restu)
    paired = Reshape(front, pairs)
    turned = Slice(paired, minus, lowest, zero, minus)
    moved = Transpose<perm = [1, 0]>(turned)
    amounts = Reshape(moved, minus)
    y = Pad(dets, amounts, value)
"""
REDUCED = """
    kept = Gather<axis = 0>(allb, places)
    y = ReduceMax<axes = [0], keepdims = 1>(kept)
"""
GATHERED = """
    y = Gather<axis = 0>(allb, places)
"""


def model_of(body: str, outputs: str, images: int = 1, classes: int = 1) -> ir.Model:
    return ir.from_proto(onnx.parser.parse_model(HEAD.format(body=body, outputs=outputs, images=images, classes=classes)))


def feeds_of(seed: int, images: int = 1, classes: int = 1, low: float = 0.0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    boxes = random.random((images, 40, 4)).astype(np.float32)
    return {"boxes": boxes, "scores": (low + random.random((images, classes, 40))).astype(np.float32)}


def as_on_the_device(model: ir.Model) -> ir.Model:
    """The model with rows of -1 behind those that NonMaxSuppression chose."""
    model = copy_model(model)
    for node in [item for item in model.graph if item.op_type == "NonMaxSuppression"]:
        rows = node.outputs[0]
        readers = list(rows.uses())
        filling = ir.Value(
            name=f"{rows.name}_filling", const_value=ir.tensor(np.full((4, 3), -1, np.int64)), type=ir.TensorType(ir.DataType.INT64)
        )
        filling.shape = ir.Shape([4, 3])
        model.graph.register_initializer(filling)
        more = ir.Node("", "Concat", [rows, filling], [ir.AttrInt64("axis", 0)], name=f"{rows.name}_more")
        more.outputs[0].name = f"{rows.name}_more"
        model.graph.insert_after(node, more)
        for reader, index in readers:
            reader.replace_input_with(index, more.outputs[0])
    return model


def saved(folder: Path, feed: dict[str, Any]) -> Path:
    path = folder / "feeds.npz"
    np.savez(path, **feed)
    return path


@pytest.mark.parametrize("where", [{"soc": "Ascend310P3"}, {"target": "mdc510pro"}])
@pytest.mark.parametrize(("body", "outputs"), [(PADDED, "float[10,5] y"), (REDUCED, "float[1,4] y")])
def test_rows_read_inside_have_a_fixed_number(body: str, outputs: str, where: dict[str, str], tmp_path: Path, evaluator: Evaluator) -> None:
    model = model_of(body, outputs)
    feeds = [feeds_of(seed) for seed in range(3)]
    case = fix(model, feeds=saved(tmp_path, feeds[0]), evaluator=evaluator, **where)
    assert case.record.verdict == "ready"
    assert {step.code for step in case.record.steps if step.status == "applied"} >= {"OP231"}
    assert not {item.code for item in case.record.findings} & {"OP231", "OP232"}
    for feed in feeds:
        right = evaluator.run(model, feed)["y"]
        for form in (case.model, as_on_the_device(case.model)):
            assert np.array_equal(evaluator.run(form, feed)["y"], right)


def test_the_kernel_stays_where_there_is_one(tmp_path: Path, evaluator: Evaluator) -> None:
    operators = {"Ascend310P3": True, "BS9SX1AA": False}
    for soc, kept in operators.items():
        case = fix(model_of(REDUCED, "float[1,4] y"), feeds=saved(tmp_path, feeds_of(0)), evaluator=evaluator, soc=soc)
        assert ("NonMaxSuppression" in {node.op_type for node in case.model.graph}) is kept


def test_on_the_device_the_model_as_it_was_would_differ(evaluator: Evaluator) -> None:
    model, feed = model_of(REDUCED, "float[1,4] y"), feeds_of(1)
    assert not np.array_equal(evaluator.run(model, feed)["y"], evaluator.run(as_on_the_device(model), feed)["y"])


@pytest.mark.parametrize("soc", ["Ascend310P3", "BS9SX1AA"])
@pytest.mark.parametrize(("images", "classes"), [(1, 1), (2, 3)])
def test_outputs_get_a_count_where_it_is_accepted(soc: str, images: int, classes: int, tmp_path: Path, evaluator: Evaluator) -> None:
    model = model_of(GATHERED, "float[n,4] y", images, classes)
    feeds = [feeds_of(seed, images, classes, low) for seed, low in enumerate((0.0, -0.6, -1.0))]
    case = fix(model, feeds=saved(tmp_path, feeds[0]), evaluator=evaluator, soc=soc, unsafe=["OP232"])
    ports = Interface.of(model).changed(case.record.interface or {})
    assert ports.outputs["y"].counted == (0, "y_count")
    for feed in feeds:
        found = evaluator.run(case.model, ports.to_model(feed))
        assert found["y"].shape == (images * classes * 10, 4)
        assert np.array_equal(ports.to_caller(found)["y"], evaluator.run(model, feed)["y"])


def test_without_being_accepted_the_output_stays() -> None:
    for body, severity in ((GATHERED, "warning"), ("y = Identity(places)", "info")):
        outputs = "float[n,4] y" if body is GATHERED else "int64[n] y"
        found = [item for item in check(model_of(body, outputs), soc="Ascend310P3").record.findings if item.code == "OP232"]
        assert [(item.severity, item.fix) for item in found] == [(severity, "unsafe")]


def test_a_padding_that_is_no_filling_up_is_refused() -> None:
    body = PADDED.replace("rest = Sub(limit, n)", "rest = Add(limit, n)")
    found = [item for item in check(model_of(body, "float[m,5] y"), soc="Ascend310P3").record.findings if item.code == "OP231"]
    assert [item.fix for item in found] == ["none"]
    assert "pads is computed" in str(found[0].remedy)
