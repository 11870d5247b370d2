"""OP107: an operator whose data type no engine takes."""

from __future__ import annotations

from ...targets import Status
from ...text import say
from ..base import SupportRule


class DtypeNotTaken(SupportRule):
    code = "OP107"
    name = "dtype-not-taken"
    since = "0.1"
    severity = "error"
    status = Status.DTYPE_NOT_TAKEN
    DOC_EN = """
    What: an input of the operator has a data type that neither the AI Core nor the AI CPU kernel of this SoC takes.

    Why on Ascend: ATC finds no kernel for the node ("No supported Ops kernel and engine are found", EZ3002 and relatives).

    Fix: cast the input to one of the types named in the message; the dtype rules (DT301, DT302) do that where they can prove it.

    Fix safety: advice only.

    Evidence: the kernel tables of the target's CANN toolkit. Inputs are judged where the parser makes a single operator of the node; constants are converted while the graph is built.
    """
    DOC_ZH = """
    问题：算子的某个输入的数据类型，此 SoC 的 AI Core 和 AI CPU 算子都不支持。

    在昇腾上的原因：ATC 找不到该节点的算子实现（"No supported Ops kernel and engine are found"，EZ3002 等）。

    修复：将该输入转换为消息中列出的类型；数据类型规则（DT301、DT302）会在能够证明时完成转换。

    修复安全性：仅为建议。

    依据：目标 CANN 工具包中的算子信息库。只在解析器将节点解析为单个算子时判断；常量在构图时转换。
    """
    why = say("no engine of this SoC has a kernel for this data type", "该 SoC 没有引擎支持此数据类型")
    remedy = say("cast the input to a type that is taken", "请将该输入转换为受支持的类型")
