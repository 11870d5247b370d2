"""DT303: constants that half precision cannot hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import onnx_ir as ir

from ...case import Finding
from ...graph import Builder, all_nodes, constant_of, known_shape, node_place, used_names
from ...graph.shapes import Array
from ...text import say
from ..base import Change, Context, Example, ModelRule, Refused

LARGEST = float(np.finfo(np.float16).max)
# Where a float16 infinity changes the result. Bounds (Clip, Max, Min) mean the same as infinities, and the statistics of a
# BatchNormalization stay float32 or are folded into the weights before anything is rounded.
_COMPUTES = frozenset(("Add", "Conv", "Div", "Gemm", "MatMul", "Mul", "PRelu", "Pow", "Sub", "Where"))
_LOOKED_AT, _MASK = 4096, 1 << 22
"""Elements; scales are small, and weights are not read here. What is added or chosen may be a mask of all pairs of positions."""
_ADDED = -10000.0
"""What is added to a score instead: with it a score stays a number of float16."""
_DEPTH = 12
_MOVES = frozenset(("Cast", "Expand", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"))
# What a mask is made with, and joined to scores.
_MASKING = _MOVES | {"Add", "Concat", "Max", "Min", "Mul", "Neg", "Sub", "Where"}
Mask = Literal["chosen", "added", "partly"]
_STARTS: dict[str, Mask | Literal["factor"]] = {"Where": "chosen", "Add": "added", "Mul": "factor"}


def _masks(ctx: Context) -> Iterator[tuple[ir.Node, int, Mask]]:
    """Places of the main graph where a large negative constant can only end as a weight of 0 after a Softmax.

    ``chosen``: it takes the place of a score. ``added``: it is added to one, perhaps after a product with a mask of 0 and 1. ``partly``: it
    is added, and leaves something of every row that the Softmax reads, as a mask of later positions does.
    """
    for node in ctx.model.graph:
        for index, value in enumerate(node.inputs if node.op_type in _STARTS else ()):
            if value is None or value.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
                continue
            constant = constant_of(value)
            if constant is None or not 0 < constant.size <= _looked_at(node):
                continue
            wide = constant.astype(np.float64)
            large = wide[np.isfinite(wide) & (wide < -LARGEST)]
            if not large.size or np.any(wide > LARGEST):
                continue
            form = _STARTS[node.op_type]
            # Of several masking values the largest wins a row that is masked everywhere; as one value they would share it.
            if form == "chosen" and (np.unique(large).size > 1 or np.any((wide >= -LARGEST) & (wide < -LARGEST / 2))):
                form = "added"
            # Nor may the scores hold masking values of another mask already, which would lose such a row to this one.
            first = 1 if node.op_type == "Where" else 0
            masked = any(_holds_mask(other, 0) for place, other in enumerate(node.inputs) if place >= first and place != index)
            if form == "chosen" and masked:
                form = "added"
            found = _ends_in_softmax(node.outputs[0], form, 0)
            if found is not None:
                yield node, index, "partly" if not masked and _leaves_something(node, wide, ctx.opset) else found


def _looked_at(node: ir.Node) -> int:
    return _MASK if node.op_type in ("Add", "Where") else _LOOKED_AT


def _leaves_something(node: ir.Node, added: Array, opset: int) -> bool:
    """Whether this is added to what only Softmax along the last axis reads, and something of each row stays far above the mask."""
    shape = known_shape(node.outputs[0])
    if node.op_type != "Add" or shape is None or not added.ndim or added.shape[-1] == 1:
        return False
    last = len(shape) - 1
    for user, _ in node.outputs[0].uses():
        axis = user.attributes["axis"].as_int() if "axis" in user.attributes else -1 if opset >= 13 else 1
        if user.op_type != "Softmax" or axis % len(shape) != last:
            return False
    return bool(np.all(added.max(axis=-1) > _ADDED / 10))


def _holds_mask(value: ir.Value | None, depth: int) -> bool:
    """Whether a tensor is made, by what masks are made with, of a constant near the end of float16 or beyond it."""
    if value is None or depth > _DEPTH or value.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16):
        return False
    constant = constant_of(value)
    if constant is not None:
        wide = constant.astype(np.float64)
        return bool(np.any(np.isfinite(wide) & (np.abs(wide) > LARGEST / 2)))
    maker = value.producer()
    return maker is not None and maker.op_type in _MASKING and any(_holds_mask(item, depth + 1) for item in maker.inputs)


def _ends_in_softmax(value: ir.Value, form: Mask | Literal["factor"], depth: int) -> Mask | None:
    """How the value reaches Softmax if it reaches nothing else; a factor has to be added to something on the way."""
    if value.is_graph_output() or depth > _DEPTH or not value.uses():
        return None
    ways: set[Mask] = set()
    for node, _ in value.uses():
        if node.op_type == "Softmax":
            found = None if form == "factor" else form
        elif node.op_type in _MOVES:
            found = _ends_in_softmax(node.outputs[0], form, depth + 1)
        elif node.op_type == "Add" or (node.op_type == "Where" and form != "factor"):
            found = _ends_in_softmax(node.outputs[0], "added", depth + 1)
        else:
            found = None
        if found is None:
            return None
        ways.add(found)
    return "added" if "added" in ways else "chosen"


def _overflowing(model: ir.Model) -> list[tuple[str, float]]:
    """Place and value of small float constants that are finite in their own type and infinite in float16."""
    found: dict[str, float] = {}
    for node in all_nodes(model):
        for value in node.inputs if node.op_type in _COMPUTES else ():
            tensor = None if value is None else value.const_value
            if (
                value is None
                or (value.name or "") in found
                or value.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.BFLOAT16)
            ):
                continue
            if tensor is not None and tensor.size > _looked_at(node):
                continue
            constant = constant_of(value)
            if constant is None or constant.size > _looked_at(node):
                continue
            wide = constant.astype(np.float64).reshape(-1)
            over = wide[np.isfinite(wide) & (np.abs(wide) > LARGEST)]
            if over.size:
                found[value.name or node_place(node)] = float(over[np.abs(over).argmax()])
    return list(found.items())


class Float16Overflow(ModelRule):
    code = "DT303"
    name = "float16-overflow"
    since = "0.1"
    safety = "safe"
    severity = "warning"
    phase = 62
    bound = 1e-6
    measure = "max_scaled"
    DOC_EN = """
    What: a constant that is added, multiplied or selected is larger than 65504 in magnitude, usually the -1e9 of an attention mask.

    Why on Ascend: ATC's default precision mode computes in float16, where it becomes an infinity; a row that is masked everywhere then gives NaN.

    Fix: a constant that a Where puts in the place of scores, which only a Softmax reads, becomes -65504; one that is added to them becomes -10000 where it leaves something of every row, as a mask of later positions does, and elsewhere if you allow it. Other constants are only named: use a value that float16 holds, or keep the operator in float32 with a precision mode or keep-list.

    Fix safety: safe within 1e-6 where the constant takes the place of a score: the weights of masked scores are 0 with either value, and a row that is masked everywhere stays uniform. Scores are taken to lie above -65000, as float16 asks of them anyway. The same holds of a constant that is added and leaves something of every row, for scores that differ by less than 9000. Where a whole row may be masked by addition, or where the scores hold another mask already, such a row may change, so name the code: --unsafe DT303.

    Evidence: IEEE 754 binary16; ATC's default --precision_mode_v2=fp16.
    """
    DOC_ZH = """
    问题：参与加、乘或选择的某个常量绝对值大于 65504，通常是注意力掩码中的 -1e9。

    在昇腾上的原因：ATC 默认以 float16 计算，它会变成无穷大；整行都被屏蔽时结果为 NaN。

    修复：Where 用来代替分数、且只被 Softmax 读取的常量改为 -65504；与分数相加的常量，若每行都留有未屏蔽的元素（例如屏蔽后续位置的掩码），改为 -10000；其余情况在允许时改为 -10000。其他常量只指出：请改用 float16 能表示的数值，或用精度模式、保持列表让该算子保持 float32。

    修复安全性：常量代替分数时，误差在 1e-6 以内为安全：两种取值下被屏蔽分数的权重都是 0，整行都被屏蔽时仍为均匀分布。假定分数本身大于 -65000，这也是 float16 的要求。相加的常量若每行都留有未屏蔽的元素，在分数之差小于 9000 时同样成立。若相加可能屏蔽整行，或分数中已含有另一掩码，则该行的结果可能改变，因此需要指定 --unsafe DT303。

    依据：IEEE 754 binary16；ATC 默认的 --precision_mode_v2=fp16。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x) => (float[2,3] y) <float mask = {-1000000000.0}> { y = Add(x, mask) }
        """,
            cured=False,
        ),
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x, bool[2,3] m) => (float[2,3] y) <float mask = {-1000000000.0}> {
            scores = Where(m, x, mask) y = Softmax<axis = 1>(scores)
        }
        """,
            edges=False,
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        forms: dict[str, Mask] = {}
        for node, index, form in _masks(ctx):
            name = getattr(node.inputs[index], "name", None) or ""
            if forms.get(name) != "added":
                forms[name] = form
        for name, value in _overflowing(ctx.model):
            kind = forms.get(name)
            yield self.finding(
                say("constant `{name}` holds {value:g}", "常量 `{name}` 含有 {value:g}", name=name, value=value),
                say("float16, ATC's default, ends at 65504: it becomes an infinity", "ATC 默认的 float16 最大为 65504：它会变成无穷大"),
                say("use a value that float16 holds, such as -10000 in a mask", "请改用 float16 能表示的数值，例如掩码用 -10000"),
                place=name,
                fix="none" if kind is None else "unsafe" if kind == "added" else "safe",
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        masks = list(_masks(ctx))
        wanted = [item for item in masks if item[2] != "added" or ctx.unsafe]
        if not wanted:
            if masks:
                raise Refused(say("a row that is masked everywhere would change", "整行都被屏蔽的结果会改变"))
            return None
        names = used_names(model)
        for node, index, form in wanted:
            old = node.inputs[index]
            constant = None if old is None else constant_of(old)
            assert old is not None and constant is not None  # as `_masks` found it
            least = -LARGEST if form == "chosen" else _ADDED
            wide = constant.astype(np.float64)
            array = np.where(np.isfinite(wide) & (wide < -LARGEST), np.asarray(least, constant.dtype), constant)
            node.replace_input_with(index, Builder(model, node, self.code, names).const(array, name="mask"))
            if not old.uses() and not old.is_graph_output() and not old.is_graph_input():
                model.graph.initializers.pop(old.name or "", None)
        return Change(tuple(dict.fromkeys(node_place(node) for node, _, _ in wanted)))
