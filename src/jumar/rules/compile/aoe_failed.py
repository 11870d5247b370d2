"""CP704: AOE was asked for, ran, and did not tune."""

from __future__ import annotations

from ..base import Rule


class AoeFailed(Rule):
    code = "CP704"
    name = "aoe-failed"
    since = "0.2"
    severity = "warning"
    DOC_EN = """
    What: `aoe` was found and run before `atc`, and ended with an error, a signal or the time limit.

    Why on Ascend: AOE tries variants of kernels on a device and writes the best into its bank, which ATC then uses. Without it the .om computes the same, but not as fast as it might.

    Fix: read its log, which is kept; tune on a machine that has the device and gives it time, or leave the tuning out.

    Fix safety: advice only.

    Evidence: the log.
    """
    DOC_ZH = """
    问题：在 `atc` 之前找到并运行了 `aoe`，但它以错误、信号或超时结束。

    在昇腾上的原因：AOE 在设备上试验算子的不同实现，并把最优结果写入知识库供 ATC 使用。没有它时 .om 的计算结果相同，只是可能不够快。

    修复：阅读所保留的日志；在有设备的机器上并给足时间进行调优，或不做调优。

    修复安全性：仅为建议。

    依据：该日志。
    """
