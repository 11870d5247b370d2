"""DT305: integers inside a model of a type that the target does not compute with, where 32 bits are enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import onnx_ir as ir

from ...case import Finding
from ...graph import copy_model, node_place
from ...graph.ranges import Ranges
from ...graph.ranges.narrow import NARROW, NARROWABLE, REPLACEABLE, Narrowing, Plan, Unit, is_constant, unit_of
from ...targets import TAKEN, NodeFacts, judge
from ...text import Text, say
from ..base import Change, Context, Example, ModelRule, Refused
from ..node_facts import node_facts

_WORTH = 2
"""Casts that a removed problem is worth: a Cast runs on the AI Core, and an operator on the AI CPU costs more than several."""


@dataclass(frozen=True)
class _Survey:
    """What stands in the way of the target, and what can be done: proven, and on an assumption."""

    wide: ir.DataType
    gains: Mapping[Unit, int]
    ranges: Ranges
    proven: Plan
    assumed: Plan

    def reason(self, unit: Unit) -> ir.Value | None:
        """A tensor because of which a variable stays int64."""
        found = self.proven.unproven.get(unit) or self.assumed.unproven.get(unit)
        if found is not None:
            return found
        return next((value for value in unit[0].inputs if value is not None and not self.ranges.of(value).fits(NARROW)), None)


def _problems(facts: NodeFacts, node: ir.Node, ctx: Context) -> int:
    answers = judge(facts, ctx.opset_of(node.domain), ctx.target, ctx.opset, ctx.support(node.op_type, node.domain))
    return sum(answer.status not in TAKEN for answer in answers)


def _candidates(ctx: Context, wide: ir.DataType) -> list[ir.Node]:
    """Nodes that read a computed tensor of the type and are no shape arithmetic that folding removes."""
    reading = [
        node
        for node in ctx.model.graph
        if node.op_type in NARROWABLE and any(value is not None and value.dtype == wide and not is_constant(value) for value in node.inputs)
    ]
    if not reading:
        return []
    ranges = ctx.ranges()
    return [node for node in reading if not all(ranges.is_certain(value) for value in node.outputs)]


def _gains(ctx: Context, wide: ir.DataType) -> dict[Unit, int]:
    """Problems of the target that vanish (negative: arise) if a type variable of a node becomes int32."""
    gains: dict[Unit, int] = {}
    for node in _candidates(ctx, wide):
        facts = node_facts(node)
        variables: dict[Unit, list[int]] = {}
        for index, value in enumerate(node.inputs):
            unit = unit_of(node, index, ctx.opset, wide=wide) if value is not None and value.dtype == wide else None
            if unit is not None and facts.inputs[index].dtype == wide.name and not facts.inputs[index].is_constant:
                variables.setdefault(unit, []).append(index)
        for unit, places in variables.items():
            inputs = tuple(replace(item, dtype="INT32") if index in places else item for index, item in enumerate(facts.inputs))
            gain = _problems(facts, node, ctx) - _problems(replace(facts, inputs=inputs), node, ctx)
            if gain:
                gains[unit] = gain
    return gains


def _surveys(ctx: Context, *, assume: bool = True) -> Iterator[_Survey]:
    """For each integer type in which something stands in the way."""
    present = {value.dtype for node in ctx.model.graph for value in node.inputs if value is not None}
    for wide in REPLACEABLE:
        gains = _gains(ctx, wide) if wide in present else {}
        if not any(gain > 0 for gain in gains.values()):
            continue
        ranges = ctx.ranges()
        proven = Narrowing(ctx.model, ranges, wide=wide).plan(gains)
        open_ = any(gain > 0 and unit not in proven.units for unit, gain in gains.items())
        assumed = Narrowing(ctx.model, ranges, assume=True, wide=wide).plan(gains) if assume and open_ else proven
        yield _Survey(wide, gains, ranges, proven, assumed)


class Int64Inside(ModelRule):
    code = "DT305"
    name = "int64-inside"
    since = "0.1"
    safety = "safe"
    severity = "info"
    phase = 65
    DOC_EN = """
    What: an operator inside the model computes with int64 (or another integer type: 16 bits, unsigned ones), which the target does not take or runs on the AI CPU, and with int32 the AI Core would run it.

    Why on Ascend: PyTorch makes every integer int64; many AI Core kernels take int32 only.

    Fix: the operators around it compute in int32: constants are narrowed, the bounds of a Slice beyond int32 become its end, and a Cast stands where an operator or the model's end insists on int64. Only where the Casts are no more than twice the problems they remove.

    Fix safety: safe where range analysis (shapes, constants, indices, declared input ranges) proves that every value fits int32, equal in every element. Otherwise unsafe: with --unsafe DT305 the tensors that are assumed to fit are recorded with the step. Refused where a constant does not fit, or where arithmetic may wrap around before the operator.

    Evidence: the kernel tables of the target's CANN toolkit; the type constraints of the ONNX operators.
    """
    DOC_ZH = """
    问题：模型内部的某个算子使用 int64（或其他整数类型：16 位、无符号）计算，目标不支持或只能在 AI CPU 上执行，而改为 int32 后 AI Core 可以执行。

    在昇腾上的原因：PyTorch 的整数都是 int64；许多 AI Core 算子只支持 int32。

    修复：其周围的算子改用 int32 计算：收窄常量，Slice 超出 int32 的边界取 int32 的端点；在必须使用 int64 的算子或模型输出处插入 Cast。仅当 Cast 的数量不超过消除的问题数的两倍时才改写。

    修复安全性：当取值范围分析（形状、常量、索引、声明的输入范围）证明所有取值可用 int32 表示时为安全，逐元素相等。否则为不安全：使用 --unsafe DT305 时，假定可表示的张量会记录在该步骤中。常量无法表示，或算子之前的运算可能回绕时，拒绝改写。

    依据：目标 CANN 工具包中的算子信息库；ONNX 算子的类型约束。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,5] x) => (float[2] y) <int64 three = {3}, int64 two = {2}> {
            best = ArgMax<axis = 1, keepdims = 0>(x) wide = Cast<to = 7>(best) odd = Mod(wide, three) half = Div(odd, two)
            near = Abs(half) y = Cast<to = 1>(near) }
        """,
            also=("OP104", "GR504", "SH202"),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (bool[2,3] m) => (float[2,3] y) <int64 axis = {1}, int64 minus = {-1}> {
            ones = Cast<to = 7>(m) places = CumSum(ones, axis) back = Neg(places) size = Abs(back) y = Cast<to = 1>(size) }
        """,
            also=("OP104", "OP264", "GR504"),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (int64[4] n) => (float[4] y) <int64 three = {3}> { odd = Mod(n, three) y = Cast<to = 1>(odd) }
        """,
            ranges={"n": (-100, 100)},
            also=("OP104", "DT301"),
            cured=False,
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (int64[4] n) => (float[4] y) <int64 k = {2654435761}, int64 p = {1009}> {
            big = Mul(n, k) odd = Mod(big, p) y = Cast<to = 1>(odd) }
        """,
            ranges={"n": (0, 100)},
            also=("OP104", "DT301"),
            cured=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        for survey in _surveys(ctx):
            yield from self._found(survey)

    def _found(self, survey: _Survey) -> Iterator[Finding]:
        seen: set[ir.Node] = set()
        for unit, gain in survey.gains.items():
            node, _ = unit
            if gain <= 0 or node in seen:
                continue
            if unit in survey.proven.units:
                yield self._finding(
                    survey, node, "safe", say("every value around it is proven to fit int32", "其周围的取值均已证明可用 int32 表示")
                )
            elif unit in survey.assumed.units:
                near = {value.name for value in (*node.inputs, *node.outputs) if value is not None}
                tensors = sorted(survey.assumed.assumptions, key=lambda item: item.tensor not in near)
                known = say(
                    "int32 must be assumed to hold `{tensor}`, of which is known: {range}",
                    "需假定 int32 可表示 `{tensor}`，已知其范围为 {range}",
                    tensor=tensors[0].tensor if tensors else "",
                    range=str(tensors[0].known) if tensors else "",
                )
                yield self._finding(survey, node, "unsafe", known)
            else:
                value = survey.reason(unit)
                if value is None:  # it would take more Casts than it is worth
                    continue
                yield self._finding(survey, node, "none", self._obstacle(value, survey.ranges))
            seen.add(node)

    def _obstacle(self, value: ir.Value, ranges: Ranges) -> Text:
        kind = say("the constant", "常量") if is_constant(value) else say("the tensor", "张量")
        return say(
            "int32 does not hold {kind} `{tensor}`: {range}",
            "int32 无法表示{kind} `{tensor}`：{range}",
            kind=kind,
            tensor=value.name,
            range=str(ranges.of(value)),
        )

    def _finding(self, survey: _Survey, node: ir.Node, fix: str, known: Text) -> Finding:
        remedies = {
            "safe": say("compute it in int32", "改用 int32 计算"),
            "unsafe": say("with --unsafe DT305, if you know that it fits", "若确认可以表示，请用 --unsafe DT305"),
            "none": say(
                "compute it on the host and pass the result, or declare the range of the inputs",
                "请在主机侧计算后送入结果，或声明输入的取值范围",
            ),
        }
        return self.finding(
            say(
                "`{node}`: {op} computes with {wide}; {known}",
                "`{node}`：{op} 使用 {wide} 计算；{known}",
                node=node_place(node),
                op=node.op_type,
                wide=survey.wide.name.lower(),
                known=known,
            ),
            say("the target takes it on the AI Core with int32 only", "目标的 AI Core 只支持以 int32 执行"),
            remedies[fix],
            node=node,
            fix=fix,  # type: ignore[arg-type]
        )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        refusal: Refused | None = None
        for survey in _surveys(ctx, assume=ctx.unsafe):
            plan = survey.assumed if ctx.unsafe else survey.proven
            if not any(unit in plan.units and gain > 0 for unit, gain in survey.gains.items()):
                continue
            trial = copy_model(model)  # what does not pay for one type must not stand in the way of another
            try:
                _narrow(replace(ctx, model=trial, analysed=[], answered={}), survey.wide)
            except Refused as refused:
                refusal = refused
                continue
            return _narrow(ctx, survey.wide)
        if refusal is not None:
            raise refusal
        return None


