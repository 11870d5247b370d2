"""CP713: it cannot be told whether a compiled model is newer than the target's CANN."""

from __future__ import annotations

from ..base import Rule


class OmVersionUnknown(Rule):
    code = "CP713"
    name = "om-version-unknown"
    since = "0.2"
    severity = "info"
    DOC_EN = """
    What: the .om states the number of its ATC (such as 1.80.T15.0.B156) but no CANN release, or the target's CANN has no release number, so that the two cannot be put in order.

    Why on Ascend: an .om should come from the CANN that runs it, or an older one.

    Fix: compile the model with the CANN that the device has.

    Fix safety: advice only.

    Evidence: the attributes atc_version and atc_cmdline in the file.
    """
    DOC_ZH = """
    问题：.om 只写明了 ATC 的编号（如 1.80.T15.0.B156）而没有 CANN 版本，或目标的 CANN 没有版本号，因此无法比较先后。

    在昇腾上的原因：.om 应由运行它的 CANN 或更旧的版本生成。

    修复：用设备上的 CANN 版本编译模型。

    修复安全性：仅为建议。

    依据：文件中的属性 atc_version 和 atc_cmdline。
    """
