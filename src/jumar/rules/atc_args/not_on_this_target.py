"""AT909: not on this target."""

from __future__ import annotations

from ..base import Rule


class NotOnThisTarget(Rule):
    code = "AT909"
    name = "not-on-this-target"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: the chip or the CANN release does not take the flag or the value: open shapes on chips whose kernels have fixed ones, bf16 or hif8 modes elsewhere than on their chips, flags of a newer release.

    Why on Ascend: ATC refuses it, or a kernel is missing when the model is compiled.

    Fix: leave it out or take the form that the finding names; for open shapes use gears.

    Fix safety: advice only.

    Evidence: the kernel tables, the guide of ATC, and the flags' history.
    """
    DOC_ZH = """
    问题：芯片或 CANN 版本不支持该参数或取值：在算子只支持固定形状的芯片上使用可变形状、在其他芯片上使用 bf16 或 hif8 模式、使用更新版本的参数。

    在昇腾上的原因：ATC 会拒绝，或在编译模型时缺少算子。

    修复：去掉它或采用结果中给出的形式；可变形状请使用档位。

    修复安全性：仅为建议。

    依据：算子表、ATC 指南以及参数的历史。
    """
