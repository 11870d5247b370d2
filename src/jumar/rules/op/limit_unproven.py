"""OP112: a form outside what is documented."""

from __future__ import annotations

from ...targets import Status
from ...text import say
from ..base import SupportRule


class LimitUnproven(SupportRule):
    code = "OP112"
    name = "limit-unproven"
    since = "0.1"
    severity = "warning"
    status = Status.LIMIT_UNPROVEN
    DOC_EN = """
    What: the form is outside what the documents allow, or the documents and the code disagree, or only one neighbouring CANN state is known to handle it.

    Why on Ascend: it may compile and be right, compile and be wrong, or be refused.

    Fix: keep to the documented form, or try it with the real ATC and compare the outputs.

    Fix safety: advice only.

    Evidence: the limit's source is named in the finding.
    """
    DOC_ZH = """
    问题：这种形式超出文档的允许范围，或文档与代码不一致，或只知道相邻的某个 CANN 版本能够处理。

    在昇腾上的原因：可能编译且结果正确，可能编译但结果错误，也可能被拒绝。

    修复：使用文档规定的形式，或用真实的 ATC 试编译并比较输出。

    修复安全性：仅为建议。

    依据：检查结果中注明该限制的来源。
    """
    why = say("documents and code do not settle what happens", "文档与代码均无法确定其结果")
    remedy = say("compare the compiled model's outputs, or keep to the documented form", "请比较编译后模型的输出，或使用文档规定的形式")
