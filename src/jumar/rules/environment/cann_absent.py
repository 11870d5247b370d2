"""EV803: there is no ATC on this machine."""

from __future__ import annotations

from ..base import Rule


class CannAbsent(Rule):
    code = "EV803"
    name = "cann-absent"
    since = "0.2"
    severity = "info"
    DOC_EN = """
    What: neither PATH nor the usual folders hold an `atc`.

    Why on Ascend: only ATC makes .om files; everything before it works without CANN.

    Fix: install the CANN toolkit, or run the bundle's compile.sh on a machine that has it.

    Fix safety: advice only.

    Evidence: the places that were searched, named in the finding.
    """
    DOC_ZH = """
    问题：PATH 和常见目录中都没有 `atc`。

    在昇腾上的原因：只有 ATC 能生成 .om 文件；在此之前的工作都不需要 CANN。

    修复：安装 CANN 工具包，或在装有 CANN 的机器上运行 bundle 中的 compile.sh。

    修复安全性：仅为建议。

    依据：检查结果中列出的搜索位置。
    """
