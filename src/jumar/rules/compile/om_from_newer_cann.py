"""CP712: a compiled model from a newer CANN than the target's."""

from __future__ import annotations

from ..base import Rule


class OmFromNewerCann(Rule):
    code = "CP712"
    name = "om-from-newer-cann"
    since = "0.2"
    severity = "error"
    DOC_EN = """
    What: the ATC that made the .om belongs to a newer CANN release than the one on the target.

    Why on Ascend: newer ATC writes partitions, attributes and tasks that an older runtime need not know. An .om should come from the CANN that runs it, or an older one.

    Fix: compile the model with the target's CANN, or update the device.

    Fix safety: advice only.

    Evidence: the path of atc in the command line that the file holds.
    """
    DOC_ZH = """
    问题：生成 .om 的 ATC 属于比目标更新的 CANN 版本。

    在昇腾上的原因：新 ATC 写出的分区、属性和任务，旧运行时不一定认识。.om 应由运行它的 CANN 或更旧的版本生成。

    修复：用目标的 CANN 编译模型，或升级设备。

    修复安全性：仅为建议。

    依据：文件中保存的命令行里 atc 的路径。
    """
