"""VF605: an output differs as the user accepted by naming a rule."""

from __future__ import annotations

from ..base import Rule


class AcceptedDifference(Rule):
    code = "VF605"
    name = "accepted-difference"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: an output differs by more than the bound of `verify`, but by no more than rewrites may change it that were made because you named them with --unsafe and that give up accuracy (OP276, OP278, OP279). Their bounds are added.

    Why on Ascend: the model on the device computes what it was rewritten to, not what the given one does.

    Fix: look at the figure, and judge the results by what the model is for (accuracy on labelled data), not by these outputs alone. Without the code in --unsafe the rewrite is not made.

    Fix safety: advice only.

    Evidence: the comparison with the given model, and the bounds that `jumar explain` states for each rule.
    """
    DOC_ZH = """
    问题：某个输出的差异超过 `verify` 的界限，但不超过您用 --unsafe 指定的、以精度为代价的改写（OP276、OP278、OP279）所允许的范围；各改写的界限相加。

    在昇腾上的原因：设备上的模型计算的是改写之后的内容，而不是原模型的内容。

    修复：请查看数值，并按模型的用途（在有标注数据上的精度）判断结果，而不是只看这些输出。不在 --unsafe 中给出该代码，就不会做此改写。

    修复安全性：仅为建议。

    依据：与原模型的对比，以及 `jumar explain` 对各规则给出的界限。
    """
