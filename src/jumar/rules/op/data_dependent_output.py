"""OP215: an output of the model whose shape depends on data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir

from ...case import Finding
from ...graph import node_place
from ...graph.fold import foldable_nodes
from ...graph.masked import SOURCES, Handler, densify, source_nodes
from ...proof.interface import Port
from ...text import say
from ..base import Change, Context, Example, ModelRule, Refused
from .data_dependent_shape import decisive, planned, under_assumption


class DataDependentOutput(ModelRule):
    code = "OP215"
    name = "data-dependent-output"
    since = "0.1"
    ops = frozenset(("NonZero", "Compress", "Unique"))
    safety = "unsafe"
    severity = "warning"
    phase = 48
    bound = 1e-5
    measure = "max_scaled"
    DOC_EN = """
    What: an output of the model has as many places as NonZero, Compress or Unique chooses, and nothing else is in the way of keeping all places (OP210).

    Why on Ascend: a static model has outputs of fixed size.

    Fix: the output gets as many places as could be there: those that are there come first, in their order, zeros fill the rest, and a further output NAME_count (int32, [1]) says how many are there. The bound is the size of the axis that is chosen from.

    Fix safety: unsafe: the caller has to cut the output himself. Named, it is proven with the cut made; the manifest has `count_axis` and `count` of each such output, and Jumar's own comparisons and runners cut. NaN is not a value of its own to Unique. Refused above 4,194,304 comparisons of places.

    Evidence: ONNX operator definitions; the usual form of hand-made migrations (fixed size and a count).
    """
    DOC_ZH = """
    问题：模型的某个输出的位置数由 NonZero、Compress 或 Unique 的选取决定，除此之外没有其他障碍（OP210）。

    在昇腾上的原因：静态模型的输出大小固定。

    修复：输出保留全部可能的位置：有效的按原次序排在前面，其余填零，并新增输出 NAME_count（int32，[1]）给出有效个数。上限为被选取的那一维的大小。

    修复安全性：不安全：调用方需自行截取输出。指定该代码后，证明时会先截取再比较；清单中每个此类输出都有 `count_axis` 与 `count`，Jumar 自身的比较与运行会自动截取。Unique 不把 NaN 当作单独的取值。位置两两比较超过 4,194,304 次时拒绝。

    依据：ONNX 算子定义；手工迁移的常见形式（固定大小加计数）。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[5,3] x, bool[5] chosen) => (float[n,3] y) { y = Compress<axis = 0>(x, chosen) }
        """,
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[3,4] x) => (int64[2,n] places) { places = NonZero(x) }
        """,
            edges=False,
            also=("DT301",),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[4000] x, bool[4000] chosen) => (float[n] y) { y = Compress<axis = 0>(x, chosen) }
        """,
            cured=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        first = planned(ctx)
        names = under_assumption(ctx)
        if not names:
            return
        then, known = planned(ctx, outputs=True), set(foldable_nodes(ctx.model, ctx.fold_limit))
        for node in source_nodes(ctx.model):
            name = node.outputs[0].name or ""
            if name not in names or node in known:
                continue
            able = name in then.done
            yield self.finding(
                say(
                    "`{node}`: how many places {op} chooses depends on data: {reason}",
                    "`{node}`：{op} 选取的位置数依赖数据：{reason}",
                    node=node_place(node),
                    op=node.op_type,
                    reason=first.refused[name],
                ),
                say("a static model has tensors of fixed size", "静态模型的张量大小固定"),
                say("keep all places, outputs with a count: --unsafe {code}", "保留全部位置，输出附带计数：--unsafe {code}", code=self.code)
                if able
                else say("not rewritten: {reason}", "未改写：{reason}", reason=then.refused.get(name, say("", ""))),
                node=node,
                severity=decisive(node, ctx)[1],
                fix="unsafe" if able else "none",
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        return padded(model, ctx, self.code, source_nodes(model), SOURCES)


def padded(model: ir.Model, ctx: Context, code: str, nodes: Sequence[ir.Node], sources: Mapping[str, Handler | None]) -> Change | None:
    """Keep what the nodes choose with all places, outputs of the model too, each with a count beside it.

    Raises:
        Refused: the caller has not accepted that.
    """
    if not ctx.unsafe:
        raise Refused(say("it changes what the caller has to do", "它会改变调用方的工作"))
    ctx.ranges()
    places = {node.outputs[0].name or "": node_place(node) for node in nodes}
    types = {value.name: "" if value.dtype is None else value.dtype.name.lower() for value in model.graph.outputs}
    found = densify(model, ctx.range_of, code, outputs=True, sources=sources)
    if not found.done:
        return None
    ports = {item.name: Port(item.name, types[item.name], types[item.name], counted=(item.axis, item.count)) for item in found.padded}
    done = tuple(sorted(found.done))
    return Change(tuple(places[name] for name in done), outputs=ports, chosen=done)
