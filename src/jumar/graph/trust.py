"""What a stranger's protobuf must keep to before anything else reads it: weights inside its folder, data as large as declared, real text.

The ONNX checker does not look at these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import onnx
import onnx_ir as ir

from ..errors import ExternalDataError, ModelError
from ..text import Text, say

_Types = onnx.TensorProto
# The typed field that holds the data of a tensor without raw_data, and how many entries one element takes.
_FIELDS: dict[int, tuple[str, int]] = {
    _Types.FLOAT: ("float_data", 1),
    _Types.COMPLEX64: ("float_data", 2),
    _Types.DOUBLE: ("double_data", 1),
    _Types.COMPLEX128: ("double_data", 2),
    _Types.INT64: ("int64_data", 1),
    _Types.UINT32: ("uint64_data", 1),
    _Types.UINT64: ("uint64_data", 1),
    _Types.STRING: ("string_data", 1),
}


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield sparse.values
        yield sparse.indices
    for node in graph.node:
        yield from _node_tensors(node)


def _node_tensors(node: onnx.NodeProto) -> Iterator[onnx.TensorProto]:
    for attribute in node.attribute:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        for graph in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
            yield from _tensors(graph)


def _all_tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Tensors of graphs, bodies, attributes and functions."""
    yield from _tensors(proto.graph)
    for function in proto.functions:
        for node in function.node:
            yield from _node_tensors(node)


def external_tensors(proto: onnx.ModelProto) -> list[onnx.TensorProto]:
    return [tensor for tensor in _all_tensors(proto) if tensor.data_location == onnx.TensorProto.EXTERNAL]


def check_external_data(proto: onnx.ModelProto, path: Path) -> None:
    """Every external tensor must name an existing file inside the model's folder that is long enough.

    The checks are made on the resolved path, so neither ``..`` nor an absolute path nor a symbolic link leads outside.
    """
    folder = path.resolve().parent
    for tensor in external_tensors(proto):
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        inside = say("expected a file inside the model's folder", "应为模型所在目录内的文件")
        relative = Path(location)
        if not location or relative.is_absolute() or ".." in relative.parts or "\\" in location or "\0" in location:
            found = say(
                "weights of `{name}` point to `{location}`, outside the model's folder",
                "`{name}` 的权重指向模型目录之外的 `{location}`",
                name=tensor.name,
                location=location.replace("\0", "\\0"),
            )
            raise ExternalDataError(
                found, inside, say("Jumar reads no path outside it; save the model again", "Jumar 不读取目录之外的路径；请重新保存模型")
            )
        resolved = _resolve(folder / relative)
        if folder not in resolved.parents:
            found = say(
                "weights of `{name}` point through a link to a file outside the model's folder (`{location}`)",
                "`{name}` 的权重经由链接指向模型目录之外的文件（`{location}`）",
                name=tensor.name,
                location=location,
            )
            raise ExternalDataError(found, inside, say("copy the file into the folder", "请将该文件复制到目录内"))
        if not _is_file(resolved):
            found = say(
                "weights of `{name}` are missing: `{location}` is not next to the model",
                "`{name}` 的权重缺失：模型旁没有 `{location}`",
                name=tensor.name,
                location=location,
            )
            raise ExternalDataError(
                found,
                inside,
                say("put `{location}` beside `{model}`", "请把 `{location}` 放到 `{model}` 旁", location=location, model=path.name),
            )
        _check_extent(tensor, entries, resolved, location)


