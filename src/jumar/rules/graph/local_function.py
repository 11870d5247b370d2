"""GR503: calls of functions that the model defines itself."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from ...case import Finding
from ...text import say
from ..base import Change, Context, Example, ModelRule


class LocalFunction(ModelRule):
    code = "GR503"
    name = "local-function"
    since = "0.1"
    safety = "safe"
    severity = "error"
    phase = 5
    DOC_EN = """
    What: the model defines functions of its own and calls them like operators.

    Why on Ascend: ATC looks each call up as an operator of the function's domain and finds no parser.

    Fix: the bodies are inlined.

    Fix safety: safe; equal in every element.

    Evidence: the lookup by domain, opset and name in CANN's ONNX parser sources.
    """
    DOC_ZH = """
    问题：模型自带函数定义，并像算子一样调用它们。

    在昇腾上的原因：ATC 会把每次调用当作该域的算子查找，找不到解析器。

    修复：将函数体内联。

    修复安全性：安全；逐元素相等。

    依据：CANN ONNX 解析器源码中按域、opset 和名称的查找规则。
    """
    EXAMPLES = (
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET, "mine" : 1]>
        agraph (float[2,3] x) => (float[2,3] y) { y = mine.twice(x) }
        <domain: "mine", opset_import: ["" : OPSET]>
        twice (a) => (b) { b = Add(a, a) }
        """),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        if ctx.model.functions:
            names = sorted({f"{domain}::{name}" for domain, name, _ in ctx.model.functions})
            yield self.finding(
                say(
                    "the model defines {count} functions: {names}",
                    "模型自定义了 {count} 个函数：{names}",
                    count=len(names),
                    names=", ".join(names[:5]),
                ),
                say("ATC takes each call for an unknown operator", "ATC 会把每次调用当作未知算子"),
                say("inline them", "请将其内联"),
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        names = tuple(f"{domain}::{name}" for domain, name, _ in model.functions)
        if not names:
            return None
        InlinePass()(model)
        model.functions.clear()
        domains = {name.split("::")[0] for name in names}
        for domain in domains - {""}:
            model.opset_imports.pop(domain, None)
        return Change(names)
