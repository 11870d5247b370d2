"""AT907: gears malformed."""

from __future__ import annotations

from ..base import Rule


class GearsMalformed(Rule):
    code = "AT907"
    name = "gears-malformed"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: the gears (--dynamic_batch_size, --dynamic_image_size, --dynamic_dims) break a rule: unequal, single, twice the same, zero, more than 100, or not matching the -1 of --input_shape.

    Why on Ascend: ATC refuses the call (E10001, E10003, E10012, E10018 to E10020, E10031, E10035 to E10039). A gear of zero passes newer ATC and is useless; more than 100 are documented as too many.

    Fix: write one value per -1 in every gear, in the order that the finding shows; at least two gears, all different.

    Fix safety: advice only.

    Evidence: the gear checks of ATC's sources and its guide.
    """
    DOC_ZH = """
    问题：档位（--dynamic_batch_size、--dynamic_image_size、--dynamic_dims）违反规则：长度不等、只有一个、重复、为零、超过 100 个，或与 --input_shape 中的 -1 不对应。

    在昇腾上的原因：ATC 会拒绝命令（E10001、E10003、E10012、E10018 到 E10020、E10031、E10035 到 E10039）。新版 ATC 不检查为零的档位，但它没有用处；文档规定最多 100 个。

    修复：每个档位按结果给出的顺序为每个 -1 写一个值；至少两个且互不相同。

    修复安全性：仅为建议。

    依据：ATC 源码中的档位检查及其指南。
    """
