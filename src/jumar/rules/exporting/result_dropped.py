"""EX113: result dropped."""

from __future__ import annotations

from ..base import Rule


class ResultDropped(Rule):
    code = "EX113"
    name = "result-dropped"
    since = "0.1"
    severity = "info"
    DOC_EN = """
    What: something that forward returns is no tensor, and is not in the graph.

    Why on Ascend: an OM file returns tensors only.

    Fix: none if it is always the same; its value is in the record. Return a tensor if it varies.

    Fix safety: advice only.

    Evidence: what the module returned.
    """
    DOC_ZH = """
    问题：forward 返回的某项不是张量，因此不在计算图中。

    在昇腾上的原因：OM 文件只返回张量。

    修复：若其值固定则无需处理，该值已写入记录；若会变化，请返回张量。

    修复安全性：仅为建议。

    依据：模块的返回值。
    """
