"""``jumar check``: what will the target refuse, ignore or slow down, before anything else is tried."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

import onnx_ir as ir

from ..case import Case, Finding, Placement
from ..graph import all_nodes, copy_model, pin_shapes
from ..rules import Context, ModelRule, NodeRule, SupportRule, all_rules, operator_name
from ..targets import Target, engine_of
from .common import ModelLike, Shapes, check_shapes, open_case

_RANK = {"error": 0, "warning": 1, "info": 2}


def check(
    model: ModelLike,
    *,
    soc: str | None = None,
    target: str | Target | None = None,
    cann: str | None = None,
    opset_max: int | None = None,
    shapes: Shapes | None = None,
) -> Case:
    """Check a model against a target.

    Args:
        model: path, ``onnx_ir.Model`` or case.
        soc: exact soc_version, or ``target``: a profile name or a :class:`~jumar.targets.Target`.
        shapes: sizes of dynamic inputs; the model is checked as if pinned to them.

    Returns:
        A case whose record holds the findings (errors first), the verdict and the placement of every node.

    Raises:
        ModelError, TargetError, ShapeError: see their docs; a problem of the model on the target is a finding instead.
    """
    case = open_case(model, "check", soc=soc, target=target, cann=cann, opset_max=opset_max)
    if shapes:
        case = case.replace(model=pinned(case.model, check_shapes(case.model, shapes)))
    return examine(case)


def pinned(model: ir.Model, shapes: dict[str, tuple[int, ...]]) -> ir.Model:
    """A copy of the model with the given input shapes."""
    copy = copy_model(model)
    pin_shapes(copy, shapes)
    return copy


def examine(case: Case, context: Context | None = None) -> Case:
    """Findings and placement of the case's model as it is now (replaces earlier ones)."""
    if case.target is None:
        raise ValueError("a case without target cannot be checked")
    ctx = context or Context(case.model, case.target)
    # A call of a local function runs nothing itself: the nodes of its body are judged.
    nodes = [node for node in all_nodes(case.model) if node.op_identifier() not in case.model.functions]
    specific, covered = _node_findings(nodes, ctx)
    covered |= {node for rule in all_rules() if isinstance(rule, ModelRule) for node in rule.covered(ctx)}
    general, placement = _support_findings(nodes, covered, ctx)
    whole = [finding for rule in all_rules() if isinstance(rule, ModelRule) for finding in rule.check(ctx)]
    findings = sorted([*whole, *specific, *general], key=lambda item: (_RANK[item.severity], item.code))
    return case.replace(record=replace(case.record, placement=placement, findings=tuple(findings)))


def _node_findings(nodes: Iterable[ir.Node], ctx: Context) -> tuple[list[Finding], set[ir.Node]]:
    by_op: dict[str, list[NodeRule]] = defaultdict(list)
    for rule in all_rules():
        if isinstance(rule, NodeRule):
            for op_type in rule.ops:
                by_op[op_type].append(rule)
    findings: list[Finding] = []
    covered: set[ir.Node] = set()
    for node in nodes:
        for rule in by_op.get(operator_name(node), ()):
            found = list(rule.check(node, ctx))
            findings += found
            if found and rule.covers_support:
                covered.add(node)
    return findings, covered


def _support_findings(nodes: Iterable[ir.Node], covered: set[ir.Node], ctx: Context) -> tuple[list[Finding], Placement]:
    rules = {rule.status: rule for rule in all_rules() if isinstance(rule, SupportRule)}
    engines: Counter[str] = Counter()
    findings = []
    for node in nodes:
        answers = ctx.judge(node)
        engines[engine_of(answers)] += 1
        if node not in covered:
            findings += [rules[answer.status].describe(node, answer, ctx) for answer in answers if answer.status in rules]
    return findings, Placement(**engines)
