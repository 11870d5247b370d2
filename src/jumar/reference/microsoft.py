"""Operators of ONNX Runtime's own domain that it runs on GPUs only, or not with the types at hand, after its documentation.

Computed in float32 (products in float64 where they are sums) and rounded once to the type of the data.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

Array = Any


class _Operator(OpRun):
    op_domain = "com.microsoft"

    def attribute(self, name: str, default: Any = None) -> Any:
        found = getattr(self, name, None)
        return default if found is None else found


def _wide(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype.kind not in "iub" else array


def _erf(data: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(data.astype(np.float64)).astype(np.float32)


def _gelu(data: Array) -> Array:
    wide = _wide(data)
    return wide * 0.5 * (1 + _erf(wide * math.sqrt(0.5)))


def _fast_gelu(data: Array) -> Array:
    wide = _wide(data)
    return wide * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))


def _sigmoid(data: Array) -> Array:
    return 1 / (1 + np.exp(-data))


def _softmax(data: Array, axis: int | tuple[int, ...] = -1) -> Array:
    grown = np.exp(data - data.max(axis=axis, keepdims=True))
    return grown / grown.sum(axis=axis, keepdims=True)


class Gelu(_Operator):
    def _run(self, x: Array, **_: Any) -> tuple[Array]:
        return (_gelu(x).astype(x.dtype),)


class BiasGelu(_Operator):
    def _run(self, x: Array, bias: Array, **_: Any) -> tuple[Array]:
        return (_gelu(_wide(x) + _wide(bias)).astype(x.dtype),)


class FastGelu(_Operator):
    def _run(self, x: Array, bias: Array | None = None, **_: Any) -> tuple[Array]:
        return (_fast_gelu(_wide(x) if bias is None else _wide(x) + _wide(bias)).astype(x.dtype),)


class GemmFastGelu(_Operator):
    def _run(self, x: Array, weight: Array, bias: Array | None = None, **_: Any) -> tuple[Array]:
        product = np.matmul(x.astype(np.float64), weight.astype(np.float64)).astype(np.float32)
        return (_fast_gelu(product if bias is None else product + _wide(bias)).astype(x.dtype),)


class QuickGelu(_Operator):
    def _run(self, x: Array, **_: Any) -> tuple[Array]:
        wide = _wide(x)
        return ((wide * _sigmoid(np.float32(self.attribute("alpha", 1.702)) * wide)).astype(x.dtype),)


class BiasSplitGelu(_Operator):
    def _run(self, x: Array, bias: Array, **_: Any) -> tuple[Array]:
        left, right = np.split(_wide(x) + _wide(bias), 2, axis=-1)
        return ((left * _gelu(right)).astype(x.dtype),)


class BiasAdd(_Operator):
    def _run(self, x: Array, bias: Array, skip: Array, **_: Any) -> tuple[Array]:
        return ((_wide(x) + _wide(bias) + _wide(skip)).astype(x.dtype),)


class BiasSoftmax(_Operator):
    def _run(self, data: Array, bias: Array, **_: Any) -> tuple[Array]:
        axis = int(self.attribute("axis", 1)) % data.ndim
        return (_softmax(_wide(data) + _wide(bias), tuple(range(axis, data.ndim))).astype(data.dtype),)


class FusedMatMul(_Operator):
    def _run(self, a: Array, b: Array, **_: Any) -> tuple[Array]:
        return (self.product(a, b).astype(a.dtype),)

    def product(self, a: Array, b: Array) -> Array:
        if self.attribute("transBatchA", 0) or self.attribute("transBatchB", 0):
            raise NotImplementedError("batches are transposed")
        left, right = a.astype(np.float64), b.astype(np.float64)
        left = np.swapaxes(left, -1, -2) if self.attribute("transA", 0) and a.ndim > 1 else left
        right = np.swapaxes(right, -1, -2) if self.attribute("transB", 0) and b.ndim > 1 else right
        return (np.matmul(left, right) * float(self.attribute("alpha", 1.0))).astype(np.float32)


class FusedMatMulActivation(FusedMatMul):
    def _run(self, a: Array, b: Array, **_: Any) -> tuple[Array]:
        total, name = self.product(a, b), self.attribute("activation")
        if name == "Relu":
            total = np.maximum(total, 0)
        elif name == "Tanh":
            total = np.tanh(total)
        elif name == "Sigmoid":
            total = _sigmoid(total)
        elif name == "LeakyRelu":
            total = np.where(total < 0, np.float32(self.attribute("activation_alpha", 0.01)) * total, total)
        else:
            raise NotImplementedError(f"activation {name}")
        return (total.astype(a.dtype),)


class GroupNorm(_Operator):
    def _run(self, x: Array, gamma: Array, beta: Array, *_rest: Any, **_: Any) -> Any:
        return (self.normalised(_wide(x), gamma, beta).astype(x.dtype),)

    def normalised(self, x: Array, gamma: Array, beta: Array) -> Array:
        last, groups = int(self.attribute("channels_last", 1)), int(self.attribute("groups"))
        data = np.moveaxis(x, -1, 1) if last else x
        flat = data.reshape(data.shape[0], groups, -1).astype(np.float64)
        even = (flat - flat.mean(-1, keepdims=True)) / np.sqrt(flat.var(-1, keepdims=True) + float(self.attribute("epsilon", 1e-5)))
        along = (1, -1, *[1] * (data.ndim - 2))
        result = (even.reshape(data.shape) * gamma.reshape(along) + beta.reshape(along)).astype(np.float32)
        if int(self.attribute("activation", 0)) == 1:
            result = result * _sigmoid(result)
        return np.moveaxis(result, 1, -1) if last else result


class SkipGroupNorm(GroupNorm):
    def _run(self, x: Array, gamma: Array, beta: Array, *rest: Any, **_: Any) -> Any:
        skip, bias = (*rest, None)[:2]
        spread = skip.reshape(skip.shape[0], *[1] * (x.ndim - 2), -1) if skip.ndim == 2 else skip
        total = _wide(x) + _wide(spread) + (0 if bias is None else _wide(bias))
        return (self.normalised(total, gamma, beta).astype(x.dtype), total.astype(x.dtype))[: len(self.onnx_node.output)]


class NhwcConv(_Operator):
    def _run(self, x: Array, weight: Array, bias: Array | None = None, **_: Any) -> tuple[Array]:
        if self.attribute("auto_pad", "NOTSET") not in ("NOTSET", ""):
            raise NotImplementedError("auto_pad")
        rank = weight.ndim - 2
        kernel = np.moveaxis(weight, -1, 1).astype(np.float64)
        strides, dilations = (list(self.attribute(name, [1] * rank)) for name in ("strides", "dilations"))
        pads, group = list(self.attribute("pads", [0] * 2 * rank)), int(self.attribute("group", 1))
        data = np.pad(np.moveaxis(x, -1, 1).astype(np.float64), [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)])
        reach = [(size - 1) * step + 1 for size, step in zip(kernel.shape[2:], dilations, strict=True)]
        windows = np.lib.stride_tricks.sliding_window_view(data, reach, axis=tuple(range(2, 2 + rank)))
        chosen: tuple[Any, ...] = (..., *[slice(None, None, step) for step in dilations])
        windows = windows[chosen]
        windows = windows[(slice(None), slice(None), *[slice(None, None, step) for step in strides])]
        parts = []
        for own, filters in zip(np.split(windows, group, axis=1), np.split(kernel, group, axis=0), strict=True):
            inner = list(range(2 + rank, 2 + 2 * rank))
            parts.append(np.tensordot(own, filters, axes=([1, *inner], [1, *range(2, 2 + rank)])))
        result = np.concatenate(parts, axis=-1).astype(np.float32)
        return ((result if bias is None else result + _wide(bias)).astype(x.dtype),)


class SkipLayerNormalization(_Operator):
    simplified = False

    def _run(self, x: Array, skip: Array, gamma: Array, *rest: Array | None, **_: Any) -> tuple[Array | None, ...]:
        beta, bias = (None, *rest, None)[:2] if self.simplified else (*rest, None, None)[:2]
        total = _wide(x) + _wide(skip) + (0 if bias is None else _wide(bias))
        data = total.astype(np.float64)
        centred = data if self.simplified else data - data.mean(-1, keepdims=True)
        even = centred / np.sqrt(
            (centred**2).mean(-1, keepdims=True) + float(self.attribute("epsilon", 1e-5 if self.simplified else 1e-12))
        )
        result = even * gamma.astype(np.float64) + (0 if beta is None else beta.astype(np.float64))
        return (result.astype(x.dtype), None, None, total.astype(x.dtype))[: len(self.onnx_node.output)]


class SkipSimplifiedLayerNormalization(SkipLayerNormalization):
    simplified = True


class MultiHeadAttention(_Operator):
    """Without past keys; queries, keys and values apart or packed."""

    def _run(
        self,
        query: Array,
        key: Array | None = None,
        value: Array | None = None,
        bias: Array | None = None,
        padding: Array | None = None,
        extra: Array | None = None,
        *past: Array | None,
        **_: Any,
    ) -> tuple[Array, ...]:
        if any(item is not None for item in past) or len(self.onnx_node.output) > 1 or (padding is not None and padding.ndim != 2):
            raise NotImplementedError("past keys, present keys, or a mask that is not [batch, keys]")
        heads = int(self.attribute("num_heads"))
        parts = self.unpacked(query, key, value, heads)
        if bias is not None:
            widths = np.cumsum([part.shape[1] * part.shape[3] for part in parts])[:-1]
            parts = [
                part + own.reshape(1, heads, 1, -1) for part, own in zip(parts, np.split(bias.astype(np.float64), widths), strict=True)
            ]
        scale = float(self.attribute("scale", 0.0) or 0.0) or 1 / math.sqrt(parts[0].shape[-1])
        scores = np.matmul(parts[0] * scale, np.swapaxes(parts[1], -1, -2))
        if padding is not None:
            scores = scores + np.where(padding[:, None, None, :] > 0, 0.0, float(self.attribute("mask_filter_value", -10000.0)))
        scores = scores if extra is None else scores + extra.astype(np.float64)
        if self.attribute("unidirectional", 0):
            rows, columns = scores.shape[-2:]
            scores = np.where(np.tril(np.ones((rows, columns), bool), columns - rows), scores, -np.inf)
        result = np.matmul(_softmax(scores), parts[2])
        return (np.swapaxes(result, 1, 2).reshape(result.shape[0], result.shape[2], -1).astype(query.dtype),)

    def unpacked(self, query: Array, key: Array | None, value: Array | None, heads: int) -> list[Array]:
        """As [batch, heads, length, size], in float64."""
        if key is None:
            arrays = [query[:, :, :, place] for place in range(3)]
        elif value is None:
            arrays = [query, key[:, :, :, 0], key[:, :, :, 1]]
        else:
            arrays = [query, key, value]
        found = []
        for array in arrays:
            wide = array.astype(np.float64)
            if wide.ndim == 3:
                wide = wide.reshape(*wide.shape[:2], heads, -1)
            elif array is key or array is value:  # [batch, heads, length, size] already
                wide = np.swapaxes(wide, 1, 2)
            found.append(np.swapaxes(wide, 1, 2))
        return found


OPERATORS = [
    BiasAdd,
    BiasGelu,
    BiasSoftmax,
    BiasSplitGelu,
    FastGelu,
    FusedMatMul,
    FusedMatMulActivation,
    Gelu,
    GemmFastGelu,
    GroupNorm,
    MultiHeadAttention,
    NhwcConv,
    QuickGelu,
    SkipGroupNorm,
    SkipLayerNormalization,
    SkipSimplifiedLayerNormalization,
]
