"""OP203: TopK whose K is not a constant."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import constant_of, node_place
from ...graph.fold import fold_constants, foldable_nodes
from ...text import say
from ..base import Change, Context, Example, ModelRule


def _computed(model: ir.Model) -> list[ir.Node]:
    return [node for node in model.graph if node.op_type == "TopK" and len(node.inputs) > 1 and constant_of(node.inputs[1]) is None]


def _cone(value: ir.Value | None) -> set[str]:
    """Names of everything that ``value`` is computed from."""
    names: set[str] = set()
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if current is None or current.name in names:
            continue
        names.add(current.name or "")
        producer = current.producer()
        if producer is not None:
            waiting += producer.inputs
    return names


class TopKComputedK(ModelRule):
    code = "OP203"
    name = "topk-computed-k"
    since = "0.1"
    ops = frozenset({"TopK"})
    safety = "safe"
    phase = 38
    DOC_EN = """
    What: the K of a TopK is computed (min(100, number of anchors) is the usual one) or is an input of the model.

    Why on Ascend: K fixes the shape of the output. TopKD, the form of older stacks and smaller SoCs, has K as an attribute; a K that only the run time knows makes every later shape unknown.

    Fix: when K follows from constants and fixed shapes it is computed once and stored.

    Fix safety: safe; equal in every element. A K that depends on input values is refused: ask for a constant at export.

    Evidence: the graph pass TopKFusionPass and the kernel tables of the CANN 8.1.RC1 toolkit (`jumar explain CL015`).
    """
    DOC_ZH = """
    问题：TopK 的 K 是计算得到的（常见的是 min(100, 锚框数)），或是模型的输入。

    在昇腾上的原因：K 决定输出形状。较旧版本和较小 SoC 使用的 TopKD 以属性保存 K；只有运行时才知道的 K 会使其后的形状全部未知。

    修复：当 K 由常量和固定形状决定时，计算一次并保存。

    修复安全性：安全；逐元素相等。K 依赖输入数据时拒绝改写：请在导出时使用常量。

    依据：图优化 TopKFusionPass 与 CANN 8.1.RC1 工具包的算子信息库（`jumar explain CL015`）。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,5] x) => (float[2,k] values, int64[2,k] places)
        <int64[1] one = {1}, int64[1] most = {3}> {
            shape = Shape(x)
            width = Gather(shape, one)
            both = Concat<axis = 0>(width, most)
            smallest = ReduceMin<keepdims = 1>(both)
            values, places = TopK(x, smallest)
        }
        """,
            edges=False,
            also=("DT301", "SH202"),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,5] x, int64[1] k) => (float[2,n] values, int64[2,n] places) { values, places = TopK(x, k) }
        """,
            ranges={"k": (1, 5)},
            cured=False,
            edges=False,
            also=("DT301",),
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        known = {value.name for node in foldable_nodes(ctx.model, ctx.fold_limit) for value in node.outputs}
        for node in _computed(ctx.model):
            k = node.inputs[1]
            name = "" if k is None else k.name
            fixed = name in known
            yield self.finding(
                say(
                    "`{node}`: K (`{name}`) is computed, not constant",
                    "`{node}`：K（`{name}`）是计算得到的，不是常量",
                    node=node_place(node),
                    name=name,
                ),
                say("K fixes the output's shape and must be known at compile time", "K 决定输出形状，编译时必须已知"),
                say("store the value it always has", "保存其恒定的取值")
                if fixed
                else say(
                    "fix it with --set-const {name}=VALUE, one model for each value",
                    "用 --set-const {name}=取值 固定，每个取值一个模型",
                    name=name,
                )
                if k is not None and k.is_graph_input()
                else say(
                    "export with a constant K, or pin the shapes it depends on with --shape",
                    "请以常量 K 导出，或用 --shape 固定其依赖的形状",
                ),
                node=node,
                severity="warning" if fixed else "error",
                fix="safe" if fixed else "none",
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        if ctx.evaluator is None:
            raise ValueError("folding needs an evaluator")
        nodes = _computed(model)
        names = {name for node in nodes for name in _cone(node.inputs[1])}
        folded = fold_constants(model, ctx.evaluator, ctx.fold_limit, names)
        done = tuple(node_place(node) for node in nodes if constant_of(node.inputs[1]) is not None)
        return Change(done, constants=tuple(folded)) if done else None
