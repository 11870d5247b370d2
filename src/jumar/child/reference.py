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
)
# Operators whose reference gives other results than ONNX's own node tests (onnx 1.19 to 1.23).
_WRONG = frozenset(("Loop", "Scan"))
_MOST_NODES = 4000
_MOST_BYTES = 1 << 29


class ReferenceSession:
    """Stands in for ``onnxruntime.InferenceSession``."""

    def __init__(self, model: bytes, folder: str, external: Sequence[Mapping[str, Any]]) -> None:
        import onnx
        from onnx.reference import ReferenceEvaluator

        from ..reference import operators

        proto = onnx.load_model_from_string(model)
        nodes = [node for graph in _graphs(proto.graph) for node in graph.node]
        wrong = sorted({node.op_type for node in nodes if node.domain in ("", "ai.onnx")} & _WRONG)
        if wrong or len(nodes) > _MOST_NODES:
            raise RuntimeError(f"the reference implementation cannot stand in for {', '.join(wrong) or f'{len(nodes)} nodes'}")
        _fill(proto, folder, external)
        self._outputs = [output.name for output in proto.graph.output]
        self._evaluator = ReferenceEvaluator(proto, new_ops=list(operators()))

    def names(self) -> list[str]:
        return list(self._outputs)

    def run(self, names: Sequence[str], feeds: Mapping[str, Any]) -> list[Any]:
        with np.errstate(all="ignore"):
            found = self._evaluator.run(list(names), dict(feeds))
        return [np.asarray(item) if isinstance(item, np.generic) else item for item in found]


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
