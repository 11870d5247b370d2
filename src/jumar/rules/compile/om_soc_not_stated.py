"""CP711: a compiled model that does not name its SoC."""

from __future__ import annotations

from ..base import Rule


class OmSocNotStated(Rule):
    code = "CP711"
    name = "om-soc-not-stated"
    since = "0.2"
    severity = "warning"
    DOC_EN = """
    What: the .om has no soc_version. ATC of 2020 and early 2021 did not write it.

    Why on Ascend: without it nobody can tell which chip the kernels are for. The old attribute target_type (MINI and so on) names a class of chips only.

    Fix: find the command it was compiled with, or compile the model again.

    Fix safety: advice only.

    Evidence: the attributes of the model definition.
    """
    DOC_ZH = """
    问题：.om 中没有 soc_version。2020 年和 2021 年初的 ATC 不写该属性。

    在昇腾上的原因：没有它就无法判断算子属于哪种芯片；旧属性 target_type（MINI 等）只说明芯片类别。

    修复：查明编译时的命令，或重新编译模型。

    修复安全性：仅为建议。

    依据：模型定义中的属性。
    """
