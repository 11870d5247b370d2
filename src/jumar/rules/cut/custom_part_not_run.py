"""CU853: parts for the host that could not be run."""

from __future__ import annotations

from ..base import Rule


class CustomPartNotRun(Rule):
    code = "CU853"
    name = "custom-part-not-run"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: with `--cut`, operators of your own went to the parts `custom-before` and `custom-after`. Nothing here implements them, so these parts were not run.

    Why on Ascend: the device part and what the host does beside it are proven against the piece of the original between these parts. That the chain as a whole is right then rests on the custom parts holding the very nodes of the original.

    Fix: run the whole chain once where the operators are installed, and compare.

    Fix safety: advice only.

    Evidence: the parts are cut out, nothing in them is rewritten; what lies between them is proven on the user's model.
    """
    DOC_ZH = """
    问题：使用 `--cut` 时，自定义算子被移入 `custom-before` 与 `custom-after` 部分。此处没有这些算子的实现，因此这些部分未运行。

    在昇腾上的原因：设备部分及主机上与之配合的部分，已对照原模型中位于这些部分之间的片段得到证明。整条链的正确性还取决于自定义部分原样保留了原模型的节点。

    修复：在安装了这些算子的环境中运行一次整条链并对比。

    修复安全性：仅为建议。

    依据：这些部分只是切出，未作任何改写；其间的部分在用户的模型上得到证明。
    """
