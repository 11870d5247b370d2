"""Steps down in which other operators stay and their form changes: Pad, Clip, Dropout, Reshape, Constant, recurrent layers."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ....text import say
from ...shapes import static_shape
from ..step import Array, Step, lowers
from .axes import negative_axis
from .common import is_float, keep_inputs, set_float, set_ints


@lowers(19, "Pad")
def _pad_wrap(step: Step) -> bool:
    """Opset 19's mode wrap: each axis is gathered with constant indices."""
    if step.attr("mode", "constant") != "wrap":
        return False
    step.finish(gather_pad(step))
    return True


def gather_pad(step: Step) -> ir.Value:
    """Pad in any mode but constant, for static shapes: the places that the new elements are copied from are known."""
    before, after, shape, mode = *_full_pads(step), step.static(), step.attr("mode", "constant")
    data = step.needed(0)
    for axis, size in enumerate(shape):
        if not before[axis] and not after[axis]:
            continue
        places = np.arange(-before[axis], size + after[axis])
        if size == 0:
            step.refuse(say("an empty dimension cannot be padded", "无法填充空的维度"))
        if mode == "wrap":
            places %= size
        elif mode == "edge":
            places = places.clip(0, size - 1)
        else:
            period = max(2 * (size - 1), 1)
            places = np.abs((places + size - 1) % period - (size - 1)) if size > 1 else np.zeros_like(places)
        data = step.op("Gather", data, step.ints(places.tolist(), "places"), axis=axis)
    return data if data is not step.needed(0) else step.op("Identity", data)


def _full_pads(step: Step) -> tuple[list[int], list[int]]:
    """Pads of all axes, before and after."""
    rank, pads = step.rank(), step.constant(1, "pads")
    axes = step.constant(3, "axes")
    places = range(rank) if axes is None else [int(axis) % rank for axis in axes.reshape(-1)]
    full = np.zeros((2, rank), np.int64)
    for position, axis in enumerate(places):
        full[:, axis] = (pads if pads is not None else full).reshape(2, -1)[:, position]
    return full[0].tolist(), full[1].tolist()


@lowers(18, "Pad")
def _pad_axes_to_all(step: Step) -> bool:
    if step.input(3) is None:
        keep_inputs(step, 3)
        return False
    if step.value_of(step.input(1)) is None:
        return _pad_computed(step)
    before, after = _full_pads(step)
    step.node.replace_input_with(1, step.ints([*before, *after], "pads"))
    keep_inputs(step, 3)
    return True


def _pad_computed(step: Step) -> bool:
    """Computed pads of some axes: the others' are zeros in between."""
    rank, axes = step.rank(), step.constant(3, "axes")
    listed = [] if axes is None else [int(axis) % rank for axis in axes.reshape(-1)]
    extended = step.op("Concat", step.needed(1), step.ints([0], "zero"), axis=0)
    count = len(listed)
    places = [half * count + listed.index(axis) if axis in listed else 2 * count for half in (0, 1) for axis in range(rank)]
    step.node.replace_input_with(1, step.op("Gather", extended, step.ints(places, "places"), axis=0))
    keep_inputs(step, 3)
    return True


@lowers(11, "Pad")
def _pad_to_attributes(step: Step) -> bool:
    pads, value = step.constant(1, "pads"), step.constant(2, "constant_value")
    if step.attr("mode", "constant") == "constant" and step.dtype() in (ir.DataType.INT64, ir.DataType.UINT64):
        return _pad_by_concat(step, value)
    keep_inputs(step, 1)
    if pads is not None:
        set_ints(step, "pads", pads)
    if value is not None:
        set_float(step, "value", value)
    return True


