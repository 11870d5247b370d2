"""AT905: wrong soc version."""

from __future__ import annotations

from ..base import Rule


class WrongSocVersion(Rule):
    code = "AT905"
    name = "wrong-soc-version"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: --soc_version is no name of a chip: a family (Ascend310P), a product, another spelling; or a name that is easily mistaken (Ascend910B, a warning).

    Why on Ascend: ATC looks for a platform file of exactly this name. An .om for another chip is refused when it is loaded (507008).

    Fix: take the Chip Name of `npu-smi info` with `Ascend` before it (A2 and older), or one of the names that the finding lists. Jumar never picks one.

    Fix safety: advice only.

    Evidence: the platform files of the CANN 8.1.RC1 toolkit; names in newer public sources.
    """
    DOC_ZH = """
    问题：--soc_version 不是芯片名：是系列名（Ascend310P）、产品名或拼写不同；或是容易混淆的名称（Ascend910B，警告）。

    在昇腾上的原因：ATC 按该名称查找平台文件。为其他芯片构建的 .om 在加载时会被拒绝（507008）。

    修复：采用 `npu-smi info` 中的 Chip Name 并在前面加 `Ascend`（A2 及更早），或采用结果中列出的名称。Jumar 不会替用户选择。

    修复安全性：仅为建议。

    依据：CANN 8.1.RC1 工具包中的平台文件；较新公开源码中的名称。
    """
