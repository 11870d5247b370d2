"""EX101: training mode."""

from __future__ import annotations

from ..base import Rule


class TrainingMode(Rule):
    code = "EX101"
    name = "training-mode"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: a BatchNorm, Dropout or other module that computes differently while it learns was in training mode when it was given to `export`.

    Why on Ascend: exported like that, the device would use the statistics of each batch and drop values at random.

    Fix: nothing to do for this export: it was made in eval mode, and your module was left as it was. Call `model.eval()` before you compare numbers yourself.

    Fix safety: advice only.

    Evidence: `module.training` of each module named.
    """
    DOC_ZH = """
    问题：交给 `export` 时，某个 BatchNorm、Dropout 或其他训练与推理行为不同的模块处于训练模式。

    在昇腾上的原因：若照此导出，设备会使用每个批次自身的统计量，并随机丢弃数值。

    修复：本次导出无需处理：导出在 eval 模式下进行，原模块保持不变。自行比较数值前请先调用 `model.eval()`。

    修复安全性：仅为建议。

    依据：所列各模块的 `module.training`。
    """
