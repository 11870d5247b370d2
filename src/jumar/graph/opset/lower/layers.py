"""Steps down of layers: normalisations and pools, written with older operators."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ....text import say
from ...shapes import static_shape
from ..step import Step, lowers
from .common import declare, reduce, set_ints, squeeze, unsqueeze


def _stash(step: Step) -> ir.DataType:
    return ir.DataType(step.attr("stash_type", 1))


def _epsilon(step: Step, dtype: ir.DataType) -> ir.Value:
    return step.const(np.float32(step.attr("epsilon", np.float32(1e-5))), dtype.numpy(), "epsilon")


def _last_axes(step: Step) -> list[int]:
    axis = step.attr("axis", -1)
    return list(range(axis, 0)) if axis < 0 else list(range(axis, step.rank()))


def _scaled(step: Step, normalized: ir.Value, scale: ir.Value, bias: ir.Value | None) -> ir.Value:
    result = step.op("Mul", normalized, scale)
    return result if bias is None else step.op("Add", result, bias)


@lowers(17, "LayerNormalization")
def _layer_normalization(step: Step) -> bool:
    dtype, stash, axes = step.dtype(), _stash(step), _last_axes(step)
    data = step.cast(step.needed(0), stash)
    mean = reduce(step, "ReduceMean", data, axes)
    deviation = step.op("Sub", data, mean)
    variance = reduce(step, "ReduceMean", step.op("Mul", deviation, deviation), axes)
    spread = step.op("Sqrt", step.op("Add", variance, _epsilon(step, stash)))
    normalized = step.cast(step.op("Div", deviation, spread), dtype)
    inverse = step.op("Reciprocal", spread) if step.used(2) else None
    step.finish(_scaled(step, normalized, step.needed(1), step.input(2)), mean, inverse)
    return True


@lowers(23, "RMSNormalization")
def _rms_normalization(step: Step) -> bool:
    dtype, stash, axes = step.dtype(), _stash(step), _last_axes(step)
    data = step.cast(step.needed(0), stash)
    mean = reduce(step, "ReduceMean", step.op("Mul", data, data), axes)
    spread = step.op("Sqrt", step.op("Add", mean, _epsilon(step, stash)))
    normalized = step.cast(step.op("Div", data, spread), step.dtype(1) if step.dtype(1) != dtype else dtype)
    step.finish(step.op("Mul", normalized, step.needed(1)))
    return True


@lowers(21, "GroupNormalization")
def _group_normalization(step: Step) -> bool:
    """Groups are rows: [N, groups, rest], normalised along the rest."""
    dtype, stash, rank = step.dtype(), _stash(step), step.rank()
    rows = step.op("Reshape", step.needed(0), step.ints([0, step.attr("num_groups"), -1], "rows"))
    data = step.cast(rows, stash)
    mean = reduce(step, "ReduceMean", data, [2])
    deviation = step.op("Sub", data, mean)
    variance = reduce(step, "ReduceMean", step.op("Mul", deviation, deviation), [2])
    normalized = step.op("Div", deviation, step.op("Sqrt", step.op("Add", variance, _epsilon(step, stash))))
    back = step.op("Reshape", step.cast(normalized, dtype), step.op("Shape", step.needed(0)))
    back.shape = step.needed(0).shape
    channels = step.ints([-1, *[1] * (rank - 2)], "channels")
    scale, bias = (step.op("Reshape", step.needed(index), channels) for index in (1, 2))
    step.finish(_scaled(step, back, scale, bias))
    return True


@lowers(14, "BatchNormalization")
def _batch_normalization_training(step: Step) -> bool:
    """training_mode: the statistics are the batch's own, and the running ones move."""
    if not step.attr("training_mode", 0):
        return False
    data, rank, dtype = step.needed(0), step.rank(), step.dtype()
    axes = [axis for axis in range(rank) if axis != 1]
    mean = reduce(step, "ReduceMean", data, axes)
    deviation = step.op("Sub", data, mean)
    variance = reduce(step, "ReduceMean", step.op("Mul", deviation, deviation), axes)
    spread = step.op("Sqrt", step.op("Add", variance, _epsilon(step, dtype)))
    normalized = step.op("Div", deviation, spread)
    places = list(range(1, rank - 1))
    scale, bias = (unsqueeze(step, step.needed(index), places) for index in (1, 2))
    momentum = np.float32(step.attr("momentum", 0.9))
    running: list[ir.Value | None] = []
    for index, (former, found) in enumerate(((step.needed(3), mean), (step.needed(4), variance)), start=1):
        if not step.used(index):
            running.append(None)
            continue
        kept = step.op("Mul", former, step.const(momentum, former.dtype.numpy() if former.dtype else None, "momentum"))
        flat = step.cast(squeeze(step, found, axes), former.dtype or dtype)
        running.append(
            step.op("Add", kept, step.op("Mul", flat, step.const(1 - momentum, flat.dtype.numpy() if flat.dtype else None, "rest")))
        )
    step.finish(_scaled(step, normalized, scale, bias), *running)
    return True


