"""ONNX files with large weights, read and written without a second copy of the weights in memory.

protobuf copies every weight when it parses and again when it writes. Here the weights pass it by: reading, they are skipped in the file,
and what remains (the skeleton) is parsed; writing, the skeleton is serialised and they are put between its parts. The bytes are the same
in both directions. Whatever is unusual in a file (a field given twice, a length that does not fit) is left to protobuf, with its own error.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir

LARGE = 1 << 16
"""Bytes from which a weight is worth the trouble."""

_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9  # field numbers in ModelProto, GraphProto, TensorProto
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WINDOW = 1 << 16


class _OddError(Exception):
    """Something that protobuf shall judge."""


@dataclass(frozen=True)
class Weight:
    """A large weight of the main graph: the number of its initializer, its shape, and its elements (read only)."""

    index: int
    dims: tuple[int, ...]
    dtype: ir.DataType
    array: npt.NDArray[Any]


class _Source:
    """A file of which a small window is in memory."""

    def __init__(self, descriptor: int, size: int) -> None:
        self.descriptor, self.size = descriptor, size
        self._start, self._window = 0, b""

    def bytes(self, start: int, count: int) -> bytes:
        if not self._start <= start or start + count > self._start + len(self._window):
            self._start, self._window = start, os.pread(self.descriptor, max(count, _WINDOW), start)
            if len(self._window) < count:
                raise _OddError
        return self._window[start - self._start : start - self._start + count]

    def varint(self, position: int, end: int) -> tuple[int, int]:
        value = shift = 0
        for byte in self.bytes(position, min(10, end - position)):
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value, position + shift // 7
        raise _OddError

    def fields(self, position: int, end: int) -> Iterator[tuple[int, int, int, int, int]]:
        """Number, wire type, and where the field begins, its content begins, and it ends."""
        while position < end:
            start = position
            key, position = self.varint(position, end)
            kind, content = key & 7, position
            if kind == _VARINT:
                _, position = self.varint(position, end)
            elif kind == _BYTES:
                length, content = self.varint(position, end)
                position = content + length
            elif kind in (_FIXED64, _FIXED32):
                position += 8 if kind == _FIXED64 else 4
            else:
                raise _OddError
            if position > end:
                raise _OddError
            yield key >> 3, kind, start, content, position


class _Pieces:
    """Byte strings and ranges of a file that follow each other."""

    def __init__(self, source: _Source) -> None:
        self._source, self._items, self.length = source, list[tuple[int, int] | bytes](), 0

    def range(self, start: int, end: int) -> None:
        last = self._items[-1] if self._items else b""
        if isinstance(last, tuple) and last[1] == start:
            self._items[-1] = (last[0], end)
        else:
            self._items.append((start, end))
        self.length += end - start

    def nested(self, number: int, inner: _Pieces) -> None:
        key = _varint(number << 3 | _BYTES) + _varint(inner.length)
        self._items += [key, *inner._items]
        self.length += len(key) + inner.length

    def join(self) -> bytes:
        parts = [item if isinstance(item, bytes) else os.pread(self._source.descriptor, item[1] - item[0], item[0]) for item in self._items]
        return b"".join(parts)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def read_apart(path: Path) -> tuple[onnx.ModelProto, list[Weight]] | None:
    """A model whose large weights are outside the protobuf: their tensors are left with the shape ``[0]`` and no data.

    Returns:
        None for a file without large weights, and for one that only protobuf can judge.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < LARGE or sys.byteorder != "little":
            return None
        source = _Source(file.fileno(), size)
        try:
            skeleton, places = _skim(source)
            if not places:
                return None
            proto = onnx.ModelProto()
            proto.ParseFromString(skeleton)
            weights = [_read(source, proto.graph.initializer[index], index, *place) for index, place in places.items()]
            names = [tensor.name for tensor in proto.graph.initializer]
            if len(set(names)) != len(names) or proto.graph.sparse_initializer:
                return None
        except Exception:  # protobuf's own reason, from the whole file, is the better one
            return None
    return proto, weights


def _skim(source: _Source) -> tuple[bytes, dict[int, tuple[int, int]]]:
    """The file without its large weights, and where each of them lies."""
    model, places, count = _Pieces(source), dict[int, tuple[int, int]](), 0
    for number, kind, start, content, end in source.fields(0, source.size):
        if (number, kind) != (_GRAPH, _BYTES):
            model.range(start, end)
            continue
        graph = _Pieces(source)
        for inner, inner_kind, inner_start, inner_content, inner_end in source.fields(content, end):
            place = None
            if (inner, inner_kind) == (_INITIALIZER, _BYTES):
                if inner_end - inner_content > LARGE:
                    place = _strip(source, graph, inner_content, inner_end)
                if place is not None:
                    places[count] = place
                count += 1
            if place is None:
                graph.range(inner_start, inner_end)
        model.nested(_GRAPH, graph)
    return model.join(), places


def _strip(source: _Source, graph: _Pieces, content: int, end: int) -> tuple[int, int] | None:
    """Add a tensor without its ``raw_data``; None (and nothing added) if that is small."""
    rest, place = _Pieces(source), None
    for number, kind, start, inner, inner_end in source.fields(content, end):
        if number == _RAW_DATA and kind == _BYTES and inner_end - inner >= LARGE:
            if place is not None:
                raise _OddError
            place = (inner, inner_end - inner)
        elif number == _RAW_DATA:
            return None
        else:
            rest.range(start, inner_end)
    if place is not None:
        graph.nested(_INITIALIZER, rest)
    return place


