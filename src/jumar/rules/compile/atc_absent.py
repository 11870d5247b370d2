"""CP702: no ATC on this machine, so no .om was made."""

from __future__ import annotations

from ..base import Rule


class AtcAbsent(Rule):
    code = "CP702"
    name = "atc-absent"
    since = "0.1"
    severity = "info"
    DOC_EN = """
    What: neither PATH nor the usual CANN folders hold an `atc` program. The command, a script and a manifest were written; no .om was made and nothing was compiled.

    Why on Ascend: only Huawei's ATC makes .om files. Jumar does everything before it on any machine.

    Fix: run compile.sh of the bundle where CANN is installed (after sourcing set_env.sh), or install the CANN toolkit here.

    Fix safety: advice only.

    Evidence: the places that were searched, named in the finding.
    """
    DOC_ZH = """
    问题：PATH 和常见的 CANN 目录中都没有 `atc` 程序。已写出命令、脚本和 manifest，但没有生成 .om，也没有进行编译。

    在昇腾上的原因：只有华为的 ATC 能生成 .om 文件；在此之前的一切 Jumar 可在任何机器上完成。

    修复：在安装了 CANN 的机器上（先 source set_env.sh）运行 bundle 中的 compile.sh，或在本机安装 CANN 工具包。

    修复安全性：仅为建议。

    依据：检查结果中列出的搜索位置。
    """