def _resolve(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a loop of links leads nowhere: as missing as a file can be
        return path


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # e.g. a name that is too long
        return False


def _check_extent(tensor: onnx.TensorProto, entries: dict[str, str], resolved: Path, location: str) -> None:
    size = resolved.stat().st_size
    try:
        offset, needed = int(entries.get("offset", 0)), _byte_size(tensor)
        length = int(entries.get("length", needed))
    except ValueError:
        offset = needed = length = -1
    end = offset + max(length, needed)
    if offset < 0 or needed < 0 or length < needed or end > size:
        raise ExternalDataError(
            say(
                "weights of `{name}` need bytes {offset} to {end} of `{location}`",
                "`{name}` 的权重需要 `{location}` 的第 {offset} 到 {end} 字节",
                name=tensor.name,
                offset=offset,
                end=end,
                location=location,
            ),
            say(
                "the file has {size} bytes and the tensor {length}", "该文件有 {size} 字节，张量为 {length} 字节", size=size, length=length
            ),
            say("copy the weights file again", "请重新复制权重文件"),
        )


def _byte_size(tensor: onnx.TensorProto) -> int:
    """Bytes that dtype and shape call for.

    Raises:
        ValueError: a negative dimension, or a dtype that has no bytes outside the protobuf.
    """
    dtype = ir.DataType(tensor.data_type)
    if any(dim < 0 for dim in tensor.dims) or dtype in (ir.DataType.STRING, ir.DataType.UNDEFINED):
        raise ValueError
    bits: int = math.prod(tensor.dims) * dtype.bitwidth
    return -(-bits // 8)


def check_content(proto: onnx.ModelProto, path: Path) -> None:
    """Every inline tensor holds as much as its dtype and shape say, every name is text, every Constant has one value.

    Raises:
        ModelError: one does not.
    """

    def bad(found: Text) -> ModelError:
        return ModelError(
            say("`{path}` is damaged: {found}", "`{path}` 已损坏：{found}", path=path, found=found),
            say("expected a valid ONNX model", "应为有效的 ONNX 模型"),
            say("export or download the model again", "请重新导出或下载该模型"),
        )

    if not all(isinstance(name, str) for name in _model_names(proto)):
        raise bad(say("a name in it is not UTF-8 text", "其中有名称不是 UTF-8 文本"))
    for tensor in _all_tensors(proto):
        if tensor.data_location != onnx.TensorProto.EXTERNAL and not _holds_what_it_declares(tensor):
            shape = list(tensor.dims)
            raise bad(
                say(
                    "tensor `{name}` does not hold the data of its shape {shape}",
                    "张量 `{name}` 的数据与形状 {shape} 不符",
                    name=_shown(tensor.name),
                    shape=shape,
                )
            )
    for node in all_protos(proto):
        if not all(isinstance(name, str) for name in _names(node)) or not all(_is_text(value) for value in _strings(node)):
            raise bad(
                say(
                    "a name or a string of node `{name}` is not UTF-8 text",
                    "节点 `{name}` 的名称或字符串不是 UTF-8 文本",
                    name=_shown(node.name),
                )
            )
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx") and len(node.attribute) != 1:
            raise bad(
                say(
                    "Constant `{name}` has {count} values",
                    "Constant `{name}` 有 {count} 个取值",
                    name=_shown(node.name),
                    count=len(node.attribute),
                )
            )


def _shown(name: str | bytes) -> str:
    return name if isinstance(name, str) else name.decode("utf-8", "backslashreplace")


def _is_text(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def all_protos(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Every node of graphs, bodies and functions."""
    waiting: list[Iterable[onnx.NodeProto]] = [proto.graph.node, *(function.node for function in proto.functions)]
    while waiting:
        for node in waiting.pop():
            yield node
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    waiting.append(attribute.g.node)
                waiting += [graph.node for graph in attribute.graphs]


def _model_names(proto: onnx.ModelProto) -> Iterator[str | bytes]:
    """Names outside of nodes: of tensors and where they lie, of inputs and outputs with their symbols, of operator sets and functions."""
    for item in (*proto.opset_import, *(item for function in proto.functions for item in function.opset_import)):
        yield item.domain
    for function in proto.functions:
        yield from (function.name, function.domain, *function.input, *function.output, *function.attribute)
    for entry in proto.metadata_props:
        yield from (entry.key, entry.value)
    for tensor in _all_tensors(proto):
        yield tensor.name
        for item_entry in tensor.external_data:
            yield from (item_entry.key, item_entry.value)
    for graph in _all_graphs(proto):
        yield graph.name
        for value in (*graph.input, *graph.output, *graph.value_info):
            yield value.name
            yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)


def _all_graphs(proto: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    yield proto.graph
    for node in all_protos(proto):
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield attribute.g
            yield from attribute.graphs


def _names(node: onnx.NodeProto) -> Iterator[str | bytes]:
    yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
    yield from (attribute.name for attribute in node.attribute)


def _strings(node: onnx.NodeProto) -> Iterator[bytes]:
    for attribute in node.attribute:
        yield attribute.s
        yield from attribute.strings


def _holds_what_it_declares(tensor: onnx.TensorProto) -> bool:
    try:
        dtype = ir.DataType(tensor.data_type)
    except ValueError:
        return False
    if dtype == ir.DataType.UNDEFINED or any(dim < 0 for dim in tensor.dims):
        return False
    count = math.prod(tensor.dims)
    if tensor.HasField("raw_data"):
        return dtype != ir.DataType.STRING and len(tensor.raw_data) == -(-count * dtype.bitwidth // 8)
    name, per_element = _FIELDS.get(tensor.data_type, ("int32_data", 1))
    # Types below a byte are packed, so many to an entry.
    expected = -(-count * dtype.bitwidth // 8) if dtype != ir.DataType.STRING and dtype.bitwidth < 8 else count * per_element
    return bool(len(getattr(tensor, name)) == expected)
