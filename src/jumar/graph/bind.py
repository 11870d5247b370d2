"""Inputs that always have one value: they become weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from ..errors import UsageError
from ..text import Text, say
from .edit import copy_model
from .shapes import infer_shapes, known_shape


def bind_inputs(model: ir.Model, constants: Mapping[str, Any]) -> tuple[ir.Model, dict[str, Any]]:
    """A copy of the model in which the named inputs are weights with the given values, and these values as arrays.

    A value takes the dtype of the input. Its shape is the input's where that is fixed (a single number fills it); open dimensions take
    those of the value.

    Raises:
        UsageError: no such input, or a value that does not fit its dtype or shape.
    """
    bound = copy_model(model)
    graph, arrays = bound.graph, {}
    inputs = {value.name or "": value for value in graph.inputs if value.name not in graph.initializers}
    for name, given in constants.items():
        value = inputs.get(name)
        if value is None:
            raise UsageError(
                say("the model has no input `{name}`", "模型没有名为 `{name}` 的输入", name=name),
                say("expected one of: {names}", "应为其中之一：{names}", names=", ".join(inputs) or "-"),
                say("correct --set-const", "请修正 --set-const"),
            )
        array = arrays[name] = _fitting(value, given)
        graph.inputs.remove(value)
        value.const_value = ir.tensor(array, name=name)
        value.shape = ir.Shape(list(array.shape))
        graph.register_initializer(value)
    infer_shapes(bound, forget=True)
    return bound, arrays


def _fitting(value: ir.Value, given: Any) -> np.ndarray:
    if value.dtype is None or value.dtype == ir.DataType.STRING:
        raise _unfit(value, given, say("expected a tensor of numbers", "应为数值张量"))
    dtype = value.dtype.numpy()
    raw = np.asarray(given)
    plain = raw.dtype == dtype or raw.dtype.kind in "biuf"
    with np.errstate(all="ignore"):
        array = raw.astype(dtype) if plain else raw
    if not plain or (dtype.kind in "biu" and not np.array_equal(array, raw)):
        raise _unfit(value, given, say("expected values of {dtype}", "应为 {dtype} 类型的取值", dtype=dtype))
    declared = known_shape(value)
    if declared is None or (len(declared) == array.ndim and _matches(declared, array.shape)):
        return np.array(array)
    sizes = [dim for dim in declared if isinstance(dim, int)]
    if len(sizes) == len(declared) and array.size in (1, int(np.prod(sizes))):
        return np.full(sizes, array.reshape(())) if array.size == 1 else array.reshape(sizes)
    if array.ndim == 0 and len(declared) == 1:
        return array.reshape(1)
    raise _unfit(value, given, say("expected the shape {shape}", "形状应为 {shape}", shape=list(declared)))


def _matches(declared: tuple[int | str | None, ...], shape: tuple[int, ...]) -> bool:
    return all(not isinstance(dim, int) or dim == size for dim, size in zip(declared, shape, strict=True))


def _unfit(value: ir.Value, given: Any, expected: Text) -> UsageError:
    return UsageError(
        say("{given} does not fit input `{name}`", "{given} 与输入 `{name}` 不符", given=str(np.asarray(given).tolist())[:80], name=value.name),
        expected,
        say("correct --set-const", "请修正 --set-const"),
    )  # fmt: skip
