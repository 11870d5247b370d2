"""Read a model from a stranger: one clear error for whatever is wrong with it, and never a byte from outside its folder."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx_ir as ir

from ..case import ModelInfo, TensorInfo
from ..errors import ModelError
from ..text import Text, say
from . import native
from .digest import file_sha256
from .protofile import Weight, give_shapes, read_apart
from .runtime_shapes import is_runtime_operator
from .sparse import make_dense
from .trust import all_protos, check_content, check_external_data, external_tensors
from .walk import all_nodes, bodies, model_opset

_EXPECTED = say("expected an ONNX model (binary protobuf)", "应为 ONNX 模型（二进制 protobuf）")
_CHECK_PATH = say("check the path", "请检查路径")
_EXPORT_AGAIN = say("export or download the model again", "请重新导出或下载该模型")


def load(path: str | Path) -> ir.Model:
    """Load an ONNX file; external weights stay on disk and are memory-mapped when read.

    Raises:
        ModelError: no such file, a directory, empty, not a protobuf, truncated, no graph, refused by the ONNX checker, or a body that
            does not fit its node.
        ExternalDataError: external weights missing, shorter than declared, or outside the model's folder.
    """
    path = Path(path)
    proto, weights = _parse(path)
    check_content(proto, path)
    check_external_data(proto, path)
    _run_checker(proto, path, alone=not weights)
    try:
        give_shapes(proto, weights)
        make_dense(proto, path.resolve().parent)
        model = ir.serde.deserialize_model(proto)
        for weight in weights:
            _put(model, proto.graph.initializer[weight.index], weight)
        ir.external_data.set_base_dir(model.graph, path.resolve().parent)
        _read_inner_weights(model, path.resolve().parent)
    except Exception as error:
        raise ModelError(
            say("`{path}` cannot be read: {error}", "无法读取 `{path}`：{error}", path=path, error=_first_line(error)),
            _EXPECTED,
            _EXPORT_AGAIN,
        ) from error
    _check_bodies(model, path)
    _forget_placeholder_sizes(model)
    return model


def _check_bodies(model: ir.Model, path: Path) -> None:
    """The ONNX checker does not count what If, Loop and Scan give to their bodies and take from them; every runtime does.

    Raises:
        ModelError: a body has more or fewer inputs or outputs than its node.
    """
    for node in all_nodes(model):
        if node.domain not in ("", "ai.onnx") or node.op_type not in ("If", "Loop", "Scan"):
            continue
        lengths = node.op_type == "Scan" and model_opset(model) < 9  # before, its first input was no slice
        inputs = {"If": 0, "Loop": max(len(node.inputs), 2), "Scan": len(node.inputs) - lengths}[node.op_type]
        outputs = len(node.outputs) + (node.op_type == "Loop")
        for body in bodies(node):
            if (len(body.inputs), len(body.outputs)) != (inputs, outputs):
                raise ModelError(
                    say(
                        "`{path}`: the body of {op} `{node}` has {inputs} inputs and {outputs} outputs",
                        "`{path}`：{op} `{node}` 的子图有 {inputs} 个输入、{outputs} 个输出",
                        path=path,
                        op=node.op_type,
                        node=node.name or (node.outputs[0].name if node.outputs else ""),
                        inputs=len(body.inputs),
                        outputs=len(body.outputs),
                    ),
                    say(
                        "expected {inputs} inputs and {outputs} outputs, as its node has it",
                        "按该节点应为 {inputs} 个输入、{outputs} 个输出",
                        inputs=inputs,
                        outputs=outputs,
                    ),
                    _EXPORT_AGAIN,
                )


def _put(model: ir.Model, proto: onnx.TensorProto, weight: Weight) -> None:
    """Give an initializer the weight that was read beside the protobuf."""
    metadata = {entry.key: entry.value for entry in proto.metadata_props}
    model.graph.initializers[proto.name].const_value = ir.Tensor(
        weight.array,
        dtype=weight.dtype,
        shape=ir.Shape(weight.dims),
        name=proto.name,
        doc_string=proto.doc_string or None,
        metadata_props=metadata or None,
    )


def _read_inner_weights(model: ir.Model, folder: Path) -> None:
    """Read external weights of bodies and attributes into memory; only weights of the main graph stay on disk.

    ONNX Runtime takes external weights of a model in memory for the main graph alone, and such tensors are few and small in practice.
    """

    def in_memory(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
        if not isinstance(tensor, ir.ExternalTensor):
            return tensor
        tensor.base_dir = folder
        return ir.tensor(tensor.numpy().copy(), dtype=tensor.dtype, name=tensor.name)

    for graph in model.graphs():
        for value in graph.initializers.values():
            if graph is not model.graph and value.const_value is not None:
                value.const_value = in_memory(value.const_value)
    for node in all_nodes(model):
        for name, attribute in list(node.attributes.items()):
            if attribute.is_ref():
                continue
            if attribute.type == ir.AttributeType.TENSOR:
                node.attributes[name] = ir.AttrTensor(name, in_memory(attribute.as_tensor()))
            elif attribute.type == ir.AttributeType.TENSORS:
                node.attributes[name] = ir.AttrTensors(name, [in_memory(tensor) for tensor in attribute.as_tensors()])


def _forget_placeholder_sizes(model: ir.Model) -> None:
    """Some exporters write an open dimension as -1 or as "?"; that is neither a size nor a symbol two tensors could share."""
    for graph in model.graphs():
        for value in (*graph.inputs, *graph.outputs, *(output for node in graph for output in node.outputs)):
            if value.shape is not None and any(_is_placeholder(dim) for dim in value.shape):
                value.shape = ir.Shape([None if _is_placeholder(dim) else dim for dim in value.shape])


def _is_placeholder(dim: int | ir.SymbolicDim) -> bool:
    return dim < 0 if isinstance(dim, int) else dim.value in ("?", "")


def _parse(path: Path) -> tuple[onnx.ModelProto, list[Weight]]:
    """The model, and its large weights beside it (see :func:`read_apart`)."""

    def bad(found: Text, remedy: Text = _EXPORT_AGAIN) -> ModelError:
        return ModelError(found, _EXPECTED, remedy)

    try:
        if path.is_dir():
            raise bad(
                say("`{path}` is a directory", "`{path}` 是一个目录", path=path),
                say("name the .onnx file in it", "请指定其中的 .onnx 文件"),
            )
        if not path.exists():
            raise bad(say("`{path}` does not exist", "`{path}` 不存在", path=path), _CHECK_PATH)
        if not path.is_file():  # reading a pipe or a device may never end
            raise bad(say("`{path}` is not a regular file", "`{path}` 不是普通文件", path=path), _CHECK_PATH)
        apart = read_apart(path)
        data = b"" if apart else path.read_bytes()
    except (OSError, ValueError) as error:
        raise bad(
            say("`{path}` cannot be read: {error}", "无法读取 `{path}`：{error}", path=path, error=_first_line(error)), _CHECK_PATH
        ) from error
    if apart is None and not data:
        raise bad(say("`{path}` is empty", "`{path}` 是空文件", path=path))
    proto, weights = apart or (onnx.ModelProto(), [])
    try:
        if apart is None:
            proto.ParseFromString(data)
    except Exception as error:
        looks_like = _looks_like(data)
        raise bad(
            say(
                "`{path}` is not an ONNX protobuf or is truncated{hint}",
                "`{path}` 不是 ONNX protobuf 文件或已被截断{hint}",
                path=path,
                hint=looks_like,
            )
        ) from error
    if not proto.HasField("graph") or not proto.ir_version:
        raise bad(say("`{path}` holds no ONNX graph{hint}", "`{path}` 中没有 ONNX 计算图{hint}", path=path, hint=_looks_like(data)))
    return proto, weights


def _looks_like(data: bytes) -> Text:
    """Name the usual other kinds of file that end in .onnx."""
    if data.startswith(b"version https://git-lfs"):
        return say(" (it is a Git LFS pointer: run `git lfs pull`)", "（这是 Git LFS 指针文件：请运行 `git lfs pull`）")
    if data.startswith(b"PK\x03\x04"):
        return say(" (it is a ZIP archive, perhaps a PyTorch checkpoint)", "（这是 ZIP 压缩包，可能是 PyTorch 权重文件）")
    if data[:512].isascii() and all(byte >= 9 for byte in data[:512]):
        return say(" (it is a text file)", "（这是文本文件）")
    return say("", "")


def _run_checker(proto: onnx.ModelProto, path: Path, alone: bool) -> None:
    # By path the checker reads the weights again; ``alone`` says that they are all in the protobuf. External ones it would check again, more strictly than we do (it refuses every
    # link, also inside the folder), so it gets a copy of the structure in which they are empty.
    checked: onnx.ModelProto | Path = path.resolve() if alone else proto
    if external_tensors(proto) and not proto.graph.sparse_initializer:
        checked = onnx.ModelProto()
        checked.CopyFrom(proto)
        for tensor in external_tensors(checked):
            tensor.ClearField("data_location")
            tensor.ClearField("external_data")
            tensor.dims[:] = [0]
    reason = native.check_model(checked)
    if reason is not None and _restore_opset(proto):
        again = proto if isinstance(checked, Path) else checked
        if again is not proto:
            del again.opset_import[:]
            again.opset_import.extend(proto.opset_import)
        reason = native.check_model(again)
    if reason is not None and "No Op registered" in reason:
        known = _without_foreigners(proto if isinstance(checked, Path) else checked)
        reason = reason if known is None else native.check_model(known)
    if reason is not None:
        raise ModelError(
            say("`{path}` fails the ONNX checker: {reason}", "`{path}` 未通过 ONNX 检查：{reason}", path=path, reason=reason),
            say(
                "expected a valid ONNX model (opset imports: {imports})",
                "应为有效的 ONNX 模型（opset 声明：{imports}）",
                imports=", ".join(f"{item.domain or 'ai.onnx'} {item.version}" for item in proto.opset_import) or "none",
            ),
            _opset_remedy(proto) or _EXPORT_AGAIN,
        )


def _without_foreigners(proto: onnx.ModelProto) -> onnx.ModelProto | None:
    """The model as the checker may see it where operators of CANN or of ONNX Runtime stand in the standard's domain, as their tools write them.

    None if there are none. Source of CANN's names: the operators that ATC's ONNX parser registers.
    """
    from ..targets.survey import is_extension

    def foreign(node: onnx.NodeProto) -> bool:
        return (node.domain in ("", "ai.onnx") and is_extension(node.op_type)) or is_runtime_operator(node, proto)

    if not any(foreign(node) for node in all_protos(proto)):
        return None
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for node in all_protos(copy):
        if foreign(node):
            node.domain = "foreign"
    copy.opset_import.add(domain="foreign", version=1)
    return copy


DECLARED_OPSET = "jumar.declared_opset"
"""Metadata of a model whose opset was overwritten: what it declares, while it is read at the one its operators need."""


def _restore_opset(proto: onnx.ModelProto) -> bool:
    """Read a model at the opset that its newest operator needs, if none of its operators means anything else there than as declared."""
    from .opset import raise_forms  # noqa: F401 - it registers the steps up
    from .opset.step import RAISE

    declared, needed = _opsets(proto)
    if needed <= declared or any(entry.key == DECLARED_OPSET for entry in proto.metadata_props):
        return False
    names = {node.op_type for node in all_protos(proto) if node.domain in ("", "ai.onnx")}
    if any((name, version) in RAISE for name in names for version in range(declared + 1, needed + 1)):
        return False
    for item in proto.opset_import:
        if item.domain in ("", "ai.onnx"):
            item.version = needed
    proto.metadata_props.add(key=DECLARED_OPSET, value=str(declared))
    return True


def _opset_remedy(proto: onnx.ModelProto) -> Text | None:
    """What to do when the declared opset is older than an operator of the model: a tool has probably overwritten it."""
    declared, needed = _opsets(proto)
    if needed <= declared:
        return None
    return say(
        "its operators exist only from opset {needed} on: a tool probably overwrote the opset; set it back or export again",
        "其中的算子自 opset {needed} 起才存在：很可能有工具改写了 opset；请改回或重新导出",
        needed=needed,
    )


def _opsets(proto: onnx.ModelProto) -> tuple[int, int]:
    """The opset that the model declares, and the first that has all its operators."""
    declared = next((item.version for item in proto.opset_import if item.domain in ("", "ai.onnx")), 0)
    first: dict[str, int] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            first[schema.name] = min(schema.since_version, first.get(schema.name, schema.since_version))
    return declared, max((first.get(node.op_type, 0) for node in all_protos(proto) if node.domain in ("", "ai.onnx")), default=0)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]


def tensor_info(value: ir.Value) -> TensorInfo:
    """Name, dtype and shape of a graph input or output (dtype "sequence" etc. for non-tensors)."""
    dtype = "unknown" if value.type is None else type(value.type).__name__.removesuffix("Type").lower()
    if isinstance(value.type, (ir.TensorType, ir.SparseTensorType)):
        dtype = value.type.dtype.name.lower()
    shape = None if value.shape is None else tuple(dim if isinstance(dim, int) else dim.value for dim in value.shape)
    return TensorInfo(value.name or "", dtype, shape)


def model_info(model: ir.Model, path: str | Path | None = None, digest: bool = True) -> ModelInfo:
    """The record's view of a model; initializers that old exporters list among the inputs are left out.

    Args:
        digest: False leaves out the file's SHA-256.
    """
    weights = model.graph.initializers
    return ModelInfo(
        path=None if path is None else str(path),
        sha256=file_sha256(path) if path is not None and digest else None,
        opset=model_opset(model),
        inputs=tuple(tensor_info(value) for value in model.graph.inputs if value.name not in weights),
        outputs=tuple(tensor_info(value) for value in model.graph.outputs),
    )
