"""Convolutions of long strides and kernels, against ONNX Runtime within 2e-5 of the largest element."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from single_nodes import expanded, single, unequal

from jumar import fix
from jumar.graph import Evaluator
from jumar.graph.expansions.long_windows import kernel_in_pieces, strides_as_channels

quick = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@quick
@given(data=st.data(), long=st.sampled_from(["stride", "kernel", "both"]))
def test_long_convolutions(data: st.DataObject, long: str, evaluator: Evaluator) -> None:
    draw = data.draw
    random = np.random.default_rng(draw(st.integers(0, 99)))
    group, flat, opset = draw(st.integers(1, 2)), draw(st.booleans()), draw(st.sampled_from([9, 11, 13, 18]))
    kernel = draw(st.integers(256, 600)) if long != "stride" else draw(st.integers(1, 150))
    stride = draw(st.integers(64, 300)) if long != "kernel" else draw(st.integers(1, 5))
    pads = draw(st.lists(st.integers(0, 80), min_size=2, max_size=2))
    dilation = draw(st.sampled_from([1, 1, 2])) if long == "kernel" else 1
    reach = (kernel - 1) * dilation + 1
    length = draw(st.integers(max(reach - sum(pads), 1), reach + 700))
    attributes: dict[str, Any] = {"group": group, "strides": [stride], "dilations": [dilation], "pads": pads, "kernel_shape": [kernel]}
    if dilation == 1 and draw(st.booleans()):
        attributes |= {"auto_pad": draw(st.sampled_from(["SAME_UPPER", "SAME_LOWER", "VALID"]))}
        del attributes["pads"]
        length = max(length, kernel)
    sizes, window = [length], [kernel]
    if not flat:  # the other axis has a form of its own
        sizes, window = [5, length], [2, kernel]
        attributes |= {"strides": [2, stride], "dilations": [1, dilation], "kernel_shape": window}
        attributes |= {"pads": [1, pads[0], 0, pads[1]]} if "pads" in attributes else {}
    x = random.standard_normal([draw(st.integers(1, 2)), 2 * group, *sizes]).astype(np.float32)
    weight = random.standard_normal([2 * group, 2, *window]).astype(np.float32)
    constants, order = {"w": weight}, ["x", "w"]
    if draw(st.booleans()):
        constants["b"], order = random.standard_normal(2 * group).astype(np.float32), ["x", "w", "b"]
    proto = single("Conv", opset, order, {"x": x}, constants, **attributes)
    expansion = kernel_in_pieces if long == "kernel" else strides_as_channels
    model = expanded(proto, expansion)
    assert model is not None or sizes[-1] + sum(pads) < 2 * kernel  # the window may stand in the padding only
    if model is None:
        return
    for node in (item for item in model.graph if item.op_type == "Conv"):
        assert max(node.attributes["strides"].as_ints()) <= 63
        assert max(node.attributes["kernel_shape"].as_ints()) <= 255
    expected = next(iter(evaluator.run(ir.from_proto(proto), {"x": x}).values()))
    found = next(iter(evaluator.run(model, {"x": x}).values()))
    assert not unequal(found, expected)
    assert unequal(found * np.float32(1.0001), expected) or not expected.any()


@pytest.mark.parametrize("form", [{"strides": [2]}, {"strides": [64], "dilations": [2]}, {"strides": [1], "kernel_shape": [3]}])
def test_others_are_left_alone(form: dict[str, Any]) -> None:
    x, weight = np.zeros((1, 1, 400), np.float32), np.zeros((1, 1, 3), np.float32)
    proto = single("Conv", 13, ["x", "w"], {"x": x}, {"w": weight}, **form)
    assert expanded(proto, kernel_in_pieces) is None
    assert expanded(proto, strides_as_channels) is None


def test_a_transform_of_speech_becomes_ready(evaluator: Evaluator) -> None:
    """256 samples every 128: each kernel is two strides long."""
    weight = np.random.default_rng(0).standard_normal((6, 1, 256)).astype(np.float32)
    proto = single(
        "Conv", 16, ["x", "w"], {"x": np.zeros((1, 1, 1024), np.float32)}, {"w": weight}, strides=[128], kernel_shape=[256], pads=[0, 0]
    )
    case = fix(ir.from_proto(proto), soc="Ascend310P3", evaluator=evaluator)
    assert case.record.verdict == "ready"
    assert [step.status for step in case.record.steps if step.code == "OP211"] == ["applied"]
    kernels = [node.attributes["kernel_shape"].as_ints() for node in case.model.graph if node.op_type == "Conv"]
    assert [max(kernel) for kernel in kernels] == [2]
