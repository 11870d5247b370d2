"""OP101: an operator no known ATC parses"""

from __future__ import annotations

import onnx_ir as ir

from ...case import Finding
from ...targets import Status, Support, package_hint
from ...text import say
from ..base import Context, SupportRule, operator_name


class NoParser(SupportRule):
    code = "OP101"
    name = "no-parser"
    since = "0.1"
    severity = "error"
    status = Status.NO_PARSER
    DOC_EN = """
    What: the ONNX parser of ATC has no registration for this operator at any opset of any known CANN state.

    Why on Ascend: ATC looks up `domain::opset::operator` exactly; without an entry parsing ends with E16002/E19010 and no .om is made.

    Fix: express it with other operators, move it to the host, or install the operator package that brings its parser.

    Fix safety: there is no general rewrite; rules for single operators offer theirs.

    Evidence: the parser plug-in sources of eight CANN states; where an operator comes from is in data/packages.json.
    """
    DOC_ZH = """
    问题：在所有已知的 CANN 版本中，ATC 的 ONNX 解析器都没有注册该算子。

    在昇腾上的原因：ATC 按 `domain::opset::算子名` 精确查找；找不到时解析以 E16002/E19010 结束，不会生成 .om。

    修复：用其他算子表示，移到主机侧执行，或安装提供其解析插件的算子包。

    修复安全性：没有通用的改写；针对单个算子的规则各有自己的改写。

    依据：八个 CANN 版本的解析插件源码；算子的来源见 data/packages.json。
    """

    def describe(self, node: ir.Node, answer: Support, ctx: Context) -> Finding:
        return self.finding(
            say(
                "`{node}`: no parser for {op} in any known CANN",
                "`{node}`：所有已知 CANN 都没有 {op} 的解析器",
                node=node.name or node.op_type,
                op=operator_name(node),
            ),
            say("ATC stops with E16002/E19010 and makes no .om", "ATC 会以 E16002/E19010 终止，不生成 .om"),
            package_hint(node.domain, node.op_type)
            or say("replace the operator before export, or run it on the host", "请在导出前替换该算子，或在主机侧执行"),
            node=node,
            evidence=answer.evidence,
        )
