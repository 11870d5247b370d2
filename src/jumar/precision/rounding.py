"""Rounding to the 16-bit types of the device, with subnormals and overflow to infinity, and the shares of a tensor that suffer from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np
import onnx_ir as ir

StorageName = Literal["float16", "bfloat16"]


@dataclass(frozen=True)
class Storage:
    """A type that tensors are stored in.

    Attributes:
        bits: of the significand, the hidden one included; one unit in the last place of 1.0 is ``2 ** (1 - bits)``.
        largest: the largest finite value; what rounds above it becomes infinity.
        normal: the smallest value with a full significand.
        subnormal: the smallest value above zero; half of it and less become zero.
    """

    name: StorageName
    bits: int
    largest: float
    normal: float
    subnormal: float

    @property
    def numpy(self) -> np.dtype[Any]:
        return np.dtype(np.float16) if self.name == "float16" else np.dtype(ml_dtypes.bfloat16)

    @property
    def onnx(self) -> ir.DataType:
        return ir.DataType.FLOAT16 if self.name == "float16" else ir.DataType.BFLOAT16


STORAGES: Mapping[StorageName, Storage] = {
    "float16": Storage("float16", 11, 65504.0, 2.0**-14, 2.0**-24),
    "bfloat16": Storage("bfloat16", 8, float.fromhex("0x1.fep127"), 2.0**-126, 2.0**-133),
}


def rounded(array: Any, storage: Storage) -> np.ndarray:
    """The nearest values of the storage type (ties to even), as float32. Too large becomes infinity, too small a subnormal or zero."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.asarray(np.asarray(array, dtype=np.float32).astype(storage.numpy).astype(np.float32))
