"""Atomic writes: a killed process leaves the old file or the new one, never half of one."""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, MutableMapping
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

import onnx
import onnx_ir as ir

from ..errors import ExternalDataError, OutputError
from ..text import say
from .protofile import LARGE, write_apart, write_tensor
from .walk import all_nodes, weight_bytes

# protobuf cannot hold 2 GB; models above this get their weights in a file beside them.
_INLINE_LIMIT = 1_500_000_000
_PROTOBUF_LIMIT = (1 << 31) - 1
_ALIGNMENT = 4096
INLINE_BELOW = 1024
"""Bytes below which a weight stays in the protobuf: shapes and axes must, for ONNX's shape inference."""

_Exchange = Callable[[Any, str, Any], None]


def _failed(path: Path, error: OSError) -> OutputError:
    return OutputError(
        say("`{path}` cannot be written: {error}", "无法写入 `{path}`：{error}", path=path, error=error.strerror or error),
        say("expected a writable place", "应为可写的位置"),
        say("choose another output", "请选择其他输出位置"),
    )


def write_atomic(path: str | Path, data: bytes | str, mode: int = 0o644) -> None:
    """Write a whole file or nothing.

    Raises:
        OutputError: the place cannot be written.
    """
    path = Path(path)
    raw = data.encode("utf-8") if isinstance(data, str) else data
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise _failed(path, error) from error


def inline_bytes(model: ir.Model) -> int:
    """Bytes of weights that would go into the protobuf itself."""
    tensors = [value.const_value for graph in model.graphs() for value in graph.initializers.values()]
    return sum(weight_bytes(tensor) for tensor in tensors if not isinstance(tensor, ir.ExternalTensor))


def has_external_data(model: ir.Model) -> bool:
    return any(isinstance(value.const_value, ir.ExternalTensor) for graph in model.graphs() for value in graph.initializers.values())


def proto_without_weights(model: ir.Model) -> onnx.ModelProto:
    """The structure, for the ONNX checker: larger weights of the main graph are empty."""
    with _exchanged() as exchange:
        held = [value for value in model.graph.initializers.values() if value.const_value is not None]
        large = {}
        for index, value in enumerate(held):
            tensor = value.const_value
            if tensor is not None and (isinstance(tensor, ir.ExternalTensor) or weight_bytes(tensor) >= INLINE_BELOW):
                large[index] = value
                exchange(value, "const_value", _reference(tensor, "", 0))
        proto = ir.to_proto(model)
    for index in large:
        weight = proto.graph.initializer[index]
        weight.ClearField("external_data")
        weight.ClearField("data_location")
        weight.dims[:] = [0]
    return proto


def save(
    model: ir.Model, path: str | Path, *, one_file: bool | None = None, share: bool = True, inline_below: int = INLINE_BELOW
) -> list[Path]:
    """Write a model; the file or files appear whole or not at all.

    External weights that already lie inside the folder of ``path`` are not copied: the new file refers to them where they are. Other
    external weights, and new ones of a model that has some, go to ``<name>.data`` beside it, each at a multiple of 4096 bytes, from file
    to file and not through memory. A data file that this model or another ``.onnx`` file of the folder reads is never replaced; the new
    one is then called ``<name>.1.data`` and so on.

    Args:
        one_file: True puts all weights into the file itself, False none of ``inline_below`` bytes or more. By default a model without
            external weights is one file if a protobuf can hold it, and one with external weights keeps them outside.
        share: False copies the external weights also within the folder, so that the new files stand alone.
        inline_below: smaller weights stay in the protobuf.

    Returns:
        The files written, the model first. A data file that is shared is not among them.

    Raises:
        OutputError: the place cannot be written, or ``one_file=True`` and a protobuf cannot hold the weights.
        ExternalDataError: external weights have gone or become shorter since the model was loaded.
    """
    path = Path(path)
    _check_sources(model)
    outside = has_external_data(model) or inline_bytes(model) >= _INLINE_LIMIT if one_file is None else not one_file
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        plan = _Plan(model, path, outside, share, inline_below)
        proto = plan.proto(model)
        # Same file system, so that the two renames below are atomic; the data file goes first because the model refers to it.
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
        if plan.stored:
            with _synced(temporary / "data") as file:
                for offset, tensor in plan.stored:
                    file.write(b"\0" * (offset - file.tell()))
                    write_tensor(file, tensor)
        with _synced(temporary / "model") as file:
            write_apart(file, proto, plan.inline)
        if plan.stored:
            (temporary / "data").replace(plan.data_path)
        (temporary / "model").replace(path)
    except OSError as error:
        raise _failed(path, error) from error
    except EOFError as error:
        raise _changed(path.name) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
    return [path, plan.data_path] if plan.stored else [path]


