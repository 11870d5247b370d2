"""Expressing a model at another opset, one version at a time: what an adapter makes at one version may have to change again at the next."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from ...text import Text, say
from ..edit import used_names
from ..shapes import infer_shapes
from ..walk import all_nodes, model_opset, node_place
from . import lower, raise_forms  # noqa: F401 - they register the adapters
from .dtypes import fit_types
from .expand import expand
from .generic import lower_generic, raise_generic
from .schemas import DOMAINS, changed_at, find_schema, minimum_ir_version
from .step import LOWER, RAISE, Step, Unconvertible


def convert_opset(model: ir.Model, version: int) -> list[str]:
    """Rewrite every node of the standard domain for ``version``, in place: in the graph, in bodies of control flow, in local functions.

    Types and shapes of tensors must have been inferred; what they do not tell is refused where it is needed.

    Returns:
        Places of the nodes whose form changed.

    Raises:
        Unconvertible: a node cannot be expressed; the model may then be half converted and must be thrown away.
    """
    old = model_opset(model)
    if model.functions and not _functions_convert(model, version):
        _inline(model, old)
    job = _Job(model)
    for function in model.functions.values():
        job.run(function.graph, _imported(function.opset_imports, old), version, in_function=True)
        _import(function.opset_imports, version)
    job.run(model.graph, old, version)
    _import(model.opset_imports, version)
    for graph in (*model.graphs(), *(graph for function in model.functions.values() for graph in _graphs(function.graph))):
        _import(graph.opset_imports, version)
    needed = minimum_ir_version(version) if version > old else 0
    if job.made and (model.ir_version or 0) < 4:
        needed = max(needed, 4)  # before, every weight had to be an input too
    model.ir_version = max(model.ir_version or 0, needed)
    return list(job.changed)


def _graphs(graph: ir.Graph) -> list[ir.Graph]:
    return [graph, *graph.subgraphs()]


def _standard_nodes(graphs: Iterable[ir.Graph]) -> list[ir.Node]:
    return [node for graph in graphs for node in graph if node.domain in DOMAINS]


def _inner(node: ir.Node) -> list[ir.Node]:
    """The nodes of the bodies that a node has, at any depth."""
    bodies = [graph for attribute in node.attributes.values() for graph in bodies_of(attribute)]
    return [inner for body in bodies for graph in _graphs(body) for inner in graph]


def bodies_of(attribute: ir.Attr) -> list[ir.Graph]:
    if attribute.type == ir.AttributeType.GRAPH and not attribute.is_ref():
        return [attribute.as_graph()]
    if attribute.type == ir.AttributeType.GRAPHS and not attribute.is_ref():
        return list(attribute.as_graphs())
    return []


def _imported(imports: dict[str, int], otherwise: int) -> int:
    return next((imports[domain] for domain in DOMAINS if domain in imports), otherwise)


def _import(imports: dict[str, int], version: int) -> None:
    for domain in DOMAINS:
        if domain in imports:
            imports[domain] = version


def _functions_convert(model: ir.Model, version: int) -> bool:
    """Whether every local function can be converted as it stands, where no dtype or rank is known and attributes may be the caller's."""
    for function in model.functions.values():
        trial = ir.Model(ir.Graph([], [], nodes=[], opset_imports=dict(model.opset_imports)), ir_version=model.ir_version or 10)
        copy = function.clone()
        try:
            _Job(trial).run(copy.graph, _imported(copy.opset_imports, model_opset(model)), version, in_function=True)
        except Unconvertible:
            return False
    return True


def _inline(model: ir.Model, old: int) -> None:
    """Calls of functions become their bodies: with the caller's types and attributes more can be expressed."""
    for function in model.functions.values():
        own = _imported(function.opset_imports, old)
        if own != old:  # what it means is said at another version
            _Job(model).run(function.graph, own, old, in_function=True)
            _import(function.opset_imports, old)
    InlinePass()(model)
    model.functions.clear()
    infer_shapes(model)


