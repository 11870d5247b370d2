"""EV805: driver, firmware and CANN do not name each other as compatible."""

from __future__ import annotations

from ..base import Rule


class VersionsDoNotMatch(Rule):
    code = "EV805"
    name = "versions-do-not-match"
    since = "0.2"
    severity = "error"
    DOC_EN = """
    What: the version files of driver, firmware and CANN list which versions they go with, and one of them is not in the list of the other.

    Why on Ascend: a run time on a driver that does not know it fails when a device is opened or a model loaded, often without a clear message.

    Fix: install driver, firmware and CANN of one release, or of releases that list each other.

    Fix safety: advice only.

    Evidence: `version.info` of driver and firmware, `ascend_toolkit_install.info` of CANN. Where one of them says nothing, nothing is reported.
    """
    DOC_ZH = """
    问题：驱动、固件和 CANN 的版本文件列出了各自可配套的版本，而其中一方不在另一方的列表中。

    在昇腾上的原因：运行时遇到不认识它的驱动，会在打开设备或加载模型时失败，且往往没有清楚的提示。

    修复：安装同一版本的驱动、固件和 CANN，或相互列出的版本。

    修复安全性：仅为建议。

    依据：驱动与固件的 `version.info`，CANN 的 `ascend_toolkit_install.info`。其中一方没有说明时不报告。
    """
