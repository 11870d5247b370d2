"""What a rule is.

A rule file holds one class with ``code``, ``name``, ``since``, ``ops``, ``safety``, ``DOC_EN``, ``DOC_ZH``, ``check``, ``rewrite``
and ``EXAMPLES``. A rule asks ``ctx.target``; it never names a SoC. It is named after the problem.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import onnx_ir as ir

from ..case import Finding, FixKind, Measure, Severity
from ..graph import Builder, Evaluator, model_opset, node_place, source_line
from ..graph.fold import DEFAULT_FOLD_LIMIT
from ..graph.ranges import Interval, Ranges, is_integer, value_ranges, whole
from ..graph.simplify import Rewrite
from ..proof.interface import Port
from ..targets import TAKEN, Status, Support, Target, judge, support
from ..text import Text, say
from .node_facts import node_facts

Safety = Literal["safe", "unsafe", "advice"]


@dataclass(frozen=True)
class Context:
    """What a rule may know: the model, the target, and what the user said."""

    model: ir.Model
    target: Target
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    fold_limit: int = DEFAULT_FOLD_LIMIT
    evaluator: Evaluator | None = None
    unsafe: bool = False
    """True while a rewrite runs whose assumption the user accepted by naming its code."""
    budget: int | None = None
    """A rewrite that makes many changes makes only this many (None: all), so that a wrong one can be found by halving."""
    refused: frozenset[tuple[str, str]] = frozenset()
    """Changes such a rewrite must leave out, by kind and place."""
    answered: dict[tuple[str, str, int], Support] = field(default_factory=dict, repr=False, compare=False)
    """Answers on operators given before: a model asks the same again and again."""
    declared: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Least and largest value of integer inputs, as the user states them."""
    analysed: list[Ranges] = field(default_factory=list, repr=False, compare=False)
    whole: Context | None = field(default=None, repr=False, compare=False)
    """The context of the whole model, where ``model`` is a piece or a copy of it."""
    tried: dict[tuple[str, ir.Node], object] = field(default_factory=dict, repr=False, compare=False)
    """What rules found out about single nodes at some cost."""
    named: dict[str | None, ir.Value] = field(default_factory=dict, repr=False, compare=False)
    gears: tuple[Mapping[str, tuple[int, ...]], ...] = ()
    """Sets of sizes for which the model stays open: what they agree on is fixed."""

    @property
    def opset(self) -> int:
        return model_opset(self.model)

    @property
    def judged_opset(self) -> int:
        """The opset operators are judged at: the model's, or the nearest the target parses (another rule reports the difference)."""
        return min(max(self.opset, self.target.opset_min), self.target.opset_max)

    def opset_of(self, domain: str) -> int:
        """The opset at which operators of a domain are looked up: the version the model imports of that very domain."""
        return self.judged_opset if domain in ("", "ai.onnx") else self.model.opset_imports.get(domain, 0)

    def support(self, op_type: str, domain: str = "") -> Support:
        key = (domain, op_type, self.opset_of(domain))
        answer = self.answered.get(key)
        if answer is None:
            answer = self.answered[key] = support(domain, op_type, self.opset_of(domain), self.target)
        return answer

    def judge(self, node: ir.Node) -> tuple[Support, ...]:
        """All answers of the target's facts on one node, the decisive one first."""
        return judge(node_facts(node), self.opset_of(node.domain), self.target, self.opset, self.support(node.op_type, node.domain))

    def takes(self, *op_types: str) -> bool:
        """Whether the target runs all of these standard operators without falling to the AI CPU."""
        return all(self.support(op_type).status in TAKEN for op_type in op_types)

    def ranges(self) -> Ranges:
        """Between which numbers the values of each tensor lie, as the model is when this is first asked."""
        if not self.analysed:
            names = {value.name for value in self.model.graph.inputs}
            shapes = {name: shape for name, shape in self.shapes.items() if name in names}
            self.analysed.append(value_ranges(self.model, self.declared_of(self.model), shapes))
        return self.analysed[0]

    def declared_of(self, model: ir.Model) -> dict[str, tuple[int, int]]:
        """What the user states of the integer inputs that ``model`` has. An input that became int32 holds no more than that."""
        inputs = {value.name or "": value for value in model.graph.inputs}
        return {
            name: (max(low, int(whole(value.dtype).lo)), min(high, int(whole(value.dtype).hi)))
            for name, (low, high) in self.declared.items()
            if (value := inputs.get(name)) is not None and is_integer(value.dtype)
        }

    def range_of(self, value: ir.Value) -> Interval:
        """Between which numbers the values of a tensor of the model lie, looked up by name in the whole model."""
        if self.whole is not None:
            return self.whole.range_of(value)
        ranges = self.ranges()
        if value in ranges:
            return ranges.of(value)
        if not self.named:
            self.named.update({known.name: known for known in ranges if known.name})
        known = self.named.get(value.name)
        return whole(value.dtype or ir.DataType.FLOAT) if known is None else ranges.of(known)

    def in_main_graph(self, node: ir.Node) -> bool:
        return node.graph is self.model.graph


class Refused(Exception):  # noqa: N818 - a refusal is data with a reason, not an error
    """A rewrite that cannot be made here, with its reason."""

    def __init__(self, reason: Text) -> None:
        self.reason = reason
        super().__init__(str(reason))


@dataclass(frozen=True)
class Change:
    """What a whole-model rewrite did: the nodes concerned, changed ports (by present name), and constants it computed."""

    nodes: tuple[str, ...]
    inputs: Mapping[str, Port] = field(default_factory=dict)
    outputs: Mapping[str, Port] = field(default_factory=dict)
    constants: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    rewrites: tuple[Rewrite, ...] = ()
    """The single changes in order, if the rewrite can make fewer of them (``Context.budget``) or leave some out (``Context.refused``)."""
    chosen: tuple[str, ...] = ()
    """Tensors that held what was chosen, as long as that was: a proof in which nothing was chosen shows little."""