class _Job:
    """One conversion: the names in use, and what was changed."""

    def __init__(self, model: ir.Model) -> None:
        self.model = model
        # Of tensors and of nodes: what is made must not have the name of either.
        self.names = used_names(model) | {node.name for node in all_nodes(model) if node.name}
        for function in model.functions.values():
            for graph in _graphs(function.graph):
                self.names.update(value.name for value in graph.inputs if value.name)
                self.names.update(value.name for node in graph for value in node.outputs if value.name)
        self.changed: dict[str, None] = {}
        self.made: set[ir.Node] = set()

    def run(self, root: ir.Graph, old: int, new: int, in_function: bool = False) -> None:
        """Bring a graph and the bodies in it from one version to another. ``in_function``: the graph itself may not have weights."""
        if old != new:
            self._check(root, old)
        down = new < old
        for version in range(old, new, -1) if down else range(old + 1, new + 1):
            work = [node for node in _standard_nodes(_graphs(root)) if changed_at(node.op_type, version)]
            untyped = False
            while work:
                node = work.pop()
                place, given = node_place(node), node not in self.made
                step = Step(self.model, node, self.names, version - 1 if down else version, in_function and node.graph is root)
                changed = self._lower(step, version) if down else self._raise(step, version)
                self._fit(step, place)
                self.made.update(step.made)
                if given and (changed or step.made):
                    self.changed[place] = None
                if down and step.version == version:
                    # A body is written at the version that is being left: its nodes have to go down as well.
                    inner = [deep for made in step.made for deep in (made, *_inner(made)) if made.graph is not None]
                    self.made.update(inner)
                    work += [made for made in inner if changed_at(made.op_type, version)]
                    untyped = untyped or any(value.type is None for made in inner for value in made.outputs)
            if untyped and not in_function:  # the bodies of control flow, for one
                _import(self.model.opset_imports, version - 1 if down else version)
                infer_shapes(self.model)

    def _check(self, root: ir.Graph, old: int) -> None:
        for node in _standard_nodes(_graphs(root)):
            if find_schema(node.op_type, old) is None:
                raise Unconvertible(node, say("it is not an operator of opset {version}", "它不是 opset {version} 的算子", version=old))

    def _fit(self, step: Step, place: str) -> None:
        """What an adapter made has to be allowed at its version, dtypes included."""
        for node in list(step.made):
            if node.graph is None or node.domain not in DOMAINS:
                continue
            schema = find_schema(node.op_type, step.version)
            if schema is None or schema.deprecated:
                raise Unconvertible(step.node, _not_there(node.op_type, step.version), place)
            inner = Step(self.model, node, self.names, step.version, step.in_function)
            inner.source = schema
            try:
                fit_types(inner, schema)
            except Unconvertible as error:
                raise Unconvertible(step.node, error.bare, place) from error
            step.made += inner.made

    def _lower(self, step: Step, version: int) -> bool:
        """Express a node of ``version`` at the one below; says whether its form changed."""
        node = step.node
        source, target = find_schema(node.op_type, version), find_schema(node.op_type, version - 1)
        if source is None:
            return False
        step.source = source
        adapter = LOWER.get((node.op_type, version))
        changed = False
        if adapter is not None:
            changed = adapter(step)
            if node.graph is None:  # replaced by other nodes
                return True
            step.settle()
        if target is not None and not target.deprecated:
            try:
                return lower_generic(step, source, target) or changed
            except Unconvertible as error:
                refusal = error
        else:
            refusal = Unconvertible(node, _too_new(version))
        step.version = version
        if changed or not expand(step, source, version):
            raise refusal
        return True

    def _raise(self, step: Step, version: int) -> bool:
        """Express a node of the version below at ``version``; says whether its form changed."""
        node = step.node
        source, target = find_schema(node.op_type, version - 1), find_schema(node.op_type, version)
        if source is None or target is None:
            return False
        step.source = source
        adapter = RAISE.get((node.op_type, version))
        changed = False
        if adapter is not None:
            changed = adapter(step)
            if node.graph is None:
                return True
            step.settle()
        if target.deprecated:
            step.refuse(say("it no longer exists at opset {version}", "它在 opset {version} 中已不存在", version=version))
        return raise_generic(step, source, target, changed) or changed


def _not_there(op_type: str, version: int) -> Text:
    return say(
        "it would need {other}, which opset {version} does not have",
        "需要 opset {version} 中没有的 {other}",
        other=op_type,
        version=version,
    )


def _too_new(version: int) -> Text:
    return say("it exists only from opset {version} on", "它自 opset {version} 起才存在", version=version)
