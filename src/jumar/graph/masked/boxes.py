"""NonMaxSuppression of boxes of which only some are there."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from ...text import say
from .base import Count, Look, Mask, Packed, Result, Selected, masks, refuse
from .elements import again
from .moving import listed

_LOWEST = float(np.finfo(np.float32).min)
_SMALL = 1000.0
"""Numbers up to this are told from their neighbours in float16 too."""


@masks("NonMaxSuppression")
def suppress(look: Look) -> list[Result]:
    """Boxes that are not there get a score below the threshold. What is chosen are places, which stand for ranks."""
    step, boxes, scores = look.step, look.packed(0), look.packed(1)
    if boxes is None or scores is None or boxes.mask is None or boxes.mask is not scores.mask or (boxes.axis, scores.axis) != (1, 2):
        refuse(say("its boxes and scores are chosen by different masks", "其框与得分由不同的掩码选取"))
    if step.input(4) is not None and look.constant(4) is None:
        refuse(say("its score threshold is computed", "其得分阈值是计算得到的"))
    threshold = look.constant(4)
    limit = _threshold(look, None if threshold is None else float(threshold.reshape(-1)[0]))
    overlap = look.plain(3) if step.input(3) is not None else step.const([0], np.float32, "overlap")
    inputs = [look.filled(boxes, 0), look.filled(scores, limit - 1 if limit > _LOWEST else _LOWEST), _most(look, boxes.mask), overlap]
    chosen = again(look, [*inputs, step.const([limit], np.float32, "threshold")])
    return [Selected(chosen, boxes.mask)]


def _threshold(look: Look, given: float | None) -> float:
    """A threshold above which all scores lie that the model's own lets pass, and which float16 holds if that can be."""
    if given is not None and abs(given) <= _SMALL:
        return given
    least = look.step.range_of(look.step.needed(1)).lo
    if -_SMALL <= least <= _SMALL and (given is None or given < least):
        return float(np.floor(least) - 1)
    if (given is None or given <= _LOWEST) and least <= _LOWEST:
        refuse(say("it has no score threshold, and scores may be infinite", "没有得分阈值，且得分可能为无穷"))
    return _LOWEST if given is None else given


def _most(look: Look, mask: Mask) -> ir.Value:
    """How many boxes a class may have: a count of all that are there limits nothing, nor does the number of all places."""
    limit = look.sizes(2)
    if limit is None:
        return look.plain(2)
    entry = limit.entries[0]
    if isinstance(entry, int):
        return look.step.ints([entry], "most")
    if not isinstance(entry, Count) or entry.mask is not mask or entry.factor != 1:
        refuse(say("how many boxes it chooses depends on data", "其选取框的数量依赖数据"))
    return look.step.ints([mask.size if entry.most is None else min(mask.size, entry.most)], "most")


def of_selected(look: Look, item: Selected) -> list[Result] | None:
    """One column of the chosen rows. None where the node reads them otherwise."""
    column = _column(look)
    if column is None:
        return None
    inputs = [item.dense, *look.node.inputs[1:]]
    dense = again(look, inputs)
    return [Packed(dense, None, None, item.mask) if column == 2 else dense]


def _column(look: Look) -> int | None:
    if look.node.op_type == "Gather":
        places = look.constant(1)
        if places is None or places.size != 1 or int(look.step.given("axis")) % 2 != 1:
            return None
        return int(places.reshape(-1)[0]) % 3
    if look.node.op_type == "Slice":
        starts, ends, axes, steps = (listed(look, name, place) for place, name in enumerate(("starts", "ends", "axes", "steps"), 1))
        if starts is None or ends is None or axes is None or len(axes) != 1 or axes[0] % 2 != 1 or (steps or [1]) != [1]:
            return None
        first, last, _ = slice(starts[0], ends[0]).indices(3)
        return first if last - first == 1 else None
    return None


def rows(look: Look, item: Selected) -> ir.Value:
    """The chosen rows with ranks in the last column, as the model has them."""
    first = look.step.op("Gather", item.dense, look.step.ints([0, 1], "columns"), axis=1)
    last = look.step.op("Gather", item.dense, look.step.ints([2], "column"), axis=1)
    return look.step.op("Concat", first, look.values(Packed(last, None, None, item.mask)), axis=1)
