"""VF602: the model could not be run, so nothing could be proven."""

from __future__ import annotations

from ..base import Rule


class NotExecutable(Rule):
    code = "VF602"
    name = "not-executable"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: ONNX Runtime refused the model, or it ran on none of the generated inputs.

    Why on Ascend: without a reference run no rewrite can be proven and none is made; no claim about numbers is possible.

    Fix: give real inputs with --feeds; for custom operators, cut the model before them.

    Fix safety: advice only.

    Evidence: ONNX Runtime's message, quoted in the finding.
    """
    DOC_ZH = """
    问题：ONNX Runtime 拒绝该模型，或在所有生成的输入上都无法运行。

    在昇腾上的原因：没有参考运行就无法证明任何改写，因此不做改写，也无法给出数值结论。

    修复：用 --feeds 提供真实输入；若含自定义算子，请在其前切分模型。

    修复安全性：仅为建议。

    依据：检查结果中引用的 ONNX Runtime 信息。
    """
