"""PF802: several Gathers that together take one tensor apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from ...case import Finding
from ...graph import Builder, constant_of, infer_shapes, known_shape, node_place
from ...graph.surgery.lookup import drop_dead
from ...text import say
from ..base import Change, Context, Example, ModelRule
from .splitting import split_along

_TYPES = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.INT32)
"""Those that every kernel of Split takes."""


@dataclass(frozen=True)
class _Parts:
    """Gathers whose indices follow each other without gap or overlap along the whole of an axis."""

    value: ir.Value
    axis: int
    gathers: tuple[ir.Node, ...]
    sizes: tuple[int, ...]


def _place(node: ir.Node, shape: tuple[int | str | None, ...]) -> tuple[int, int, int] | None:
    """Axis, start and end of what a Gather takes; None where its indices do not count upwards one by one."""
    index = constant_of(node.inputs[1]) if len(node.inputs) > 1 and node.inputs[1] is not None else None
    attribute = node.attributes.get("axis")
    axis = (0 if attribute is None else attribute.as_int()) % len(shape)
    size = shape[axis]
    if index is None or index.ndim > 1 or not index.size or not isinstance(size, int):
        return None
    given = [int(item) for item in index.reshape(-1)]
    places = [item + size if item < 0 else item for item in given]
    counted = range(places[0], places[0] + len(places))
    return (axis, counted.start, counted.stop) if places == list(counted) and counted.start >= 0 and counted.stop <= size else None


def _found(model: ir.Model) -> list[_Parts]:
    takers: dict[tuple[ir.Value, int], list[tuple[int, int, ir.Node]]] = {}
    for node in model.graph:
        value = node.inputs[0] if node.op_type == "Gather" and node.domain in ("", "ai.onnx") and node.inputs else None
        shape = known_shape(value)
        # Of one axis are shapes, which other rules compute, and a weight is taken apart before the model runs.
        if value is None or shape is None or len(shape) < 2 or value.const_value is not None or value.dtype not in _TYPES:
            continue
        place = _place(node, shape)
        if place is not None:
            takers.setdefault((value, place[0]), []).append((place[1], place[2], node))
    found, taken = [], set[ir.Value]()
    for (value, axis), places in takers.items():
        ordered = sorted(places, key=lambda item: item[:2])
        edges = [0, *(end for _, end, _ in ordered)]
        follows = all(start == edge for (start, _, _), edge in zip(ordered, edges[:-1], strict=True))
        if value not in taken and len(ordered) > 1 and follows and edges[-1] == (known_shape(value) or ())[axis]:
            taken.add(value)
            found.append(_Parts(value, axis, tuple(node for _, _, node in ordered), tuple(end - start for start, end, _ in ordered)))
    return found


class GathersOfOneTensor(ModelRule):
    code = "PF802"
    name = "gathers-of-one-tensor"
    since = "0.1"
    safety = "safe"
    severity = "info"
    phase = 75
    DOC_EN = """
    What: several Gathers with constant indices that take a tensor apart along one axis, each element once, such as query, key and value of one product, or what `unbind` exports.

    Why on Ascend: every Gather is a kernel launch that looks its indices up; one Split moves the parts, and a Squeeze moves nothing. In the public model zoo 24 of 388 models had Slices or Gathers joined by hand, and Huawei's surgeon had a rule for it.

    Fix: one Split, and a Squeeze where an index was a scalar.

    Fix safety: safe; equal in every element. That it is faster was not measured here, as no device was at hand.

    Evidence: hand-made changes in the public ModelZoo-PyTorch; KnowledgeGatherToSplit of msit; proven on the user's model.
    """
    DOC_ZH = """
    问题：多个索引为常量的 Gather 沿同一维将一个张量拆开，每个元素恰好一次，例如同一乘积中的 query、key、value，或 `unbind` 的导出结果。

    在昇腾上的原因：每个 Gather 都是一次算子下发并按索引查找；一个 Split 即可搬移全部，Squeeze 不搬移数据。公开模型库的 388 个模型中有 24 个手工合并了 Slice 或 Gather，华为的 surgeon 也有对应规则。

    修复：改为一个 Split；索引为标量处再加 Squeeze。

    修复安全性：安全；逐元素相等。由于没有设备，未测量速度。

    依据：公开的 ModelZoo-PyTorch 中的手工修改；msit 的 KnowledgeGatherToSplit；在用户的模型上证明。
    """
    EXAMPLES = (
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[3,2,4] x) => (float[2,4] y) <int64 zero = {0}, int64 one = {1}, int64 last = {2}> {
            q = Gather(x, zero) k = Gather(x, one) v = Gather(x, last) p = Mul(q, k) y = Add(p, v)
        }
        """),
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,5] x) => (float[2,2] y, float[2,3] z) <int64[2] low = {0, 1}, int64[3] high = {2, 3, 4}> {
            a = Gather<axis = 1>(x, low) b = Gather<axis = -1>(x, high) y = Relu(a) z = Neg(b)
        }
        """),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        if not ctx.takes("Split", "Squeeze"):
            return
        for parts in _found(ctx.model):
            yield self.finding(
                say(
                    "{count} Gathers take `{tensor}` apart along axis {axis}",
                    "{count} 个 Gather 沿第 {axis} 维拆开 `{tensor}`",
                    count=len(parts.gathers),
                    tensor=parts.value.name,
                    axis=parts.axis,
                ),
                say("each is a kernel launch of its own", "每个都是一次单独的算子下发"),
                say("use one Split", "改用一个 Split"),
                place=node_place(parts.gathers[0]),
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        if not ctx.takes("Split", "Squeeze"):
            return None
        done: list[str] = []
        # A part may be taken apart in turn, so each tensor is looked for in the model as the last one left it.
        while found := _found(model):
            parts = found[0]
            order = {node: place for place, node in enumerate(model.graph)}
            done += [node_place(node) for node in parts.gathers]
            builder = Builder(model, min(parts.gathers, key=order.__getitem__), self.code)
            for node, part in zip(parts.gathers, split_along(builder, ctx.opset, parts.value, parts.axis, parts.sizes), strict=True):
                index = constant_of(node.inputs[1]) if node.inputs[1] is not None else None
                if index is not None and index.ndim == 0:
                    axes = (builder.const([parts.axis], np.int64, "axes"),) if ctx.opset >= 13 else ()
                    part = builder.op("Squeeze", part, *axes, axes=None if axes else [parts.axis])
                part.type, part.shape = node.outputs[0].type, node.outputs[0].shape
                builder.replace(node.outputs[0], part)
            builder.remove(*parts.gathers)
        if not done:
            return None
        drop_dead(model, model.graph, ())
        infer_shapes(model, forget=True)
        return Change(tuple(done))
