"""What follows for rewriting: constant targets for Reshape, and operators that change nothing."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from .evaluate import SymbolicResult
from .expr import Element, bounds
from .known import Shape
from .operations import is_nonzero

# The inputs that say how large a result is or what is taken (from, to), where they are computed in the graph.
_SHAPE_INPUTS: dict[str, tuple[int, ...]] = {
    "ConstantOfShape": (0,),
    "Expand": (1,),
    "OneHot": (1,),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (2, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}


def shape_operands(node: ir.Node) -> list[ir.Value]:
    """Inputs of the node that say how large its result is, which axes it works on, or where it cuts."""
    places = _SHAPE_INPUTS.get(node.op_type, ()) if node.domain == "" else ()
    if node.op_type == "Resize" and len(node.inputs) == 2:
        places = (1,)  # version 10
    found = (node.inputs[place] for place in places if place < len(node.inputs))
    return [value for value in found if value is not None]


def is_same_shape(a: ir.Value | str, b: ir.Value | str, result: SymbolicResult) -> bool:
    """Whether two tensors have the same shape in every run (False: not proven)."""
    first, second = result.shape(a), result.shape(b)
    return first is not None and first == second


def reshape_target(node: ir.Node, result: SymbolicResult) -> list[int] | None:
    """A constant target (read with allowzero=0) that gives the same output as the computed target of a Reshape.

    Each dimension of the output is a number where it is always the same, 0 (copied) where it is the input's at that place, and at most
    one is -1. With -1 ONNX Runtime divides the number of elements by the product of the others and refuses if that is 0, even for an
    empty input. So -1 is used only where every other dimension is certainly not 0; a dimension copied from a symbolic one is certain
    only after ``evaluate_symbolically(positive=True)``. A copied 0 needs no such care.

    Returns:
        None where there is no such target, or it is not proven.
    """
    out = result.shape(node.outputs[0])
    return None if out is None else constant_target(result.shape(node.inputs[0]), out)


def constant_target(source: Shape | None, out: Sequence[Element]) -> list[int] | None:
    """See :func:`reshape_target`; from the shapes alone."""
    target: list[int] = []
    for axis, dim in enumerate(out):
        if isinstance(dim, int) and dim > 0:
            target.append(dim)
        elif source is not None and axis < len(source) and source[axis] == dim:
            target.append(0)
        else:
            target.append(-1)
    if target.count(-1) > 1:
        return None
    if -1 in target and not all(is_nonzero(dim) for axis, dim in enumerate(out) if target[axis] != -1):
        return None
    return target


_BY_SHAPE = frozenset({"Expand", "Flatten", "Reshape", "Squeeze", "Tile", "Unsqueeze"})


def same_as_input(node: ir.Node, result: SymbolicResult) -> ir.Value | None:
    """The input that the node's first output always equals: of Reshape, Flatten, Squeeze, Unsqueeze, Expand, Tile, Slice, Pad, Concat, Where.

    Returns:
        None where the output differs, or may.
    """
    if node.domain != "" or not node.inputs or node.inputs[0] is None:
        return None
    source, out = node.inputs[0], node.outputs[0]
    if node.op_type in _BY_SHAPE:
        return source if is_same_shape(source, out, result) else None
    if node.op_type == "Slice":
        # As many elements as there are, in steps forwards: all of them.
        step = node.inputs[4] if len(node.inputs) > 4 else None
        forwards = step is None or all(item is not None and bounds(item)[0] > 0 for item in result.elements(step) or (None,))
        return source if forwards and is_same_shape(source, out, result) else None
    if node.op_type == "Pad":
        return source if _pads_nothing(node, result) else None
    if node.op_type == "Concat":
        return _only_part(node, result)
    if node.op_type == "Where":
        condition = result.constant(source)
        if condition is None or not condition.size or not (condition.all() or not condition.any()):
            return None
        side = node.inputs[1 if condition.all() else 2]
        return side if side is not None and is_same_shape(side, out, result) else None
    return None


def _pads_nothing(node: ir.Node, result: SymbolicResult) -> bool:
    if len(node.inputs) < 2:
        pads = node.attributes.get("pads")
        return pads is not None and not pads.is_ref() and not any(pads.as_ints())
    amounts = result.elements(node.inputs[1])
    return amounts is not None and all(amount == 0 for amount in amounts)


def _only_part(node: ir.Node, result: SymbolicResult) -> ir.Value | None:
    """The one input of a Concat whose shape is the whole, all others being empty along the axis."""
    shapes = [result.shape(value) for value in node.inputs]
    out, axis = result.shape(node.outputs[0]), node.attributes["axis"].as_int()
    if out is None or any(shape is None or len(shape) != len(out) for shape in shapes):
        return None
    whole = [place for place, shape in enumerate(shapes) if shape is not None and shape[axis] != 0]
    if len(whole) == 1:
        return node.inputs[whole[0]] if shapes[whole[0]] == out else None
    return node.inputs[0] if not whole and shapes[0] == out else None