@dataclass(frozen=True)
class Example:
    """A model that has the problem, in ONNX text with ``OPSET`` in place of the version.

    Attributes:
        ranges: inclusive low and high of integer inputs (floats are drawn freely and get NaN, infinities and zeros too).
        opsets: the versions to test at.
        soc: a target on which the problem exists.
        shapes: as ``--shape``.
        cured: False for a form the rule reports but refuses to rewrite.
        edges: False where NaN or infinity are outside the operator's definition.
        ir_version: of the model.
        also: codes of other rules that rightly fire on it.
    """

    text: str
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    opsets: tuple[int, ...] = (11, 18)
    soc: str = "Ascend310P3"
    opset_max: int | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    cured: bool = True
    edges: bool = True
    ir_version: int = 8
    also: tuple[str, ...] = ()


class Rule(ABC):
    """Common to all rules."""

    code: ClassVar[str]
    name: ClassVar[str]
    since: ClassVar[str]
    ops: ClassVar[frozenset[str]] = frozenset()
    safety: ClassVar[Safety] = "advice"
    severity: ClassVar[Severity] = "error"
    phase: ClassVar[int] = 50
    """Order among the fixes: interface (10), shapes (20), names (30), folding (40), dtypes (50-60), operators (70), opset (80)."""
    bound: ClassVar[float] = 0.0
    """Allowed ``measure`` of a rewrite; 0 = equal in every element."""
    measure: ClassVar[Measure] = "max_rel"
    steps: ClassVar[int] = 0
    """By how much integers may differ: more than 0 only where ``safety`` is unsafe, since integers are otherwise equal."""
    resolution: ClassVar[float] = 0.0
    """What the model as given rounds to where the rewrite no longer rounds: outputs cannot be held closer to it than that."""
    DOC_EN: ClassVar[str]
    DOC_ZH: ClassVar[str]
    EXAMPLES: ClassVar[tuple[Example, ...]] = ()

    def finding(
        self,
        message: Text,
        why: Text,
        remedy: Text,
        *,
        node: ir.Node | None = None,
        place: str | None = None,
        severity: Severity | None = None,
        fix: FixKind | None = None,
        evidence: tuple[str, ...] = (),
    ) -> Finding:
        """A finding of this rule; place and Python line are taken from ``node``."""
        default: FixKind = "none" if self.safety == "advice" else self.safety
        return Finding(
            code=self.code,
            name=self.name,
            severity=severity or self.severity,
            message=message,
            why=why,
            remedy=remedy,
            node=place if node is None else node_place(node),
            op=None if node is None else (f"{node.domain}::{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type),
            fix=default if fix is None else fix,
            source_line=None if node is None else source_line(node),
            evidence=evidence,
        )

    @property
    def allowed(self) -> float:
        """The bound that the proof is held to."""
        return max(self.bound, self.resolution)

    def doc(self, lang: str) -> str:
        return inspect.cleandoc(self.DOC_ZH if lang == "zh" else self.DOC_EN)


class NodeRule(Rule):
    """A problem of a single node. The rewrite replaces the node by others with the same inputs and outputs."""

    covers_support: ClassVar[bool] = False
    """True when the rule's finding says all there is to say of the node's support, so that the general rule stays silent."""

    @abstractmethod
    def check(self, node: ir.Node, ctx: Context) -> Iterator[Finding]:
        """Findings for one node whose operator is in ``ops``."""

    def rewrite(self, builder: Builder, node: ir.Node, ctx: Context) -> None:
        """Build the replacement before ``node`` and hand over its outputs with ``builder.replace``.

        Raises:
            Refused: this form cannot be rewritten.
        """
        raise Refused(say("there is no rewrite", "没有可用的改写"))


class ModelRule(Rule):
    """A problem of the model as a whole."""

    @abstractmethod
    def check(self, ctx: Context) -> Iterator[Finding]:
        """Findings of the whole model."""

    def covered(self, ctx: Context) -> Iterable[ir.Node]:
        """Nodes of whose support the rule says all there is to say, so that the general rules stay silent."""
        return ()

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        """Edit ``model`` (a copy) in place; None when there is nothing to do. ``ctx.model`` is this same copy.

        Raises:
            Refused: it cannot be done here.
        """
        raise Refused(say("there is no rewrite", "没有可用的改写"))


class MeaningRule(ModelRule):
    """A model that computes something else than was meant: the rewrite changes results on purpose.

    It is made before the reference runs, only where the user names the code, and nothing can prove it; it depends on no target.
    """

    safety = "unsafe"
    phase = 8

    @abstractmethod
    def restore(self, model: ir.Model) -> Change | None:
        """Edit the model to what was meant. None if there is nothing to do."""

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        return self.restore(model)


class SupportRule(Rule):
    """One answer of the target's operator tables. Covers every operator that no specific rule claims."""

    status: ClassVar[Status]

    why: ClassVar[Text]
    remedy: ClassVar[Text]

    def describe(self, node: ir.Node, answer: Support, ctx: Context) -> Finding:
        """The finding for a node that got this answer: the answer's own reason, unless a rule has better words."""
        message = say(
            "`{node}`: {op}: {reason}",
            "`{node}`：{op}：{reason}",
            node=node.name or node.op_type,
            op=operator_name(node),
            reason=answer.reason or say("no reason given", "未说明原因"),
        )
        return self.finding(message, self.why, self.remedy, node=node, evidence=answer.evidence)


def operator_name(node: ir.Node) -> str:
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}::{node.op_type}"
