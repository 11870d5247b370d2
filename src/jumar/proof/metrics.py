"""How far apart two tensors are, in numbers whose meaning is fixed here.

``max_abs``
    largest absolute difference.
``max_rel``
    largest ``|a - b| / max(|b|, 1e-3 * max|b|)``: relative, with a floor so that elements a thousand times smaller than the largest
    one do not decide. 1.0 stands for "not comparable" (other shape, NaN or infinity in other places, other dtype kind).
``max_scaled``
    largest ``|a - b|`` of a tensor divided by its largest ``|b|``. Sums computed in another order are judged by it: terms that cancel leave
    small elements whose relative error says nothing.
``cosine``
    cosine similarity of the flattened tensors in float64 (1.0 for two all-zero tensors).

Integers, booleans and strings must be equal: any difference is a ``max_rel`` of at least 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..case import Measure, Proof
from ..text import Text, say

RELATIVE_FLOOR = 1e-3
UNITS = {"float16": 2.0**-9, "bfloat16": 2.0**-7}
"""Two units in the last place of half precision and one of bfloat16: the least a rewrite that is not exact can be held to there."""


@dataclass(frozen=True)
class Comparison:
    """One tensor against its reference."""

    max_abs: float
    max_rel: float
    cosine: float
    reason: Text | None = None
    max_scaled: float = 0.0
    unit: float = 0.0
    """What rounding alone may change in a tensor of this dtype, where that is more than bounds allow: see :data:`UNITS`."""
    integers: bool = False
    """Whether these are integers that differ."""

    def within(self, bound: float) -> bool:
        return self.reason is None and self.max_rel <= bound


def compare(found: Any, reference: Any, cosine: bool = True) -> Comparison:
    """Compare a tensor, a list of tensors (ONNX sequence) or None with its reference.

    Args:
        cosine: False leaves the cosine similarity of floats at 1, for it costs more than all the rest.
    """
    if found is None or reference is None or isinstance(found, list) or isinstance(reference, list):
        return _compare_containers(found, reference)
    found, reference = np.asarray(found), np.asarray(reference)
    if found.shape != reference.shape:
        return _different(
            say("shape {found} instead of {expected}", "形状为 {found}，应为 {expected}", found=found.shape, expected=reference.shape)
        )
    if found.dtype != reference.dtype:
        return _different(
            say("dtype {found} instead of {expected}", "类型为 {found}，应为 {expected}", found=found.dtype, expected=reference.dtype)
        )
    if found.dtype.kind in "OUS":
        same = bool(np.array_equal(found, reference))
        return Comparison(0.0, 0.0, 1.0) if same else _different(say("strings differ", "字符串不同"))
    if found.size == 0:
        return Comparison(0.0, 0.0, 1.0)
    if found.dtype.kind in "biu" or found.dtype.name in ("int2", "uint2", "int4", "uint4"):
        return _compare_integers(found, reference)
    compared = _compare_floats(found.astype(np.float64), reference.astype(np.float64), cosine)
    return replace(compared, unit=UNITS.get(reference.dtype.name, 0.0))


def _different(reason: Text) -> Comparison:
    return Comparison(math.inf, 1.0, 0.0, reason, 1.0)


def _compare_containers(found: Any, reference: Any) -> Comparison:
    if found is None and reference is None:
        return Comparison(0.0, 0.0, 1.0)
    if not isinstance(found, list) or not isinstance(reference, list) or len(found) != len(reference):
        return _different(say("another kind or length of sequence", "序列的种类或长度不同"))
    return worst(compare(one, other) for one, other in zip(found, reference, strict=True))


def _compare_integers(found: Any, reference: Any) -> Comparison:
    if np.array_equal(found, reference):
        return Comparison(0.0, 0.0, 1.0)
    difference = np.abs(found.astype(np.float64) - reference.astype(np.float64))
    count = int(np.count_nonzero(found != reference))
    reason = say("{count} of {size} integers differ", "{size} 个整数中有 {count} 个不同", count=count, size=found.size)
    cosine = _cosine(found.astype(np.float64), reference.astype(np.float64))
    return Comparison(float(difference.max()), 1.0, cosine, reason, 1.0, integers=found.dtype.kind != "b")


def _compare_floats(found: Any, reference: Any, cosine: bool) -> Comparison:
    finite = np.isfinite(reference)
    if (
        not np.array_equal(np.isnan(found), np.isnan(reference))
        or not np.array_equal(found[~finite & ~np.isnan(reference)], reference[~finite & ~np.isnan(reference)])
        or not np.isfinite(found[finite]).all()
    ):
        return _different(say("NaN or infinity in other places than in the reference", "NaN 或无穷大出现的位置与参考不同"))
    found, reference = found[finite], reference[finite]
    if found.size == 0:
        return Comparison(0.0, 0.0, 1.0)
    with np.errstate(over="ignore"):  # of opposite sign and near the limit of float64: infinitely far apart
        difference, scale = np.abs(found - reference), np.abs(reference)
    largest = float(difference.max())
    if largest == 0.0:
        return Comparison(0.0, 0.0, 1.0)
    floor = RELATIVE_FLOOR * float(scale.max())
    if floor == 0.0:  # a reference of zeros has no scale
        return Comparison(largest, 1.0, 0.0, max_scaled=1.0)
    with np.errstate(over="ignore"):
        relative = float((difference / np.maximum(scale, floor)).max())
    return Comparison(largest, relative, _cosine(found, reference) if cosine else 1.0, max_scaled=largest / float(scale.max()))


def _cosine(found: Any, reference: Any) -> float:
    a, b = found.reshape(-1), reference.reshape(-1)
    scale = max(float(np.abs(a).max()), float(np.abs(b).max()))
    if scale == 0.0:
        return 1.0
    a, b = a / scale, b / scale
    norm = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return float(np.dot(a, b)) / norm if norm else 0.0


def worst(comparisons: Iterable[Comparison]) -> Comparison:
    """The largest differences and the smallest cosine of several comparisons."""
    items = list(comparisons)
    if not items:
        return Comparison(0.0, 0.0, 1.0)
    reason = next((item.reason for item in items if item.reason is not None), None)
    return Comparison(
        max(item.max_abs for item in items),
        max(item.max_rel for item in items),
        min(item.cosine for item in items),
        reason,
        max(item.max_scaled for item in items),
        max(item.unit for item in items),
    )


def compare_all(found: Mapping[str, Any], reference: Mapping[str, Any]) -> dict[str, Comparison]:
    """Compare all outputs by name; a missing one is a difference."""
    return {
        name: compare(found[name], value)
        if name in found
        else _different(say("output `{name}` is missing", "缺少输出 `{name}`", name=name))
        for name, value in reference.items()
    }


def proof_of(comparisons: Iterable[Comparison], cases: int, bound: float, measure: Measure = "max_rel", steps: int = 0) -> Proof:
    """Judge comparisons by a bound on the measure. Nothing compared proves nothing.

    ``steps``: by how much integers may differ; it is more than 0 only for rewrites that the user has to ask for.

    A bound of 0 means equal in every element. Any other is widened to :data:`UNITS` for tensors of half precision and bfloat16; the proof
    states the bound of the tensor that came closest to its own.
    """
    items = list(comparisons)
    if steps:
        items = [
            replace(item, reason=None, max_rel=0.0, max_scaled=0.0) if item.integers and item.max_abs <= steps else item for item in items
        ]
    total = worst(items)

    def measured(item: Comparison) -> float:
        return item.max_rel if measure == "max_rel" else item.max_scaled

    def allowed(item: Comparison) -> float:
        return max(bound, item.unit) if bound else 0.0

    closest = max(items, key=lambda item: measured(item) / (allowed(item) or 1e-300), default=total)
    reason, found, bound = total.reason, measured(closest), allowed(closest)
    if not items:
        reason = say("nothing could be compared", "没有可比较的内容")
    passed = reason is None and found <= bound
    if not passed and reason is None:
        reason = say(
            "{measure} {found:.3g} is over the bound {bound:g}",
            "{measure} {found:.3g} 超过界限 {bound:g}",
            measure=measure,
            found=found,
            bound=bound,
        )
    largest = float(np.finfo(np.float64).max)  # JSON has no infinity
    numbers = [min(number, largest) for number in (total.max_abs, total.max_rel, total.max_scaled)]
    return Proof(cases, numbers[0], numbers[1], total.cosine, bound, passed, reason, numbers[2], measure)
