"""Models that ONNX Runtime does not implement, run by the reference implementation of ONNX (numpy, slow, one operator after the other).

It is asked only where ONNX Runtime says that it has no implementation: an opset newer than it, an operator or a type without kernel.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_NOT_IMPLEMENTED = re.compile(
    r"NOT_IMPLEMENTED|is not a registered function/op|under development|Unsupported model IR version|No Op registered for"
    r"|Could not find an implementation|layout == 1|Type 'tensor\((bfloat16|float8|int4|uint4|int2|uint2|float4)"
    # What kernels say that find out only while they run.
    r"|[Nn]ot implemented|[Nn]on per-tensor quantization is not supp|(?:is|are) not (?:yet )?supported|doesn't currently support"
)
# Standard operators whose reference gives other results than ONNX's own node tests (measured with onnx 1.23), and why.
WRONG = {
    "Loop": "tensors collected over the trips are put side by side instead of one after the other",
    "Scan": "with no initial states it does not find its inputs",
    "Bernoulli": "random",
    "Multinomial": "random",
    "RandomNormal": "random",
    "RandomNormalLike": "random",
    "RandomUniform": "random",
    "RandomUniformLike": "random",
}
# Operators whose reference was wrong, and so were the node tests made with it, before the version that mended them.
MENDED = {
    "Attention": ("1.19.1", "queries that share a key were given another one's"),
    "QLinearMatMul": ("1.22.0", "integers out of range wrapped around instead of being clipped"),
}
_MOST_NODES = 4000
_MOST_BYTES = 1 << 29


def wrong_operators() -> frozenset[str]:
    """Operators whose reference in the installed ONNX is not asked."""
    import onnx

    installed = _numbers(onnx.__version__)
    return frozenset(WRONG) | {name for name, (version, _) in MENDED.items() if installed < _numbers(version)}


def _numbers(version: str) -> tuple[int, ...]:
    """The three numbers of a version; what follows them (rc1, dev) is left out."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


class ReferenceSession:
    """Stands in for ``onnxruntime.InferenceSession``."""

    def __init__(self, model: bytes, folder: str, external: Sequence[Mapping[str, Any]]) -> None:
        import onnx
        from onnx.reference import ReferenceEvaluator

        from ..reference import operators
        from ..reference.ascend_layers import tell_offsets

        proto = onnx.load_model_from_string(model)
        nodes = [node for graph in _graphs(proto.graph) for node in graph.node]
        wrong = sorted({node.op_type for node in nodes if node.domain in ("", "ai.onnx")} & wrong_operators())
        if wrong or len(nodes) > _MOST_NODES:
            raise RuntimeError(f"the reference implementation cannot stand in for {', '.join(wrong) or f'{len(nodes)} nodes'}")
        _fill(proto, folder, external)
        tell_offsets(proto)
        self._outputs = [output.name for output in proto.graph.output]
        weights = {tensor.name for tensor in proto.graph.initializer}
        self._ports = {port.name: port.type.tensor_type for port in proto.graph.input if port.type.HasField("tensor_type")}
        self._needed = {port.name for port in proto.graph.input} - weights
        self._evaluator = ReferenceEvaluator(proto, new_ops=list(operators()))

    def names(self) -> list[str]:
        return list(self._outputs)

    def run(self, names: Sequence[str], feeds: Mapping[str, Any]) -> list[Any]:
        for name in self._needed - feeds.keys():
            raise ValueError(f"input {name} is missing")
        for name, array in feeds.items():
            _must_fit(name, array, self._ports.get(name))
        with np.errstate(all="ignore"):
            found = self._evaluator.run(list(names), dict(feeds))
        return [np.asarray(item) if isinstance(item, np.generic) else item for item in found]


def _must_fit(name: str, array: Any, port: Any) -> None:
    """The reference computes with whatever it is given, so that what ONNX Runtime would refuse is refused here.

    Raises:
        ValueError: another type, rank or size than the model declares.
    """
    import onnx

    if port is None or not isinstance(array, np.ndarray) or array.dtype.kind in "OUS":
        return
    wanted = onnx.helper.tensor_dtype_to_np_dtype(port.elem_type)
    if array.dtype != wanted:
        raise ValueError(f"input {name} is of {array.dtype}, not {wanted}")
    if not port.HasField("shape"):
        return
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in port.shape.dim]
    if len(sizes) != array.ndim or any(size not in (None, own) for size, own in zip(sizes, array.shape, strict=True)):
        raise ValueError(f"input {name} has shape {list(array.shape)}, not {sizes}")


def may_stand_in(error: Exception) -> bool:
    """Whether ONNX Runtime refused a model for want of an implementation."""
    return bool(_NOT_IMPLEMENTED.search(str(error)))


def _graphs(graph: Any) -> list[Any]:
    found = [graph]
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found += _graphs(attribute.g)
    return found


def _fill(proto: Any, folder: str, external: Sequence[Mapping[str, Any]]) -> None:
    """Read weights that lie outside the model.

    Raises:
        RuntimeError: there are too many of them.
    """
    import onnx

    elsewhere = {item["name"]: item for item in external}
    total = 0
    for tensor in proto.graph.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        item = elsewhere.get(tensor.name)
        if item is None:
            told = {entry.key: entry.value for entry in tensor.external_data}
            item = {"path": str(Path(folder) / told["location"]), "offset": int(told.get("offset", 0)), "length": int(told["length"])}
        total += item["length"]
        if total > _MOST_BYTES:
            raise RuntimeError(f"the reference implementation is not asked for more than {_MOST_BYTES >> 20} MB of weights")
        raw = np.memmap(item["path"], dtype=np.uint8, mode="r", offset=item["offset"], shape=(item["length"],))
        tensor.raw_data = raw.tobytes()
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]