def _read(source: _Source, tensor: onnx.TensorProto, index: int, offset: int, length: int) -> Weight:
    """Read a weight, and take the shape out of its tensor, which is then valid without data."""
    dtype, dims = ir.DataType(tensor.data_type), tuple(tensor.dims)
    fields = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data", "external_data")
    if dtype in (ir.DataType.STRING, ir.DataType.UNDEFINED) or dtype.bitwidth < 8 or any(getattr(tensor, field) for field in fields):
        raise _OddError
    if any(dim < 0 for dim in dims) or math.prod(dims) * dtype.bitwidth // 8 != length:
        raise _OddError
    raw = np.empty(length, np.uint8)
    read_into(source.descriptor, raw, offset)
    array = raw.view(dtype.numpy()).reshape(dims)
    array.flags.writeable = False
    tensor.dims[:] = [0]
    return Weight(index, dims, dtype, array)


def read_into(descriptor: int, raw: npt.NDArray[np.uint8], offset: int) -> None:
    """Fill an array from a file.

    Raises:
        EOFError: the file ends before.
    """
    view, done = raw.data, 0
    while done < len(view):
        count = os.preadv(descriptor, [view[done:]], offset + done)
        if not count:
            raise EOFError
        done += count


def give_shapes(proto: onnx.ModelProto, weights: list[Weight]) -> None:
    """Put the shapes back."""
    for weight in weights:
        proto.graph.initializer[weight.index].dims[:] = weight.dims


def write_apart(file: BinaryIO, proto: onnx.ModelProto, tensors: Mapping[int, ir.TensorProtocol]) -> None:
    """Write a model whose initializers of these numbers have no data in the protobuf, as protobuf would write it with them.

    ``proto`` is taken apart.
    """
    graph = onnx.GraphProto()
    graph.CopyFrom(proto.graph)
    weights = list(graph.initializer)
    graph_head, graph_tail = _split(graph, _INITIALIZER)
    proto.ClearField("graph")
    head, tail = _split(proto, _GRAPH)
    ends = [_tensor_ends(weight, tensors.get(index)) for index, weight in enumerate(weights)]
    sizes = [
        len(before) + len(after) + (0 if (held := tensors.get(index)) is None else held.nbytes)
        for index, (before, after) in enumerate(ends)
    ]
    keys = [_varint(_INITIALIZER << 3 | _BYTES) + _varint(size) for size in sizes]
    total = len(graph_head) + len(graph_tail) + sum(len(key) + size for key, size in zip(keys, sizes, strict=True))
    file.write(head + _varint(_GRAPH << 3 | _BYTES) + _varint(total) + graph_head)
    for index, (key, (before, after)) in enumerate(zip(keys, ends, strict=True)):
        file.write(key + before)
        if index in tensors:
            write_tensor(file, tensors[index])
        file.write(after)
    file.write(graph_tail + tail)


def _tensor_ends(tensor: onnx.TensorProto, held: ir.TensorProtocol | None) -> tuple[bytes, bytes]:
    if held is None:
        return tensor.SerializeToString(), b""
    before, after = _split(tensor, _RAW_DATA)
    return before + _varint(_RAW_DATA << 3 | _BYTES) + _varint(held.nbytes), after


def _split(message: Any, number: int) -> tuple[bytes, bytes]:
    """The fields of a message below and above a number, each part as protobuf writes it."""
    below, above = type(message)(), type(message)()
    for part in (below, above):
        part.CopyFrom(message)
    for field in type(message).DESCRIPTOR.fields:
        if field.number >= number:
            below.ClearField(field.name)
        if field.number <= number:
            above.ClearField(field.name)
    return below.SerializePartialToString(), above.SerializePartialToString()


def write_tensor(file: BinaryIO, tensor: ir.TensorProtocol) -> None:
    """Write the bytes of a tensor, little-endian, without a copy where its memory or its file has them so."""
    if isinstance(tensor, ir.ExternalTensor):
        copy_range(file, Path(tensor.path), tensor.offset or 0, tensor.nbytes)
    elif isinstance(tensor, ir.Tensor) and tensor.dtype.bitwidth >= 8 and sys.byteorder == "little":
        file.write(np.ascontiguousarray(tensor.numpy()).reshape(-1).view(np.uint8).data)
    else:
        file.write(tensor.tobytes())


def copy_range(file: BinaryIO, path: Path, offset: int, length: int) -> None:
    """Append a part of another file. The system copies it, or shares the blocks where the file system can; nothing passes through memory.

    Raises:
        EOFError: the other file ends before.
    """
    file.flush()
    with path.open("rb") as source:
        done, copy = 0, getattr(os, "copy_file_range", None)
        while done < length:
            try:
                count = copy(source.fileno(), file.fileno(), length - done, offset + done) if copy else 0
            except OSError:  # another file system, or a kernel that cannot
                copy, count = None, 0
            if copy is None:
                block = os.pread(source.fileno(), min(length - done, 1 << 20), offset + done)
                count = len(block)
                file.write(block)
                file.flush()
            if not count:
                if copy is None:
                    raise EOFError(f"{path} ends before byte {offset + length}")
                copy = None  # some file systems answer 0 instead of an error
            done += count
    file.seek(0, os.SEEK_END)
