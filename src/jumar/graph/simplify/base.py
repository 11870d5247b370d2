"""What a simplification is, and what it may use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from ..edit import Builder, used_names
from ..shapes import constant_of, known_shape, static_shape
from ..symbolic import evaluate_symbolically
from ..walk import bodies, model_opset, node_place

Array = npt.NDArray[np.generic]
Action = Callable[[], None]
"""Makes the change that a match found."""

# Constants up to this many bytes are read by matches that look at values (axes, shapes, scalars).
_SMALL = 1 << 16


@dataclass(frozen=True)
class Rewrite:
    """One change that was made: its kind, the node it started from, and whether every element stays equal."""

    kind: str
    place: str
    exact: bool


@dataclass
class Journal:
    """The changes of one run, in order. The same model with the same options gives the same journal.

    Attributes:
        budget: at most this many changes are made (None: no limit), so that a wrong one can be found by bisection.
        refused: changes not to make, by kind and place.
        kinds: the kinds to make (None: all).
    """

    budget: int | None = None
    refused: frozenset[tuple[str, str]] = frozenset()
    kinds: frozenset[str] | None = None
    rewrites: list[Rewrite] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    """Tensors that became weights."""

    def allows(self, kind: str, place: str, exact: bool = True) -> bool:
        """Whether the change may be made; if so it is written down, and the caller makes it."""
        if not self.wants(kind) or (kind, place) in self.refused or (self.budget is not None and len(self.rewrites) >= self.budget):
            return False
        self.rewrites.append(Rewrite(kind, place, exact))
        return True

    def wants(self, kind: str) -> bool:
        return self.kinds is None or kind in self.kinds


class Edit:
    """A model being simplified, with what matches ask of it.

    Attributes:
        opset: version of the standard operators.
        fold_limit: bytes by which one change may enlarge the weights.
        known: what follows from the shapes of the inputs, as of the last :meth:`look`. It holds for a tensor however it is computed, and
            says nothing of tensors made since.
    """

    def __init__(self, model: ir.Model, journal: Journal, fold_limit: int) -> None:
        self.model, self.journal, self.fold_limit = model, journal, fold_limit
        self.opset = model_opset(model)
        self.names = used_names(model)
        self.look()

    def look(self) -> None:
        """Evaluate the shape arithmetic anew. Open dimensions of inputs are taken to be at least 1."""
        self.known = evaluate_symbolically(self.model, positive=True, inferred=True, limit=self.fold_limit)
        for node in self.model.graph:
            for value in node.outputs:
                shape = self.known.shape(value)
                if shape is not None and not value.is_graph_output() and static_shape(value) is None:
                    value.shape = ir.Shape([dim if isinstance(dim, int) else None for dim in shape])

    def at(self, node: ir.Node, kind: str) -> Builder:
        """A builder that inserts before ``node``; give types and shapes to what it makes with :func:`describe`."""
        return Builder(self.model, node, kind, self.names)

    def discard(self, node: ir.Node) -> None:
        """Remove a node nobody reads any more, and then what only it read."""
        waiting = [node]
        while waiting:
            item = waiting.pop()
            graph = item.graph
            if graph is None or any(value.uses() or value.is_graph_output() for value in item.outputs):
                continue
            waiting += [maker for value in read_values(item) if (maker := value.producer()) is not None]
            release(item)
            graph.remove(item, safe=True)

    def pass_through(self, node: ir.Node, value: ir.Value) -> None:
        """Let ``value`` take the place of the node's first output, and drop the node."""
        self.at(node, "").replace(node.outputs[0], value)
        self.discard(node)


def read_values(node: ir.Node) -> Iterator[ir.Value]:
    """All tensors a node reads, those its bodies read from outside included."""
    yield from (value for value in node.inputs if value is not None)
    for graph in bodies(node):
        for inner in graph:
            yield from read_values(inner)
        yield from graph.outputs


def release(node: ir.Node) -> None:
    """Empty the bodies of a node that goes, so that they no longer read anything."""
    for graph in bodies(node):
        graph.outputs.clear()
        for inner in reversed(list(graph)):
            release(inner)
            for index in range(len(inner.inputs)):
                inner.replace_input_with(index, None)
            graph.remove(inner)
        graph.initializers.clear()


@dataclass(frozen=True)
class Simplification:
    """A kind of change: the operators it starts from, and the match.

    The match looks and changes nothing; it returns the action that makes the change, or None. An exact kind keeps every element equal;
    another may round differently, within the bound of its proof.
    """

    kind: str
    ops: tuple[str, ...]
    exact: bool
    match: Callable[[ir.Node, Edit], Action | None]


_BY_OPERATOR: dict[str, list[Simplification]] = {}
KINDS: dict[str, bool] = {
    "inline-functions": True,
    "fold-constants": True,
    "duplicate-weight": True,
    "duplicate-node": True,
    "unused-node": True,
    "gear-target": True,
}
"""All kinds by name; True for exact ones. Those named here have no match: they look at the whole graph."""


