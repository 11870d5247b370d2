"""What each layer becomes: its scale, its int8 weight and its bias, ready for either form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from .layers import Layer
from .numbers import BIAS_LIMIT, Scale, Weight, least_scales, product_scales, quantise_bias, quantise_weight
from .observe import Histogram


@dataclass(frozen=True, eq=False)
class Quantised:
    """A layer in integers.

    Attributes:
        activation: of its input.
        bias: int32, one for each channel of the output, or None.
    """

    layer: Layer
    activation: Scale
    weight: Weight
    bias: np.ndarray | None

    @property
    def deq(self) -> np.ndarray:
        """float32 scales of the sums, one for each channel of the output or one for all."""
        return product_scales(self.weight, self.activation)

    @property
    def wide_bias(self) -> np.ndarray | None:
        """The float32 bias that the integers stand for."""
        return None if self.bias is None else np.asarray(self.bias.astype(np.float32) * self.deq, np.float32)


@dataclass(frozen=True)
class WeightOptions:
    """How weights are rounded.

    Attributes:
        search: ranges of least squared error instead of the largest magnitude.
        correct_bias: what rounding the weights changes on average, by the mean of each input channel, is taken off the bias.
    """

    search: bool = False
    correct_bias: bool = False


def quantise_layer(
    layer: Layer, activation: Scale, options: WeightOptions = WeightOptions(), histogram: Histogram | None = None
) -> Quantised:
    """Round a layer's weight and bias for an input of this scale."""
    rows = 1 if layer.axis is None else layer.weight.shape[layer.axis]
    least = least_scales(layer.bias, activation, layer.channels)
    weight = quantise_weight(layer.weight, layer.axis, least if rows == layer.channels else np.full(rows, least.max()), options.search)
    bias = layer.bias
    if options.correct_bias and histogram is not None and histogram.sums.size and (bias is not None or layer.op != "MatMul"):
        change = mean_change(layer, weight, histogram.means())  # a MatMul without an Add has nothing to carry it
        corrected = None if change is None else (0 if bias is None else bias) + change
        if (
            corrected is not None
            and np.isfinite(corrected).all()
            and (np.abs(corrected) <= BIAS_LIMIT * product_scales(weight, activation)).all()
        ):
            bias = np.asarray(corrected, np.float32)
    return Quantised(layer, activation, weight, None if bias is None else quantise_bias(bias, weight, activation))


def mean_change(layer: Layer, weight: Weight, means: np.ndarray) -> np.ndarray | None:
    """By how much the mean of each output channel falls through the rounding of the weight (what padding takes away is not seen)."""
    lost = layer.weight.astype(np.float64) - weight.wide()
    if layer.op == "Conv":
        group, inner = layer.group, lost.shape[1]
        if means.size != group * inner:
            return None
        sums = lost.reshape(lost.shape[0], inner, -1).sum(axis=2)
        taken = means.reshape(group, inner)[np.arange(lost.shape[0]) * group // lost.shape[0]]
        return np.asarray((sums * taken).sum(axis=1), np.float32)
    if layer.op == "Gemm" and means.size == (lost.shape[1] if layer.transposed else lost.shape[0]):
        return np.asarray((lost if layer.transposed else lost.T) @ means, np.float32)
    return None


@dataclass(frozen=True)
class Plan:
    """All layers that are quantised, by name."""

    items: Mapping[str, Quantised]

    def without(self, names: Iterable[str]) -> Plan:
        """A copy that leaves these layers in floats."""
        gone = set(names)
        return replace(self, items={name: item for name, item in self.items.items() if name not in gone})
