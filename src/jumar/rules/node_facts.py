"""A node of a model as the target's facts see it."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from ..graph import known_shape
from ..targets import InputFacts, NodeFacts, makes_int32

# How far back an integer is traced; beyond that it counts as the int64 that ONNX says it is.
_TRACE_LIMIT = 256


def node_facts(node: ir.Node) -> NodeFacts:
    """A node as the target's facts see it."""
    attributes = {
        name: _plain(attribute) for name, attribute in node.attributes.items() if not attribute.is_ref() and attribute.type in _PLAIN_TYPES
    }
    used = frozenset(index for index, value in enumerate(node.outputs) if value.uses() or value.is_graph_output())
    return NodeFacts(node.domain, node.op_type, attributes, tuple(_input_facts(value) for value in node.inputs), used)


_PLAIN_TYPES = {
    ir.AttributeType.FLOAT,
    ir.AttributeType.INT,
    ir.AttributeType.STRING,
    ir.AttributeType.FLOATS,
    ir.AttributeType.INTS,
    ir.AttributeType.STRINGS,
}


def _plain(attribute: ir.Attr) -> Any:
    value = attribute.value
    return list(value) if isinstance(value, (tuple, list)) else value


def _input_facts(value: ir.Value | None) -> InputFacts:
    if value is None:
        return InputFacts(present=False)
    shape = known_shape(value)
    sizes = None if shape is None else tuple(dim if isinstance(dim, int) else None for dim in shape)
    tensor = _constant_tensor(value)
    # Only small constants (axes, sizes, indices) are looked at; weights stay where they are.
    small = tensor is not None and tensor.size <= 4096 and tensor.dtype != ir.DataType.STRING
    dtype = None if value.dtype is None else value.dtype.name
    if dtype == "INT64" and tensor is None and _is_int32_on_device(value):
        dtype = "INT32"
    return InputFacts(True, dtype, sizes, tensor.numpy() if tensor is not None and small else None, tensor is not None)


# Operators that hand on the dtype of their first input, and those that hand on that of all their inputs.
_MOVES = frozenset(
    [
        "Expand",
        "Flatten",
        "Gather",
        "GatherElements",
        "GatherND",
        "Identity",
        "Reshape",
        "Slice",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
    ]
)
_COMBINES = frozenset(("Add", "Concat", "Div", "Max", "Min", "Mod", "Mul", "Sub"))


def _constant_tensor(value: ir.Value) -> ir.TensorProtocol | None:
    if value.is_graph_input():
        return None
    if value.const_value is not None:
        return value.const_value
    node = value.producer()
    if node is None or node.op_type != "Constant":
        return None
    held = node.attributes.get("value")
    # The library's own accessor tests the tensor against a protocol, which takes longer than all the rest of a node's judgement.
    return held.value if held is not None and held.type == ir.AttributeType.TENSOR else ir.convenience.get_const_tensor(value)


def _is_int32_on_device(value: ir.Value) -> bool:
    """Indices of TopK and others are int32 in CANN where ONNX says int64, and stay so through moves and arithmetic with constants."""
    waiting, seen = [value], {value}
    while waiting:
        node = waiting[-1].producer()
        position = waiting.pop().index() or 0
        if node is None or node.domain not in ("", "ai.onnx") or len(seen) > _TRACE_LIMIT:
            return False
        if node.op_type in _MOVES:
            sources = [item for item in node.inputs[:1] if item is not None]
        elif node.op_type in _COMBINES:
            sources = [item for item in node.inputs if item is not None and _constant_tensor(item) is None]
        elif makes_int32(node.op_type, position):
            continue
        else:
            return False
        if not sources:
            return False
        waiting += [item for item in sources if item not in seen]
        seen.update(sources)
    return True
