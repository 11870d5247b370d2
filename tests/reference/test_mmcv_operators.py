"""MMCV's operators in numpy against the standard's operators in ONNX Runtime that compute the same, and against closed forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mmcv_models import one

from jumar.errors import EvaluationError
from jumar.graph import Evaluator

# Of the largest element: sums of a few dozen products in float32.
BOUND = 2e-5
PLACES, ROWS = ((7, 1),), ((7, 2),)
MANY = settings(max_examples=12, deadline=None)


def run(evaluator: Evaluator, op: str, feeds: Mapping[str, Any], outputs: Any = ((1, 4),), **attributes: Any) -> list[Any]:
    return list(evaluator.run(one(op, feeds, outputs, **attributes), dict(feeds)).values())


def near(found: Any, right: Any) -> bool:
    return found.shape == right.shape and float(np.abs(found - right).max()) <= BOUND * max(1.0, float(np.abs(right).max()))


def regions_of(random: Any, count: int, images: int) -> Any:
    """Some partly outside, none of a size at which the number of samples jumps."""
    low = random.uniform(-3, 10, (count, 2))
    sides = random.uniform(0.2, 9, (count, 2))
    return np.concatenate([random.integers(0, images, (count, 1)), low, low + sides], axis=1).astype(np.float32)


@MANY
@given(st.integers(0, 99), st.integers(1, 3), st.sampled_from([0, 1, 2, 3]), st.booleans(), st.sampled_from([0.25, 1.0]))
def test_regions_are_those_of_the_standard(evaluator: Evaluator, seed: int, bins: int, samples: int, aligned: bool, scale: float) -> None:
    random = np.random.default_rng(seed)
    image, regions = random.standard_normal((2, 3, 7, 9)).astype(np.float32), regions_of(random, 4, 2)
    pooling = {"output_height": bins, "output_width": bins + 1, "sampling_ratio": samples, "spatial_scale": scale, "mode": "avg"}
    found = run(evaluator, "MMCVRoiAlign", {"x": image, "r": regions}, aligned=int(aligned), **pooling)[0]
    standard = {"x": image, "r": regions[:, 1:].copy(), "i": regions[:, 0].astype(np.int64)}
    kind = "half_pixel" if aligned else "output_half_pixel"
    right = run(evaluator, "RoiAlign", standard, domain="", coordinate_transformation_mode=kind, **pooling)[0]
    assert near(found, right)
    other = run(evaluator, "MMCVRoiAlign", {"x": image, "r": regions + np.float32([0, 1, 0, 1, 0])}, aligned=int(aligned), **pooling)[0]
    assert not right.any() or not near(other, right)  # regions that are all outside give nothing either way


def test_the_largest_sample_of_a_ramp_is_its_last(evaluator: Evaluator) -> None:
    image = np.arange(8, dtype=np.float32).reshape(1, 1, 1, 8).repeat(8, axis=2)
    pooling = {"output_height": 1, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 1.0, "mode": "max", "aligned": 0}
    found = run(evaluator, "MMCVRoiAlign", {"x": image, "r": np.float32([[0, 1, 1, 5, 5]])}, **pooling)[0]
    assert found.reshape(-1).tolist() == [2.5, 4.5]  # bins from 1 to 3 and to 5, samples at their quarters
    low = run(evaluator, "MMCVRoiAlign", {"x": image - 20000, "r": np.float32([[0, 1, 1, 5, 5]])}, **pooling)[0]
    assert low.reshape(-1).tolist() == [-10000, -10000]


@MANY
@given(st.integers(0, 99), st.sampled_from([(1, 1), (1, 2), (2, 1)]), st.integers(1, 2), st.integers(1, 2), st.booleans())
def test_deformed_convolutions_are_those_of_the_standard(
    evaluator: Evaluator, seed: int, groups: tuple[int, int], stride: int, dilation: int, modulated: bool
) -> None:
    random = np.random.default_rng(seed)
    image, weight = random.standard_normal((2, 4, 6, 7)).astype(np.float32), random.standard_normal((6, 4 // groups[0], 3, 2))
    size = [(6 + 2 - dilation * 2 - 1) // stride + 1, (7 + 0 - dilation - 1) // stride + 1]
    offset = (random.standard_normal((2, groups[1] * 12, *size)) * 2).astype(np.float32)
    mask, weight = random.random((2, groups[1] * 6, *size)).astype(np.float32), weight.astype(np.float32)
    bias = random.standard_normal(6).astype(np.float32)
    form = {"stride": [stride] * 2, "padding": [1, 0], "dilation": [dilation] * 2, "groups": groups[0], "deform_groups": groups[1]}
    if modulated:
        found = run(evaluator, "MMCVModulatedDeformConv2d", {"x": image, "o": offset, "m": mask, "w": weight, "b": bias}, **form)[0]
    else:
        found = run(evaluator, "MMCVDeformConv2d", {"x": image, "o": offset, "w": weight}, **form)[0]
        mask, bias = np.ones_like(mask), np.zeros_like(bias)
    standard = {"strides": [stride] * 2, "pads": [1, 0, 1, 0], "dilations": [dilation] * 2, "group": groups[0], "offset_group": groups[1]}
    feeds = {"x": image, "w": weight, "o": offset, "b": bias, "m": mask}
    right = run(evaluator, "DeformConv", feeds, domain="", opset=19, **standard)[0]
    assert near(found, right)
    assert not near(run(evaluator, "DeformConv", feeds | {"o": offset + 1}, domain="", opset=19, **standard)[0], right)


@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("aligned", [0, 1])
def test_sampling_is_that_of_the_standard(evaluator: Evaluator, mode: int, padding: int, aligned: int) -> None:
    random = np.random.default_rng(mode + padding)
    feeds = {
        "x": random.standard_normal((2, 3, 5, 6)).astype(np.float32),
        "g": (random.standard_normal((2, 4, 7, 2)) * 1.3).astype(np.float32),
    }
    found = run(evaluator, "grid_sampler", feeds, interpolation_mode=mode, padding_mode=padding, align_corners=aligned)[0]
    words = {"mode": ("bilinear", "nearest")[mode], "padding_mode": ("zeros", "border", "reflection")[padding], "align_corners": aligned}
    assert near(found, run(evaluator, "GridSample", feeds, domain="", **words)[0])
    assert not near(found, run(evaluator, "GridSample", feeds, domain="", **(words | {"align_corners": 1 - aligned}))[0])


@MANY
@given(st.integers(0, 99), st.sampled_from([0.0, 0.3, 0.7, 1.0]))
def test_boxes_kept_are_those_of_the_standard(evaluator: Evaluator, seed: int, threshold: float) -> None:
    random = np.random.default_rng(seed)
    low = random.integers(0, 8, (15, 2))
    boxes = np.concatenate([low, low + random.integers(0, 6, (15, 2))], axis=1).astype(np.float32)
    scores = random.integers(0, 6, 15).astype(np.float32)  # ties, and boxes without area
    found = run(evaluator, "NonMaxSuppression", {"b": boxes, "s": scores}, PLACES, iou_threshold=threshold, offset=0)[0]
    feeds = {"b": boxes[None], "s": scores[None, None], "k": np.int64([15]), "t": np.float32([threshold])}
    assert found.tolist() == run(evaluator, "NonMaxSuppression", feeds, ROWS, domain="")[0][:, 2].tolist()


def test_a_pixel_more_makes_neighbours_overlap(evaluator: Evaluator) -> None:
    feeds = {"b": np.float32([[0, 0, 1, 1], [1, 0, 2, 1]]), "s": np.float32([0.5, 0.9])}
    assert run(evaluator, "NonMaxSuppression", feeds, PLACES, iou_threshold=0.1, offset=0)[0].tolist() == [1, 0]
    assert run(evaluator, "NonMaxSuppression", feeds, PLACES, iou_threshold=0.1, offset=1)[0].tolist() == [1]


@pytest.mark.parametrize(("op", "accumulate"), [("cummax", np.maximum.accumulate), ("cummin", np.minimum.accumulate)])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_running_maxima_and_their_last_places(evaluator: Evaluator, op: str, accumulate: Any, dim: int) -> None:
    data = np.random.default_rng(2).integers(0, 4, (5, 4, 6)).astype(np.float32)
    values, places = run(evaluator, op, {"x": data}, ((1, 3), (7, 3)), dim=dim)
    assert np.array_equal(values, accumulate(data, axis=dim))
    assert np.array_equal(np.take_along_axis(data, places, axis=dim), values)
    along = np.arange(data.shape[dim]).reshape([-1 if axis == dim % 3 else 1 for axis in range(3)])
    assert (places <= along).all()
    assert np.array_equal(places == along, data == values)  # an element equal to the best so far is the newest


@pytest.mark.parametrize(("mode", "right"), [(0, [[7, 5], [7, 0]]), (1, [[4, 5], [7, 5]]), (2, [[5, 5], [7, 0]]), (3, [[4, 5], [7, 7]])])
def test_corners_look_to_one_edge(evaluator: Evaluator, mode: int, right: list[list[int]]) -> None:
    data = np.float32([[4, 5], [7, 0]]).reshape(1, 1, 2, 2)
    assert run(evaluator, "MMCVCornerPool", {"x": data}, mode=mode, domain="mmdeploy")[0].reshape(2, 2).tolist() == right


@pytest.mark.parametrize(
    ("op", "feeds", "attributes", "says"),
    [
        ("NonMaxSuppression", {"b": np.zeros((1, 3, 4), np.float32), "s": np.zeros((1, 1, 3), np.float32)}, {"offset": 0}, "TensorRT"),
        ("MMCVCornerPool", {"x": np.zeros((1, 1, 2, 2), np.float32)}, {}, "has no mode"),
        ("cummax", {"x": np.zeros(3, np.float32)}, {}, "has no dim"),
    ],
)
def test_what_is_not_certain_is_not_computed(
    evaluator: Evaluator, op: str, feeds: dict[str, Any], attributes: dict[str, Any], says: str
) -> None:
    with pytest.raises(EvaluationError, match=says):
        run(evaluator, op, feeds, (*PLACES, *PLACES) if op == "cummax" else PLACES, **attributes)
