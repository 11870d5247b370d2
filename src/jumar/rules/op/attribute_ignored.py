"""OP111: an attribute that is silently dropped."""

from __future__ import annotations

from ...targets import Status
from ...text import say
from ..base import SupportRule


class AttributeIgnored(SupportRule):
    code = "OP111"
    name = "attribute-ignored"
    since = "0.1"
    severity = "error"
    status = Status.ATTRIBUTE_IGNORED
    DOC_EN = """
    What: the parser or the kernel never reads an attribute (or cannot honour it), and its value here matters.

    Why on Ascend: the model compiles and computes something else. Nothing is reported.

    Fix: express the operator so that the attribute is not needed; the message says what would be computed.

    Fix safety: advice only; rules for single operators offer their rewrites.

    Evidence: the source of the fact is named in the finding.
    """
    DOC_ZH = """
    问题：解析器或算子从不读取（或无法支持）某个属性，而其取值在此处会影响结果。

    在昇腾上的原因：模型可以编译，但计算的是另一种结果，且没有任何提示。

    修复：改写算子，使其不依赖该属性；消息说明了实际会计算什么。

    修复安全性：仅为建议；针对单个算子的规则各有自己的改写。

    依据：检查结果中注明该事实的来源。
    """
    why = say("the compiled model would be wrong without a word", "编译后的模型会静默地给出错误结果")
    remedy = say("express it without this attribute", "请改用不依赖该属性的表示")
