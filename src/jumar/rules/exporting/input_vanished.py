"""EX110: input vanished."""

from __future__ import annotations

from ..base import Rule


class InputVanished(Rule):
    code = "EX110"
    name = "input-vanished"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: an input of the module is not read in the graph.

    Why on Ascend: what the caller passes for it has no effect; ATC may drop it, so that the device has fewer inputs than the caller expects.

    Fix: if forward ignores it, leave it out of the arguments; if it decides on a branch or a count, compute with the tensor.

    Fix safety: advice only.

    Evidence: the graph's inputs and their uses.
    """
    DOC_ZH = """
    问题：计算图没有读取模块的某个输入。

    在昇腾上的原因：为它传入的内容不起作用；ATC 可能将其删除，设备的输入就会比调用方预期的少。

    修复：若 forward 忽略它，请从参数中去掉；若它决定分支或次数，请用张量计算。

    修复安全性：仅为建议。

    依据：计算图的输入及其使用情况。
    """
