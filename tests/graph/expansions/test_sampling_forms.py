"""Resize, GridSample, DeformConv, AffineGrid and Col2Im with random attributes: every expansion gives what ONNX Runtime gives, or refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from single_nodes import differences, expanded, single, unequal

from jumar.graph import Evaluator
from jumar.graph.expansions import expansions_of, load_expansions

quick = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
REAL = np.random.default_rng(5)


def normal(draw: Any, shape: list[int]) -> Any:
    return (np.random.default_rng(draw(st.integers(0, 999))).standard_normal(shape) * 2).astype(np.float32)


@quick
@given(data=st.data())
def test_resize(data: st.DataObject, evaluator: Evaluator) -> None:
    draw = data.draw
    opset = draw(st.sampled_from([11, 13, 18, 19]))
    mode = draw(st.sampled_from(["nearest", "linear", "cubic"]))
    kinds = ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "tf_crop_and_resize"]
    kind = draw(st.sampled_from(kinds + (["half_pixel_symmetric"] if opset >= 19 else [])))
    x = normal(draw, [1, 2, draw(st.integers(1, 6)), draw(st.integers(1, 6))])
    attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": kind}
    if mode == "nearest":
        attributes["nearest_mode"] = draw(st.sampled_from(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    if mode == "cubic":
        attributes |= {"cubic_coeff_a": draw(st.sampled_from([-0.75, -0.5])), "exclude_outside": draw(st.integers(0, 1))}
    if opset >= 18 and mode != "nearest":
        attributes["antialias"] = draw(st.integers(0, 1))
    roi = np.array([0, 0, 0, 0, 1, 1, 1, 1], np.float32)
    if kind == "tf_crop_and_resize":
        attributes["extrapolation_value"] = 7.5
        roi[2:4], roi[6:8] = draw(st.sampled_from([0.0, 0.25, -0.3])), draw(st.sampled_from([1.0, 0.75, 1.4]))
    sizes = np.array([1, 2, draw(st.integers(1, 8)), draw(st.integers(1, 8))], np.int64)
    # ONNX Runtime crops nothing where nothing is resized.
    assume(kind != "tf_crop_and_resize" or (sizes != x.shape)[2:].all())
    constants = {"roi": roi, "scales": np.zeros(0, np.float32), "sizes": sizes}
    wrong, _ = differences(
        single("Resize", opset, ["x", "roi", "scales", "sizes"], {"x": x}, constants, **attributes), [{"x": x}], evaluator
    )
    assert wrong == []


@quick
@given(data=st.data())
def test_grid_sample(data: st.DataObject, evaluator: Evaluator) -> None:
    draw = data.draw
    opset = draw(st.sampled_from([16, 20, 22]))
    axes = 2 if opset < 20 else draw(st.sampled_from([2, 3]))
    modes = ["bilinear", "nearest", "bicubic"] if opset < 20 else ["linear", "nearest", *(["cubic"] if axes == 2 else [])]
    batch, channels = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    sizes, result = ([draw(st.integers(2, 5)) for _ in range(axes)] for _ in range(2))
    x = normal(draw, [batch, channels, *sizes])
    far = normal(draw, [batch, *result, axes])
    feeds = [{"x": x, "g": far}, {"x": x, "g": np.round(far * 2) / 2}]  # also exactly on pixels and borders
    attributes: dict[str, Any] = {
        "mode": draw(st.sampled_from(modes)),
        "padding_mode": draw(st.sampled_from(["zeros", "border", "reflection"])),
        "align_corners": draw(st.integers(0, 1)),
    }
    wrong, made = differences(single("GridSample", opset, ["x", "g"], feeds[0], {}, **attributes), feeds, evaluator)
    assert wrong == []
    assert made or (attributes["padding_mode"] == "border" and "cubic" in str(attributes["mode"]))


def bilinear(image: Any, row: float, column: float) -> float:
    """Of a matrix; what is outside is zero."""
    total, top, left = 0.0, int(np.floor(row)), int(np.floor(column))
    for y in (top, top + 1):
        for x in (left, left + 1):
            if 0 <= y < image.shape[0] and 0 <= x < image.shape[1]:
                total += float(image[y, x]) * (1 - abs(row - y)) * (1 - abs(column - x))
    return total


def deformed(feed: dict[str, Any], constants: dict[str, Any], form: dict[str, Any]) -> Any:
    """DeformConv as the standard words it, one product at a time."""
    x, weight, offset, group, moved = feed["x"], constants["w"], feed["o"], form["group"], form["offset_group"]
    (batch, channels), (out, each, height, width), size = x.shape[:2], weight.shape, offset.shape[2:]
    shifts = offset.reshape(batch, moved, height * width, 2, *size)
    masks = feed["m"].reshape(batch, moved, height * width, *size) if "m" in feed else np.ones((batch, moved, height * width, *size))
    result = np.zeros((batch, out, *size)) + (constants["b"].reshape(1, -1, 1, 1) if "b" in constants else 0)
    for n, o, i, tap, r, c in np.ndindex(batch, out, each, height * width, *size):
        channel = o // (out // group) * each + i
        side = channel // (channels // moved)
        start = (r * form["strides"][0] - form["pads"][0], c * form["strides"][1] - form["pads"][1])
        y = start[0] + tap // width * form["dilations"][0] + shifts[n, side, tap, 0, r, c]
        z = start[1] + tap % width * form["dilations"][1] + shifts[n, side, tap, 1, r, c]
        result[n, o, r, c] += weight[o, i, tap // width, tap % width] * masks[n, side, tap, r, c] * bilinear(x[n, channel], y, z)
    return result.astype(np.float32)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
def test_deform_conv(data: st.DataObject, evaluator: Evaluator) -> None:
    draw = data.draw
    batch, moved, group = draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    size, kernel = ([draw(st.integers(1, high)) for _ in range(2)] for high in (5, 2))
    strides, dilations = ([draw(st.integers(1, 2)) for _ in range(2)] for _ in range(2))
    pads = [draw(st.integers(0, 2)) for _ in range(4)]
    out = [(size[axis] + pads[axis] + pads[axis + 2] - (kernel[axis] - 1) * dilations[axis] - 1) // strides[axis] + 1 for axis in (0, 1)]
    assume(min(out) >= 1)
    taps = kernel[0] * kernel[1]
    feed = {"x": normal(draw, [batch, 4, *size]), "o": normal(draw, [batch, moved * taps * 2, *out])}
    constants, order = {"w": normal(draw, [2, 4 // group, *kernel])}, ["x", "w", "o", ""]
    if draw(st.booleans()):
        constants["b"], order[3] = normal(draw, [2]), "b"
    if draw(st.booleans()):
        feed["m"] = normal(draw, [batch, moved * taps, *out])
        order.append("m")
    feeds: list[dict[str, Any]] = [feed, feed | {"o": np.round(feed["o"])}]
    form: dict[str, Any] = {"group": group, "offset_group": moved, "strides": strides, "dilations": dilations, "pads": pads}
    load_expansions()
    model = expanded(single("DeformConv", 19, order, feed, constants, **form), expansions_of("DeformConv")[0])
    assert model is not None
    for given_feed in feeds:
        found = next(iter(evaluator.run(model, given_feed).values()))
        assert unequal(found, deformed(given_feed, constants, form)) is None


@quick
@given(data=st.data())
def test_affine_grid_and_col2im(data: st.DataObject, evaluator: Evaluator) -> None:
    draw = data.draw
    axes = draw(st.sampled_from([2, 3]))
    theta = normal(draw, [2, axes, axes + 1])
    sizes = np.array([2, 3, *(draw(st.integers(1, 4)) for _ in range(axes))], np.int64)
    model = single("AffineGrid", 20, ["t", "s"], {"t": theta}, {"s": sizes}, align_corners=draw(st.integers(0, 1)))
    assert differences(model, [{"t": theta}], evaluator)[0] == []

    image, block = ([draw(st.integers(low, high)) for _ in range(2)] for low, high in ((2, 6), (1, 2)))
    strides, dilations = ([draw(st.integers(1, 2)) for _ in range(2)] for _ in range(2))
    pads = [draw(st.integers(0, 1)) for _ in range(4)]
    counts = [(image[axis] + pads[axis] + pads[axis + 2] - dilations[axis] * (block[axis] - 1) - 1) // strides[axis] + 1 for axis in (0, 1)]
    assume(min(counts) >= 1)
    x = normal(draw, [2, 2 * block[0] * block[1], counts[0] * counts[1]])
    shapes = {"i": np.array(image, np.int64), "b": np.array(block, np.int64)}
    model = single("Col2Im", 18, ["x", "i", "b"], {"x": x}, shapes, strides=strides, dilations=dilations, pads=pads)
    assert differences(model, [{"x": x}], evaluator)[0] == []


def test_places_are_whole_numbers_also_in_half_precision(evaluator: Evaluator) -> None:
    """An image of more than 2048 elements: places counted in float16 would hit its neighbours."""
    x = REAL.standard_normal((1, 1, 60, 61)).astype(np.float16)
    rows, columns = np.meshgrid(np.arange(60), np.arange(61), indexing="ij")
    grid = np.stack([(2 * columns + 1) / 61 - 1, (2 * rows + 1) / 60 - 1], axis=-1)[None].astype(np.float16)
    load_expansions()
    model = expanded(single("GridSample", 16, ["x", "g"], {"x": x, "g": grid}, {}, mode="nearest"), expansions_of("GridSample")[0])
    assert model is not None
    found = next(iter(evaluator.run(model, {"x": x, "g": grid}).values()))
    assert (found == x).mean() > 0.99


@pytest.mark.parametrize("planted", [0.99, 1.01])
def test_one_percent_would_be_noticed(planted: float) -> None:
    x = REAL.standard_normal((3, 4)).astype(np.float32)
    assert unequal((x * planted).astype(np.float32), x)
    assert unequal(x[:, :3], x)
    assert unequal(x, x) is None
