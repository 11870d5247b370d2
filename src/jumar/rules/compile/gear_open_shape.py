"""CP703: shape arithmetic that stays open although a gear fixes all shapes."""

from __future__ import annotations

from ..base import Rule


class GearOpenShape(Rule):
    code = "CP703"
    name = "gear-open-shape"
    since = "0.2"
    severity = "warning"
    DOC_EN = """
    What: a size, axis or bound that the model computes is not shown to be constant even when a gear fixes the shapes of all inputs: it depends on the values of an input, on an operator whose result has no fixed size, or on arithmetic that Jumar does not follow.

    Why on Ascend: ATC compiles a gear model once for every gear, with constant shapes. Where a shape is not constant under a gear, it falls back to kernels for open shapes, or fails.

    Fix: look at what computes the size. What depends on the shapes alone is folded by `jumar simplify --gear`; what depends on data has to become constant in the model, or move to the host.

    Fix safety: advice only.

    Evidence: the shape arithmetic of the model, evaluated under each gear (of more than 16 gears, under 16 of them at even distances).
    """
    DOC_ZH = """
    问题：即使某个档位固定了所有输入的形状，模型计算得到的某个大小、轴或边界仍未能证明为常量：它取决于输入的取值、取决于输出大小不固定的算子，或其计算未被 Jumar 追踪。

    在昇腾上的原因：ATC 会按每个档位以常量形状各编译一次。若形状在档位下仍不是常量，则会退回可变形状的算子实现，或编译失败。

    修复：查看该大小的来源。仅取决于形状的部分可由 `jumar simplify --gear` 折叠；取决于数据的部分须在模型中改为常量，或移到主机侧。

    修复安全性：仅为建议。

    依据：在各档位下对模型形状计算求值的结果（档位超过 16 个时，等距取 16 个）。
    """
