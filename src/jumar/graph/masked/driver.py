"""Tensors whose shape depends on data, kept with all the places that could be there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from ...text import Text, say
from ..edit import copy_model, used_names
from ..opset.schemas import find_schema
from ..opset.step import Step, Unconvertible
from ..ranges import Interval
from ..shapes import constant_of
from ..walk import bodies, model_opset, node_place
from . import boxes, branches, choosing, elements, moving, reducing, reshaping, sources, unique
from .base import HANDLERS, Count, Emptiness, Handler, Held, Look, Mask, Packed, Selected, Sizes, Unmaskable, rank_of
from .padded import Padded, pad_out

__all__ = ["Densified", "boxes", "choosing", "densify", "elements", "moving", "plan", "reducing", "reshaping", "sources", "unique"]
SOURCES: Mapping[str, Handler | None] = dict.fromkeys(("NonZero", "Compress", "Unique"))
"""Operators that choose places, and what becomes of one (None: its ordinary handler knows)."""
_ATTEMPTS = 12
_FIRST_OPSET = 11
# What arithmetic on attributes and shapes raises where they contradict each other.
_MALFORMED = (ArithmeticError, AttributeError, AssertionError, LookupError, TypeError, ValueError)


@dataclass
class Densified:
    """What became of the operators with a data-dependent shape.

    Attributes:
        done: names of the tensors that are kept with all places now.
        refused: why that cannot be, by the name of the tensor.
        open: tensors that could be, if outputs of the model may be padded.
        padded: outputs that have all places now.
    """

    done: set[str] = field(default_factory=set)
    refused: dict[str, Text] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)
    padded: list[Padded] = field(default_factory=list)


def source_nodes(model: ir.Model, sources: Mapping[str, Handler | None] = SOURCES) -> list[ir.Node]:
    """Operators of the main graph whose output has as many places as their input has chosen ones."""
    return [node for node in model.graph if _chooses(node, sources)]


def _chooses(node: ir.Node, sources: Mapping[str, Handler | None]) -> bool:
    """Whether it does so by what it computes; a Compress by a constant takes constant places."""
    if node.op_type not in sources or node.domain not in ("", "ai.onnx"):
        return False
    return node.op_type != "Compress" or (node.inputs[1] is not None and constant_of(node.inputs[1]) is None)


def plan(
    model: ir.Model, range_of: Callable[[ir.Value], Interval], rule: str, outputs: bool, sources: Mapping[str, Handler | None] = SOURCES
) -> Densified:
    """What :func:`densify` would do."""
    return densify(copy_model(model), range_of, rule, outputs, model, sources)


def densify(
    model: ir.Model,
    range_of: Callable[[ir.Value], Interval],
    rule: str,
    outputs: bool = False,
    pristine: ir.Model | None = None,
    sources: Mapping[str, Handler | None] = SOURCES,
) -> Densified:
    """Keep tensors of data-dependent shape with all places, as far as every reader of them allows it.

    Args:
        model: edited in place.
        outputs: whether outputs of the model may be padded, with another output that says how many places are there.
        pristine: the same model, for trials; a copy is made if it is not given.
        sources: operators whose output is to be kept with all places.
    """
    pristine = pristine or copy_model(model)
    names = {node.outputs[0].name or "" for node in source_nodes(model, sources)}
    refused: dict[str, Text] = {}
    open_: set[str] = set()
    for _ in range(_ATTEMPTS):
        if len(refused) == len(names):
            return Densified(set(), refused, open_)
        trial = _Walk(copy_model(pristine), range_of, rule, outputs, frozenset(refused), sources)
        trial.run()
        if not trial.failed:
            break
        open_ |= trial.open - refused.keys()
        refused |= trial.failed
    else:
        reason = say("too many of them depend on each other", "它们相互依赖过多")
        return Densified(set(), refused | dict.fromkeys(names - refused.keys(), reason), open_)
    final = _Walk(model, range_of, rule, outputs, frozenset(refused), sources)
    final.run()
    final.clean()
    return Densified(names - refused.keys(), refused, open_, final.padded)


class _Walk:
    """One pass over the nodes of the main graph."""

    def __init__(
        self,
        model: ir.Model,
        range_of: Callable[[ir.Value], Interval],
        rule: str,
        outputs: bool,
        without: frozenset[str],
        sources: Mapping[str, Handler | None],
    ) -> None:
        self.model, self.range_of, self.rule, self.outputs, self.without = model, range_of, rule, outputs, without
        self.sources = sources
        self.version, self.names = model_opset(model), used_names(model)
        self.held: dict[ir.Value, Held] = {}
        self.masks: dict[object, Mask] = {}
        self.failed: dict[str, Text] = {}
        self.open: set[str] = set()
        """Of those that failed: for an output of the model alone."""
        self.awaited: set[ir.Value] = set()
        """Outputs of branches that were taken apart, which nobody reads yet."""
        self.padded: list[Padded] = []
        self.read: list[ir.Node] = []

    def run(self) -> None:
        self._visit(list(self.model.graph))
        self._outputs()

    def _visit(self, nodes: Sequence[ir.Node]) -> None:
        for node in nodes:
            inner = [value for value in read_inside(node) if value in self.held]
            if inner:
                self._enter(node, inner)
                continue
            starts = _chooses(node, self.sources) and (node.outputs[0].name or "") not in self.without
            if not starts and not any(value in self.held for value in node.inputs if value is not None):
                continue
            self.read.append(node)
            try:
                self._rewrite(node)
            except Unmaskable as refusal:
                self._blame(node, refusal.reason, starts)
            except Unconvertible as refusal:
                self._blame(node, refusal.bare, starts)
            except _MALFORMED:
                self._blame(node, say("its form is not understood", "无法理解其形式"), starts)

    def _enter(self, node: ir.Node, inner: Sequence[ir.Value]) -> None:
        """A node whose bodies read what is held: an If that only asks whether there is anything is taken apart, as far as that is sound."""
        branch = branches.taken(node, self.held.get(node.inputs[0])) if node.op_type == "If" and node.inputs[0] is not None else None
        if branch is None:
            self._blame(node, say("it is read inside the body of control flow", "它在控制流子图中被读取"), False, inner)
            return
        condition = self.held[node.inputs[0]]  # type: ignore[index]
        self.read.append(node)
        nodes = list(branch)
        found = branches.inlined(self.model, node, branch)
        self.awaited |= set(found)
        self._visit(nodes)
        for old, new in zip(node.outputs, found, strict=True):
            item = self.held.get(new)
            if not (old.uses() or old.is_graph_output()):
                continue
            if item is None or not branches.empty_with(item, condition):
                reason = say("of nothing, its branches may give different results", "在没有任何位置时，两个分支的结果可能不同")
                self._blame(node, reason, False, inner)
                return
            self.held[old] = item

    def _step(self, node: ir.Node) -> Step:
        step = Step(self.model, node, self.names, self.version, rule=self.rule)
        step.range_of = self.range_of
        schema = find_schema(node.op_type, self.version) if node.domain in ("", "ai.onnx") else None
        if schema is None:
            raise Unmaskable(say("what it computes is not known", "不知道其计算内容"))
        step.source = schema
        return step

    def _rewrite(self, node: ir.Node) -> None:
        if self.version < _FIRST_OPSET:
            raise Unmaskable(say("the model's opset is below {version}", "模型的 opset 低于 {version}", version=_FIRST_OPSET))
        step = self._step(node)
        look = Look(step, self.held, self.masks, lenient=self.outputs)
        results = None
        for value in list(node.inputs):
            item = None if value is None else self.held.get(value)
            if isinstance(item, Selected) and value is not None:
                results = boxes.of_selected(look, item)
                if results is None:  # the rows as the model has them, from here on
                    del self.held[value]
                    step.replace(value, step.place(boxes.rows(look, item)))
                    if not any(other in self.held for other in node.inputs if other is not None):
                        return
        if results is None:
            starting = None if any(value in self.held for value in node.inputs if value is not None) else self.sources.get(node.op_type)
            handler = starting or HANDLERS.get(node.op_type)
            if handler is None:
                raise Unmaskable(say("it cannot work on places that are not there", "它无法处理不存在的位置"))
            results = handler(look)
        for place, old in enumerate(node.outputs):
            new = results[place] if place < len(results) else None
            if not (old.uses() or old.is_graph_output() or old in self.awaited):
                continue
            if new is None:
                raise Unmaskable(say("its output {place} is read", "其第 {place} 个输出被使用", place=place))
            if isinstance(new, ir.Value):
                self._ordinary(step, old, new)
                continue
            if isinstance(new, (Packed, Selected)):
                step.place(new.dense)
                if isinstance(new, Packed) and new.axis is not None:
                    rank_of(new.dense)
            self.held[old] = new

    @staticmethod
    def _ordinary(step: Step, old: ir.Value, new: ir.Value) -> None:
        new = step.place(new)
        if new is old:
            return
        if old.shape is not None and new.shape is None:
            new.shape = old.shape
        if new.type is None:
            new.type = old.type
        step.replace(old, new)

    def _blame(self, node: ir.Node, reason: Text, starts: bool, inner: Sequence[ir.Value] = ()) -> None:
        sources = {node.outputs[0].name or ""} if starts else set()
        for value in (*node.inputs, *inner):
            item = None if value is None else self.held.get(value)
            sources |= set() if item is None else sources_of(item)
        words = say("`{node}` ({op}): {reason}", "`{node}`（{op}）：{reason}", node=node_place(node), op=node.op_type, reason=reason)
        for name in sources - self.without:
            self.failed.setdefault(name, words)
            self.open.discard(name)

    def _outputs(self) -> None:
        """Sizes among the outputs of the model are computed; of the others the places come first that are there."""
        for value in list(self.model.graph.outputs):
            item = self.held.get(value)
            if item is None or self.failed.keys() >= sources_of(item) - self.without:
                continue
            # Before the last node: whatever others computed of a mask is there by then.
            node = self.model.graph[-1]
            look = Look(Step(self.model, node, self.names, self.version, rule=self.rule), self.held, self.masks, self.outputs)
            look.step.range_of = self.range_of
            try:
                if isinstance(item, (Sizes, Emptiness)):
                    self._ordinary(look.step, value, look.of(item))
                elif isinstance(item, Selected):
                    self._ordinary(look.step, value, boxes.rows(look, item))
                elif item.axis is None:
                    self._ordinary(look.step, value, look.values(item))
                elif self.outputs:
                    self.padded.append(pad_out(look, self.model, value, item))
                else:
                    fresh = sources_of(item) - self.failed.keys()
                    reason = say("the shape of the output `{name}` depends on data", "输出 `{name}` 的形状依赖数据", name=value.name)
                    self._blame_output(item, reason)
                    self.open |= fresh
            except Unmaskable as refusal:
                self._blame_output(item, refusal.reason)
            except Unconvertible as refusal:
                self._blame_output(item, refusal.bare)

    def _blame_output(self, item: Held, reason: Text) -> None:
        for name in sources_of(item) - self.without:
            self.failed.setdefault(name, reason)

    def clean(self) -> None:
        """Remove what nobody reads any more."""
        for node in reversed(list(self.model.graph)):
            if not any(value.uses() or value.is_graph_output() for value in node.outputs) and (
                node in self.read or node.metadata_props.get("jumar.rule") == self.rule
            ):
                self.model.graph.remove(node, safe=True)
        for name, value in list(self.model.graph.initializers.items()):
            if not value.uses() and not value.is_graph_output() and not value.is_graph_input():
                del self.model.graph.initializers[name]


def sources_of(item: Held) -> set[str]:
    """Names of the tensors whose data-dependent shape it comes from."""
    if isinstance(item, Sizes):
        return {name for entry in item.entries if isinstance(entry, Count) for name in entry.mask.sources}
    if isinstance(item, (Selected, Emptiness)):
        return set(item.mask.sources)
    return {name for mask in (item.mask, item.points) if mask is not None for name in mask.sources}


def read_inside(node: ir.Node) -> Iterator[ir.Value]:
    """What the bodies of a node read, at any depth."""
    for body in bodies(node):
        for item in ir.traversal.RecursiveGraphIterator(body):
            yield from (value for value in item.inputs if value is not None)
        yield from body.outputs
