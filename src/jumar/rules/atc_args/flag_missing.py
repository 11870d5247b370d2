"""AT903: flag missing."""

from __future__ import annotations

from ..base import Rule


class FlagMissing(Rule):
    code = "AT903"
    name = "flag-missing"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: a flag that this call needs is not there, or is empty.

    Why on Ascend: model, output and soc_version are always needed to build (E10054), framework (E10007), the weights of Caffe (E10008), --input_shape for gears (E10004).

    Fix: add the flag that the finding names. A flag that seems to be there may have been cut off by the shell: see AT911.

    Fix safety: advice only.

    Evidence: the checks of ATC's sources.
    """
    DOC_ZH = """
    问题：缺少该命令所需的参数，或其值为空。

    在昇腾上的原因：构建模型总是需要 model、output、soc_version（E10054）和 framework（E10007），Caffe 还需权重（E10008），使用档位时需要 --input_shape（E10004）。

    修复：补上结果中所指的参数。看似已写的参数可能被 shell 截断，见 AT911。

    修复安全性：仅为建议。

    依据：ATC 源码中的检查。
    """