def simplification(
    kind: str, *ops: str, exact: bool = True
) -> Callable[[Callable[[ir.Node, Edit], Action | None]], Callable[[ir.Node, Edit], Action | None]]:
    """Register a match for operators of the standard domain."""

    def register(match: Callable[[ir.Node, Edit], Action | None]) -> Callable[[ir.Node, Edit], Action | None]:
        entry = Simplification(kind, ops, exact, match)
        KINDS[kind] = exact
        for op in ops:
            _BY_OPERATOR.setdefault(op, []).append(entry)
        return match

    return register


def kinds_of(*ops: str) -> frozenset[str]:
    """The kinds that start from one of these operators."""
    return frozenset(entry.kind for op in ops for entry in matches_of(op))


def matches_of(op_type: str) -> list[Simplification]:
    return _BY_OPERATOR.get(op_type, [])


# What matches ask of nodes and tensors.


def producer(value: ir.Value | None, *ops: str) -> ir.Node | None:
    """The standard operator of one of these types that makes a tensor, else None."""
    node = None if value is None else value.producer()
    return node if node is not None and node.op_type in ops and node.domain in ("", "ai.onnx") else None


def only_reader(value: ir.Value) -> bool:
    """Whether exactly one node input reads a tensor, and it is no graph output: the node that makes it may then be changed or go."""
    return not value.is_graph_output() and len(value.uses()) == 1


_ROUNDS = frozenset(("Ceil", "Floor", "QuantizeLinear", "Round"))
_CARRIES = frozenset(
    (
        *(
            "Add",
            "AveragePool",
            "BatchNormalization",
            "Clip",
            "Concat",
            "Div",
            "Elu",
            "Flatten",
            "Gelu",
            "GlobalAveragePool",
            "HardSigmoid",
        ),
        *("HardSwish", "Identity", "LeakyRelu", "Max", "MaxPool", "Min", "Mul", "PRelu", "Relu", "Reshape", "Sigmoid", "Softmax", "Sub"),
        *("Tanh", "Transpose"),
    )
)
_CARRIED_DEPTH = 6


def soon_rounded(node: ir.Node) -> bool:
    """Whether what a node makes is rounded to integers after a few operators that keep it: its last bit may then decide a whole step."""
    front, seen = [node], {node}
    for _ in range(_CARRIED_DEPTH):
        readers = [user for item in front for value in item.outputs for user, _ in value.uses()]
        if any(user.op_type in _ROUNDS or _makes_integers(user) for user in readers):
            return True
        front = [user for user in dict.fromkeys(readers) if user.op_type in _CARRIES and user not in seen]
        seen.update(front)
    return False


def _makes_integers(node: ir.Node) -> bool:
    wanted = node.attributes.get("to") if node.op_type == "Cast" else None
    return wanted is not None and not wanted.is_ref() and ir.DataType(wanted.as_int()).name.startswith(("INT", "UINT"))


def given(node: ir.Node, index: int) -> ir.Value | None:
    """The node's input at a position, None where it is absent."""
    return node.inputs[index] if index < len(node.inputs) else None


def small_constant(value: ir.Value | None) -> Array | None:
    """The values of a constant of at most 64 KB (shapes, axes, scalars, per-channel numbers)."""
    if value is None or value.is_graph_input():
        return None
    tensor = ir.convenience.get_const_tensor(value)
    if tensor is None or tensor.dtype == ir.DataType.STRING or tensor.nbytes > _SMALL:
        return None
    return tensor.numpy()


def integers(node: ir.Node, name: str, index: int | None = None) -> list[int] | None:
    """Integers from an attribute (older opsets) or a constant input (newer); None when neither is there or the input is computed."""
    if name in node.attributes:
        return [int(item) for item in node.attributes[name].as_ints()]
    array = small_constant(given(node, index)) if index is not None else None
    return None if array is None else [int(item) for item in array.reshape(-1)]


def integer(node: ir.Node, name: str, default: int) -> int:
    """An integer attribute."""
    return node.attributes[name].as_int() if name in node.attributes else default


def text(node: ir.Node, name: str, default: str) -> str:
    """A text attribute."""
    return node.attributes[name].as_string() if name in node.attributes else default


def rank(value: ir.Value | None) -> int | None:
    shape = known_shape(value)
    return None if shape is None else len(shape)


def describe(value: ir.Value, shape: Any, dtype: ir.DataType | None) -> ir.Value:
    """Say what a new tensor is, so that later matches need no inference."""
    if shape is not None:
        value.shape = ir.Shape(shape)
    if dtype is not None:
        value.type = ir.TensorType(dtype)
    return value


__all__ = [
    "KINDS",
    "Action",
    "Array",
    "Edit",
    "Journal",
    "Rewrite",
    "Simplification",
    "bodies",
    "constant_of",
    "describe",
    "given",
    "integer",
    "integers",
    "kinds_of",
    "known_shape",
    "matches_of",
    "node_place",
    "only_reader",
    "producer",
    "rank",
    "read_values",
    "release",
    "simplification",
    "small_constant",
    "static_shape",
    "text",
]