class _Plan:
    """Where each weight goes.

    Attributes:
        stored: weights of the new data file, with their offsets.
        inline: large weights of the main graph that are written into the protobuf, by the number of the initializer.
    """

    def __init__(self, model: ir.Model, path: Path, outside: bool, share: bool, inline_below: int) -> None:
        self._outside, self._share, self._inline_below = outside, share, inline_below
        self._folder = path.parent.resolve()
        self.data_path = _free_data_path(model, path)
        self.stored: list[tuple[int, ir.TensorProtocol]] = []
        self.inline: dict[int, ir.TensorProtocol] = {}

    def proto(self, model: ir.Model) -> onnx.ModelProto:
        """The model without the weights of ``stored`` and ``inline``.

        Raises:
            OutputError: a protobuf cannot hold what it must.
        """
        with _exchanged() as exchange:
            for graph in model.graphs():
                held = [value for value in graph.initializers.values() if value.const_value is not None]
                for index, value in enumerate(held):
                    self._place(value, index if graph is model.graph else None, exchange)
            _bring_attributes_in(model, exchange)
            proto = ir.to_proto(model)
        for index in self.inline:
            for field in ("external_data", "data_location"):
                proto.graph.initializer[index].ClearField(field)
        size = proto.ByteSize() + sum(tensor.nbytes for tensor in self.inline.values())
        if size > _PROTOBUF_LIMIT:
            raise OutputError(
                say("one file of {size} bytes is more than a protobuf holds", "单个文件需 {size} 字节，超出 protobuf 的上限", size=size),
                say("expected less than 2 GB", "应小于 2 GB"),
                say("save with the weights beside the model (one_file=False)", "请将权重保存在模型旁（one_file=False）"),
            )
        return proto

    def _place(self, value: ir.Value, index: int | None, exchange: _Exchange) -> None:
        tensor = value.const_value
        if tensor is None:
            return
        external = isinstance(tensor, ir.ExternalTensor)
        if self._outside and isinstance(tensor, ir.ExternalTensor):
            location = self._shared_location(tensor)
            if location is not None:
                exchange(value, "const_value", _reference(tensor, location, tensor.offset or 0))
                return
        small = weight_bytes(tensor) < self._inline_below
        if self._outside and not small and tensor.dtype != ir.DataType.STRING:
            end = self.stored[-1][0] + self.stored[-1][1].nbytes if self.stored else 0
            offset = -(-end // _ALIGNMENT) * _ALIGNMENT
            self.stored.append((offset, tensor))
            exchange(value, "const_value", _reference(tensor, self.data_path.name, offset))
        elif index is not None and (external or tensor.nbytes >= LARGE) and tensor.dtype != ir.DataType.STRING:
            self.inline[index] = tensor
            exchange(value, "const_value", _reference(tensor, "", 0))
        elif external:
            exchange(value, "const_value", _in_memory(tensor))

    def _shared_location(self, tensor: ir.ExternalTensor) -> str | None:
        """The file of an external weight as the new model may name it: inside its folder, without a way up."""
        if not self._share:
            return None
        try:
            return Path(tensor.path).resolve().relative_to(self._folder).as_posix()
        except ValueError:
            return None


def _reference(tensor: ir.TensorProtocol, location: str, offset: int) -> ir.ExternalTensor:
    return ir.ExternalTensor(
        location,
        offset,
        tensor.nbytes,
        tensor.dtype,
        shape=ir.Shape(tensor.shape.numpy()),
        name=tensor.name or "",
        doc_string=tensor.doc_string,
        metadata_props=dict(tensor.metadata_props),
    )


def _in_memory(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    return ir.tensor(tensor.numpy().copy(), dtype=tensor.dtype, name=tensor.name)


def _bring_attributes_in(model: ir.Model, exchange: _Exchange) -> None:
    """Weights of attributes go into the protobuf: ONNX Runtime finds no others there."""
    for node in all_nodes(model):
        for name, attribute in list(node.attributes.items()):
            if attribute.is_ref():
                continue
            if attribute.type == ir.AttributeType.TENSOR and isinstance(attribute.value, ir.ExternalTensor):
                exchange(node.attributes, name, ir.AttrTensor(name, _in_memory(attribute.value)))
            elif attribute.type == ir.AttributeType.TENSORS:
                tensors = [_in_memory(tensor) if isinstance(tensor, ir.ExternalTensor) else tensor for tensor in attribute.as_tensors()]
                exchange(node.attributes, name, ir.AttrTensors(name, tensors))


@contextlib.contextmanager
def _exchanged() -> Iterator[_Exchange]:
    """Set an attribute of an object, or an item, for a moment. (To clone the model for this takes as long as all the rest.)"""
    with contextlib.ExitStack() as undo:

        def exchange(owner: Any, name: str, new: Any) -> None:
            if isinstance(owner, MutableMapping):
                undo.callback(owner.__setitem__, name, owner[name])
                owner[name] = new
            else:
                undo.callback(setattr, owner, name, getattr(owner, name))
                setattr(owner, name, new)

        yield exchange


@contextlib.contextmanager
def _synced(path: Path) -> Iterator[BinaryIO]:
    with path.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    path.chmod(0o644)


def _free_data_path(model: ir.Model, path: Path) -> Path:
    """``<name>.data``, or the first numbered name that nobody reads. (Its content would change under the model that does.)"""
    read = {Path(tensor.path).resolve() for tensor in _external(model)}
    for number in count():
        place = path.with_name(f"{path.name}.{number}.data" if number else f"{path.name}.data")
        if not place.exists() or (place.resolve() not in read and not _is_read_by_another(place, path)):
            return place
    raise AssertionError  # count() has no end


def _is_read_by_another(data: Path, path: Path) -> bool:
    name = data.name.encode()
    for other in data.parent.glob("*.onnx"):
        if other.name == path.name or not other.is_file() or not other.stat().st_size:
            continue
        with other.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content.find(name) >= 0:
                return True
    return False


def _external(model: ir.Model) -> Iterator[ir.ExternalTensor]:
    for graph in model.graphs():
        for value in graph.initializers.values():
            if isinstance(value.const_value, ir.ExternalTensor):
                yield value.const_value


def _check_sources(model: ir.Model) -> None:
    sizes: dict[str, int] = {}
    for tensor in _external(model):
        if tensor.path not in sizes:
            try:
                sizes[tensor.path] = Path(tensor.path).stat().st_size
            except OSError:
                sizes[tensor.path] = -1
        if (tensor.offset or 0) + tensor.nbytes > sizes[tensor.path]:
            raise _changed(tensor.path)


def _changed(name: str) -> ExternalDataError:
    return ExternalDataError(
        say("`{name}` is no longer as long as when the model was loaded", "`{name}` 比模型加载时短或已不存在", name=name),
        say("expected unchanged weights", "应为未改动的权重"),
        say("load the model again", "请重新加载模型"),
    )
