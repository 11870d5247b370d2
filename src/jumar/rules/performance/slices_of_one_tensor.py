"""PF801: several Slices that together take one tensor apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from ...case import Finding
from ...graph import Builder, constant_of, infer_shapes, known_shape, node_place
from ...text import say
from ..base import Change, Context, Example, ModelRule
from .splitting import split_along


@dataclass(frozen=True)
class _Parts:
    """Slices of one tensor that follow each other without gap or overlap along the whole of an axis."""

    value: ir.Value
    axis: int
    slices: tuple[ir.Node, ...]
    sizes: tuple[int, ...]


def _cut(node: ir.Node, rank: int, shape: tuple[int | str | None, ...]) -> tuple[int, int, int] | None:
    """Axis, start and end of a Slice along one axis of known size with step 1."""
    if len(node.inputs) < 3:  # before opset 10
        return None
    values = [None if value is None else constant_of(value) for value in node.inputs[1:]]
    if any(value is None for value in values[:2]) or any(value is not None and value.size != 1 for value in values):
        return None
    if any(given is not None and value is None for given, value in zip(node.inputs[1:], values, strict=True)):
        return None
    start, end = (int(value.reshape(-1)[0]) for value in values[:2] if value is not None)
    axis = 0 if len(values) < 3 or values[2] is None else int(values[2].reshape(-1)[0]) % rank
    if len(values) > 3 and values[3] is not None and int(values[3].reshape(-1)[0]) != 1:
        return None
    size = shape[axis]
    if not isinstance(size, int):
        return None
    start, end = (item + size if item < 0 else item for item in (start, end))
    return axis, max(start, 0), min(end, size)


def _found(model: ir.Model) -> list[_Parts]:
    readers: dict[ir.Value, list[tuple[ir.Node, tuple[int, int, int]]]] = {}
    for node in model.graph:
        value = node.inputs[0] if node.op_type == "Slice" and node.domain in ("", "ai.onnx") and node.inputs else None
        shape = known_shape(value)
        if value is None or shape is None or not shape or value.const_value is not None:
            continue
        place = _cut(node, len(shape), shape)
        if place is not None:
            readers.setdefault(value, []).append((node, place))
    found = []
    for value, cuts in readers.items():
        for axis in sorted({place[0] for _, place in cuts}):
            ordered = sorted(((place[1], place[2], node) for node, place in cuts if place[0] == axis), key=lambda item: item[:2])
            size = (known_shape(value) or ())[axis]
            edges = [ordered[0][0], *(end for _, end, _ in ordered)]
            follows = all(start == edge for (start, _, _), edge in zip(ordered, edges[:-1], strict=True))
            if len(ordered) > 1 and follows and edges[0] == 0 and edges[-1] == size and all(end > start for start, end, _ in ordered):
                found.append(_Parts(value, axis, tuple(node for _, _, node in ordered), tuple(end - start for start, end, _ in ordered)))
                break
    return found


class SlicesOfOneTensor(ModelRule):
    code = "PF801"
    name = "slices-of-one-tensor"
    since = "0.1"
    safety = "safe"
    severity = "info"
    phase = 75
    DOC_EN = """
    What: several Slices that take a tensor apart along one axis, each element once.

    Why on Ascend: every Slice is a kernel launch that reads the tensor; one Split does them all. In the public model zoo 24 of 388 models had this done by hand.

    Fix: one Split with the sizes of the Slices.

    Fix safety: safe; equal in every element. That it is faster was not measured here, as no device was at hand.

    Evidence: hand-made changes in the public ModelZoo-PyTorch; proven on the user's model.
    """
    DOC_ZH = """
    问题：多个 Slice 沿同一维将一个张量拆开，每个元素恰好一次。

    在昇腾上的原因：每个 Slice 都是一次算子下发并读取张量；一个 Split 即可全部完成。公开模型库的 388 个模型中有 24 个手工做了此修改。

    修复：按各 Slice 的大小改为一个 Split。

    修复安全性：安全；逐元素相等。由于没有设备，未测量速度。

    依据：公开的 ModelZoo-PyTorch 中的手工修改；在用户的模型上证明。
    """
    EXAMPLES = (
        Example("""
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,6] x) => (float[2,2] y, float[2,4] z)
        <int64[1] zero = {0}, int64[1] two = {2}, int64[1] far = {9223372036854775807}, int64[1] one = {1}> {
            a = Slice(x, zero, two, one) b = Slice(x, two, far, one) y = Relu(a) z = Neg(b)
        }
        """),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        if not ctx.takes("Split"):
            return
        for parts in _found(ctx.model):
            yield self.finding(
                say(
                    "{count} Slices take `{tensor}` apart along axis {axis}",
                    "{count} 个 Slice 沿第 {axis} 维拆开 `{tensor}`",
                    count=len(parts.slices),
                    tensor=parts.value.name,
                    axis=parts.axis,
                ),
                say("each is a kernel launch of its own", "每个都是一次单独的算子下发"),
                say("use one Split", "改用一个 Split"),
                place=node_place(parts.slices[0]),
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        if not ctx.takes("Split"):
            return None
        done: list[str] = []
        # A part may be taken apart in turn, so each tensor is looked for in the model as the last one left it.
        while found := _found(model):
            parts = found[0]
            order = {node: place for place, node in enumerate(model.graph)}
            first = min(parts.slices, key=order.__getitem__)
            builder = Builder(model, first, self.code)
            for node, result in zip(parts.slices, split_along(builder, ctx.opset, parts.value, parts.axis, parts.sizes), strict=True):
                result.type, result.shape = node.outputs[0].type, node.outputs[0].shape
                builder.replace(node.outputs[0], result)
                builder.remove(node)
                done.append(node_place(node))
        if not done:
            return None
        infer_shapes(model, forget=True)
        return Change(tuple(done))
