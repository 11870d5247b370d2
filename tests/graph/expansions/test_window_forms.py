"""Pools, Pad, convolutions, blocks and Fourier transforms with random attributes: every expansion gives what ONNX Runtime gives, or refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from single_nodes import differences, expanded, single, unequal

from jumar import fix
from jumar.graph import Evaluator
from jumar.graph.expansions import expansions_of, load_expansions

quick = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def array(draw: Any, shape: list[int], dtype: Any = np.float32) -> Any:
    random = np.random.default_rng(draw(st.integers(0, 999)))
    kind = np.dtype(dtype).kind
    if kind == "b":
        return random.random(shape) < 0.5
    return (random.standard_normal(shape) * 2).astype(dtype) if kind == "f" else random.integers(0, 100, shape).astype(dtype)


@quick
@given(data=st.data(), op=st.sampled_from(["AveragePool", "LpPool", "MaxPool"]))
def test_pools(data: st.DataObject, op: str, evaluator: Evaluator) -> None:
    draw = data.draw
    opset, axes = draw(st.sampled_from([11, 18, 19, 22])), draw(st.integers(1, 3))
    kernel = [draw(st.integers(1, 3)) for _ in range(axes)]
    attributes: dict[str, Any] = {"kernel_shape": kernel, "strides": [draw(st.integers(1, 3)) for _ in range(axes)]}
    dilated = opset >= {"MaxPool": 11, "AveragePool": 19, "LpPool": 18}[op] and draw(st.booleans())
    dilations = [draw(st.integers(1, 3)) for _ in range(axes)] if dilated else [1] * axes
    if dilated:
        attributes["dilations"] = dilations
    if op != "LpPool" or opset >= 18:
        attributes["ceil_mode"] = draw(st.integers(0, 1))
    if not dilated and not attributes.get("ceil_mode") and draw(st.booleans()):
        attributes["auto_pad"] = draw(st.sampled_from(["SAME_UPPER", "SAME_LOWER", "VALID"]))
        attributes["strides"] = [min(pair) for pair in zip(attributes["strides"], kernel, strict=True)]
    else:
        attributes["pads"] = [draw(st.integers(0, size - 1)) for size in kernel * 2]
    if op == "AveragePool":
        attributes["count_include_pad"] = draw(st.integers(0, 1))
    if op == "LpPool":
        attributes["p"] = draw(st.integers(1, 3))
    outputs = draw(st.integers(1, 2)) if op == "MaxPool" else 1
    if op == "MaxPool":
        attributes["storage_order"] = draw(st.integers(0, 1))
    # The kernel must fit: where it does not, ONNX Runtime makes one window of what there is.
    x = array(
        draw,
        [
            draw(st.integers(1, 2)),
            2,
            *((size - 1) * gap + 1 + draw(st.integers(0, 4)) for size, gap in zip(kernel, dilations, strict=True)),
        ],
    )
    model = single(op, opset, ["x"], {"x": x}, {}, outputs, **attributes)
    wrong, _ = differences(model, [{"x": x}, {"x": -np.abs(x) - 1}], evaluator)  # a padding of zeros would win over negative values
    assert wrong == []


@quick
@given(data=st.data())
def test_pad(data: st.DataObject, evaluator: Evaluator) -> None:
    draw = data.draw
    rank, opset = draw(st.integers(1, 4)), draw(st.sampled_from([11, 13, 18, 19, 21]))
    mode = draw(st.sampled_from(["constant", "reflect", "edge", *(["wrap"] if opset >= 19 else [])]))
    shape = [draw(st.integers(2, 5)) for _ in range(rank)]
    axes = list(range(rank))
    x = array(draw, shape, draw(st.sampled_from([np.float32, np.float16, np.int32, np.int64, np.uint8])))
    # ONNX Runtime before 1.24 wraps more than once round only in part, and reflection goes no further than the other end.
    most = {"reflect": 1, "wrap": 2}.get(mode, 4)
    before, after = ([draw(st.integers(-1, most)) for _ in axes] for _ in range(2))
    assume(all(size + min(low, 0) + min(high, 0) >= 2 for size, low, high in zip(shape, before, after, strict=True)))
    constants: dict[str, Any] = {"p": np.array(before + after, np.int64)}
    order = ["x", "p", ""]
    if mode == "constant" and draw(st.booleans()):
        constants["v"], order[2] = np.array(3, x.dtype), "v"
    if opset >= 18 and draw(st.booleans()):
        constants["a"] = np.array([axis - rank for axis in axes], np.int64)
        order.append("a")
    while not order[-1]:
        order.pop()
    wrong, _ = differences(single("Pad", opset, order, {"x": x}, constants, mode=mode), [{"x": x}], evaluator)
    assert wrong == []


@quick
@given(data=st.data(), op=st.sampled_from(["Conv", "ConvTranspose"]))
def test_convolutions(data: st.DataObject, op: str, evaluator: Evaluator) -> None:
    draw = data.draw
    axes, group, opset = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.sampled_from([11, 18, 22]))
    kernel = [draw(st.integers(1, 3)) for _ in range(axes)]
    strides = [draw(st.integers(1, 3)) for _ in range(axes)]
    attributes: dict[str, Any] = {"group": group, "strides": strides}
    x = array(draw, [draw(st.integers(1, 2)), 2 * group, *(draw(st.integers(3 if op == "Conv" else 1, 5)) for _ in range(axes))])
    form = draw(st.sampled_from(["pads", "auto", "shape"] if op == "ConvTranspose" else ["pads", "auto"]))
    if form == "pads":
        attributes["pads"] = [draw(st.integers(0, 1)) for _ in range(2 * axes)]
        attributes["dilations"] = [draw(st.integers(1, 2 if size < 3 else 1)) for size in kernel]
    else:
        kernel = [max(pair) for pair in zip(kernel, strides, strict=True)]  # else padding would be negative
    if form == "auto":
        attributes["auto_pad"] = draw(st.sampled_from(["SAME_UPPER", "SAME_LOWER", "VALID"]))
    if form == "shape":
        attributes["output_shape"] = [size * stride for size, stride in zip(x.shape[2:], strides, strict=True)]
    if op == "ConvTranspose" and form == "pads":
        attributes["output_padding"] = [draw(st.integers(0, stride - 1)) for stride in strides]
    outer = 3
    weight = array(draw, [outer * group, 2, *kernel] if op == "Conv" else [2 * group, outer, *kernel])
    constants, order = {"w": weight}, ["x", "w"]
    if draw(st.booleans()):
        constants["b"] = array(draw, [outer * group])
        order.append("b")
    if op == "ConvTranspose" and form == "pads":
        reach = [(size - 1) * gap for size, gap in zip(kernel, attributes["dilations"], strict=True)]
        assume(
            all(
                (size - 1) * stride + wide + 1 - attributes["pads"][axis] - attributes["pads"][axis + axes] > 0
                for axis, (size, stride, wide) in enumerate(zip(x.shape[2:], strides, reach, strict=True))
            )
        )
    assert differences(single(op, opset, order, {"x": x}, constants, **attributes), [{"x": x}], evaluator)[0] == []


@quick
@given(data=st.data())
def test_fourier_transforms(data: st.DataObject, evaluator: Evaluator) -> None:
    draw = data.draw
    opset, inverse = draw(st.sampled_from([17, 20])), draw(st.integers(0, 1))
    onesided, parts = (0, draw(st.integers(1, 2))) if inverse else (draw(st.integers(0, 1)), 1)
    x = array(draw, [2, draw(st.integers(1, 8)), draw(st.integers(1, 8)), parts])
    axis = draw(st.integers(0, 2))
    attributes: dict[str, Any] = {"inverse": inverse, "onesided": onesided}
    constants: dict[str, Any] = {"n": np.array(draw(st.integers(1, 10)), np.int64)}
    order = ["x", "n"]
    if opset < 20:
        attributes["axis"] = axis
    else:
        constants["a"] = np.array(axis - 4, np.int64)
        order.append("a")
    wrong, made = differences(single("DFT", opset, order, {"x": x}, constants, **attributes), [{"x": x}], evaluator)
    assert (wrong, bool(made)) == ([], True)


@quick
@given(data=st.data())
def test_short_time_transforms(data: st.DataObject, evaluator: Evaluator) -> None:
    """Against numpy: releases of ONNX Runtime differ about complex signals."""
    draw = data.draw
    length, hop, parts = draw(st.integers(2, 8)), draw(st.integers(1, 4)), draw(st.integers(1, 2))
    onesided = draw(st.integers(0, 1)) if parts == 1 else 0
    x = array(draw, [2, length + draw(st.integers(0, 9)), parts])
    window = array(draw, [length]) if draw(st.booleans()) else np.ones(length, np.float32)
    signal = x[..., 0] + (1j * x[..., 1] if parts == 2 else 0)
    frames = np.stack([signal[:, start : start + length] for start in range(0, x.shape[1] - length + 1, hop)], axis=1) * window
    found = np.fft.fft(frames.astype(np.complex128))[..., : length // 2 + 1 if onesided else length]
    expected = np.stack([found.real, found.imag], axis=-1).astype(np.float32)
    constants = {"s": np.array(hop, np.int64), "w": window, "l": np.array(length, np.int64)}
    load_expansions()
    for expansion in expansions_of("STFT"):
        model = expanded(single("STFT", 17, ["x", "s", "w", "l"], {"x": x}, constants, onesided=onesided), expansion)
        assert model is not None
        assert unequal(next(iter(evaluator.run(model, {"x": x}).values())), expected) is None


@pytest.mark.parametrize("op", ["DepthToSpace", "SpaceToDepth"])
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks(op: str, size: int, mode: str, evaluator: Evaluator) -> None:
    shape = [2, 2 * size * size, 3, 2] if op == "DepthToSpace" else [2, 2, 3 * size, 2 * size]
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    attributes: dict[str, Any] = {"blocksize": size} | ({"mode": mode} if op == "DepthToSpace" else {})
    wrong, made = differences(single(op, 13, ["x"], {"x": x}, {}, **attributes), [{"x": x}], evaluator)
    assert (wrong, bool(made)) == ([], True)


def test_a_window_that_begins_in_the_padding_is_not_counted(evaluator: Evaluator) -> None:
    """Before opset 22 shape inference counts it, and what follows has the wrong shape in the file."""
    model = ir.from_onnx_text("""
        <ir_version: 8, opset_import: ["" : 18]>
        agraph (float[1,1,2,6] x) => (float[1,1,3,3] y) {
            p = AveragePool<ceil_mode = 1, count_include_pad = 1, kernel_shape = [2, 1], pads = [1, 0, 1, 0], strides = [1, 3]>(x)
            y = Relu(p)
        }
    """)
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 2, 6)
    case = fix(model, soc="Ascend310P3")
    assert case.record.verdict == "ready"
    assert "AveragePool" not in {node.op_type for node in case.model.graph}
    found = next(iter(evaluator.run(case.model, {"x": x}).values()))
    assert found.tolist() == [[[[0, 1.5], [3, 6], [3, 4.5]]]]
    assert case.model.graph.outputs[0].shape == [1, 1, 3, 2]


def test_sizes_over_the_budget_are_refused() -> None:
    load_expansions()
    x = np.zeros((1, 64, 512, 512), np.float32)
    grid = np.zeros((1, 1024, 1024, 2), np.float32)
    model = single("GridSample", 16, ["x", "g"], {"x": x, "g": grid}, {})
    assert all(expanded(model, expansion) is None for expansion in expansions_of("GridSample"))
