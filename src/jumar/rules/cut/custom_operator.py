"""CU852: operators of one's own, and how to declare them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

import onnx_ir as ir

from ...case import Finding
from ...graph import all_nodes, node_place
from ...graph.expansions import expansions_of
from ...targets import Status
from ...targets.overlay import overlay_folder
from ...text import say
from ..base import Context, Example, ModelRule, operator_name

KNOWN_DOMAINS = ("ai.onnx", "com.microsoft", "com.ms.")
"""Beginnings of domains that are nobody's own."""
_NAMED = 5
_UNUSUAL = re.compile(r"[^A-Za-z0-9_.-]+")
_DTYPES = {ir.DataType.FLOAT: "float32", ir.DataType.DOUBLE: "double"}


class CustomOperator(ModelRule):
    code = "CU852"
    name = "custom-operator"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: an operator of a domain of your own (or of a framework's plug-ins) that no known ATC parses. One finding for each operator, with the number of its nodes and the first few of them.

    Why on Ascend: whether it compiles depends on a parser plug-in and a kernel that only you know of; without both ATC ends at it (OP101).

    Fix: if you have them, declare the operator in the *.toml file that the finding names; the finding shows the line to paste, for the AI Core (an engine of "aicpu" is the other choice). Then `jumar check` takes it as supported, and says that it was declared. If you have not, `--cut` moves it to the host.

    Fix safety: advice only. What you declare is believed, except that a dtype you do not list is a finding.

    Evidence: the parser plug-in sources of eight CANN states.
    """
    DOC_ZH = """
    问题：模型含有自定义域（或某个框架插件）的算子，所有已知的 ATC 都无法解析。每种算子一条结果，给出节点数与前几个节点。

    在昇腾上的原因：能否编译取决于只有您知道的解析插件和算子实现；二者缺一，ATC 都会在此终止（OP101）。

    修复：若已具备，请在结果所指的 *.toml 文件中声明该算子，结果中给出了可直接粘贴的一行（以 AI Core 为例；engine 也可为 "aicpu"）。此后 `jumar check` 视其为受支持，并注明来自声明。若不具备，`--cut` 会把它移到主机侧。

    修复安全性：仅为建议。声明的内容会被采信；未列出的数据类型仍会报告。

    依据：八个 CANN 版本的解析插件源码。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET, "own" : 1]>
        agraph (float[2,3] x) => (float[2,3] y) { t = own.Thing(x) y = own.Thing(t) }
        """,
            cured=False,
            also=("OP101",),
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        nodes: dict[str, list[ir.Node]] = {}
        for node in all_nodes(ctx.model):
            if _is_own(node, ctx):
                nodes.setdefault(operator_name(node), []).append(node)
        for name, found in nodes.items():
            places = [node_place(node) for node in found]
            yield self.finding(
                say(
                    "{op} x {count}: an operator of your own, unknown to ATC ({nodes})",
                    "{op} x {count}：自定义算子，ATC 不认识（{nodes}）",
                    op=name,
                    count=len(found),
                    nodes=", ".join(places[:_NAMED]) + (", ..." if len(places) > _NAMED else ""),
                ),
                say("it needs a parser plug-in and a kernel of yours", "需要您自己的解析插件和算子实现"),
                say(
                    "use --cut to run it on the host; or, if you have both, write this line into {file}: `{toml}`",
                    "用 --cut 在主机上执行；若二者已具备，请把此行写入 {file}：`{toml}`",
                    file=overlay_folder() / f"{_UNUSUAL.sub('_', name)}.toml",
                    toml=declaration(found, ctx),
                ),
                place=name,
            )


def _is_own(node: ir.Node, ctx: Context) -> bool:
    if not node.domain or node.domain.startswith(KNOWN_DOMAINS) or node.op_identifier() in ctx.model.functions:
        return False
    return ctx.support(node.op_type, node.domain).status is Status.NO_PARSER and not expansions_of(operator_name(node))


def declaration(nodes: Sequence[ir.Node], ctx: Context) -> str:
    """The line of TOML that declares the operator of these nodes for the target, with the dtypes that they read."""
    first = nodes[0]
    lines = {
        "domain": json.dumps(first.domain),
        "op": json.dumps(first.op_type),
        "opsets": json.dumps(str(ctx.opset_of(first.domain))),
        "socs": json.dumps([ctx.target.soc.name]),
        "engine": '"aicore"',
    }
    dtypes = _dtypes(nodes)
    if dtypes is not None:
        lines["dtypes"] = json.dumps(dtypes)
    return "kernel = [{" + ", ".join(f"{key} = {value}" for key, value in lines.items()) + "}]"


def _dtypes(nodes: Sequence[ir.Node]) -> list[list[str]] | None:
    """Names of the dtypes of each input over all nodes; None where one is not known."""
    found: list[set[str]] = [set() for _ in range(max(len(node.inputs) for node in nodes))]
    for node in nodes:
        for index, value in enumerate(node.inputs):
            if value is None:
                continue
            if value.dtype is None:
                return None
            found[index].add(_DTYPES.get(value.dtype, value.dtype.name.lower()))
    return [sorted(names) for names in found] if all(found) else None
