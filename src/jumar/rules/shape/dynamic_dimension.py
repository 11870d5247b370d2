"""SH201: inputs whose size is not fixed."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import agreed_shapes, known_shape, pin_shapes, symbol_values
from ...text import say
from ..base import Change, Context, Example, ModelRule, Refused


def dynamic_inputs(model: ir.Model) -> list[ir.Value]:
    """Inputs that have no shape or a dimension that is not a number (weights listed as inputs do not count)."""
    found = []
    for value in model.graph.inputs:
        shape = known_shape(value)
        if value.name not in model.graph.initializers and (shape is None or not all(isinstance(dim, int) for dim in shape)):
            found.append(value)
    return found


def text_of(value: ir.Value) -> str:
    shape = known_shape(value)
    return "?" if shape is None else "[" + ", ".join("?" if dim is None else str(dim) for dim in shape) + "]"


class DynamicDimension(ModelRule):
    code = "SH201"
    name = "dynamic-dimension"
    since = "0.1"
    safety = "safe"
    severity = "error"
    phase = 20
    DOC_EN = """
    What: an input has dimensions without a number (a symbolic batch, height or width).

    Why on Ascend: ATC builds static graphs. An input of unknown shape that --input_shape leaves out is refused (E11005), and a graph that stays dynamic is full of shape arithmetic that runs on the AI CPU or the host.

    Fix: pass --shape "name:1,3,224,224": the numbers are written into the model, symbols shared by several inputs are filled in everywhere, and the shape arithmetic then folds (SH202). With gears (`jumar migrate --gears`) only what all gears agree on is written; the rest stays open, and ATC fixes it once for each gear.

    Fix safety: safe; only the declared shapes change, and the pinned model equals the original in every element on inputs of that shape.

    Evidence: the ATC guide, --input_shape.
    """
    DOC_ZH = """
    问题：输入的某些维度没有具体数值（符号化的 batch、高、宽）。

    在昇腾上的原因：ATC 构建静态图。--input_shape 中未给出形状的动态输入会被拒绝（E11005）；保持动态的图中充满形状运算，会在 AI CPU 或主机上执行。

    修复：使用 --shape "name:1,3,224,224"：数值写入模型，多个输入共用的符号一并替换，随后形状运算会被折叠（SH202）。使用档位时（`jumar migrate --gears`）只写入各档位一致的维度；其余保持可变，由 ATC 按档位逐一固定。

    修复安全性：安全；只改变声明的形状，在该形状的输入上与原模型逐元素相等。

    依据：ATC 使用指南中的 --input_shape。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[n,3,h] x, float[n,h] z) => (float[n,3,h] y, float[n,h] w) { y = Relu(x) w = Neg(z) }
        """,
            shapes={"x": (2, 3, 4)},
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[n,3] x) => (float[n,3] y) { y = Relu(x) }
        """,
            cured=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        agreed = agreed_shapes(ctx.model, ctx.gears)
        for value in dynamic_inputs(ctx.model):
            if ctx.gears and value.name not in agreed:
                continue
            shape = known_shape(value) or ()
            symbols = {value_dim for value_dim in shape if isinstance(value_dim, str)}
            covered = (
                value.name in ctx.shapes
                or value.name in agreed
                or (bool(shape) and symbols <= set(symbol_values(ctx.model, ctx.shapes)) and None not in shape)
            )
            yield self.finding(
                say(
                    "input `{name}` has the dynamic shape {shape}",
                    "输入 `{name}` 的形状 {shape} 是动态的",
                    name=value.name,
                    shape=text_of(value),
                ),
                say("ATC wants a number for every dimension (E11005)", "ATC 要求每个维度都有数值（E11005）"),
                say(
                    'pin it: --shape "{name}:{example}"',
                    '请固定它：--shape "{name}:{example}"',
                    name=value.name,
                    example=",".join(str(dim) if isinstance(dim, int) else "N" for dim in shape) or "N,...",
                ),
                place=value.name,
                fix="safe" if covered else "none",
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        pinned = pin_shapes(model, agreed_shapes(model, ctx.gears) if ctx.gears else ctx.shapes)
        if not pinned:
            raise Refused(say("no shape was given with --shape", "没有用 --shape 给出形状"))
        shapes = {value.name: list(known_shape(value) or ()) for value in model.graph.inputs if value.name in pinned}
        return Change(tuple(pinned), options={"shapes": shapes})