def _pad_by_concat(step: Step, value: Array | None) -> bool:
    """Before 11 only floats could be padded; wide integers are put beside constants."""
    before, after = _full_pads(step)
    if min(*before, *after) < 0:
        step.refuse(say("negative pads of integers", "整数张量的负填充"))
    data, shape = step.needed(0), list(step.static())
    fill = 0 if value is None else value.reshape(-1)[0]
    for axis in range(len(shape)):
        parts = []
        for pad in (before[axis], None, after[axis]):
            if pad is None:
                parts.append(data)
            elif pad:
                size = [*shape[:axis], pad, *shape[axis + 1 :]]
                parts.append(step.const(np.full(size, fill), step.dtype().numpy(), "fill"))
        data = step.op("Concat", *parts, axis=axis) if len(parts) > 1 else data
        shape[axis] += before[axis] + after[axis]
    step.finish(data if data is not step.needed(0) else step.op("Identity", data))
    return True


@lowers(11, "Clip")
def _clip_to_attributes(step: Step) -> bool:
    if any(
        index < len(step.node.inputs) and step.input(index) is not None and step.value_of(step.input(index)) is None for index in (1, 2)
    ):
        return _clip_computed(step)
    bounds = {name: step.constant(index, name) for index, name in ((1, "min"), (2, "max"))}
    for name, bound in bounds.items():
        if bound is not None:
            set_float(step, name, bound)
        elif step.dtype() != ir.DataType.FLOAT:  # both versions mean the largest finite number, the older one that of float32
            limit = np.inf if step.dtype() == ir.DataType.DOUBLE else float(np.finfo(np.float16).max)
            step.node.attributes[name] = ir.AttrFloat32(name, -limit if name == "min" else limit)
    keep_inputs(step, 1)
    return True


def _clip_computed(step: Step) -> bool:
    data = step.needed(0)
    for op, index in (("Max", 1), ("Min", 2)):
        bound = step.input(index)
        if bound is not None:
            data = step.op(op, data, bound)
    step.finish(data)
    return True


@lowers(12, "Dropout")
def _dropout_to_attribute(step: Step) -> bool:
    training = step.constant(2, "training_mode")
    if training is not None and bool(training.reshape(-1)[0]):
        ratio = step.constant(1, "ratio")
        if ratio is None or ratio.reshape(-1)[0] != 0:
            step.refuse(say("it is in training mode", "它处于训练模式"))
    ratio = step.value_of(step.input(1))  # means nothing in inference
    if step.used(1):  # before 12 ONNX Runtime's mask in inference is not all true
        whole = step.op("Equal", step.needed(0), step.needed(0))
        ones = step.op("Or", whole, step.op("Not", whole))  # also where the operand is NaN
        step.finish(step.op("Identity", step.needed(0)), ones)
        return True
    keep_inputs(step, 1)
    if ratio is not None:
        step.node.attributes["ratio"] = ir.AttrFloat32("ratio", float(ratio.reshape(-1)[0]))
    return True


@lowers(14, "Reshape")
def _reshape_zero(step: Step) -> bool:
    """Opset 14's allowzero: a zero is a size, where before it copied the input's dimension."""
    if not step.attr("allowzero", 0):
        return False
    wanted, result = step.value_of(step.input(1)), static_shape(step.node.outputs[0])
    if wanted is None and result is not None:
        wanted = np.asarray(result)
        if 0 in wanted:
            step.node.replace_input_with(1, step.ints(list(result), "shape"))
    if wanted is None:
        step.refuse(say("with allowzero, the computed shape may hold a zero", "设置了 allowzero，而计算得到的形状可能含零"))
    shape = step.shape() or ()
    if result is not None and 0 in result and step.dtype() != ir.DataType.STRING:
        step.finish(step.const(np.zeros(result), step.dtype().numpy(), "empty"))
        return True
    for axis in np.flatnonzero(wanted.reshape(-1) == 0):
        if axis >= len(shape) or shape[axis] != 0:
            step.refuse(say("allowzero with a zero that is not the input's dimension", "allowzero 中的零不是输入的对应维度"))
    del step.node.attributes["allowzero"]
    return True


