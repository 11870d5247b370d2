"""SH203: inputs and outputs without dimensions."""

from __future__ import annotations

from collections.abc import Iterator

from ...case import Finding
from ...graph import known_shape
from ...text import say
from ..base import Context, Example, ModelRule


class ScalarInterface(ModelRule):
    code = "SH203"
    name = "scalar-interface"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: an input or output of the model has rank 0 (a plain number).

    Why on Ascend: --input_shape had no form for a scalar before 9.x, gears and dynamic shapes cannot name it, and runtime APIs describe tensors with at least one dimension. A scalar of fixed shape may be left out of --input_shape, which is what Jumar's command does.

    Fix: export it with the shape [1].

    Fix safety: advice only; the caller's code changes with it.

    Evidence: grammar of --input_shape in the ATC sources (9.2 documents the empty form for scalars).
    """
    DOC_ZH = """
    问题：模型的某个输入或输出为 0 维（单个数值）。

    在昇腾上的原因：9.x 之前 --input_shape 没有标量的写法，分档与动态形状无法指定它，运行时接口描述的张量至少有一维。形状固定的标量可以不写入 --input_shape，Jumar 生成的命令即如此。

    修复：以形状 [1] 导出。

    修复安全性：仅为建议；调用方代码也需相应修改。

    依据：ATC 源码中 --input_shape 的语法（9.2 说明了标量的空写法）。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2] x, float s) => (float[2] y) { y = Mul(x, s) }
        """,
            cured=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        graph = ctx.model.graph
        for value in (*graph.inputs, *graph.outputs):
            if known_shape(value) == () and value.name not in graph.initializers:
                yield self.finding(
                    say("`{name}` is a scalar (rank 0)", "`{name}` 是标量（0 维）", name=value.name),
                    say("--input_shape cannot name a scalar before 9.x", "9.x 之前 --input_shape 无法指定标量"),
                    say("export it with the shape [1]", "请以形状 [1] 导出"),
                    place=value.name,
                )
