"""Attention of ONNX Runtime's own domain: heads apart, scores, and heads together again.

Shapes, masks and caches as ONNX Runtime's documentation of its contrib operators states them; every form here is compared with its results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import reduce, section, squeeze, unsqueeze
from ..opset.step import Step
from .base import expands
from .common import reshape, sizes
from .microsoft import DOMAIN, needs, only

_HIDDEN = -1e4
"""Finite in half precision, and far below every score."""


@dataclass(frozen=True)
class _Parts:
    """Queries, keys and values as [batch, heads, length, size]."""

    query: ir.Value
    key: ir.Value
    value: ir.Value


def _number(step: Step, number: float, like: ir.Value) -> ir.Value:
    """A scalar of the dtype of a tensor."""
    return step.const(number, (like.dtype or ir.DataType.FLOAT).numpy(), "number")


def _apart(step: Step, data: ir.Value, heads: int) -> ir.Value:
    """[batch, length, width] -> [batch, heads, length, width / heads]."""
    batch, length, width = sizes(step, data)
    return step.op("Transpose", reshape(step, data, [batch, length, heads, width // heads]), perm=[0, 2, 1, 3])


def _together(step: Step, data: ir.Value) -> ir.Value:
    """[batch, heads, length, size] -> [batch, length, heads * size]."""
    batch, heads, length, size = sizes(step, data)
    return reshape(step, step.op("Transpose", data, perm=[0, 2, 1, 3]), [batch, length, heads * size])


def _attend(step: Step, parts: _Parts, biases: Sequence[ir.Value | None]) -> ir.Value:
    """softmax(q k' * scale + biases) v, heads together again."""
    rows, size = sizes(step, parts.query)[2:]
    columns = sizes(step, parts.key)[2]
    scale = float(step.attr("scale", 0.0)) or 1 / math.sqrt(size)
    turned = step.op("Transpose", parts.key, perm=[0, 1, 3, 2])
    scores = step.op("MatMul", step.op("Mul", parts.query, _number(step, scale, parts.query)), turned)
    for bias in biases:
        scores = scores if bias is None else step.op("Add", scores, bias)
    if step.attr("unidirectional", 0):
        seen = np.tril(np.ones((rows, columns), bool), columns - rows)
        scores = step.op("Where", step.const(seen, name="seen"), scores, _number(step, _HIDDEN, parts.query))
    shares = step.op("Softmax", scores, axis=-1 if step.version >= 13 else 3)
    return _together(step, step.op("MatMul", shares, parts.value))


def _mask_bias(step: Step, mask: ir.Value | None, shape: tuple[int, int, int], dtype: ir.DataType) -> ir.Value | None:
    """A mask of keys as a bias on scores [batch, heads, queries, keys].

    Forms: [batch, keys] and [batch, queries, keys] with 1 for valid keys, [batch] with the number of valid keys of each row.
    """
    if mask is None:
        return None
    batch, queries, keys = shape
    form = sizes(step, mask)
    if form == [batch]:
        places = step.const(np.arange(keys, dtype=np.float32).reshape(1, 1, 1, keys), name="places")
        valid = step.op("Less", places, reshape(step, step.cast(mask, ir.DataType.FLOAT), [batch, 1, 1, 1]))
    elif form in ([batch, keys], [batch, queries, keys]):
        spread = [batch, 1, form[1] if len(form) == 3 else 1, keys]
        valid = step.op("Greater", step.cast(reshape(step, mask, spread), ir.DataType.FLOAT), step.const(0.5, np.float32, "half"))
    else:
        step.refuse(say("a mask of shape {shape}", "形状为 {shape} 的掩码", shape=form))
    lost = float(step.attr("mask_filter_value", -10000.0))
    zero, low = (step.const(number, dtype.numpy(), "bias") for number in (0.0, lost))
    return step.op("Where", valid, zero, low)


def _with_past(step: Step, past: ir.Value | None, parts: _Parts) -> tuple[_Parts, ir.Value | None]:
    """Keys and values with those of earlier calls before them, and all of them as [2, batch, heads, length, size]."""
    keys = [parts.key, parts.value]
    if past is not None:
        if len(sizes(step, past)) != 5:
            step.refuse(
                say("past keys that are not [2, batch, heads, length, size]", "历史键值不是 [2, batch, heads, length, size] 的形式")
            )
        earlier = [squeeze(step, section(step, past, 0, place, place + 1), [0]) for place in (0, 1)]
        keys = [step.op("Concat", before, now, axis=2) for before, now in zip(earlier, keys, strict=True)]
    present = None
    if step.used(1):
        present = step.op("Concat", *[unsqueeze(step, item, [0]) for item in keys], axis=0)
    return _Parts(parts.query, keys[0], keys[1]), present


def _from_product(step: Step, product: ir.Value, widths: Sequence[int], heads: int) -> _Parts:
    """Queries, keys and values side by side along the last axis."""
    ends = np.cumsum(widths).tolist()
    found = [_apart(step, section(step, product, 2, end - width, end), heads) for end, width in zip(ends, widths, strict=True)]
    return _Parts(found[0], found[1], found[2])


@expands(DOMAIN + "Attention")
def attention(step: Step) -> None:
    """One product for queries, keys and values; past keys before the new ones."""
    needs(step, do_rotary=0, past_present_share_buffer=0)
    only(step, 0, 1, 2, 3, 4, 5)
    heads, width = int(step.attr("num_heads")), step.static(1)[1]
    widths = [int(size) for size in step.attr("qkv_hidden_sizes", ())] or [width // 3] * 3
    product = step.op("MatMul", step.needed(0), step.needed(1))
    product = product if step.input(2) is None else step.op("Add", product, step.needed(2))
    parts, present = _with_past(step, step.input(4), _from_product(step, product, widths, heads))
    batch, length = step.static(0)[:2]
    shape = (batch, length, sizes(step, parts.key)[2])
    mask = _mask_bias(step, step.input(3), shape, step.dtype())
    step.finish(_attend(step, parts, (mask, step.input(5))), present)


@expands(DOMAIN + "QAttention")
def quantised_attention(step: Step) -> None:
    """As Attention, its product one of integers and scaled."""
    needs(step, do_rotary=0, past_present_share_buffer=0)
    if step.input(8) is not None or step.used(1):
        step.refuse(say("past keys", "历史键值"))
    heads, width = int(step.attr("num_heads")), step.static(1)[1]
    zeros = [step.input(6), step.input(7)]
    inputs: list[ir.Value | None] = [step.needed(0), step.needed(1), *zeros]
    while inputs[-1] is None:
        inputs.pop()
    if inputs[2:3] == [None]:
        inputs[2] = step.const(0, step.dtype(0).numpy(), "zero")
    total = step.cast(step.op("MatMulInteger", *inputs), ir.DataType.FLOAT)
    product = step.op("Add", step.op("Mul", total, step.op("Mul", step.needed(3), step.needed(4))), step.needed(2))
    parts = _from_product(step, product, [width // 3] * 3, heads)
    batch, length = step.static(0)[:2]
    mask = _mask_bias(step, step.input(5), (batch, length, length), ir.DataType.FLOAT)
    step.finish(_attend(step, parts, (mask,)))


def _unpacked(step: Step) -> list[ir.Value]:
    """Queries, keys and values as [batch, length, width] or, already apart, [batch, heads, length, size]."""
    query, key, value = step.needed(0), step.input(1), step.input(2)
    if key is None and len(step.static(0)) == 5:  # [batch, length, heads, 3, size]
        batch, length, heads, _, size = step.static(0)
        return [reshape(step, section(step, query, 3, place, place + 1), [batch, length, heads * size]) for place in range(3)]
    if value is None and key is not None and len(sizes(step, key)) == 5:  # [batch, length, heads, 2, size]
        batch, length, heads, _, size = sizes(step, key)
        return [query] + [reshape(step, section(step, key, 3, place, place + 1), [batch, length, heads * size]) for place in range(2)]
    if key is None or value is None:
        step.refuse(say("keys or values are missing", "缺少键或值"))
    return [query, key, value]


@expands(DOMAIN + "MultiHeadAttention")
def multi_head_attention(step: Step) -> None:
    """Queries, keys and values apart or packed, with a bias each; past keys before the new ones."""
    only(step, 0, 1, 2, 3, 4, 5, 6, 7)
    heads, bias = int(step.attr("num_heads")), step.input(3)
    parts, start = _unpacked(step), 0
    for place, part in enumerate(parts):
        shape = sizes(step, part)
        width = shape[2] if len(shape) == 3 else shape[1] * shape[3]
        if bias is not None and len(shape) == 3:
            parts[place] = step.op("Add", part, section(step, bias, 0, start, start + width))
        start += width
    apart = [_apart(step, part, heads) if len(sizes(step, part)) == 3 else part for part in parts]
    for place, earlier in ((1, step.input(6)), (2, step.input(7))):
        apart[place] = apart[place] if earlier is None else step.op("Concat", earlier, apart[place], axis=2)
    batch, _, queries, _ = sizes(step, apart[0])
    mask = _mask_bias(step, step.input(4), (batch, queries, sizes(step, apart[1])[2]), step.dtype())
    result = _attend(step, _Parts(apart[0], apart[1], apart[2]), (mask, step.input(5)))
    step.finish(result, apart[1], apart[2])


@expands(DOMAIN + "GroupQueryAttention", DOMAIN + "DecoderMaskedMultiHeadAttention", DOMAIN + "SparseAttention")
def cached_attention(step: Step) -> None:
    """Not written out.

    Raises:
        Unconvertible: always; how much of the cache is filled is data.
    """
    step.refuse(
        say(
            "how much of its cache is filled is known only at run time; export without the cache, or with a cache of a fixed length and a mask",
            "其缓存已填充的长度在运行时才知道；请不带缓存导出，或使用固定长度的缓存和掩码",
        )
    )


@expands(DOMAIN + "RotaryEmbedding")
def rotary(step: Step) -> None:
    """Pairs of elements turned by an angle that the place decides."""
    needs(step, is_packed_batching=0)
    data, shape = step.needed(0), step.static(0)
    half = step.static(2)[1]
    split = len(shape) == 4  # [batch, heads, length, size]
    turned, heads = int(step.attr("rotary_embedding_dim", 0)) or 2 * half, int(step.attr("num_heads", 0))
    batch, length = shape[0], shape[2] if split else shape[1]
    if split:
        data = step.op("Transpose", data, perm=[0, 2, 1, 3])
    else:
        count = heads or shape[2] // (2 * half)
        data = reshape(step, data, [batch, length, count, shape[2] // count])
    size = sizes(step, data)[3]
    cosine, sine = (_angles(step, index, length) for index in (2, 3))
    if step.attr("interleaved", 0):
        pairs = reshape(step, section(step, data, 3, 0, turned), [*sizes(step, data)[:3], half, 2])
        first, second = (squeeze(step, section(step, pairs, 4, place, place + 1), [4]) for place in (0, 1))
    else:
        first, second = section(step, data, 3, 0, half), section(step, data, 3, half, 2 * half)
    one = step.op("Sub", step.op("Mul", first, cosine), step.op("Mul", second, sine))
    other = step.op("Add", step.op("Mul", first, sine), step.op("Mul", second, cosine))
    if step.attr("interleaved", 0):
        joined = step.op("Concat", unsqueeze(step, one, [4]), unsqueeze(step, other, [4]), axis=4)
        pieces = [reshape(step, joined, [*sizes(step, data)[:3], turned])]
    else:
        pieces = [one, other]
    if turned < size:
        pieces.append(section(step, data, 3, turned, size))
    result = step.op("Concat", *pieces, axis=3) if len(pieces) > 1 else pieces[0]
    step.finish(step.op("Transpose", result, perm=[0, 2, 1, 3]) if split else reshape(step, result, list(shape)))


def _angles(step: Step, index: int, length: int) -> ir.Value:
    """Rows of a table of cosines or sines at the places of the input, as [batch or 1, length, 1, half]."""
    places = step.needed(1)
    if len(sizes(step, places)) == 1:  # where the first one stands
        places = step.op("Add", places, step.ints(np.arange(length), "places"))
        places = unsqueeze(step, places, [0])
    return unsqueeze(step, step.op("Gather", step.needed(index), places, axis=0), [2])


@expands(DOMAIN + "BiasSoftmax")
def bias_softmax(step: Step) -> None:
    """A bias added, then a softmax over the axes from ``axis`` on."""
    total = step.op("Add", step.needed(0), step.needed(1))
    shape = step.static(0)
    axis = int(step.attr("axis", 1)) % len(shape)
    flat = reshape(step, total, [*shape[:axis], math.prod(shape[axis:])])
    largest = reduce(step, "ReduceMax", flat, [axis])
    grown = step.op("Exp", step.op("Sub", flat, largest))
    step.finish(reshape(step, step.op("Div", grown, reduce(step, "ReduceSum", grown, [axis])), list(shape)))
