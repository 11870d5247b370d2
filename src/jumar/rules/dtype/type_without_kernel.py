"""DT308: types that only newer hardware has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import all_nodes
from ...targets import TAKEN, Status
from ...text import say
from ..base import Context, Example, ModelRule

_SPOKEN_OF = ("FLOAT8", "FLOAT4", "INT4", "UINT4", "INT2", "UINT2", "COMPLEX")


def _readers(model: ir.Model) -> dict[ir.DataType, list[ir.Node]]:
    """Nodes that read a computed tensor of such a type."""
    found: dict[ir.DataType, list[ir.Node]] = {}
    for node in all_nodes(model):
        types = {
            value.dtype
            for value in node.inputs
            if value is not None and value.dtype is not None and value.const_value is None and value.dtype.name.startswith(_SPOKEN_OF)
        }
        for dtype in types:
            if dtype is not None:
                found.setdefault(dtype, []).append(node)
    return found


class TypeWithoutKernel(ModelRule):
    code = "DT308"
    name = "type-without-kernel"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: the model computes in float8, a 4-bit type or complex numbers, and the target does not take all of it on the AI Core. The finding says how many operators run where.

    Why on Ascend: float8 and 4-bit types are storage of newer chips; complex numbers live on the AI CPU.

    Fix: export in float32 or float16 (DT306 widens weights that are only stored so; DT309 speaks of bfloat16). Complex arithmetic can be written with real and imaginary parts.

    Fix safety: advice only: what was rounded after each operator differs when it no longer is, by more than any bound worth proving.

    Evidence: the kernel tables of the target's CANN toolkit.
    """
    DOC_ZH = """
    问题：模型使用 float8、4 比特类型或复数进行计算，而目标的 AI Core 不能全部支持。检查结果给出各引擎上的算子数量。

    在昇腾上的原因：float8 与 4 比特类型是更新芯片的存储格式；复数只在 AI CPU 上支持。

    修复：以 float32 或 float16 导出（仅作存储的权重由 DT306 展宽；bfloat16 见 DT309）。复数运算可以拆成实部和虚部。

    修复安全性：仅为建议：原本每个算子之后都舍入，不再舍入时差异超过任何值得证明的界限。

    依据：目标 CANN 工具包中的算子信息库。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 9, opset_import: ["" : OPSET]>
        agraph (float[2,3] x, float scale) => (float[2,3] y) {
            small = Cast<to = 17>(x) y = Cast<to = 1>(small)
        }
        """,
            opsets=(19,),
            also=("OP104", "OP105", "OP107", "OP110", "OP112", "SH203"),
            cured=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        for dtype, nodes in _readers(ctx.model).items():
            places: Counter[str] = Counter()
            for node in nodes:
                statuses = {answer.status for answer in ctx.judge(node)}
                core = statuses <= set(TAKEN)
                places["core" if core else "cpu" if statuses <= {Status.AICPU_ONLY, *TAKEN} else "none"] += 1
            if places["core"] == len(nodes):
                continue
            first = next(value for value in nodes[0].inputs if value is not None and value.dtype == dtype)
            yield self.finding(
                say(
                    "{count} operators read {dtype} (`{first}`)",
                    "{count} 个算子读取 {dtype}（`{first}`）",
                    count=len(nodes),
                    dtype=dtype.name.lower(),
                    first=first.name,
                ),
                say(
                    "{soc} takes {core} of them on the AI Core, {cpu} on the AI CPU, and {none} not for certain",
                    "{soc} 中 {core} 个可在 AI Core 执行，{cpu} 个在 AI CPU 执行，{none} 个无法确认支持",
                    soc=ctx.target.label,
                    core=places["core"],
                    cpu=places["cpu"],
                    none=places["none"],
                ),
                say("export the model in float32 or float16", "请以 float32 或 float16 导出模型"),
                place=first.name,
            )
