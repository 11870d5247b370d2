"""How arrays travel between Jumar and its evaluation child: a JSON header and raw bytes. No pickle."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

Buffer = bytes | bytearray
_LENGTH = struct.Struct("<Q")
_EXTENSION_DTYPES = {
    name: np.dtype(getattr(ml_dtypes, name))
    for name in (
        *("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"),
        *("int4", "uint4", "int2", "uint2"),
    )
    if hasattr(ml_dtypes, name)  # the last ones came with ml_dtypes 0.5
}


def dtype_of(name: str) -> np.dtype[Any]:
    """A numpy dtype by name, including the ones numpy itself lacks."""
    return _EXTENSION_DTYPES.get(name) or np.dtype(name)


def pack_array(array: Any) -> tuple[dict[str, Any], bytes]:
    """Header and payload of a tensor, a list of tensors (ONNX sequence) or None (empty optional)."""
    if array is None:
        return {"kind": "none"}, b""
    if isinstance(array, (list, tuple)):
        packed = [pack_array(item) for item in array]
        return {"kind": "list", "items": [header for header, _ in packed], "sizes": [len(data) for _, data in packed]}, b"".join(
            data for _, data in packed
        )
    array = np.asarray(array)
    if array.dtype.kind in "OUS":
        data = json.dumps([str(item) for item in array.reshape(-1)]).encode()
        return {"kind": "text", "shape": list(array.shape)}, data
    return {"kind": "array", "dtype": array.dtype.name, "shape": list(array.shape)}, np.ascontiguousarray(array).tobytes()


def unpack_array(header: Mapping[str, Any], data: Buffer) -> Any:
    kind = header["kind"]
    if kind == "none":
        return None
    if kind == "list":
        items, start = [], 0
        for item, size in zip(header["items"], header["sizes"], strict=True):
            items.append(unpack_array(item, data[start : start + size]))
            start += size
        return items
    if kind == "text":
        return np.array(json.loads(data), dtype=object).reshape(header["shape"])
    return np.frombuffer(data, dtype=dtype_of(header["dtype"])).reshape(header["shape"])


def encode(header: Mapping[str, Any], payloads: Sequence[bytes]) -> list[bytes]:
    """One message: length and text of the JSON header (which lists the payload sizes), then the payloads."""
    text = json.dumps({**header, "payloads": [len(payload) for payload in payloads]}).encode()
    return [_LENGTH.pack(len(text)), text, *payloads]


def decode(read: Callable[[int], Buffer]) -> tuple[dict[str, Any], list[Buffer]]:
    """Read one message with ``read(n)``, which returns exactly n bytes or raises EOFError."""
    (length,) = _LENGTH.unpack(read(_LENGTH.size))
    header = json.loads(read(length))
    return header, [read(size) for size in header["payloads"]]
