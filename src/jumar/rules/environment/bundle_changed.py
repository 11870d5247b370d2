"""EV808: a file of the bundle is not the one that was built."""

from __future__ import annotations

from ..base import Rule


class BundleChanged(Rule):
    code = "EV808"
    name = "bundle-changed"
    since = "0.2"
    severity = "error"
    DOC_EN = """
    What: a file that the manifest lists is missing or has another SHA-256.

    Why on Ascend: what would be loaded is not what was verified.

    Fix: copy the bundle again, or build it anew.

    Fix safety: advice only.

    Evidence: the digests in the manifest.
    """
    DOC_ZH = """
    问题：manifest 列出的某个文件缺失，或其 SHA-256 不同。

    在昇腾上的原因：将要加载的文件不是经过验证的那个。

    修复：重新复制或重新构建 bundle。

    修复安全性：仅为建议。

    依据：manifest 中的摘要。
    """