class Windows:
    """Geometry of a pool whose sizes are known.

    Attributes:
        before, after: padding of the spatial axes as declared (or as auto_pad means it).
        beyond: what ceil_mode reads beyond the padding at the end.
    """

    def __init__(self, step: Step) -> None:
        self.size = step.static()[2:]
        self.kernel = step.attr("kernel_shape")
        dims = len(self.kernel)
        self.strides = step.attr("strides", (1,) * dims)
        self.dilations = step.attr("dilations", (1,) * dims)
        if len(self.size) != dims:
            step.refuse(say("its kernel does not fit the rank of its input", "其核的维数与输入的秩不符"))
        self.result = self._result(step)
        if any(size < 1 for size in self.result):
            step.refuse(say("its result is empty", "其结果为空"))
        # Up to opset 22 shape inference counts a last window that begins in the padding at the end; nobody computes it.
        declare(step, (*step.static()[:2], *self.result))
        reach = [(kernel - 1) * dilation + 1 for kernel, dilation in zip(self.kernel, self.dilations, strict=True)]
        total = [
            max(0, (out - 1) * stride + wide - size)
            for out, stride, wide, size in zip(self.result, self.strides, reach, self.size, strict=True)
        ]
        auto = step.attr("auto_pad", "NOTSET")
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            smaller, larger = [pad // 2 for pad in total], [pad - pad // 2 for pad in total]
            self.before, self.after = (smaller, larger) if auto == "SAME_UPPER" else (larger, smaller)
        else:
            pads = step.attr("pads", (0,) * 2 * dims) if auto == "NOTSET" else (0,) * 2 * dims
            self.before, self.after = list(pads[:dims]), list(pads[dims:])
        self.beyond = [max(0, pad - before - after) for pad, before, after in zip(total, self.before, self.after, strict=True)]

    def _result(self, step: Step) -> list[int]:
        auto, ceil = step.attr("auto_pad", "NOTSET"), bool(step.attr("ceil_mode", 0))
        pads = step.attr("pads", (0,) * 2 * len(self.size)) if auto == "NOTSET" else (0,) * 2 * len(self.size)
        result = []
        for axis, (size, kernel, stride, dilation) in enumerate(zip(self.size, self.kernel, self.strides, self.dilations, strict=True)):
            if auto in ("SAME_UPPER", "SAME_LOWER"):
                if dilation > 1:
                    step.refuse(say("auto_pad with dilations is read in more than one way", "auto_pad 与 dilations 同时使用有多种解释"))
                result.append(-(-size // stride))
                continue
            spare = size + pads[axis] + pads[axis + len(self.size)] - ((kernel - 1) * dilation + 1)
            count = (-(-spare // stride) if ceil else spare // stride) + 1
            result.append(count - 1 if ceil and (count - 1) * stride >= size + pads[axis] else count)
        return result

    def counts(self, with_padding: bool) -> np.ndarray:
        """How many elements each window averages over, by place of the output."""
        lines = []
        for axis, size in enumerate(self.size):
            inside = np.zeros(size + self.before[axis] + self.after[axis] + self.beyond[axis])
            inside[self.before[axis] : self.before[axis] + size] = 1
            if with_padding:
                inside[: size + self.before[axis] + self.after[axis]] = 1
            starts = np.arange(self.result[axis]) * self.strides[axis]
            lines.append(sum(inside[starts + tap * self.dilations[axis]] for tap in range(self.kernel[axis])))
        product = lines[0]
        for line in lines[1:]:
            product = product[..., None] * line
        return np.asarray(product)[None, None]

    def total(self, step: Step, data: ir.Value) -> ir.Value:
        """The sum of each window, by a convolution of each channel with ones."""
        channels = step.dim(1)
        kernel = step.const(np.ones((channels, 1, *self.kernel)), step.dtype().numpy(), "ones")
        after = [pad + more for pad, more in zip(self.after, self.beyond, strict=True)]
        return step.op(
            "Conv",
            data,
            kernel,
            group=channels,
            kernel_shape=list(self.kernel),
            strides=list(self.strides),
            dilations=list(self.dilations),
            pads=[*self.before, *after],
        )


@lowers(19, "AveragePool")
def _average_dilated(step: Step) -> bool:
    dilations = step.attr("dilations")
    if dilations is None or set(dilations) <= {1}:
        return step.node.attributes.pop("dilations", None) is not None
    return average_by_sum(step)


def average_by_sum(step: Step) -> bool:
    windows = Windows(step)
    counts = windows.counts(bool(step.attr("count_include_pad", 0)))
    step.finish(step.op("Div", windows.total(step, step.needed(0)), step.const(counts, step.dtype().numpy(), "counts")))
    return True


@lowers(18, "LpPool")
def _lp_pool(step: Step) -> bool:
    dilations = step.attr("dilations")
    if dilations is not None and set(dilations) <= {1}:
        dilations = step.node.attributes.pop("dilations") and None
    if dilations is None and not step.attr("ceil_mode", 0):
        return False
    power_by_sum(step)
    return True


def power_by_sum(step: Step) -> None:
    """An LpPool by the sum of each window."""
    power = step.attr("p", 2)
    data = step.op("Abs", step.needed(0))
    raised = data if power == 1 else step.op("Mul", data, data) if power == 2 else step.op("Pow", data, step.like(power))
    total = Windows(step).total(step, raised)
    step.finish(total if power == 1 else step.op("Sqrt", total) if power == 2 else step.op("Pow", total, step.like(1 / power)))


@lowers(10, "MaxPool", "AveragePool")
def _pool_rounding(step: Step) -> bool:
    """Before 10 the size of the output was rounded down: what ceil_mode reads at the end becomes padding."""
    dilations = step.attr("dilations")
    if dilations is not None and set(dilations) <= {1}:
        del step.node.attributes["dilations"]
    elif dilations is not None:
        return False
    if not step.attr("ceil_mode", 0):
        return False
    windows = Windows(step)
    if step.node.op_type == "AveragePool" and step.attr("count_include_pad", 0) and any(windows.beyond):
        return average_by_sum(step)
    after = [pad + more for pad, more in zip(windows.after, windows.beyond, strict=True)]
    step.node.attributes["pads"] = ir.AttrInt64s("pads", [*windows.before, *after])
    for name in ("ceil_mode", "auto_pad"):
        step.node.attributes.pop(name, None)
    return True


@lowers(22, "MaxPool", "AveragePool")
def _last_window(step: Step) -> bool:
    """From 22 on a window that would begin in the padding at the end is left out also by shape inference."""
    if not step.attr("ceil_mode", 0) or static_shape(step.input(0)) is None or static_shape(step.node.outputs[0]) is None:
        return False
    windows = Windows(step)
    spread = [
        -(-(size + before + after - ((kernel - 1) * dilation + 1)) // stride) + 1
        for size, before, after, kernel, dilation, stride in zip(
            windows.size, windows.before, windows.after, windows.kernel, windows.dilations, windows.strides, strict=True
        )
    ]
    if list(windows.result) == spread or step.attr("auto_pad", "NOTSET") != "NOTSET":
        return False
    if step.node.op_type == "AveragePool" and step.attr("count_include_pad", 0) and any(windows.beyond):
        return average_by_sum(step)
    if step.used(1):
        step.refuse(say("the indices of its last window would change", "其最后一个窗口的索引会改变"))
    set_ints(step, "pads", [*windows.before, *[pad + more for pad, more in zip(windows.after, windows.beyond, strict=True)]])
    del step.node.attributes["ceil_mode"]
    return True
