"""AT904: flags exclude each other."""

from __future__ import annotations

from ..base import Rule


class FlagsExcludeEachOther(Rule):
    code = "AT904"
    name = "flags-exclude-each-other"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: two flags stand together that ATC takes only one at a time, such as two kinds of gears, both precision modes, or AIPP with --dynamic_dims.

    Why on Ascend: ATC refuses the call (E10001, E10009, E10040, E10047, E10056, E10057). Where only documents say so it is a warning.

    Fix: keep one of them; the finding says which where there is a reason.

    Fix safety: advice only.

    Evidence: the groups in ATC's option checks.
    """
    DOC_ZH = """
    问题：同时使用了 ATC 只允许其一的参数，例如两种档位、两种精度模式，或 AIPP 与 --dynamic_dims。

    在昇腾上的原因：ATC 会拒绝命令（E10001、E10009、E10040、E10047、E10056、E10057）。仅文档有此说法时为警告。

    修复：只保留其中一个；有依据时结果会说明保留哪个。

    修复安全性：仅为建议。

    依据：ATC 选项检查中的互斥组。
    """
