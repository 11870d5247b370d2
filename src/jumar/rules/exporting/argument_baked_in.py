"""EX102: argument baked in."""

from __future__ import annotations

from ..base import Rule


class ArgumentBakedIn(Rule):
    code = "EX102"
    name = "argument-baked-in"
    since = "0.1"
    severity = "info"
    DOC_EN = """
    What: an argument that is no tensor (a number, a string, a flag) became part of the graph with the value it was given.

    Why on Ascend: an OM file takes tensors only; another value needs another export.

    Fix: if the value shall vary, pass it as a tensor and let forward compute with the tensor; otherwise there is nothing to do.

    Fix safety: advice only.

    Evidence: the arguments as they were passed.
    """
    DOC_ZH = """
    问题：某个不是张量的参数（数值、字符串、开关）以所给的取值成为计算图的一部分。

    在昇腾上的原因：OM 文件只接受张量；换一个取值需要重新导出。

    修复：若该取值需要变化，请以张量传入并在 forward 中用张量计算；否则无需处理。

    修复安全性：仅为建议。

    依据：传入的参数。
    """
