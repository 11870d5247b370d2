"""GR507: a model whose opset was overwritten."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph.load import DECLARED_OPSET
from ...text import say
from ..base import Change, Context, Example, ModelRule


class LostOpset(ModelRule):
    code = "GR507"
    name = "lost-opset"
    since = "0.1"
    safety = "safe"
    severity = "error"
    phase = 5
    DOC_EN = """
    What: the file declares an opset that lacks operators of the model: a tool (a quantiser, often) has overwritten it.

    Why on Ascend: ATC looks every node up at the declared opset and finds no parser for those that came later.

    Fix: the opset of the newest operator is written back. The model is read at that opset anyway, if no operator in it changed its form or its meaning in between; otherwise the file is refused, since nobody can tell what it means.

    Fix safety: safe; only the declaration changes.

    Evidence: ONNX operator schemas.
    """
    DOC_ZH = """
    问题：文件声明的 opset 中没有模型使用的某些算子：很可能有工具（常见于量化工具）改写了它。

    在昇腾上的原因：ATC 按声明的 opset 查找每个节点，找不到较新算子的解析器。

    修复：写回最新算子所需的 opset。若模型中没有算子在两个版本之间改变形式或含义，读取时即按该 opset 理解；否则拒绝该文件，因为无法判断其含义。

    修复安全性：安全；只改变声明。

    依据：ONNX 算子定义。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET], metadata_props: ["jumar.declared_opset" : "11"]>
        agraph (float[2,3] x) => (float[2,3] y) { y = Relu(x) }
        """,
            opsets=(14, 18),
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        declared = ctx.model.metadata_props.get(DECLARED_OPSET)
        if declared is not None:
            yield self.finding(
                say(
                    "the file declares opset {declared}, and its operators exist from opset {needed} on",
                    "文件声明 opset {declared}，而其算子自 opset {needed} 起才存在",
                    declared=declared,
                    needed=ctx.opset,
                ),
                say("a tool has probably overwritten it", "很可能有工具改写了它"),
                say("set it back to {needed}", "改回 {needed}", needed=ctx.opset),
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        if model.metadata_props.pop(DECLARED_OPSET, None) is None:
            return None
        return Change((), options={"opset": ctx.opset})
