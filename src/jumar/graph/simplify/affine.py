"""Weights and per-channel constants: what the fusions of linear operators compute with.

Everything is computed in float64 and rounded once to the dtype of the weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from ..edit import Builder
from .base import Edit, given, integer, producer, small_constant

Numbers = npt.NDArray[np.float64]

FLOATS = frozenset({ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE})
# A larger weight is left as it is: to compute a new one would hold both in memory.
_LARGEST = 64 << 20
# A BatchNormalization subtracts the mean. Folded into a bias, the mean is rounded together with what it cancels; so many times larger than
# the result it may be before the rounding alone comes near the bound of the proof.
_CANCELLATION = {ir.DataType.FLOAT16: 4.0, ir.DataType.FLOAT: 64.0, ir.DataType.DOUBLE: 1e6}


@dataclass(frozen=True)
class Affine:
    """``y = scale * x + shift``: one number, or one per channel."""

    scale: Numbers
    shift: Numbers


@dataclass(frozen=True)
class Channels:
    """Where the channels of a tensor are: its rank, their axis, and how many there are."""

    rank: int
    axis: int
    count: int


def rounded(numbers: Numbers, dtype: ir.DataType) -> npt.NDArray[np.generic] | None:
    """The numbers in another float type; None where they overflow, or where all of them are too small for its full precision."""
    kind = dtype.numpy()
    limits = np.finfo(kind)
    largest = float(np.max(np.abs(numbers), initial=0.0))
    if not np.isfinite(largest) or largest > float(limits.max) or 0.0 < largest < float(limits.tiny) / float(limits.eps):
        return None
    return numbers.astype(kind)


def per_channel(value: ir.Value | None, channels: Channels) -> Numbers | None:
    """The numbers of a constant that broadcasts over all axes but that of the channels: one, or one per channel."""
    array = small_constant(value)
    if array is None or value is None or value.dtype not in FLOATS or array.ndim > channels.rank:
        return None
    shape = (1,) * (channels.rank - array.ndim) + array.shape
    if any(size != 1 and not (axis == channels.axis and size == channels.count) for axis, size in enumerate(shape)):
        return None
    numbers = array.reshape(-1).astype(np.float64)
    return numbers if bool(np.isfinite(numbers).all()) else None


def affine_of(node: ir.Node, index: int, channels: Channels, edit: Edit) -> Affine | None:
    """What a node does to its input at ``index``, if that is one scale and one shift per channel with numbers that are known."""
    if edit.opset < 7:  # before, operands were matched by attributes
        return None
    if node.op_type == "BatchNormalization":
        return _batch_norm(node, channels) if index == 0 and channels.axis == 1 else None
    if len(node.inputs) != 2:
        return None
    numbers = per_channel(node.inputs[1 - index], channels)
    one, zero = np.ones(1), np.zeros(1)
    if numbers is None:
        return None
    if node.op_type == "Mul":
        return Affine(numbers, zero)
    if node.op_type == "Div":
        return Affine(1.0 / numbers, zero) if index == 0 and bool(numbers.all()) else None
    if node.op_type == "Add":
        return Affine(one, numbers)
    if node.op_type == "Sub":
        return Affine(one, -numbers) if index == 0 else Affine(-one, numbers)
    return None


def _batch_norm(node: ir.Node, channels: Channels) -> Affine | None:
    """A BatchNormalization in inference. Before opset 14, further outputs asked for training."""
    if integer(node, "training_mode", 0) or integer(node, "spatial", 1) != 1 or any(output.name for output in node.outputs[1:]):
        return None
    flat = Channels(1, 0, channels.count)
    found = [per_channel(given(node, index), flat) for index in range(1, 5)]
    dtype = node.outputs[0].dtype
    if any(numbers is None or numbers.size != channels.count for numbers in found) or dtype not in _CANCELLATION:
        return None
    gamma, beta, mean, variance = (numbers for numbers in found if numbers is not None)
    epsilon = node.attributes["epsilon"].as_float() if "epsilon" in node.attributes else 1e-5
    if bool((variance + epsilon <= 0).any()):
        return None
    scale = gamma / np.sqrt(variance + epsilon)
    result = float(np.max(np.abs(gamma) + np.abs(beta), initial=0.0))
    if float(np.max(np.abs(mean * scale), initial=0.0)) > _CANCELLATION[dtype] * result:
        return None
    return Affine(scale, beta - mean * scale)


@dataclass(frozen=True)
class Weight:
    """A constant of a float type: a tensor, or one number for all elements (ConstantOfShape, which is not written out).

    Attributes:
        value: the tensor in the graph; None for a new one.
        numbers: its elements, read when needed; a scalar array where they are all the same.
        shape_input: the shape that ConstantOfShape reads.
    """

    dims: tuple[int, ...]
    dtype: ir.DataType
    value: ir.Value | None = None
    tensor: ir.TensorProtocol | None = None
    numbers: npt.NDArray[np.generic] | None = None
    shape_input: ir.Value | None = None

    def read(self) -> npt.NDArray[np.generic]:
        if self.numbers is not None:
            return self.numbers
        if self.tensor is None:
            raise ValueError("a weight has numbers or a tensor")
        return self.tensor.numpy()

    def times(self, factor: Numbers, edit: Edit) -> Weight | None:
        """The weight times a factor that broadcasts to it; None where that is not worth it or not representable."""
        if bool((factor == 1.0).all()):
            return self
        if self.shape_input is not None:
            if not bool((factor == factor.flat[0]).all()):
                return None
            fill = rounded(self.read().astype(np.float64) * factor.flat[0], self.dtype)
            return None if fill is None else Weight(self.dims, self.dtype, numbers=fill, shape_input=self.shape_input)
        if not self._may_rewrite(edit):
            return None
        kind = self.dtype.numpy()
        with np.errstate(over="ignore", invalid="ignore"):
            product = np.empty(self.dims, dtype=kind)
            # Computed in float64 piece by piece, without a whole array of it.
            np.multiply(self.read(), factor, out=product, dtype=np.float64, casting="same_kind")
        largest = max(abs(float(product.max())), abs(float(product.min()))) if product.size else 0.0
        if rounded(np.array([largest]), self.dtype) is None:
            return None
        return Weight(self.dims, self.dtype, numbers=product)

    def _may_rewrite(self, edit: Edit) -> bool:
        """Whether a second version of the tensor is allowed: the first goes away, unless others read it."""
        size = int(np.prod(self.dims, dtype=np.int64)) * self.dtype.itemsize
        shared = self.value is not None and (len(self.value.uses()) > 1 or self.value.is_graph_output())
        return size <= (edit.fold_limit if shared else _LARGEST)

    def emit(self, builder: Builder) -> ir.Value:
        """The weight as a tensor of the graph."""
        if self.value is not None:
            return self.value
        if self.shape_input is not None:
            filled = builder.op("ConstantOfShape", self.shape_input, value=ir.tensor(self.read().reshape(1)))
            filled.shape, filled.type = ir.Shape(self.dims), ir.TensorType(self.dtype)
            return filled
        return builder.const(self.read(), name="weight")


def weight_of(value: ir.Value | None) -> Weight | None:
    """A constant of a float type, not one the caller may override."""
    if value is None or value.is_graph_input():
        return None
    tensor = ir.convenience.get_const_tensor(value)
    if tensor is not None:
        dims = tuple(int(size) for size in tensor.shape.numpy())
        return Weight(dims, tensor.dtype, value, tensor) if tensor.dtype in FLOATS else None
    maker = producer(value, "ConstantOfShape")
    shape = None if maker is None else small_constant(maker.inputs[0])
    if maker is None or shape is None:
        return None
    fill = maker.attributes["value"].as_tensor().numpy() if "value" in maker.attributes else np.zeros(1, np.float32)
    dtype = ir.DataType.from_numpy(fill.dtype)
    dims = tuple(int(size) for size in shape.reshape(-1))
    return Weight(dims, dtype, value, numbers=fill.reshape(()), shape_input=maker.inputs[0]) if dtype in FLOATS else None


def bias_numbers(value: ir.Value | None, count: int) -> Numbers | None:
    """The numbers of a bias of ``count`` elements: zeros where it is absent, None where it is not a constant."""
    if value is None:
        return np.zeros(count)
    weight = weight_of(value)
    if weight is None or weight.dims not in ((count,), (1, count)):
        return None
    return np.broadcast_to(weight.read().reshape(-1).astype(np.float64), (count,))