def _narrow(ctx: Context, wide: ir.DataType) -> Change:
    """Let int32 take the place of one type, in place.

    Raises:
        Refused: it takes more Casts than it removes problems.
    """
    survey = next(item for item in _surveys(ctx, assume=ctx.unsafe) if item.wide == wide)
    plan = survey.assumed if ctx.unsafe else survey.proven
    before, casts = _count(ctx), _casts(ctx.model)
    nodes = Narrowing(ctx.model, survey.ranges, assume=ctx.unsafe, wide=wide).apply(plan)
    removed, added = before - _count(ctx), _casts(ctx.model) - casts
    if removed <= 0 or added > _WORTH * removed:
        raise Refused(
            say(
                "it would take {added} more Casts and remove {removed} problems of the target",
                "需增加 {added} 个 Cast，只能消除目标的 {removed} 个问题",
                added=added,
                removed=removed,
            )
        )
    return Change(tuple(nodes), options=_options(plan, added, removed, ctx))


def _options(plan: Plan, added: int, removed: int, ctx: Context) -> dict[str, object]:
    assumed = [item.to_dict() for item in plan.assumptions]
    assumed += [{"tensor": name, "lo": low, "hi": high} for name, (low, high) in ctx.declared.items()]
    return {"casts_added": added, "problems_removed": removed} | ({"assumptions": assumed} if assumed else {})


def _count(ctx: Context) -> int:
    """Problems of the target over the whole main graph, as it is now."""
    return sum(_problems(node_facts(node), node, ctx) for node in ctx.model.graph)


def _casts(model: ir.Model) -> int:
    return Counter(node.op_type for node in model.graph)["Cast"]
