"""MMCV's operators written out equal what they compute by definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from jumar import check, fix
from jumar.graph import Evaluator, infer_shapes, used_names
from jumar.graph.expansions import expansions_of, load_expansions
from jumar.graph.opset.step import Step, Unconvertible
from jumar.proof import FeedSet

# Of the largest element: sums of a few dozen products in float32.
BOUND = 2e-5
MANY = settings(max_examples=12, deadline=None)
Feeds = dict[str, Any]


def model_of(op: str, feeds: Feeds, opset: int, outputs: list[tuple[int, int]], attributes: dict[str, Any], domain: str = "mmcv") -> Any:
    """One node; ``outputs``: element type and rank of each."""
    names = [f"y{number}" for number in range(len(outputs))]
    node = helper.make_node(op, list(feeds), names, domain=domain, name="node", **attributes)
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(item.dtype), item.shape) for name, item in feeds.items()]
    ends = [helper.make_tensor_value_info(name, kind, [None] * rank) for name, (kind, rank) in zip(names, outputs, strict=True)]
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(domain, 1)]
    return helper.make_model(helper.make_graph([node], "g", inputs, ends), opset_imports=imports, ir_version=8)


def written(proto: onnx.ModelProto) -> tuple[list[ir.Model], list[str]]:
    """The models that the expansions of the node make, and the reasons of those that refuse."""
    load_expansions()
    made, reasons = [], []
    node = proto.graph.node[0]
    for expansion in expansions_of(f"{node.domain}::{node.op_type}"):
        model = ir.from_proto(proto)
        step = Step(model, model.graph[0], used_names(model), model.opset_imports[""], rule="test")
        try:
            expansion(step)
        except Unconvertible as refusal:
            reasons.append(str(refusal.bare))
            continue
        infer_shapes(model)
        onnx.checker.check_model(ir.to_proto(model), full_check=True)
        made.append(model)
    return made, reasons


def agree(proto: onnx.ModelProto, feeds: Feeds, evaluator: Evaluator) -> int:
    """How many expansions there are, all of which compute the same."""
    right = evaluator.run(ir.from_proto(proto), feeds)
    made, _ = written(proto)
    for model in made:
        for name, found in evaluator.run(model, feeds).items():
            assert found.shape == right[name].shape and found.dtype == right[name].dtype
            assert np.abs(found - right[name]).max(initial=0) <= BOUND * max(1.0, np.abs(right[name]).max(initial=0))
    return len(made)


@MANY
@given(st.integers(0, 99), st.sampled_from([11, 16]), st.integers(0, 2), st.booleans(), st.sampled_from(["avg", "max"]), st.integers(1, 2))
def test_regions(evaluator: Evaluator, seed: int, opset: int, samples: int, aligned: bool, mode: str, images: int) -> None:
    random = np.random.default_rng(seed)
    low, sides = random.uniform(-3, 10, (4, 2)), random.uniform(0.2, 9, (4, 2))
    regions = np.concatenate([random.integers(0, images, (4, 1)), low, low + sides], axis=1).astype(np.float32)
    feeds = {"x": random.standard_normal((images, 3, 7, 9)).astype(np.float32), "r": regions}
    form = {"output_height": 2, "output_width": 3, "spatial_scale": 0.7, "sampling_ratio": samples, "mode": mode, "aligned": int(aligned)}
    by_the_standard = mode == "avg" and (not aligned or opset >= 16)
    assert agree(model_of("MMCVRoiAlign", feeds, opset, [(1, 4)], form), feeds, evaluator) == by_the_standard + (samples > 0)


@MANY
@given(
    st.integers(0, 99), st.sampled_from([11, 19]), st.sampled_from([(1, 1), (1, 2), (2, 1)]), st.integers(1, 2), st.sampled_from([0, 1, 2])
)
def test_deformed_convolutions(evaluator: Evaluator, seed: int, opset: int, groups: tuple[int, int], stride: int, form: int) -> None:
    random = np.random.default_rng(seed)
    size = [(6 + 2 - 3) // stride + 1, (7 - 2) // stride + 1]
    shapes = {"x": (2, 4, 6, 7), "o": (2, groups[1] * 12, *size), "m": (2, groups[1] * 6, *size), "w": (6, 4 // groups[0], 3, 2), "b": (6,)}
    kept = (("x", "o", "w"), ("x", "o", "m", "w"), ("x", "o", "m", "w", "b"))[form]
    feeds = {name: random.standard_normal(shapes[name]).astype(np.float32) for name in kept}
    attributes = {"stride": [stride] * 2, "padding": [1, 0], "dilation": [1, 1], "groups": groups[0], "deform_groups": groups[1]}
    op = "MMCVModulatedDeformConv2d" if form else "MMCVDeformConv2d"
    assert agree(model_of(op, feeds, opset, [(1, 4)], attributes), feeds, evaluator) == 1 + (opset >= 19)


@pytest.mark.parametrize("opset", [11, 16, 20])
@pytest.mark.parametrize(("mode", "padding", "aligned"), [(0, 0, 0), (0, 1, 1), (0, 2, 0), (1, 0, 1), (1, 1, 0), (1, 2, 1)])
def test_sampling(evaluator: Evaluator, opset: int, mode: int, padding: int, aligned: int) -> None:
    random = np.random.default_rng(3)
    feeds = {
        "x": random.standard_normal((2, 3, 5, 6)).astype(np.float32),
        "g": (random.standard_normal((2, 4, 7, 2)) * 1.3).astype(np.float32),
    }
    form = {"interpolation_mode": mode, "padding_mode": padding, "align_corners": aligned}
    assert agree(model_of("grid_sampler", feeds, opset, [(1, 4)], form, "mmdeploy"), feeds, evaluator) == 1 + (opset >= 16)


@MANY
@given(st.integers(0, 99), st.sampled_from([0.0, 0.3, 0.7]), st.sampled_from([11, 13]))
def test_boxes_kept(evaluator: Evaluator, seed: int, threshold: float, opset: int) -> None:
    random = np.random.default_rng(seed)
    low = random.integers(0, 8, (15, 2))
    boxes = np.concatenate([low, low + random.integers(-2, 6, (15, 2))], axis=1).astype(np.float32)  # some of negative size
    feeds = {"b": boxes, "s": random.integers(0, 6, 15).astype(np.float32)}
    proto = model_of("NonMaxSuppression", feeds, opset, [(7, 1)], {"iou_threshold": threshold, "offset": 0})
    assert agree(proto, feeds, evaluator) == 1


@MANY
@given(st.integers(0, 99), st.sampled_from(["cummax", "cummin"]), st.integers(-3, 2), st.integers(1, 9), st.sampled_from([9, 13]))
def test_running_extremes(evaluator: Evaluator, seed: int, op: str, dim: int, size: int, opset: int) -> None:
    shape = [2, 3, 2]
    shape[dim] = size
    feeds = {"x": np.random.default_rng(seed).integers(0, 4, shape).astype(np.float32)}
    assert agree(model_of(op, feeds, opset, [(1, 3), (7, 3)], {"dim": dim}), feeds, evaluator) == 1
    assert agree(model_of(op, feeds, opset, [(1, 3)], {"dim": dim}), feeds, evaluator) == 1


@pytest.mark.parametrize("mode", range(4))
def test_corners(evaluator: Evaluator, mode: int) -> None:
    feeds = {"x": np.random.default_rng(mode).standard_normal((2, 2, 5, 7)).astype(np.float32)}
    assert agree(model_of("MMCVCornerPool", feeds, 9, [(1, 4)], {"mode": mode}), feeds, evaluator) == 1


ZEROS = {"x": np.zeros((1, 4, 5, 5), np.float32), "r": np.zeros((2, 5), np.float32)}
POOLING = {"output_height": 2, "output_width": 2, "spatial_scale": 1.0, "sampling_ratio": 0, "mode": "avg", "aligned": 1}
MOVED = {"x": ZEROS["x"], "o": np.zeros((1, 4, 5, 5), np.float32), "m": np.zeros((1, 2, 5, 5), np.float32), "w": np.zeros((2, 2, 1, 1))}
PLAIN = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "groups": 2, "deform_groups": 2}
BOXES = {"b": np.zeros((3, 4), np.float32), "s": np.zeros(3, np.float32)}
REFUSED = [
    ("MMCVRoiAlign", ZEROS, POOLING, "opset 16"),
    ("MMCVRoiAlign", ZEROS, POOLING | {"mode": "max"}, "sampling_ratio is 0"),
    ("MMCVRoiAlign", ZEROS, {"mode": "avg"}, "output_height is missing"),
    ("MMCVModulatedDeformConv2d", {name: item.astype(np.float32) for name, item in MOVED.items()}, PLAIN, "other channels"),
    ("MMCVDeformConv2d", ZEROS | {"w": ZEROS["x"]}, PLAIN | {"stride": [1]}, "not two numbers"),
    ("NonMaxSuppression", BOXES, {"iou_threshold": 0.5, "offset": 1}, "offset 1"),
    ("NonMaxSuppression", {name: item[None] for name, item in BOXES.items()}, {"iou_threshold": 0.5, "offset": 0}, "TensorRT"),
    ("grid_sampler", {"x": ZEROS["x"], "g": np.zeros((1, 2, 2, 2), np.float32)}, {"interpolation_mode": 2, "padding_mode": 0}, "mode 2"),
    ("MMCVCornerPool", {"x": ZEROS["x"]}, {"mode": 4}, "mode 4"),
]


@pytest.mark.parametrize(("op", "feeds", "attributes", "says"), REFUSED)
def test_what_is_not_the_same_is_refused(op: str, feeds: Feeds, attributes: dict[str, Any], says: str) -> None:
    made, reasons = written(model_of(op, feeds, 11, [(1, 4)], attributes))
    assert not made and any(says in reason for reason in reasons), reasons


def test_places_of_the_first_equal_element_are_noticed(evaluator: Evaluator) -> None:
    feeds = {"x": np.ones((1, 4), np.float32)}
    proto = model_of("cummax", feeds, 13, [(1, 2), (7, 2)], {"dim": 1})
    (model,), _ = written(proto)
    assert evaluator.run(model, feeds)["y1"].tolist() == [[0, 1, 2, 3]] != [[0, 0, 0, 0]]


def test_a_detector_of_mmcv_loses_its_domain(evaluator: Evaluator, tmp_path: Path) -> None:
    """Loaded from a file, though no schema of mmcv exists; chosen boxes are kept with a count."""
    text = """
    <ir_version: 8, opset_import: ["" : 13, "mmcv" : 1]>
    agraph (float[9,4] x, float[9] s) => (float[n,4] y) {
        boxes = Abs(x)
        kept = mmcv.NonMaxSuppression<iou_threshold = 0.5, offset = 0>(boxes, s)
        y = Gather<axis = 0>(boxes, kept)
    }
    """
    path = tmp_path / "detector.onnx"
    model = onnx.parser.parse_model(text)
    onnx.save(model, path)
    assert "OP233" in {item.code for item in check(path, soc="Ascend310P3").record.findings}
    random = np.random.default_rng(5)
    corners = random.uniform(0, 6, (9, 2)).astype(np.float32)
    feeds = {"x": np.concatenate([corners, corners + 3], axis=1), "s": random.random(9).astype(np.float32)}
    case = fix(path, soc="Ascend310P3", unsafe=["OP232"], feeds=FeedSet((feeds,), "test"), evaluator=evaluator)
    assert {step.code: step.status for step in case.record.steps}["OP233"] == "applied"
    assert not any(item.severity == "error" for item in case.record.findings)
    assert "mmcv" not in case.model.opset_imports
