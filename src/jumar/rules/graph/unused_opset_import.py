"""GR502: operator sets that no node uses."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import all_nodes
from ...text import say
from ..base import Change, Context, Example, ModelRule


def unused_domains(model: ir.Model) -> list[str]:
    used = {node.domain for node in all_nodes(model)} | {function.domain for function in model.functions.values()}
    aliases = {"", "ai.onnx"}
    return [
        domain
        for domain in model.opset_imports
        if domain not in used and not (domain in aliases and used & aliases) and domain not in aliases
    ]


class UnusedOpsetImport(ModelRule):
    code = "GR502"
    name = "unused-opset-import"
    since = "0.1"
    safety = "safe"
    severity = "warning"
    phase = 12
    DOC_EN = """
    What: the model imports operator sets that none of its nodes uses (com.microsoft, ai.onnx.ml, ... left behind by converters).

    Why on Ascend: ATC has been reported to refuse models with a second domain (E16005), used or not.

    Fix: the unused imports are deleted.

    Fix safety: safe; equal in every element.

    Evidence: public reports of ATC error E16005.
    """
    DOC_ZH = """
    问题：模型声明了没有任何节点使用的算子集（转换工具留下的 com.microsoft、ai.onnx.ml 等）。

    在昇腾上的原因：有报告称 ATC 会拒绝含有第二个域的模型（E16005），无论是否使用。

    修复：删除未使用的声明。

    修复安全性：安全；逐元素相等。

    依据：关于 ATC 错误 E16005 的公开报告。
    """
    EXAMPLES = (
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET, "com.microsoft" : 1, "ai.onnx.ml" : 2]>
        agraph (float[2,3] x) => (float[2,3] y) { y = Relu(x) }
        """),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        domains = unused_domains(ctx.model)
        if domains:
            yield self.finding(
                say("unused operator sets are imported: {names}", "声明了未使用的算子集：{names}", names=", ".join(domains)),
                say("ATC may refuse a model with a second domain (E16005)", "ATC 可能拒绝含有第二个域的模型（E16005）"),
                say("delete the imports", "请删除这些声明"),
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        domains = unused_domains(model)
        for domain in domains:
            del model.opset_imports[domain]
        return Change(tuple(domains)) if domains else None
