"""QT107: no layer is in int8."""

from __future__ import annotations

from ..base import Rule


class NothingQuantised(Rule):
    code = "QT107"
    name = "nothing-quantised"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: no layer could be quantised, or all of them went back to floats; the deploy model is the float model.

    Why on Ascend: it runs in float16 as ever, and nothing is gained.

    Fix: see QT104 and QT105 for the reasons.

    Fix safety: advice only.

    Evidence: the plan.
    """
    DOC_ZH = """
    问题：没有层可以量化，或所有层都已恢复为浮点；部署模型就是浮点模型。

    在昇腾上的原因：它照常以 float16 运行，没有任何收益。

    修复：原因见 QT104 与 QT105。

    修复安全性：仅为建议。

    依据：量化方案。
    """
