"""One walk over the main graph: every shape and every small integer tensor, as far as they follow from the inputs' shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from ...errors import ShapeError
from ...text import say
from ..walk import model_opset
from . import arithmetic, counting, dense, joining, layout  # noqa: F401 - they register their rules
from .control import visit_all
from .expr import Element, symbol
from .known import UNKNOWN, Array, Known, Shape, Walk

DEFAULT_LIMIT = 64 << 10
"""Bytes a computed constant may have beyond the constants it is made from."""

_ANONYMOUS = frozenset({"", "?", "-1", "None", "unk", "unknown"})


@dataclass(frozen=True)
class SymbolicResult:
    """What is known of a model's main graph before it runs.

    Attributes:
        constants: by tensor name, the value of each node output that is the same in every run, in the tensor's own dtype. (Initializers
            and outputs of Constant nodes are not listed.) The arrays may be views of weights: do not write to them.
        symbols: by symbol name, the places (input, axis) of the dimension it stands for. Symbols of dimensions about which nothing is
            known are not listed.
        branches: for each If of the main graph whose condition is decided, the attribute name of the branch that always runs.
    """

    constants: dict[str, Array]
    symbols: dict[str, tuple[tuple[str, int], ...]]
    branches: dict[ir.Node, str]
    _known: Mapping[ir.Value, Known] = field(repr=False)
    _by_name: Mapping[str, ir.Value] = field(repr=False)
    _walk: Walk = field(repr=False)

    def known(self, value: ir.Value | str | None) -> Known:
        """Everything known of a tensor (given as a value, or by the name it has in the main graph)."""
        if isinstance(value, str):
            value = self._by_name.get(value)
        return self._walk.get(value)

    def shape(self, value: ir.Value | str | None) -> Shape | None:
        """Its dimensions, each an int or an expression; None when the rank is not known."""
        return self.known(value).shape

    def elements(self, value: ir.Value | str | None) -> tuple[Element | None, ...] | None:
        """The elements of a small tensor of integers or booleans, in order; None for those (or all) that are not known."""
        if isinstance(value, str):
            value = self._by_name.get(value)
        self._walk.data(value)
        return self._walk.get(value).elements

    def constant(self, value: ir.Value | str | None) -> Array | None:
        """The value of a tensor that is the same in every run: computed, a Constant's, or a weight's."""
        if isinstance(value, str):
            value = self._by_name.get(value)
        return self._walk.numbers(value)

    def sizes(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        """The size of each symbol when the inputs have these shapes (for :meth:`Expr.evaluate`)."""
        found: dict[str, int] = {}
        for name, places in self.symbols.items():
            for tensor, axis in places:
                shape = shapes.get(tensor)
                if shape is not None and axis < len(shape):
                    found[name] = shape[axis]
        return found


def evaluate_symbolically(
    model: ir.Model,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    trust_symbols: bool = False,
    positive: bool = False,
    inferred: bool = False,
    limit: int = DEFAULT_LIMIT,
) -> SymbolicResult:
    """Walk the main graph once and collect what follows from the shapes of its inputs. The model is not changed.

    Everything is derived anew from the inputs and the weights. Of the declared shapes only the inputs' ranks and numbers are believed
    (ONNX Runtime enforces these). A name that two dimensions share says nothing, because exporters reuse names.

    Args:
        shapes: shapes of inputs in place of the declared ones.
        trust_symbols: believe that input dimensions of one name are equal.
        positive: believe that no input dimension is 0.
        inferred: believe the sizes that the model holds for the results of operators this module knows nothing of. Only right
            after ``infer_shapes(model, forget=True)``.
        limit: bytes a computed constant may have beyond the constants it is made from.

    Raises:
        ShapeError: a given shape does not fit the input.
    """
    taken = {value.name or "" for value in model.graph.inputs} | {
        str(dim.value) for value in model.graph.inputs for dim in value.shape or () if not isinstance(dim, int)
    }
    walk = Walk(model_opset(model), limit, positive, taken, inferred, overridable=model.ir_version >= 4)
    symbols = _read_inputs(walk, model, shapes or {}, trust_symbols)
    visit_all(walk, model.graph)
    constants: dict[str, Array] = {}
    by_name: dict[str, ir.Value] = {value.name or "": value for value in (*model.graph.inputs, *model.graph.initializers.values())}
    for node in model.graph:
        listed = node.op_type != "Constant"
        for value in node.outputs:
            by_name[value.name or ""] = value
            found = walk.known.get(value, UNKNOWN).constant
            if listed and found is not None and value.name:
                constants[value.name] = found
    branches = {node: name for node, name in walk.decided.items() if node.graph is model.graph}
    return SymbolicResult(constants, symbols, branches, walk.known, by_name, walk)


def _read_inputs(walk: Walk, model: ir.Model, shapes: Mapping[str, tuple[int, ...]], trust: bool) -> dict[str, tuple[tuple[str, int], ...]]:
    """Make a symbol for each input dimension that is no number."""
    counts: dict[str, int] = {}
    for value in filter(walk.may_change, model.graph.inputs):
        for dim in value.shape or ():
            if not isinstance(dim, int) and dim.value is not None:
                counts[dim.value] = counts.get(dim.value, 0) + 1
    places: dict[str, tuple[tuple[str, int], ...]] = {}
    for value in model.graph.inputs:
        if not walk.may_change(value):
            continue
        name = value.name or ""
        given = shapes.get(name)
        if given is not None:
            _check_given(value, given)
            walk.known[value] = Known(tuple(int(size) for size in given))
        elif value.shape is None:
            walk.known[value] = UNKNOWN
        else:
            dims: list[Element] = []
            for axis, dim in enumerate(value.shape):
                if isinstance(dim, int) and dim >= 0:
                    dims.append(dim)
                    continue
                label = None if isinstance(dim, int) else dim.value
                anonymous = label is None or label in _ANONYMOUS
                chosen = f"{name}[{axis}]" if label is None or anonymous or (counts[label] > 1 and not trust) else label
                if chosen != label:
                    chosen = walk.new_name(chosen)
                places[chosen] = (*places.get(chosen, ()), (name, axis))
                dims.append(symbol(chosen, walk.low))
            walk.known[value] = Known(tuple(dims))
    return places


def _check_given(value: ir.Value, given: tuple[int, ...]) -> None:
    declared = value.shape
    if declared is None:
        return
    fits = len(declared) == len(given) and all(
        not isinstance(dim, int) or dim < 0 or dim == size for dim, size in zip(declared, given, strict=False)
    )
    if not fits or any(size < 0 for size in given):
        text = ",".join(str(dim) if isinstance(dim, int) else str(dim.value) for dim in declared)
        raise ShapeError(
            say(
                "the shape {given} does not fit the input `{name}`",
                "形状 {given} 与输入 `{name}` 不符",
                given=",".join(map(str, given)),
                name=value.name or "",
            ),
            say("the model declares {declared}", "模型声明为 {declared}", declared=text),
            say("give a shape of that rank that keeps its numbers", "请给出同秩且保持其中固定数值的形状"),
        )
