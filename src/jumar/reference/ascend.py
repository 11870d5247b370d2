"""CANN's operators of quantised models, which its converters write into the standard's domain.

Sources: the prototypes of AscendQuant, AscendDequant and AscendAntiQuant (formulas, rounding modes, types) and CANN's guide to building
quantised graphs (a uint64 scale holds a float32 in its lower half). Computed in float32. Left out are those whose prototypes do not say
enough: BatchMultiClassNMS (the order of coordinates and of equal scores), RoiExtractor, PSROIPooling, the rotated regions, and the
operators of the domain npu.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Operator

Array = Any
_ROUNDING = {"round": np.rint, "floor": np.floor, "ceil": np.ceil, "ceiling": np.ceil, "trunc": np.trunc, "truncate": np.trunc}
_INT8 = 2
_FLOATS = {0: np.float32, 1: np.float16}


class _Operator(Operator):
    def factor(self) -> np.float32:
        """``scale``, or its square where it was stored as a root."""
        scale = np.float32(self.attribute("scale"))
        return np.float32(scale * scale) if self.attribute("sqrt_mode", 0) else scale

    def typed(self, data: Array) -> Array:
        """Data in the type that ``dtype`` says."""
        return data.astype(_FLOATS[int(self.attribute("dtype", 0))])


class AscendQuant(_Operator):
    """round(x * scale + offset) as int8, saturated; halves go to even numbers in the mode Round."""

    def _run(self, x: Array, **_: Any) -> tuple[Array]:
        if str(self.attribute("dst_type", _INT8)) not in (str(_INT8), "INT8"):  # AMCT writes the word, the prototype has the number
            raise ValueError("AscendQuant to another type than int8")
        mode = _ROUNDING[str(self.attribute("round_mode", "Round")).lower()]
        moved = mode(x.astype(np.float32) * self.factor() + np.float32(self.attribute("offset")))
        return (np.clip(moved, -128, 127).astype(np.int8),)


class AscendAntiQuant(_Operator):
    """(x - offset) * scale. The device's operator adds the offset; ATC's ONNX parser negates what the node says."""

    def _run(self, x: Array, **_: Any) -> tuple[Array]:
        return (self.typed((x.astype(np.float32) - np.float32(self.attribute("offset"))) * self.factor()),)


class AscendDequant(_Operator):
    """x * deq_scale, one for all or one for each channel (the second axis, or the last of a matrix)."""

    def _run(self, x: Array, deq_scale: Array, **_: Any) -> tuple[Array]:
        if deq_scale.dtype == np.uint64:
            scale = (deq_scale & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.float32)
        else:
            scale = deq_scale.astype(np.float32)
        if scale.size > 1:
            axis = 1 if x.ndim > 2 else x.ndim - 1
            if scale.size != x.shape[axis]:
                raise ValueError(f"{scale.size} scales for {x.shape[axis]} channels")
            scale = scale.reshape([-1 if place == axis else 1 for place in range(x.ndim)])
        else:
            scale = scale.reshape(())
        result = x.astype(np.float32) * scale
        if self.attribute("sqrt_mode", 0):
            result = result * scale
        return (self.typed(np.maximum(result, 0) if self.attribute("relu_flag", 0) else result),)


OPERATORS = [AscendQuant, AscendAntiQuant, AscendDequant]
