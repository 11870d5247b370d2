"""EV806: this machine is not like the one of the build."""

from __future__ import annotations

from ..base import Rule


class DiffersFromBuild(Rule):
    code = "EV806"
    name = "differs-from-build"
    since = "0.2"
    severity = "warning"
    DOC_EN = """
    What: the SoC, the CANN release or the driver of this machine differs from what the manifest says of the build.

    Why on Ascend: an .om runs on the SoC it was compiled for and no other; a run time older than the ATC that made it may refuse it.

    Fix: compile again for this machine, or deploy where the build fits.

    Fix safety: advice only.

    Evidence: the manifest, and what the machine says of itself. Another SoC and an older CANN are errors, a newer CANN is a warning, another driver an info.
    """
    DOC_ZH = """
    问题：本机的 SoC、CANN 版本或驱动与 manifest 记录的构建环境不同。

    在昇腾上的原因：.om 只能在其编译目标 SoC 上运行；比生成它的 ATC 更旧的运行时可能拒绝加载。

    修复：为本机重新编译，或部署到与构建相符的机器。

    修复安全性：仅为建议。

    依据：manifest 以及本机自身的信息。SoC 不同和 CANN 较旧为错误，CANN 较新为警告，驱动不同为提示。
    """
