"""AT908: call contradicts model."""

from __future__ import annotations

from ..base import Rule


class CallContradictsModel(Rule):
    code = "AT908"
    name = "call-contradicts-model"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: the call does not fit the model: --framework of another kind of file, a name that is no input or node, another rank, an input left out.

    Why on Ascend: ATC finds out after parsing (E10016, E10017, E10041, E10049, E10050, E11005, E11016, E11017). A size that differs from a fixed one of the model is a warning.

    Fix: write what the finding names; `jumar compile` writes these flags from the model.

    Fix safety: advice only.

    Evidence: the model given with --model, and the suffix of the file.
    """
    DOC_ZH = """
    问题：命令与模型不符：--framework 与文件类型不同、名称不是输入或节点、维数不同、遗漏输入。

    在昇腾上的原因：ATC 在解析之后才会发现（E10016、E10017、E10041、E10049、E10050、E11005、E11016、E11017）。与模型固定尺寸不同的尺寸为警告。

    修复：改为结果中给出的内容；`jumar compile` 会根据模型写出这些参数。

    修复安全性：仅为建议。

    依据：用 --model 给出的模型，以及文件后缀。
    """
