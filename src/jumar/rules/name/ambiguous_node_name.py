"""NM403: nodes without a name, or with another's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import all_nodes
from ...text import say
from ..base import Change, Context, Example, ModelRule
from .illegal_name import cleaned


def _ambiguous(model: ir.Model) -> list[ir.Node]:
    nodes = [node for node in all_nodes(model) if node.op_type != "Constant"]
    counts = Counter(node.name or "" for node in nodes)
    first: set[str] = set()
    found = []
    for node in nodes:
        name = node.name or ""
        if not name or (counts[name] > 1 and name in first):
            found.append(node)
        first.add(name)
    return found


class AmbiguousNodeName(ModelRule):
    code = "NM403"
    name = "ambiguous-node-name"
    since = "0.1"
    safety = "safe"
    severity = "info"
    phase = 34
    DOC_EN = """
    What: nodes have no name, or share one.

    Why on Ascend: ATC's log lines, --out_nodes, keep_dtype and the accuracy tools find nodes by name.

    Fix: they are named after their operator and first output.

    Fix safety: safe; equal in every element.

    Evidence: the ATC guide, --out_nodes and --customize_dtypes.
    """
    DOC_ZH = """
    问题：节点没有名称，或与其他节点重名。

    在昇腾上的原因：ATC 日志、--out_nodes、keep_dtype 和精度工具都按名称查找节点。

    修复：以算子类型和第一个输出为其命名。

    修复安全性：安全；逐元素相等。

    依据：ATC 使用指南中的 --out_nodes 与 --customize_dtypes。
    """
    EXAMPLES = (
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y) { a = Relu(x) y = Neg(a) }
        """),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        nodes = _ambiguous(ctx.model)
        doubled = [node.name for node in nodes if node.name]
        if nodes:
            yield self.finding(
                say("{count} nodes have no name of their own", "{count} 个节点没有唯一的名称", count=len(nodes))
                if not doubled
                else say(
                    "{count} nodes have no name of their own; `{name}` is used twice",
                    "{count} 个节点没有唯一的名称；`{name}` 被重复使用",
                    count=len(nodes),
                    name=doubled[0],
                ),
                say("ATC's logs and options find nodes by name", "ATC 的日志和选项按名称查找节点"),
                say("name them", "请为其命名"),
                # A missing name is replaced by the tools; a doubled one points to the wrong node.
                severity="warning" if doubled else "info",
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        taken = {node.name for node in all_nodes(model) if node.name}
        changed = []
        for node in _ambiguous(model):
            output = next((value.name for value in node.outputs if value.name), "")
            node.name = cleaned(f"{node.op_type}_{output}", taken)
            changed.append(node.name)
        return Change(tuple(changed)) if changed else None
