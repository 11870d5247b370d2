"""NM401: names that ATC's option grammar cannot hold."""

from __future__ import annotations

import re
from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import rename_value, used_names
from ...proof.interface import Port
from ...text import say
from ..base import Change, Context, Example, ModelRule

_LEGAL = re.compile(r"[A-Za-z0-9_./\-]+")
_ILLEGAL_CHARACTER = re.compile(r"[^A-Za-z0-9_./\-]")


def legal(name: str) -> bool:
    return _LEGAL.fullmatch(name) is not None


def cleaned(name: str, taken: set[str]) -> str:
    """A legal name that nobody has: separators become ``_``."""
    stem = _ILLEGAL_CHARACTER.sub("_", name) or "tensor"
    candidate, number = stem, 0
    while candidate in taken:
        number += 1
        candidate = f"{stem}_{number}"
    taken.add(candidate)
    return candidate


class IllegalName(ModelRule):
    code = "NM401"
    name = "illegal-name"
    since = "0.1"
    safety = "safe"
    severity = "error"
    phase = 32
    DOC_EN = """
    What: an input, output or node name holds a character that separates fields in ATC's options (`:` `;` `,`), a space, a quote or a character outside ASCII.

    Why on Ascend: --input_shape, --out_nodes and the precision files are split at these characters, and older ATC splits at the first colon.

    Fix: the characters become `_`; the map from old to new names goes into the manifest, and Jumar's own commands keep accepting the old names.

    Fix safety: safe; equal in every element.

    Evidence: the ATC guide, grammar of --input_shape and --out_nodes.
    """
    DOC_ZH = """
    问题：输入、输出或节点名中含有 ATC 选项的分隔符（`:` `;` `,`）、空格、引号或非 ASCII 字符。

    在昇腾上的原因：--input_shape、--out_nodes 和精度配置文件按这些字符切分，较早的 ATC 按第一个冒号切分。

    修复：这些字符替换为 `_`；新旧名称的对应关系写入 manifest，Jumar 自己的命令仍接受旧名称。

    修复安全性：安全；逐元素相等。

    依据：ATC 使用指南中 --input_shape 与 --out_nodes 的语法。
    """
    EXAMPLES = (
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] "in:0", float[2,3] in_0) => (float[2,3] "out;1") { "out;1" = Add("in:0", in_0) }
        """),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        graph = ctx.model.graph
        ends = [value.name or "" for value in (*graph.inputs, *graph.outputs) if not legal(value.name or "")]
        nodes = [node.name for node in graph if node.name and not legal(node.name)]
        for name in dict.fromkeys(ends):
            yield self.finding(
                say(
                    "input or output name `{name}` holds a separator of ATC's options",
                    "输入或输出名 `{name}` 含有 ATC 选项的分隔符",
                    name=name,
                ),
                say("--input_shape and --out_nodes are split at it", "--input_shape 与 --out_nodes 会在此处被切分"),
                say("rename it", "请重命名"),
                place=name,
            )
        if nodes:
            yield self.finding(
                say(
                    "{count} node names hold a separator of ATC's options (`{name}`)",
                    "{count} 个节点名含有 ATC 选项的分隔符（`{name}`）",
                    count=len(nodes),
                    name=nodes[0],
                ),
                say("--out_nodes and precision files are split at it", "--out_nodes 与精度配置文件会在此处被切分"),
                say("rename them", "请重命名"),
                severity="warning",
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        graph, taken = model.graph, used_names(model)
        inputs: dict[str, Port] = {}
        outputs: dict[str, Port] = {}
        for values, ports in ((graph.inputs, inputs), (graph.outputs, outputs)):
            for value in values:
                old = value.name or ""
                if not legal(old):
                    rename_value(value, cleaned(old, taken))
                    dtype = "undefined" if value.dtype is None else value.dtype.name.lower()
                    ports[old] = Port(value.name or "", dtype, dtype)
        names = {node.name for node in graph if node.name}
        renamed = []
        for node in graph:
            if node.name and not legal(node.name):
                renamed.append(node.name)
                node.name = cleaned(node.name, names)
        changed = (*inputs, *outputs, *renamed)
        return Change(changed, inputs, outputs) if changed else None
