"""DT302: double precision inside or at the ends of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

from ...case import Finding
from ...graph import all_nodes, node_place
from ...graph.ranges import is_integer
from ...proof.interface import Port
from ...text import say
from ..base import Change, Context, Example, ModelRule, Refused

_DOUBLE, _FLOAT = ir.DataType.DOUBLE, ir.DataType.FLOAT
_EXACT = 1 << 24  # beyond it float32 skips integers


def values_of(model: ir.Model, dtype: ir.DataType) -> list[ir.Value]:
    """All tensors of a type, at any depth."""
    values: list[ir.Value] = []
    for graph in model.graphs():
        values += [value for value in (*graph.inputs, *graph.initializers.values()) if value.dtype == dtype]
        values += [value for node in graph for value in node.outputs if value.dtype == dtype]
    return values


def attributes_naming(model: ir.Model, dtype: ir.DataType) -> list[tuple[ir.Node, str]]:
    """Attributes that name the type (Cast to, EyeLike dtype...) or hold a tensor of it (Constant, ConstantOfShape)."""
    found = []
    for node in all_nodes(model):
        for name, attribute in node.attributes.items():
            if (attribute.type == ir.AttributeType.TENSOR and attribute.as_tensor().dtype == dtype) or (
                name in ("to", "dtype", "output_dtype") and attribute.type == ir.AttributeType.INT and attribute.as_int() == dtype.value
            ):
                found.append((node, name))
    return found


def _counting(ctx: Context) -> ir.Node | None:
    """A Cast from double to an integer that is not proven to lie where float32 still has every integer."""
    for node in all_nodes(ctx.model):
        source = node.inputs[0] if node.op_type == "Cast" and node.inputs else None
        if source is None or source.dtype != _DOUBLE or node.outputs[0].dtype == ir.DataType.BOOL:
            continue
        if is_integer(node.outputs[0].dtype) and not ctx.ranges().of(node.outputs[0]).within(-_EXACT, _EXACT):
            return node
    return None


def _narrowed(tensor: ir.TensorProtocol, where: str) -> ir.TensorProtocol:
    """The tensor in float32.

    Raises:
        Refused: a finite value becomes infinite, or one other than zero becomes zero.
    """
    wide = tensor.numpy()
    with np.errstate(over="ignore", under="ignore"):
        narrow = wide.astype(np.float32)
    lost = (np.isfinite(wide) & ~np.isfinite(narrow)) | ((wide != 0) & (narrow == 0))
    if np.any(lost):
        example = wide.reshape(-1)[np.flatnonzero(lost.reshape(-1))[0]]
        raise Refused(
            say(
                "`{name}` holds {value:g}, which float32 cannot hold",
                "`{name}` 中的 {value:g} 无法用 float32 表示",
                name=where,
                value=float(example),
            )
        )
    return ir.Tensor(narrow, name=tensor.name)


class Float64Island(ModelRule):
    code = "DT302"
    name = "float64-island"
    since = "0.1"
    safety = "safe"
    severity = "warning"
    phase = 50
    bound = 1e-5
    DOC_EN = """
    What: tensors in double precision, usually an island between two Casts left by a Python float or by numpy.

    Why on Ascend: the AI Core has no double; such operators run on the AI CPU or find no kernel.

    Fix: the island is computed in float32: constants, Casts and type attributes change; double inputs and outputs become float32 and the manifest says so.

    Fix safety: safe within 1e-5 relative, proven on the user's model; refused when a constant does not fit float32; unsafe where a double becomes an integer that is not proven to stay below 2^24.

    Evidence: dtype lists of the AI Core kernels (kernel tables of the CANN 8.1.RC1 toolkit).
    """
    DOC_ZH = """
    问题：存在双精度张量，通常是 Python 浮点数或 numpy 在两个 Cast 之间留下的一小段。

    在昇腾上的原因：AI Core 没有双精度；这些算子会在 AI CPU 上运行或找不到实现。

    修复：改用 float32 计算：修改常量、Cast 和类型属性；双精度的输入输出改为 float32，并记录在 manifest 中。

    修复安全性：相对误差 1e-5 以内为安全，并在用户的模型上证明；常量超出 float32 范围时拒绝改写；双精度转换成的整数无法证明小于 2^24 时为不安全。

    依据：AI Core 算子的数据类型列表（CANN 8.1.RC1 工具包的算子信息库）。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y)
        <double half = {0.5}> { wide = Cast<to = 11>(x) scaled = Mul(wide, half) y = Cast<to = 1>(scaled) }
        """,
            also=("OP104",),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (double[2,3] x) => (double[2,3] y) { y = Add(x, x) }
        """,
            also=("OP104",),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (double[3,3] x) => (double[3,3] y) <int64[2] size = {3, 3}, double[3] w = {0.1, 0.2, 0.3}> {
            half = Constant<value = double {0.5}>() fill = ConstantOfShape<value = double[1] {2.5}>(size) eye = EyeLike<dtype = 11>(x)
            a = Mul(x, half) b = Add(a, fill) c = Add(b, eye) y = Mul(c, w) }
        """,
            also=("OP104", "SH202", "OP103", "OP101", "OP213"),
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (double[3] x) => (float[3] y) { n = Cast<to = 7>(x) y = Cast<to = 1>(n) }
        """,
            also=("OP104",),
            cured=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        values, attributes = values_of(ctx.model, _DOUBLE), attributes_naming(ctx.model, _DOUBLE)
        if values or attributes:
            first = values[0].name if values else attributes[0][0].name
            counting = _counting(ctx)
            yield self.finding(
                say(
                    "{count} tensors are double (`{first}`)",
                    "{count} 个张量为双精度（`{first}`）",
                    count=max(len(values), len(attributes)),
                    first=first,
                ),
                say("the AI Core has no double precision", "AI Core 没有双精度"),
                say("compute them in float32", "改用 float32 计算")
                if counting is None
                else say(
                    "with --unsafe DT302, if the integers that `{node}` makes of them stay below 16777216",
                    "若 `{node}` 由其得到的整数小于 16777216，请用 --unsafe DT302",
                    node=node_place(counting),
                ),
                fix="safe" if counting is None else "unsafe",
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        values, attributes = values_of(model, _DOUBLE), attributes_naming(model, _DOUBLE)
        if not values and not attributes:
            return None
        counting = _counting(ctx)
        if counting is not None and not ctx.unsafe:
            raise Refused(
                say(
                    "`{node}` makes integers of doubles that float32 may not hold exactly",
                    "`{node}` 由双精度得到的整数可能无法用 float32 精确表示",
                    node=node_place(counting),
                )
            )
        return in_float32(model, values, attributes, "double")


def in_float32(model: ir.Model, values: Sequence[ir.Value], attributes: Sequence[tuple[ir.Node, str]], outside: str) -> Change:
    """Make these tensors and attributes float32, in place; ``outside`` is the type that the caller goes on using.

    Raises:
        Refused: a constant does not fit.
    """
    names = tuple(value.name or "" for value in values)
    for node, key in attributes:
        attribute = node.attributes[key]
        if attribute.type == ir.AttributeType.TENSOR:
            node.attributes[key] = ir.AttrTensor(key, _narrowed(attribute.as_tensor(), node.name or node.op_type))
        else:
            node.attributes[key] = ir.AttrInt64(key, _FLOAT.value)
    for value in values:
        if value.const_value is not None:
            value.const_value = _narrowed(value.const_value, value.name or "")
        value.dtype = _FLOAT
    ends = [
        {value.name or "": Port(value.name or "", outside, "float") for value in end if value.name in names}
        for end in (model.graph.inputs, model.graph.outputs)
    ]
    return Change(names, ends[0], ends[1])
