"""LG801: operator refused."""

from __future__ import annotations

from ..base import Rule


class OperatorRefused(Rule):
    code = "LG801"
    name = "operator-refused"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: ATC's log says that it does not take an operator: its parser, its engines or the kernel of this chip refuse it. Operators of one type are one finding.

    Why on Ascend: an operator passes three doors in order: the ONNX parser (domain, opset and name, exactly), an engine with a kernel for this chip, and the kernel's own limits of type and shape. The code says at which door it stopped.

    Fix: with `--model` the finding of `jumar check` on the same node says what Jumar can rewrite. An operator that no CANN registers needs its plug-in, or the original model without vendor fusion; one that is registered at other opsets needs another opset.

    Fix safety: advice only; the rewrites are those of the findings named.

    Evidence: the lines of the log, quoted with their numbers; the parser tables.
    """
    DOC_ZH = """
    问题：ATC 的日志表明它不接受某个算子：解析器、引擎或该芯片的算子核拒绝了它。同一类型的算子合为一条。

    在昇腾上的原因：算子依次经过三道关：ONNX 解析器（域、opset、名称须完全一致）、具有该芯片算子核的引擎、算子核自身的类型和形状限制。错误码说明停在哪一关。

    修复：给出 `--model` 时，`jumar check` 对同一节点的结果说明可改写的内容。任何 CANN 都未注册的算子需要其插件，或使用未经厂商融合的原始模型；在其他 opset 上注册的算子需要更换 opset。

    修复安全性：仅为建议；改写以所列结果为准。

    依据：带行号引用的日志行；解析器表。
    """
