"""What a computed tensor comes from, in the words of the model's inputs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import onnx_ir as ir

from ..text import Text, say
from .shapes import constant_of
from .walk import bodies

_LIMIT = 500
_STANDARD = ("", "ai.onnx")


def origin_of(value: ir.Value, model: ir.Model) -> Text:
    """The inputs of the model, and the sizes of tensors, that a tensor is computed from."""
    inputs: dict[str, None] = {}
    sizes: dict[str, None] = {}
    carried: dict[str, None] = {}
    waiting, seen = [value], {value}
    while waiting and len(seen) < _LIMIT:
        current = waiting.pop(0)
        node = current.producer()
        if constant_of(current) is not None:
            continue
        if node is None:
            (inputs if current in model.graph.inputs else carried)[current.name or "?"] = None
            continue
        if node.op_type in ("Shape", "Size") and node.domain in _STANDARD:
            sizes[node.inputs[0].name or "?" if node.inputs[0] is not None else "?"] = None
            continue
        sources = [item for item in node.inputs if item is not None]
        for body in bodies(node):
            sources += body.outputs
        waiting += [item for item in sources if item not in seen]
        seen.update(sources)
    parts = [
        phrase
        for phrase, found in (
            (say("the values of {names}", "{names} 的数值", names=_listed(inputs)), inputs),
            (say("the size of {names}", "{names} 的尺寸", names=_listed(sizes)), sizes),
            (say("the carried {names}", "循环变量 {names}", names=_listed(carried)), carried),
        )
        if found
    ]
    if not parts:
        return say("constants", "常量")
    joined = parts[0]
    for part in parts[1:]:
        joined = say("{first}, {second}", "{first}、{second}", first=joined, second=part)
    return joined


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in islice(names, 3))


__all__ = ["origin_of"]
