"""DT301: integers of 64 bits, and of other types without kernels, at the model's ends."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from ...case import Finding
from ...graph import constant_of, rename_value, tensor_info, used_names
from ...graph.ranges import Ranges
from ...proof.interface import Port
from ...text import say
from ..base import Change, Context, Example, ModelRule
from ..name.illegal_name import cleaned

# (operator, input position) that reads an index: a valid value lies within the extent of an axis, which fits 32 bits.
_INDEX = {("Gather", 1), ("GatherElements", 1), ("GatherND", 1), ("ScatterElements", 1), ("ScatterND", 1)}
# ... and that accept int32 there as well as int64.
_TAKES_INT32 = {("Gather", 1), ("GatherElements", 1), ("ScatterElements", 1), ("Cast", 0)}
# Operators that only move values; position 0 carries the data.
_MOVES = {"Concat", "Expand", "Flatten", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"}
# (operator, output position) whose values are positions or extents within one axis.
_POSITIONS = {("ArgMax", 0), ("ArgMin", 0), ("NonMaxSuppression", 0), ("NonZero", 0), ("Shape", 0), ("TopK", 1), ("MaxPool", 1)}
_NARROW = {ir.DataType.INT32, ir.DataType.INT16, ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.BOOL}
_LIMITS = np.iinfo(np.int32)
_TYPES = (ir.DataType.INT64, ir.DataType.UINT64, ir.DataType.UINT32, ir.DataType.UINT16, ir.DataType.INT16)


def input_fits(value: ir.Value) -> bool:
    """Whether every use of an integer input proves that its valid values fit int32."""
    uses = list(value.uses())
    return bool(uses) and all(_use_fits(node, index) for node, index in uses)


def _use_fits(node: ir.Node, index: int) -> bool:
    if (node.op_type, index) in _INDEX:
        return True
    if node.op_type in _MOVES and (index == 0 or node.op_type == "Concat"):
        return not any(output.is_graph_output() for output in node.outputs) and all(input_fits(output) for output in node.outputs)
    return False


def output_fits(value: ir.Value, depth: int = 0) -> bool:
    """Whether the way an integer is made proves that it fits int32."""
    constant = constant_of(value)
    if constant is not None:
        return constant.size == 0 or (int(constant.min()) >= _LIMITS.min and int(constant.max()) <= _LIMITS.max)
    node = value.producer()
    if node is None or depth > 1000:
        return False
    if (node.op_type, value.index()) in _POSITIONS:
        return True
    if node.op_type == "Cast":
        source = node.inputs[0]
        return source is not None and (source.dtype in _NARROW or (source.dtype == ir.DataType.INT64 and output_fits(source, depth + 1)))
    if node.op_type in _MOVES:
        data = node.inputs if node.op_type == "Concat" else node.inputs[:1]
        return all(item is not None and output_fits(item, depth + 1) for item in data)
    if node.op_type in ("Gather", "GatherElements", "GatherND") and node.inputs[0] is not None:
        return output_fits(node.inputs[0], depth + 1)
    return False


class Int64Interface(ModelRule):
    code = "DT301"
    name = "int64-interface"
    since = "0.1"
    safety = "safe"
    severity = "warning"
    phase = 60
    DOC_EN = """
    What: inputs or outputs of the model are int64, or of another integer type that hardly any kernel takes (int16, uint16, uint32, uint64).

    Why on Ascend: few AI Core kernels take these types; the values are cast on the way in and out, and every buffer at the model's ends is twice as large.

    Fix: the input or output becomes int32. Where an operator inside insists on int64 a Cast is put behind the input. The change is recorded in the manifest; verify and the runners keep taking the old type and check the range of what they narrow.

    Fix safety: safe where range analysis proves it (an index into an axis, a position, an extent, a constant, a declared range and what is computed from them). Otherwise unsafe: allow it with --unsafe DT301 if you know that the values fit 32 bits.

    Evidence: the kernel tables of the CANN 8.1.RC1 toolkit (`jumar explain CL008`).
    """
    DOC_ZH = """
    问题：模型的输入或输出为 int64，或其他几乎没有算子支持的整数类型（int16、uint16、uint32、uint64）。

    在昇腾上的原因：支持这些类型的 AI Core 算子很少；数据进出都要转换，模型两端的缓冲区也大一倍。

    修复：输入或输出改为 int32；内部算子必须使用 int64 时，在输入后插入 Cast。改动记录在 manifest 中；verify 与运行器仍接受原类型，并检查被收窄数据的范围。

    修复安全性：当取值范围分析能够证明时（轴上的索引、位置、长度、常量、声明的范围以及由它们计算的结果）为安全；否则为不安全：若确认取值可用 32 位表示，请用 --unsafe DT301 启用。

    依据：CANN 8.1.RC1 工具包的算子信息库（`jumar explain CL008`）。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (int64[2,3] ids) => (float[2,3,2] y)
        <float[4,2] table = {0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0}> { y = Gather(table, ids) }
        """,
            ranges={"ids": (-4, 3)},
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,5] x) => (int64[2,1] best) { best = ArgMax<axis = 1>(x) }
        """,
            edges=False,
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (int64[3] n) => (int64[3] m) <int64[1] one = {1}> { m = Add(n, one) }
        """,
            ranges={"n": (-100, 100)},
            cured=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        for value, is_input in _wide_ends(ctx.model):
            proven = _proven(value, is_input, ctx.ranges())
            kind = say("input", "输入") if is_input else say("output", "输出")
            dtype = tensor_info(value).dtype
            yield self.finding(
                say("{kind} `{name}` is {dtype}", "{kind} `{name}` 为 {dtype}", kind=kind, name=value.name, dtype=dtype),
                say(
                    "few AI Core kernels take {dtype}; it is cast on the way in and out",
                    "支持 {dtype} 的 AI Core 算子很少；数据进出都要转换",
                    dtype=dtype,
                )
                if proven
                else say(
                    "few AI Core kernels take {dtype}; nothing in the model proves that its values fit int32",
                    "支持 {dtype} 的 AI Core 算子很少；模型本身无法证明其取值可用 int32 表示",
                    dtype=dtype,
                ),
                say("make it int32", "改为 int32")
                if proven
                else say("make it int32 with --unsafe DT301 if you know the values fit", "若确认取值范围，请用 --unsafe DT301 改为 int32"),
                place=value.name,
                fix="safe" if proven else "unsafe",
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        inputs: dict[str, Port] = {}
        outputs: dict[str, Port] = {}
        assumptions: list[dict[str, object]] = []
        wide = [(value, is_input, _proven(value, is_input, ctx.ranges())) for value, is_input in _wide_ends(model)]
        for value, is_input, proven in wide:
            if not ctx.unsafe and not proven:
                continue
            name = value.name or ""
            if not proven or name in ctx.declared:
                assumptions.append(_assumption(value, ctx))
            dtype = tensor_info(value).dtype
            if is_input:
                _narrow_input(model, value)
                inputs[name] = Port(name, dtype, "int32")
            else:
                _narrow_output(model, value)
                outputs[name] = Port(name, dtype, "int32")
        changed = (*inputs, *outputs)
        return Change(changed, inputs, outputs, options={"assumptions": assumptions} if assumptions else {}) if changed else None


def _proven(value: ir.Value, is_input: bool, ranges: Ranges) -> bool:
    if ranges.of(value).fits(ir.DataType.INT32):
        return True
    return value.dtype == ir.DataType.INT64 and (input_fits(value) if is_input else output_fits(value))


def _assumption(value: ir.Value, ctx: Context) -> dict[str, object]:
    """What the caller must keep: the range he declared, or that of int32."""
    low, high = ctx.declared.get(value.name or "", (int(_LIMITS.min), int(_LIMITS.max)))
    known = ctx.ranges().of(value)
    return {"tensor": value.name, "lo": low, "hi": high, "known": [int(known.lo), int(known.hi)]}


def _wide_ends(model: ir.Model) -> list[tuple[ir.Value, bool]]:
    """Inputs and outputs of these types. A tensor that is both is left to the rule about collisions."""
    inputs = [
        value
        for value in model.graph.inputs
        if value.dtype in _TYPES and value.name not in model.graph.initializers and not value.is_graph_output()
    ]
    outputs = [value for value in model.graph.outputs if value.dtype in _TYPES and value.producer() is not None]
    return [(value, True) for value in inputs] + [(value, False) for value in outputs]


def _narrow_input(model: ir.Model, value: ir.Value) -> None:
    graph = model.graph
    wide = value.dtype or ir.DataType.INT64
    direct = {(node, index) for node, index in value.uses() if (node.op_type, index) in _TAKES_INT32 and node.domain == ""}
    others = [(node, index) for node, index in value.uses() if (node, index) not in direct]
    value.dtype = ir.DataType.INT32
    if others:
        name = cleaned(f"{value.name}_{wide.name.lower()}", used_names(model))
        cast = ir.node(
            "Cast",
            [value],
            {"to": wide.value},
            outputs=[ir.Value(name=name, type=ir.TensorType(wide), shape=value.shape)],
            name=f"{name}_cast",
        )
        graph.insert_before(graph[0], [cast])
        for node, index in others:
            node.replace_input_with(index, cast.outputs[0])


def _narrow_output(model: ir.Model, value: ir.Value) -> None:
    graph, name = model.graph, value.name or ""
    index = next(position for position, output in enumerate(graph.outputs) if output is value)
    rename_value(value, cleaned(f"{name}_{tensor_info(value).dtype}", used_names(model)))
    cast = ir.node(
        "Cast",
        [value],
        {"to": ir.DataType.INT32.value},
        outputs=[ir.Value(name=name, type=ir.TensorType(ir.DataType.INT32), shape=value.shape)],
        name=f"{name}_int32_cast",
    )
    graph.append(cast)
    graph.outputs[index] = cast.outputs[0]
