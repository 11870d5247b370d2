"""Normalisation at the head of a network: finding it, taking it out, putting one in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from ..errors import UsageError
from ..graph import Builder, constant_of, copy_model, infer_shapes, node_place, replace_value, used_names
from ..graph.edit import can_take_over
from ..text import say
from .emulate import Layout

_KEEPS = ("Identity", "Dropout")
_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE)
_ARITHMETIC = ("Sub", "Add", "Mul", "Div", "BatchNormalization")


@dataclass(frozen=True)
class Head:
    """What a network does to its image first: ``value * gain + offset`` for each channel.

    Attributes:
        name: of the input.
        channels: of the input.
        nodes: the arithmetic, in order; empty where there is none.
        last: what the arithmetic makes.
    """

    name: str
    channels: int
    gain: tuple[float, ...]
    offset: tuple[float, ...]
    nodes: tuple[ir.Node, ...]
    last: ir.Value

    @property
    def subtract(self) -> tuple[float, ...]:
        """What is taken off before multiplying."""
        return tuple(-offset / gain if offset else 0.0 for gain, offset in zip(self.gain, self.offset, strict=True))

    @property
    def pixels(self) -> bool | None:
        """Whether the numbers are those of pixels of 0..255 (True) or of 0..1 (False); None where they tell neither."""
        if not self.nodes:
            return None
        spread = [abs(1 / gain) for gain in self.gain]
        if all(20 <= value <= 150 for value in self.subtract) or (
            all(20 <= value <= 300 for value in spread) and not any(-1 < value < 0 for value in self.subtract)
        ):
            return True
        if all(0.05 < value < 1 for value in self.subtract) and all(0.05 <= value <= 1.01 for value in spread):
            return False
        return None


def find_head(model: ir.Model, name: str | None = None, layout: Layout = "NCHW") -> Head | None:
    """The arithmetic on constants between an image input and the first other operator.

    Args:
        name: of the input; None takes the first of four dimensions.

    Returns:
        None where there is no such input, or its number of channels is open.
    """
    weights = model.graph.initializers
    images = [value for value in model.graph.inputs if value.name not in weights and value.shape is not None and len(value.shape) == 4]
    value = next((item for item in images if name in (None, item.name)), None)
    if value is None or value.shape is None:
        return None
    axis = 1 if layout == "NCHW" else 3
    channels = value.shape[axis]
    if not isinstance(channels, int) or channels < 1:
        return None
    gain, offset = np.ones(channels), np.zeros(channels)
    nodes: list[ir.Node] = []
    last = value
    floating = value.dtype in _FLOATS
    while (node := _only_user(last)) is not None:
        step = _affine(node, last, axis, channels)
        # Integers divide otherwise; a Cast to float ends that.
        if step is None or not (floating or node.op_type in ("Cast", *_KEEPS)):
            break
        floating = floating or node.op_type == "Cast"
        gain, offset = gain * step[0], offset * step[0] + step[1]
        if node.op_type in _ARITHMETIC:
            nodes.append(node)
        last = node.outputs[0]
    if not np.all(np.isfinite([*gain, *offset])) or not np.all(gain):
        return None
    while nodes and last.producer() is not nodes[-1] and last.producer() is not None:
        last = _before(last)
    end = nodes[-1].outputs[0] if nodes else value
    return Head(value.name or "", channels, tuple(map(float, gain)), tuple(map(float, offset)), tuple(nodes), end)


def _before(value: ir.Value) -> ir.Value:
    node = value.producer()
    first = None if node is None else node.inputs[0]
    return value if first is None else first


def _only_user(value: ir.Value) -> ir.Node | None:
    users = list(value.uses())
    return users[0].node if len(users) == 1 and not value.is_graph_output() else None


def _affine(node: ir.Node, value: ir.Value, axis: int, channels: int) -> tuple[Any, Any] | None:
    """Gain and offset of a node on the image; None for any other node."""
    if node.domain not in ("", "ai.onnx"):
        return None
    if node.op_type in _KEEPS or (node.op_type == "Cast" and _to_float(node)):
        return (1.0, 0.0) if node.op_type != "Dropout" or len(node.inputs) == 1 else None
    if node.op_type == "BatchNormalization":
        return _batch_norm(node, axis)
    if node.op_type not in _ARITHMETIC or len(node.inputs) != 2:
        return None
    first, second = node.inputs
    other = second if first is value else first
    if other is value:
        return None
    number = _per_channel(constant_of(other), axis, channels)
    if number is None:
        return None
    forward = first is value
    with np.errstate(divide="ignore", invalid="ignore"):
        if node.op_type == "Mul":
            return number, 0.0
        if node.op_type == "Div":
            return (1 / number, 0.0) if forward else None
        if node.op_type == "Add":
            return 1.0, number
    return (1.0, -number) if forward else (-1.0, number)


def _to_float(node: ir.Node) -> bool:
    to = node.attributes.get("to")
    return to is not None and to.value in (int(ir.DataType.FLOAT), int(ir.DataType.FLOAT16))


def _batch_norm(node: ir.Node, axis: int) -> tuple[Any, Any] | None:
    numbers = [constant_of(item) for item in node.inputs[1:5]]
    training = node.attributes.get("training_mode")
    if axis != 1 or len(numbers) != 4 or (training is not None and training.value):
        return None
    known = [np.asarray(item, np.float64) for item in numbers if item is not None]
    if len(known) != 4:
        return None
    scale, bias, mean, variance = known
    with np.errstate(divide="ignore", invalid="ignore"):
        epsilon = node.attributes.get("epsilon")
        gain = scale / np.sqrt(variance + (1e-5 if epsilon is None else float(epsilon.value)))
    return gain, bias - mean * gain


def _per_channel(number: Any, axis: int, channels: int) -> Any:
    """A constant as one number, or one a channel; None where it varies within a channel."""
    if number is None or np.asarray(number).dtype.kind not in "fiu" or np.asarray(number).ndim > 4:
        return None
    array = np.asarray(number, np.float64)
    shape = (1,) * (4 - array.ndim) + array.shape
    if any(size != 1 for place, size in enumerate(shape) if place != axis) or shape[axis] not in (1, channels):
        return None
    return array.reshape(-1)


def strip_head(model: ir.Model, head: Head) -> ir.Model:
    """A copy of a model without the arithmetic of its head.

    Raises:
        UsageError: there is none, or what it makes is an output of the model.
    """
    if not head.nodes:
        raise UsageError(
            say("input `{name}` is not normalised by the network", "网络没有对输入 `{name}` 做归一化", name=head.name),
            say(
                "expected a leading Sub, Add, Mul, Div or BatchNormalization on constants",
                "开头应有以常量为操作数的 Sub、Add、Mul、Div 或 BatchNormalization",
            ),
            say("there is nothing to move", "没有可移动的内容"),
        )
    names = {node_place(node) for node in head.nodes}
    copy = copy_model(model)
    for node in [node for node in copy.graph if node_place(node) in names and node.op_type in _ARITHMETIC]:
        data = next((item for item in node.inputs if item is not None and constant_of(item) is None), None)
        old = node.outputs[0]
        if data is None or not can_take_over(old, data):
            raise UsageError(
                say("`{node}` makes an output of the model", "`{node}` 产生模型的输出", node=node_place(node)),
                say("expected other operators behind the normalisation", "归一化之后应有其他算子"),
                say("leave it in the network", "请留在网络中"),
            )
        replace_value(old, data)
        copy.graph.remove(node, safe=True)
    infer_shapes(copy)
    return copy


def put_head(model: ir.Model, name: str, subtract: tuple[float, ...], factor: tuple[float, ...], layout: Layout = "NCHW") -> ir.Model:
    """A copy of a model that normalises its input itself: ``(value - subtract) * factor`` for each channel.

    Raises:
        UsageError: no such input, another number of channels, or an input that is not float.
    """
    copy = copy_model(model)
    value = next((item for item in copy.graph.inputs if item.name == name), None)
    axis = 1 if layout == "NCHW" else 3
    users = [] if value is None else list(value.uses())
    count = None if value is None or value.shape is None or len(value.shape) != 4 else value.shape[axis]
    if (
        value is None
        or value.dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16)
        or not users
        or count not in (len(subtract), None)
        or value.is_graph_output()
    ):
        raise UsageError(
            say("input `{name}` cannot be normalised", "不能对输入 `{name}` 做归一化", name=name),
            say("expected a float image of {count} channels", "应为 {count} 个通道的浮点图像", count=len(subtract)),
            say("see `jumar inspect`", "请用 `jumar inspect` 查看"),
        )
    anchor = (
        next(node for node in copy.graph if any(use.node is node for use in users)) if _all_outside(copy, users) else next(iter(copy.graph))
    )
    builder = Builder(copy, anchor, "AI109", used_names(copy))
    shape = (1, -1, 1, 1) if layout == "NCHW" else (1, 1, 1, -1)
    dtype = value.dtype.numpy()
    taken = builder.op("Sub", value, builder.const(np.array(subtract).reshape(shape), dtype, "mean"))
    made = builder.op("Mul", taken, builder.const(np.array(factor).reshape(shape), dtype, "scale"))
    for use in users:
        use.node.replace_input_with(use.idx, made)
    infer_shapes(copy)
    return copy


def _all_outside(model: ir.Model, users: list[Any]) -> bool:
    """Whether all users stand in the main graph, so that the first of them is the place to build before."""
    own = {id(node) for node in model.graph}
    return all(id(use.node) in own for use in users)


def heads(model: ir.Model) -> Iterator[Head]:
    """The heads of all image inputs."""
    for value in model.graph.inputs:
        if value.name in model.graph.initializers:
            continue
        found = find_head(model, value.name)
        if found is not None:
            yield found
