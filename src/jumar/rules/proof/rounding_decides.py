"""VF603: an output moves by rounding alone as much as it differs."""

from __future__ import annotations

from ..base import Rule


class RoundingDecides(Rule):
    code = "VF603"
    name = "rounding-decides"
    since = "0.1"
    severity = "info"
    DOC_EN = """
    What: an output differs by more than the bound, but by no more than it moves when the inputs change in their last bit (four times that movement, 5 % at most).

    Why on Ascend: on such inputs an error cannot be told from rounding. It happens with generated inputs on models that end in a Sigmoid far out, as text detectors do on noise.

    Fix: give real inputs with --feeds. What GR505 rewrites is proven on tensors inside the model as well; of a model from elsewhere nothing more is known.

    Fix safety: advice only.

    Evidence: the movement measured on this model, in ONNX Runtime with optimisation off.
    """
    DOC_ZH = """
    问题：某个输出的差异超过界限，但不超过输入末位变化时它自身的变动（该变动的四倍，最多 5 %）。

    在昇腾上的原因：在这样的输入上，误差与舍入无法区分。以远离零点的 Sigmoid 结尾的模型（如文本检测模型）在生成的噪声输入上会出现这种情况。

    修复：请用 --feeds 提供真实输入。GR505 的改写还在模型内部的张量上得到证明；对于来自别处的模型，则没有更多结论。

    修复安全性：仅为建议。

    依据：在该模型上测得的变动（ONNX Runtime 关闭优化）。
    """
