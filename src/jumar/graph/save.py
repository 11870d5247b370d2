"""Atomic writes: a killed process leaves the old file or the new one, never half of one."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import onnx_ir as ir

from ..errors import OutputError
from ..text import say

# protobuf cannot hold 2 GB; models above this get their weights in a file beside them.
_INLINE_LIMIT = 1_500_000_000


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
    return sum(tensor.nbytes for tensor in tensors if tensor is not None and not isinstance(tensor, ir.ExternalTensor))


def has_external_data(model: ir.Model) -> bool:
    return any(isinstance(value.const_value, ir.ExternalTensor) for graph in model.graphs() for value in graph.initializers.values())


def save(model: ir.Model, path: str | Path) -> list[Path]:
    """Write a model; weights that were external (or are too large for a protobuf) go to ``<name>.data`` beside it.

    Returns:
        The files written, the model first.

    Raises:
        OutputError: the place cannot be written.
    """
    path = Path(path)
    if not has_external_data(model) and inline_bytes(model) < _INLINE_LIMIT:
        write_atomic(path, ir.to_proto(model).SerializeToString())
        return [path]
    data_name = f"{path.name}.data"
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Same file system, so that the two renames below are atomic; the data file goes first because the model refers to it.
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
        ir.save(model, temporary / path.name, format="protobuf", external_data=data_name)
        (temporary / data_name).replace(path.parent / data_name)
        (temporary / path.name).replace(path)
    except OSError as error:
        raise _failed(path, error) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
    return [path, path.parent / data_name]
