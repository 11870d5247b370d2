"""VF612: the inputs that a program feeds are the right ones, prepared in another way."""

from __future__ import annotations

from ..base import Rule


class InputPreparedWrongly(Rule):
    code = "VF612"
    name = "input-prepared-wrongly"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: what the program on the device feeds (`verify --triage --device-feeds`) is not what the model was given where it was right (`--feeds`). Where one of the usual mistakes makes one of the other, it is named: scaled once more or once less by 255, red and blue exchanged, channels last instead of first, or rounded to float16.

    Why on Ascend: preprocessing is written anew for the device, and a model that gets other numbers gives other results on any chip.

    Fix: correct the program's preprocessing; `jumar aipp check` does the same for AIPP.

    Fix safety: advice only.

    Evidence: the arrays themselves.
    """
    DOC_ZH = """
    问题：设备端程序送入的数据（`verify --triage --device-feeds`）与结果正确时模型得到的输入（`--feeds`）不同。若某个常见错误可以由一方得到另一方，则会指明：多或少做一次 255 缩放、红蓝互换、通道在最后而不在最前，或舍入为 float16。

    在昇腾上的原因：预处理会为设备重新编写；输入数值不同，模型在任何芯片上的结果都不同。

    修复：请修正程序的预处理；AIPP 可用 `jumar aipp check` 检查。

    修复安全性：仅为建议。

    依据：数组本身。
    """
