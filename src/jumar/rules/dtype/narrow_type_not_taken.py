"""DT307: booleans and small integers where the target's kernels take only wider ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import onnx
import onnx_ir as ir

from ...case import Finding
from ...graph import Builder, node_place
from ...targets import TAKEN, InputFacts, NodeFacts, Status, judge
from ...text import say
from ..base import Context, Example, NodeRule, Refused
from ..node_facts import node_facts

# Operators that only move, compare or choose elements: the same in a type that holds every value of the narrower one.
_CHOOSES = frozenset(
    (
        *("Compress", "Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Pad", "Reshape", "ReverseSequence"),
        *("ScatterElements", "ScatterND", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where"),
        *("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "ReduceMax", "ReduceMin", "Sign"),
    )
)
_NARROW = frozenset(ir.DataType[name] for name in ("BOOL", "INT8", "UINT8", "INT16", "UINT16", "UINT32"))
_WIDER = (ir.DataType.INT32, ir.DataType.FLOAT)


def _slots(node: ir.Node, opset: int) -> tuple[list[int], list[int], frozenset[str]]:
    """Input and output positions that share the type of the data, and the types the standard allows there."""
    schema = onnx.defs.get_schema(node.op_type, opset, "")
    name = schema.inputs[1 if node.op_type == "Where" else 0].type_str
    taken = [index for index, value in enumerate(node.inputs) if value is not None and _variable(schema.inputs, index) == name]
    given = [index for index, _ in enumerate(node.outputs) if _variable(schema.outputs, index) == name]
    allowed = next((item.allowed_type_strs for item in schema.type_constraints if item.type_param_str == name), ())
    return taken, given, frozenset(allowed)


def _variable(parameters: Sequence[onnx.defs.OpSchema.FormalParameter], index: int) -> str:
    name: str = parameters[min(index, len(parameters) - 1)].type_str
    return name


def _refused(facts: NodeFacts, node: ir.Node, ctx: Context) -> int:
    answers = judge(facts, ctx.opset_of(node.domain), ctx.target, ctx.opset, ctx.support(node.op_type, node.domain))
    return sum(answer.status == Status.DTYPE_NOT_TAKEN for answer in answers)


def _casts(dtype: ir.DataType, ctx: Context) -> bool:
    facts = NodeFacts("", "Cast", {}, (InputFacts(True, dtype.name, None, None, False),), frozenset((0,)))
    return all(answer.status in TAKEN for answer in judge(facts, ctx.judged_opset, ctx.target, ctx.opset, ctx.support("Cast")))


def _wider(node: ir.Node, ctx: Context) -> ir.DataType | None:
    """The type in which the target takes the node, if there is one that holds every value."""
    try:
        taken, _, allowed = _slots(node, ctx.opset)
    except onnx.defs.SchemaError:
        return None
    values = [value for index in taken if (value := node.inputs[index]) is not None]
    dtype = values[0].dtype if values else None
    if dtype not in _NARROW or any(value.dtype != dtype for value in values):
        return None
    facts = node_facts(node)
    before = _refused(facts, node, ctx)
    if not before or (dtype == ir.DataType.UINT32 and not all(ctx.ranges().of(value).fits(ir.DataType.INT32) for value in values)):
        return None
    for wanted in _WIDER:
        name = {"INT32": "tensor(int32)", "FLOAT": "tensor(float)"}[wanted.name]
        exact = wanted == ir.DataType.INT32 or dtype != ir.DataType.UINT32
        changed = replace(
            facts, inputs=tuple(replace(item, dtype=wanted.name) if index in taken else item for index, item in enumerate(facts.inputs))
        )
        if name in allowed and exact and _refused(changed, node, ctx) < before and _casts(dtype, ctx) and _casts(wanted, ctx):
            return wanted
    return None


class NarrowTypeNotTaken(NodeRule):
    code = "DT307"
    name = "narrow-type-not-taken"
    since = "0.1"
    ops = _CHOOSES
    safety = "safe"
    severity = "error"
    phase = 66
    covers_support = True
    DOC_EN = """
    What: an operator that moves, compares or chooses elements gets booleans or small integers, and no engine of the target takes that type there, but takes a wider one.

    Why on Ascend: kernels list the types they take one by one; a Concat of masks, say, is refused although it moves bytes only.

    Fix: Cast to int32 (or float32), the same operator, and Cast back where its result has the same type.

    Fix safety: safe; equal in every element, because the wider type holds every value (of uint32 only where range analysis proves it). Operators that compute are not rewritten: how the target rounds or wraps in the narrower type is not public.

    Evidence: the kernel tables of the target's CANN toolkit.
    """
    DOC_ZH = """
    问题：搬运、比较或选择元素的算子处理布尔或小整数，目标没有引擎在此处支持该类型，但支持更宽的类型。

    在昇腾上的原因：算子信息库逐一列出支持的类型；例如掩码的 Concat 虽然只是搬运字节，也会被拒绝。

    修复：转换为 int32（或 float32），执行同一算子；结果类型相同时再转换回来。

    修复安全性：安全；逐元素相等，因为更宽的类型能表示所有取值（uint32 仅在取值范围分析能够证明时）。进行计算的算子不改写：目标在窄类型中如何舍入或回绕没有公开。

    依据：目标 CANN 工具包中的算子信息库。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (bool[2,3] a, bool[2,3] b) => (float[4,3] y) { both = Concat<axis = 0>(a, b) y = Cast<to = 1>(both) }
        """,
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (int8[2,3] a) => (int8[2,3] y) { y = Sign(a) }
        """,
            ranges={"a": (-128, 127)},
            also=("DT305",),
        ),
    )

    def check(self, node: ir.Node, ctx: Context) -> Iterator[Finding]:
        wanted = _wider(node, ctx)
        if wanted is None:
            return
        source = node.inputs[1 if node.op_type == "Where" else 0]
        dtype = "" if source is None or source.dtype is None else source.dtype.name.lower()
        yield self.finding(
            say(
                "`{node}`: {soc} does not take {op} of {dtype}, but of {wanted}",
                "`{node}`：{soc} 的 {op} 不支持 {dtype}，但支持 {wanted}",
                node=node_place(node),
                soc=ctx.target.label,
                op=node.op_type,
                dtype=dtype,
                wanted=wanted.name.lower(),
            ),
            say("no engine has a kernel for this type here", "没有引擎在此处支持该类型"),
            say("cast to {wanted} and back", "转换为 {wanted} 再转换回来", wanted=wanted.name.lower()),
            node=node,
            fix="safe" if ctx.in_main_graph(node) else "none",
        )

    def rewrite(self, builder: Builder, node: ir.Node, ctx: Context) -> None:
        wanted = _wider(node, ctx)
        if wanted is None:
            raise Refused(say("no wider type is taken", "没有可用的更宽类型"))
        taken, given, _ = _slots(node, ctx.opset)
        cast: dict[ir.Value, ir.Value] = {}
        inputs = list(node.inputs)
        for index in taken:
            value = inputs[index]
            if value is not None:
                if value not in cast:
                    cast[value] = builder.op("Cast", value, to=wanted.value)
                inputs[index] = cast[value]
        builder.op(node.op_type, *inputs, outputs=len(node.outputs), **{key: item.value for key, item in node.attributes.items()})
        results = builder.made[-1].outputs
        for index, old in enumerate(node.outputs):
            new = results[index]
            if index in given and old.dtype is not None:
                new = builder.op("Cast", new, to=old.dtype.value)
            builder.replace(old, new)
