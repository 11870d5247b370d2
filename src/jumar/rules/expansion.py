"""Rules that write an operator out with others which the target takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import onnx_ir as ir

from ..case import Finding, Measure, Severity
from ..graph import Builder, used_names
from ..graph.expansions import RUNTIME_OPERATORS, Expansion, expansions_of, load_expansions, miniature
from ..graph.opset.schemas import find_schema
from ..graph.opset.step import NotThisForm, Step, Unconvertible
from ..graph.ranges import is_integer
from ..targets import SEVERITY_ORDER, TAKEN, Status, Support
from ..text import Text, say
from .base import Context, NodeRule, Refused, Safety, operator_name

_DEPTH = 5
"""How often what an expansion makes is expanded again."""
_GOOD, _SLOW, _BAD = range(3)
_ERRORS = frozenset(
    (
        Status.NO_PARSER,
        Status.NO_PARSER_AT_OPSET,
        Status.LIMIT_VIOLATED,
        Status.ATTRIBUTE_IGNORED,
        Status.NO_KERNEL,
        Status.DTYPE_NOT_TAKEN,
    )
)


# What arithmetic on attributes and shapes raises where they contradict each other.
_MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True)
class Outcome:
    """What became of trying an expansion.

    Attributes:
        expansion: the one to make; None if none helps.
        made: the operators in its place.
        reason: why nothing helps.
    """

    expansion: Expansion | None
    made: tuple[str, ...] = ()
    reason: Text | None = None
    grade: int = _BAD


def is_error(status: Status) -> bool:
    """Whether an answer means that the model does not compile or computes something else."""
    return status in _ERRORS


def grade_of(answers: tuple[Support, ...]) -> int:
    """How bad the answers on a node are: it runs on the AI Core (or needs no kernel), it may run, it does not."""
    worst = min((answer.status for answer in answers), key=SEVERITY_ORDER.__getitem__)
    return _GOOD if worst in TAKEN else (_BAD if worst in _ERRORS else _SLOW)


def try_expansions(node: ir.Node, ctx: Context, rule: str, depth: int = 0) -> Outcome:
    """The first expansion all of whose nodes the target takes, or else the best one that is better than the node as it is."""
    load_expansions()
    # Whoever asks for a node that the target takes has another reason to be rid of it.
    own = grade_of(ctx.judge(node))
    best = Outcome(None, grade=own if depth == 0 and own != _GOOD else _BAD)
    reasons: list[Text] = []
    forms: list[Text] = []
    for expansion in expansions_of(operator_name(node)):
        model = miniature(ctx.model, node)
        twin = model.graph[0]
        try:
            made = expand_node(model, twin, ctx, rule, expansion, depth)
        except Unconvertible as refusal:
            (forms if isinstance(refusal, NotThisForm) else reasons).append(refusal.bare)
            continue
        grade = max((_GOOD if _becomes_int32(item, ctx) else grade_of(ctx.judge(item)) for item in made), default=_GOOD)
        names = tuple(sorted({operator_name(item) for item in made}))
        if grade == _GOOD:
            return Outcome(expansion, names, None, grade)
        if grade < best.grade:
            best = Outcome(expansion, names, None, grade)
        else:
            poor = sorted({operator_name(item) for item in made if grade_of(ctx.judge(item)) == grade})
            reasons.append(
                say("written out it needs {ops}, which fare no better", "展开后需要 {ops}，其支持情况并不更好", ops=", ".join(poor))
            )
    if best.expansion is not None:
        return best
    reasons += forms
    return Outcome(None, (), reasons[0] if reasons else say("no expansion of it is known", "没有已知的展开方式"), best.grade)


def _becomes_int32(node: ir.Node, ctx: Context) -> bool:
    """Whether a node is a Cast of integers that 32 bits hold: another rule computes what is before it in int32."""
    value = node.inputs[0] if node.op_type == "Cast" else None
    return value is not None and is_integer(value.dtype) and ctx.range_of(value).fits(ir.DataType.INT32)


def expand_node(model: ir.Model, node: ir.Node, ctx: Context, rule: str, expansion: Expansion, depth: int = 0) -> list[ir.Node]:
    """Expand a node of ``model`` in place, and again what it made as far as that helps. Returns the nodes now there."""
    version = ctx.opset
    step = Step(model, node, used_names(model), version, rule=rule)
    step.range_of = ctx.range_of
    schema = find_schema(node.op_type, version) if node.domain in ("", "ai.onnx") else None
    if schema is not None:
        step.source = schema
    elif node.domain in ("", "ai.onnx") and node.op_type not in RUNTIME_OPERATORS:
        raise Unconvertible(node, say("it is not an operator of opset {version}", "它不是 opset {version} 的算子", version=version))
    try:
        expansion(step)
    except _MALFORMED as error:
        raise Unconvertible(node, say("its form is not one that ONNX allows", "其形式不符合 ONNX 的规定")) from error
    made = [item for item in step.made if item.graph is not None]
    for item in made:
        _check_form(node, item, version)
    if depth >= _DEPTH:
        return made
    final: list[ir.Node] = []
    for item in made:
        if grade_of(ctx.judge(item)) == _GOOD or not expansions_of(operator_name(item)):
            final.append(item)
            continue
        again = try_expansions(item, ctx, rule, depth + 1)
        final += [item] if again.expansion is None else expand_node(model, item, ctx, rule, again.expansion, depth + 1)
    return final


def _check_form(node: ir.Node, made: ir.Node, version: int) -> None:
    """What an expansion made has to be an operator of the model's opset, in its form there.

    Raises:
        Unconvertible: it is not.
    """
    schema = find_schema(made.op_type, version) if made.domain in ("", "ai.onnx") else None
    if made.domain not in ("", "ai.onnx"):
        return
    if schema is None or schema.deprecated or not set(made.attributes) <= set(schema.attributes):
        raise Unconvertible(node, say("it would need {op} of another opset", "需要其他 opset 的 {op}", op=made.op_type))
    if not schema.min_input <= len(made.inputs) <= schema.max_input:
        raise Unconvertible(node, say("it would need {op} of another opset", "需要其他 opset 的 {op}", op=made.op_type))
    for index, value in enumerate(made.inputs):
        if value is None or value.dtype is None or not isinstance(value.type, ir.TensorType):
            continue
        allowed = schema.inputs[min(index, len(schema.inputs) - 1)].types
        if f"tensor({value.dtype.name.lower()})" not in allowed:
            raise Unconvertible(
                node,
                say(
                    "it would need {op} of {dtype}, which opset {version} does not have",
                    "需要 opset {version} 所没有的 {dtype} 类型 {op}",
                    op=made.op_type,
                    dtype=value.dtype.name.lower(),
                    version=version,
                ),
            )


class ExpansionRule(NodeRule):
    """An operator that the target refuses, runs on the AI CPU or may not take, and that can be said with others.

    ``ops`` names the operators (those of other domains as ``domain::Operator``); what they become is in :mod:`jumar.graph.expansions`.
    """

    covers_support = True
    safety: ClassVar[Safety] = "safe"
    phase = 70
    bound = 1e-5
    measure: ClassVar[Measure] = "max_scaled"
    always: ClassVar[bool] = True
    """Whether the rule speaks also where nothing helps; otherwise the general rules do."""

    def troubles(self, node: ir.Node, ctx: Context) -> tuple[Support, ...]:
        """The answers that make a finding; a rule may say that some do not."""
        return tuple(answer for answer in ctx.judge(node) if answer.status not in TAKEN)

    def check(self, node: ir.Node, ctx: Context) -> Iterator[Finding]:
        troubles = self.troubles(node, ctx)
        if not troubles:
            return
        outcome = self.outcome(node, ctx)
        if outcome.expansion is None and not self.always:
            return
        decisive = min(troubles, key=lambda answer: SEVERITY_ORDER[answer.status])
        severity: Severity = "error" if decisive.status in _ERRORS else "warning"
        yield self.finding(
            say("`{node}`: {op} on {soc}: {reason}", "`{node}`：{soc} 上的 {op}：{reason}", node=node.name or node.op_type, op=operator_name(node),
                soc=ctx.target.soc.name, reason=decisive.reason or words(decisive.status)),
            words(decisive.status),
            say("write it as {ops}", "用 {ops} 写出", ops=", ".join(outcome.made) or "its operand")
            if outcome.expansion is not None
            else say("not rewritten: {reason}", "未改写：{reason}", reason=outcome.reason or say("", "")),
            node=node,
            severity=severity,
            fix="none" if outcome.expansion is None else "safe" if self.safety == "safe" else "unsafe",
            evidence=decisive.evidence,
        )  # fmt: skip

    def outcome(self, node: ir.Node, ctx: Context) -> Outcome:
        """What trying the expansions gives, remembered for the node."""
        key = (self.code, node)
        if key not in ctx.tried:
            ctx.tried[key] = try_expansions(node, ctx, self.code)
        found = ctx.tried[key]
        assert isinstance(found, Outcome)
        return found

    def rewrite(self, builder: Builder, node: ir.Node, ctx: Context) -> None:
        outcome = self.outcome(node, ctx)
        if outcome.expansion is None:
            raise Refused(outcome.reason or say("no expansion of it is known", "没有已知的展开方式"))
        try:
            expand_node(ctx.model, node, ctx, self.code, outcome.expansion)
        except Unconvertible as refusal:
            raise Refused(refusal.bare) from refusal


def words(status: Status) -> Text:
    """What an answer means, in a few words."""
    return _WORDS[status]


_WORDS = {
    Status.NO_PARSER: say("no parser of it is known", "没有已知的解析器"),
    Status.NO_PARSER_AT_OPSET: say("no parser is registered at this opset", "该 opset 没有注册解析器"),
    Status.LIMIT_VIOLATED: say("a documented limit is violated", "违反文档规定的限制"),
    Status.ATTRIBUTE_IGNORED: say("an attribute is never read", "有属性从不被读取"),
    Status.NO_KERNEL: say("it has no kernel", "没有算子实现"),
    Status.DTYPE_NOT_TAKEN: say("no kernel takes the dtype", "没有算子实现支持该数据类型"),
    Status.UNKNOWN: say("whether it is taken is not known", "是否支持未知"),
    Status.LIMIT_UNPROVEN: say("a limit is not proven to hold", "无法证明满足限制"),
    Status.LIMIT_UNJUDGED: say("a limit cannot be judged", "无法判断是否满足限制"),
    Status.NEEDS_CONSTANT: say("an operand must be constant", "某个操作数必须是常量"),
    Status.AICPU_ONLY: say("it works but is slow: every call leaves the AI Core", "可以运行但很慢：每次调用都要离开 AI Core"),
}
