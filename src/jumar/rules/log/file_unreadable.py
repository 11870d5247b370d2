"""LG804: file unreadable."""

from __future__ import annotations

from ..base import Rule


class FileUnreadable(Rule):
    code = "LG804"
    name = "file-unreadable"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: a file or folder that the command or a configuration names is missing, cannot be read or written, or is malformed.

    Why on Ascend: ATC reports this late and under general codes ("build graph failed"), after the line that names the path.

    Fix: correct the path or the permission.

    Fix safety: advice only.

    Evidence: the line with the path.
    """
    DOC_ZH = """
    问题：命令或配置中给出的文件或目录缺失、不可读写，或格式错误。

    在昇腾上的原因：ATC 往往较晚才以笼统的错误（"build graph failed"）结束，而路径在之前的一行中。

    修复：修正路径或权限。

    修复安全性：仅为建议。

    依据：含路径的日志行。
    """
