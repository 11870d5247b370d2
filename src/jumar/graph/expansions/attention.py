"""Attention of opset 23 and later as MatMul, Softmax and MatMul, with masks that stay finite in half precision."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.expand import function_body
from ..opset.step import Array, Step
from ..shapes import static_shape
from .base import expands
from .common import reshape, sizes, transposed, within

_LOWEST = float(np.finfo(np.float16).min)
"""Score of a key that is not attended: finite in float16, and far enough below any score that its exponential is 0."""


@dataclass
class _Masks:
    """Which keys a query attends: what is known, and what is computed."""

    known: Array | None = None
    computed: list[ir.Value] = field(default_factory=list)

    def also(self, mask: Array) -> None:
        self.known = mask if self.known is None else np.logical_and(self.known, mask)


@expands("Attention")
def attention(step: Step) -> None:
    """Scores of keys that are not attended are chosen to be the lowest number of float16, and their weights to be 0.

    So no infinity is added, and a query that attends nothing gives 0, as the standard has it.
    """
    if step.used(3) and int(step.given("qk_matmul_output_mode")) not in (0, 3):
        step.refuse(say("its scores are read with the mask or the softcap", "读取了加掩码或 softcap 之后的分数"))
    query, key, value = (_heads(step, index) for index in range(3))
    key, value = _with_past(step, key, 4), _with_past(step, value, 5)
    batch, heads, rows, width = sizes(step, query)
    groups, columns = sizes(step, key)[1], sizes(step, key)[2]
    if (groups != heads or step.given("softcap")) and _is_first_form(step):
        step.refuse(
            say("the installed ONNX has shared keys or softcap in their first form", "已安装的 ONNX 采用共享 key 或 softcap 的最初形式")
        )
    dtype = step.dtype()
    scale = step.attr("scale")
    scaled = step.op("Mul", query, step.like(1 / math.sqrt(width) if scale is None else float(scale), name="scale"))
    # Queries that share a key are rows of one matrix: no key is copied.
    joined = [batch, groups, heads // groups * rows, width]
    raw = step.op("MatMul", reshape(step, scaled, joined) if groups != heads else scaled, step.op("Transpose", key, perm=[0, 1, 3, 2]))
    raw = reshape(step, raw, [batch, heads, rows, columns]) if groups != heads else raw
    cap, scores = float(step.given("softcap")), raw
    if cap:
        scores = step.op("Mul", step.op("Tanh", step.op("Div", scores, step.like(cap))), step.like(cap))
    masks = _masks(step, rows, columns)
    scores = _with_bias(step, scores, masks)
    allowed = _joined(step, masks)
    if allowed is not None:
        scores = step.op("Where", allowed, scores, step.like(_LOWEST, name="lowest"))
    precision = step.attr("softmax_precision")
    weights = step.cast(scores, dtype if precision is None else ir.DataType(int(precision)))
    weights = step.cast(step.op("Softmax", weights, axis=3 if step.version < 13 else -1), dtype)
    if allowed is not None and not _attends_always(masks):
        weights = step.op("Where", allowed, weights, step.like(0, name="nothing"))
    result = step.op("MatMul", reshape(step, weights, [batch, groups, joined[2], columns]) if groups != heads else weights, value)
    depth = sizes(step, value)[3]
    result = reshape(step, result, [batch, heads, rows, depth]) if groups != heads else result
    if step.rank() == 3:
        result = reshape(step, transposed(step, result, [0, 2, 1, 3]), [batch, rows, heads * depth])
    step.finish(
        result,
        key if step.used(1) else None,
        value if step.used(2) else None,
        None if not step.used(3) else weights if int(step.given("qk_matmul_output_mode")) == 3 else raw,
    )


def _is_first_form(step: Step) -> bool:
    """Whether queries share keys in turn (0, 1, 0, 1) and softcap follows the mask, as ONNX had it at first.

    Later versions of the standard let neighbours share a key (0, 0, 1, 1) and add the mask last.
    """
    body = function_body(step, step.source, step.version)
    return body is None or any(node.op_type == "Tile" for node in body.node)


def _heads(step: Step, index: int) -> ir.Value:
    """Query, key or value with its heads as the second of four axes."""
    data, shape = step.needed(index), step.static(index)
    if 0 in shape:
        step.refuse(say("it may be empty", "它可能为空"))
    if len(shape) == 4:
        return data
    count = step.attr("kv_num_heads" if index else "q_num_heads")
    if not count or shape[-1] % count:
        step.refuse(say("its number of heads is not given", "没有给出头数"))
    split = reshape(step, data, [shape[0], shape[1], count, shape[2] // count])
    return step.op("Transpose", split, perm=[0, 2, 1, 3])


def _with_past(step: Step, data: ir.Value, index: int) -> ir.Value:
    past = step.input(index)
    return data if past is None else step.op("Concat", past, data, axis=2)


def _masks(step: Step, rows: int, columns: int) -> _Masks:
    """What the attributes and the lengths say of which keys are attended."""
    masks, lengths = _Masks(), step.input(6)
    row, column = np.arange(rows)[:, None], np.arange(columns)[None, :]
    before = 0 if step.input(4) is None else step.dim(2, 4)
    left, right = (int(step.attr(name, -1)) for name in ("left_window_size", "right_window_size"))
    causal = bool(step.given("is_causal"))
    if lengths is None:
        if causal:
            masks.also(column <= row + before)
        if left >= 0:
            masks.also(column >= row + before - left)
        if right >= 0:
            masks.also(column <= row + before + right)
        return masks
    if max(left, right) >= 0:
        step.refuse(say("a window and lengths of keys", "同时有窗口和 key 的长度"))
    # A column is attended if it is below the length, and if it is not after the row counted from the length less the rows.
    if not step.range_of(lengths).fits(ir.DataType.INT32):
        step.refuse(say("its lengths are not known to fit 32 bits", "其长度不能确定可用 32 位表示"))
    length = reshape(step, step.cast(lengths, ir.DataType.INT32), [-1, 1, 1, 1])
    bounds = np.broadcast_to(column, (rows, columns))
    if causal:
        bounds = np.maximum(bounds, column - row + rows - 1)
    within(step, bounds.size, "mask")
    masks.computed.append(step.op("Less", step.const(bounds.reshape(1, 1, rows, columns), np.int32, "columns"), length))
    return masks


def _with_bias(step: Step, scores: ir.Value, masks: _Masks) -> ir.Value:
    """Scores with a mask of floats added; a mask of booleans, and infinities of a constant one, join the other masks."""
    given = step.input(3)
    if given is None:
        return scores
    shape, columns = static_shape(given), sizes(step, scores)[3]
    if shape is None or shape[-1] not in (1, columns) or (shape[-1] == 1 and columns != 1):
        step.refuse(say("its mask is shorter than its keys", "掩码比 key 短"))
    known = step.value_of(given)
    if given.dtype == ir.DataType.BOOL:
        if known is not None:
            masks.also(known)
        else:
            masks.computed.append(given)
        return scores
    if known is None:
        # An infinite bias for every key would have to be found in the mask; among the keys of a causal mask it needs no finding.
        step.refuse(say("its mask of floats is computed", "其浮点掩码是计算得到的"))
    masks.also(~np.isneginf(known))
    bias = np.where(np.isneginf(known), 0, known)
    return scores if not bias.any() else step.op("Add", scores, step.const(bias, known.dtype, "bias"))


def _joined(step: Step, masks: _Masks) -> ir.Value | None:
    values = list(masks.computed)
    if masks.known is not None and not masks.known.all():
        values.append(step.const(masks.known, np.bool_, "attended"))
    if not values:
        return None
    result = values[0]
    for other in values[1:]:
        result = step.op("And", result, other)
    return result


def _attends_always(masks: _Masks) -> bool:
    """Whether each query is known to attend some key."""
    return not masks.computed and (masks.known is None or bool(masks.known.any(-1).all()))