@lowers(14, "LSTM", "GRU", "RNN")
def _recurrent_layout(step: Step) -> bool:
    """Opset 14's layout 1 has the batch first; the tensors are transposed."""
    if not step.attr("layout", 0):
        return False
    inputs = list(step.node.inputs)
    for index in (0, 5, 6):
        value = step.input(index)
        if value is not None:
            inputs[index] = step.op("Transpose", value, perm=[1, 0, 2])
    results: list[ir.Value | None] = [*step.op_like(inputs, without=("layout",))]
    for index, result in enumerate(results):
        if result is not None and step.used(index):
            results[index] = step.op("Transpose", result, perm=[2, 0, 1, 3] if index == 0 else [1, 0, 2])
    step.finish(*results)
    return True


@lowers(12, "Constant")
def _constant_value(step: Step) -> bool:
    """Opset 12's value_int and its kin are tensors before."""
    tensor = ir.convenience.get_const_tensor(step.node.outputs[0])
    if "value" in step.node.attributes or "sparse_value" in step.node.attributes or tensor is None:
        return False
    step.node.attributes.clear()
    step.node.attributes["value"] = ir.AttrTensor("value", tensor)
    return True


@lowers(9, "Constant")
def _constant_to_weight(step: Step) -> bool:
    """Before 9 a Constant node holds floats only; a weight may hold anything."""
    tensor = ir.convenience.get_const_tensor(step.node.outputs[0])
    if tensor is None or step.in_function or is_float(tensor.dtype):
        return False
    step.finish(step.const(tensor.numpy(), name="value"))
    return True


@lowers(8, "Sum", "Mean", "Max", "Min")
def _same_shapes(step: Step) -> bool:
    """Before 8 the operands of these had to have one shape; Add spread them already at 7."""
    shapes = {static_shape(value) for value in step.node.inputs}
    if len(shapes) == 1 and None not in shapes:
        return False
    if step.node.op_type in ("Max", "Min"):
        step.refuse(say("its operands may have several shapes", "其操作数的形状可能不同"))
    total = step.needed(0)
    for other in step.node.inputs[1:]:
        total = step.op("Add", total, other)
    if step.node.op_type == "Mean":
        total = step.op("Div", total, step.like(len(step.node.inputs), name="count"))
    step.finish(total)
    return True


@lowers(11, "Gemm")
def _gemm_without_bias(step: Step) -> bool:
    if step.input(2) is None:
        step.node.resize_inputs(3)
        step.node.replace_input_with(2, step.like(0, name="C"))
    return negative_axis(step)


@lowers(9, "ConstantOfShape")
def _constant_of_shape(step: Step) -> bool:
    attribute = step.node.attributes.get("value")
    value = np.zeros(1, np.float32) if attribute is None else attribute.as_tensor().numpy()
    step.finish(step.op("Expand", step.const(value, name="value"), step.needed(0)))
    return True


@lowers(20, "ConstantOfShape")
def _constant_of_bfloat(step: Step) -> bool:
    attribute = step.node.attributes.get("value")
    tensor = None if attribute is None else attribute.as_tensor()
    if tensor is None or tensor.dtype != ir.DataType.BFLOAT16:
        return False
    value = ir.AttrTensor("value", ir.tensor(tensor.numpy().astype(np.float32)))
    step.finish(step.cast(step.op("ConstantOfShape", step.needed(0), value=value), ir.DataType.BFLOAT16))
    return True


@lowers(18, "OptionalHasElement", "OptionalGetElement")
def _optional_tensor(step: Step) -> bool:
    """From 18 on a plain tensor is taken for an optional that holds it."""
    value = step.input(0)
    if value is None or isinstance(value.type, (ir.TensorType, ir.SequenceType)):
        if step.node.op_type == "OptionalGetElement":
            step.finish(step.op("Identity", value))
        else:
            step.finish(step.const(value is not None, np.bool_, "has_element"))
        return True
    keep_inputs(step, 1)
    return False
