"""OP110: a model at an opset that the target's parser does not take."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import copy_model, infer_shapes, node_place
from ...graph.opset import Unconvertible, convert_opset
from ...text import say
from ..base import Change, Context, Example, ModelRule, Refused
from ..expansion import expand_node, try_expansions

_MOST_EXPANDED = 200


class OpsetOutOfRange(ModelRule):
    code = "OP110"
    name = "opset-out-of-range"
    since = "0.1"
    safety = "safe"
    severity = "error"
    phase = 80
    bound = 1e-5
    measure = "max_scaled"
    DOC_EN = """
    What: the model's opset is above the target's ceiling or below its floor.

    Why on Ascend: the parser key holds the model's opset and matches exactly, so nearly every node of an opset-19 model fails, also those that never changed.

    Fix: the model is expressed at the nearest opset the target takes, up or down. Forms that changed are rewritten one by one: axes, split, pads, min/max, K, ratio as inputs or attributes; the Softmax family at 13; options of Resize; reductions of Scatter; dtypes that came later. Newer operators are written out with older ones, by hand or with the function body of their ONNX schema. Attributes a lower version lacks are dropped only where they say what it does anyway. Bodies and local functions are converted too.

    Fix safety: safe within 1e-5 of the largest element, as sums are rounded differently; refused, naming the node, when one cannot be expressed. The page on opset conversion lists what cannot.

    Evidence: the lookup by domain, opset and name in CANN's ONNX parser sources; ONNX operator schemas and node tests.
    """
    DOC_ZH = """
    问题：模型的 opset 高于目标的上限或低于其下限。

    在昇腾上的原因：解析键包含模型的 opset 且必须完全一致，因此 opset 19 的模型几乎所有节点都会失败，包括从未改变过的算子。

    修复：将模型向上或向下表示为目标支持的最近的 opset。形式有变化的算子逐个改写：axes、split、pads、min/max、K、ratio 在输入与属性之间转换；13 版前后的 Softmax 系列；Resize 的选项；Scatter 的归约；后来才支持的数据类型。较新的算子用较旧的算子写出，方式是手写展开或使用其 ONNX 定义自带的函数体。较低版本没有的属性，仅当其取值与较低版本的行为一致时才删除。子图和局部函数同样转换。

    修复安全性：误差在最大元素的 1e-5 以内为安全（求和的舍入不同）；若某个节点无法表示，则拒绝并指明该节点。无法转换的内容见 opset 转换页面。

    依据：CANN ONNX 解析器源码中按域、opset 和名称的查找规则；ONNX 算子定义与节点测试。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3,4] x) => (float[2,4,4] y)
        <int64[1] axes = {1}, int64[2] split = {1, 2}, int64[6] pads = {0, 0, 0, 0, 1, 0}, float low = {-1.0}> {
            soft = Softmax<axis = 1>(x)
            first, rest = Split<axis = 1>(soft, split)
            flat = Squeeze(first, axes)
            turned = Neg(flat)
            back = Unsqueeze(turned, axes)
            both = Concat<axis = 1>(back, rest)
            clipped = Clip(both, low)
            padded = Pad(clipped, pads)
            total = ReduceSum<keepdims = 1>(padded, axes)
            scaled = Div(padded, total)
            y = Transpose<perm = [0, 2, 1]>(scaled)
        }
        """,
            opsets=(13, 18),
            soc="BS9SX1AA",
            opset_max=11,
            edges=False,
        ),
        Example(
            """
        <ir_version: 10, opset_import: ["" : OPSET]>
        agraph (float[2,3] x, float[2,3] z) => (bool[2,3] y, float[2,3] w) { y = GreaterOrEqual(x, z) w = Relu(x) }
        """,
            opsets=(19, 21),
        ),
        Example(
            """
        <ir_version: 10, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y) { y = Swish(x) }
        """,
            opsets=(24,),
            also=("OP209",),
        ),
        Example(
            """
        <ir_version: 10, opset_import: ["" : OPSET]>
        agraph (float[2,3] x, float[2,3] z) => (float[2,3] y) { y = DeformConv(x, z, z) }
        """,
            opsets=(19,),
            also=("OP246",),
            cured=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        low, high = ctx.target.opset_min, ctx.target.opset_max
        if not low <= ctx.opset <= high:
            yield self.finding(
                say(
                    "the model is at opset {opset}; {target} takes {low} to {high}",
                    "模型的 opset 为 {opset}；{target} 支持 {low} 到 {high}",
                    opset=ctx.opset,
                    target=ctx.target.label,
                    low=low,
                    high=high,
                ),
                say("ATC matches the opset of each node exactly, without falling back", "ATC 对每个节点精确匹配 opset，不会回退"),
                say("express it at opset {wanted}", "转换为 opset {wanted}", wanted=ctx.judged_opset),
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        wanted = ctx.judged_opset
        if wanted == ctx.opset:
            return None
        old = ctx.opset
        infer_shapes(model)
        expanded = _write_out(model, wanted, ctx)
        changed = convert_opset(model, wanted)
        infer_shapes(model, forget=True)
        return Change((*expanded, *changed), options={"from": old, "to": wanted})


def _write_out(model: ir.Model, wanted: int, ctx: Context) -> list[str]:
    """Expand, in place, the operators that cannot be expressed at the wanted opset as they are.

    Raises:
        Refused: one has no expansion either.
    """
    expanded: list[str] = []
    while True:
        trial = copy_model(model)
        try:
            convert_opset(trial, wanted)
        except Unconvertible as error:
            outputs = {value.name for value in error.node.outputs}
            node = next((item for item in model.graph if outputs & {value.name for value in item.outputs}), None)
            outcome = None if node is None else try_expansions(node, ctx, OpsetOutOfRange.code)
            if node is None or outcome is None or outcome.expansion is None or len(expanded) >= _MOST_EXPANDED:
                raise Refused(error.reason) from error
            expanded.append(node_place(node))
            expand_node(model, node, ctx, OpsetOutOfRange.code, outcome.expansion)
        else:
            return expanded
