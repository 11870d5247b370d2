"""DT309: bfloat16 where the target does not compute with it."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import all_nodes
from ...proof.metrics import UNITS
from ...targets import TAKEN, InputFacts, NodeFacts, judge
from ...text import say
from ..base import Change, Context, Example, ModelRule
from .float64_island import attributes_naming, in_float32, values_of

_BFLOAT16 = ir.DataType.BFLOAT16


class Bfloat16Island(ModelRule):
    code = "DT309"
    name = "bfloat16-island"
    since = "0.1"
    safety = "safe"
    severity = "warning"
    phase = 54
    bound = 1e-5
    measure = "max_scaled"
    resolution = UNITS["bfloat16"]
    DOC_EN = """
    What: the model computes in bfloat16, and the target does not take all of it on the AI Core.

    Why on Ascend: bfloat16 exists from Atlas A2 on; the 310 and 310P families have none.

    Fix: the model computes in float32: weights are widened without loss, types in attributes follow, and inputs and outputs become float32, which the record tells.

    Fix safety: safe within 2^-7 of the largest element, which is one unit of bfloat16: float32 does not round after each operator as bfloat16 did, and a model whose rounding adds up to more is left alone.

    Evidence: the kernel tables of the target's CANN toolkit; ONNX Runtime, or ONNX's reference implementation where it has no kernel.
    """
    DOC_ZH = """
    问题：模型使用 bfloat16 计算，而目标的 AI Core 不能全部支持。

    在昇腾上的原因：bfloat16 自 Atlas A2 起才有；310 与 310P 系列没有。

    修复：改用 float32 计算：权重无损展宽，属性中的类型随之修改，输入输出改为 float32，并记录在结果中。

    修复安全性：误差在最大元素的 2^-7（bfloat16 的一个单位）以内为安全：float32 不像 bfloat16 那样在每个算子之后舍入，舍入累积更大的模型保持不变。

    依据：目标 CANN 工具包中的算子信息库；ONNX Runtime，或在其没有实现时使用 ONNX 参考实现。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (bfloat16[2,3] y) { small = Cast<to = 16>(x) y = Neg(small) }
        """,
            opsets=(13, 18),
            also=("OP104", "OP107"),
            edges=False,
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y) { small = Cast<to = 16>(x) twice = Add(small, small) y = Cast<to = 1>(twice) }
        """,
            opsets=(13, 18),
            also=("OP104", "OP107"),
            edges=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        readers = [
            node
            for node in all_nodes(ctx.model)
            if any(value is not None and value.dtype == _BFLOAT16 and value.const_value is None for value in node.inputs)
        ]
        refused = [node for node in readers if {answer.status for answer in ctx.judge(node)} - set(TAKEN)]
        ends = [value for value in (*ctx.model.graph.inputs, *ctx.model.graph.outputs) if value.dtype == _BFLOAT16]
        if not refused and (not ends or _casts(ctx)):
            return
        held = [value for node in refused[:1] for value in node.inputs if value is not None and value.dtype == _BFLOAT16]
        yield self.finding(
            say(
                "{count} operators read bfloat16, {refused} of which {soc} does not run on the AI Core; {ends} inputs and outputs are bfloat16",
                "{count} 个算子读取 bfloat16，其中 {refused} 个无法在 {soc} 的 AI Core 上执行；{ends} 个输入输出为 bfloat16",
                count=len(readers),
                refused=len(refused),
                ends=len(ends),
                soc=ctx.target.label,
            ),
            say("the family may have no bfloat16", "该系列可能没有 bfloat16"),
            say("compute in float32", "改用 float32 计算"),
            place=(held or ends)[0].name,
        )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        return in_float32(model, values_of(model, _BFLOAT16), attributes_naming(model, _BFLOAT16), "bfloat16")


def _casts(ctx: Context) -> bool:
    """Whether the AI Core reads bfloat16 at all, asked of Cast, which takes every type that there is."""
    version = ctx.judged_opset
    facts = NodeFacts("", "Cast", {"to": 1}, (InputFacts(True, "BFLOAT16", (1,), None, False),), frozenset((0,)))
    return {answer.status for answer in judge(facts, version, ctx.target, ctx.opset, ctx.support("Cast"))} <= set(TAKEN)
