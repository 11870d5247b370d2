"""OP226: weights of a recurrent operator that are computed from constants."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import constant_of, node_place, static_shape
from ...graph.fold import fold_constants
from ...text import say
from ..base import Change, Context, Example, ModelRule

_OPS = frozenset(("GRU", "LSTM", "RNN"))
_WEIGHTS = (1, 2, 3)


def computed_weights(node: ir.Node) -> tuple[int, ...]:
    """Which of W, R and B are computed, and from constants alone."""
    found = []
    for index in _WEIGHTS:
        value = node.inputs[index] if index < len(node.inputs) else None
        if value is not None and value.producer() is not None and constant_of(value) is None and not _needs_inputs(value):
            found.append(index)
    return tuple(found)


def _recurrent(model: ir.Model) -> list[ir.Node]:
    """The nodes of the main graph with such weights."""
    return [node for node in model.graph if node.op_type in _OPS and node.domain in ("", "ai.onnx") and computed_weights(node)]


def _cone(value: ir.Value) -> list[ir.Value]:
    """Everything that a tensor is computed from, itself among it."""
    seen, waiting = dict[ir.Value, None](), [value]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen[current] = None
            producer = current.producer()
            waiting += [] if producer is None else [item for item in producer.inputs if item is not None]
    return list(seen)


def _needs_inputs(value: ir.Value) -> bool:
    return any(item.producer() is None and (item.const_value is None or item.is_graph_input()) for item in _cone(value))


def _bytes(value: ir.Value) -> int:
    shape = static_shape(value)
    return 0 if shape is None or value.dtype is None else math.ceil(math.prod(shape) * value.dtype.itemsize)


class RecurrentWeightsComputed(ModelRule):
    code = "OP226"
    name = "recurrent-weights-computed"
    since = "0.1"
    ops = _OPS
    safety = "safe"
    severity = "warning"
    phase = 38
    DOC_EN = """
    What: W, R or B of a GRU, LSTM or RNN is computed from constants: the newer PyTorch exporter cuts the weights into gates and joins them in another order by nodes of the model.

    Why on Ascend: the pass that lowers an LSTM joins W and R while the model is compiled and needs them as constants; whether ATC has computed them by then is not known.

    Fix: what is computed from constants alone is computed once and stored.

    Fix safety: safe; equal in every element.

    Evidence: the limits that `jumar targets show LSTM` cites.
    """
    DOC_ZH = """
    问题：GRU、LSTM 或 RNN 的 W、R 或 B 由常量计算得到：较新的 PyTorch 导出器用模型中的节点把权重按门切开，再以另一顺序拼接。

    在昇腾上的原因：转换 LSTM 的图融合在编译时合并 W 与 R，要求它们是常量；此时 ATC 是否已算出它们未知。

    修复：仅由常量决定的内容计算一次并保存。

    修复安全性：安全；逐元素相等。

    依据：`jumar targets show LSTM` 给出的限制。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[3,2,2] x) => (float[3,1,2,1] y) <
            float[2,2] early = {0.1, -0.2, 0.3, 0.4}, float[2,2] late = {-0.5, 0.6, 0.7, -0.8}, int64[3] shape = {1, 4, 2},
            float[1,4,1] r = {0.2, 0.1, -0.3, 0.5}> {
            joined = Concat<axis = 0>(late, early)
            w = Reshape(joined, shape)
            y = LSTM<hidden_size = 1>(x, w, r)
        }
        """,
            edges=False,
            also=("SH202",),
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        for node in self.covered(ctx):
            yield self.finding(
                say(
                    "`{node}`: {names} of {op} are computed from constants",
                    "`{node}`：{op} 的 {names} 由常量计算得到",
                    node=node_place(node),
                    op=node.op_type,
                    names=", ".join("XWRB"[index] for index in computed_weights(node)),
                ),
                say(
                    "an LSTM is lowered by a pass that needs them as constants; whether ATC computes them before is not known",
                    "转换 LSTM 的图融合要求它们是常量；ATC 是否会事先计算未知",
                ),
                say("compute and store them", "计算并保存它们"),
                node=node,
                severity="warning" if node.op_type == "LSTM" else "info",
            )

    def covered(self, ctx: Context) -> Iterable[ir.Node]:
        """What else is to be said of such a node, another rule says."""
        return _recurrent(ctx.model)

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        if ctx.evaluator is None:
            raise ValueError("folding needs an evaluator")
        places = [(node, index) for node in _recurrent(model) for index in computed_weights(node)]
        weights = [value for node, index in places if (value := node.inputs[index]) is not None]
        sources = [item for value in weights for item in _cone(value)]
        names = {item.name or "" for item in sources}
        # The weights take the place of what they are computed from; what lies between is gone afterwards.
        folded = fold_constants(model, ctx.evaluator, ctx.fold_limit + sum(map(_bytes, weights)), names)
        for item in sources:
            if item.is_initializer() and not (item.uses() or item.is_graph_input() or item.is_graph_output()):
                model.graph.initializers.pop(item.name or "", None)
        done = tuple(dict.fromkeys(node_place(node) for node, index in places if constant_of(node.inputs[index]) is not None))
        return Change(done, constants=tuple(folded)) if done else None
