"""GR510: an If whose condition only the run time knows."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from ...case import Finding
from ...graph import Builder, constant_of, infer_shapes, node_place, static_shape
from ...graph.fold import DEFAULT_FOLD_LIMIT
from ...graph.simplify import Journal
from ...graph.simplify.base import Edit
from ...graph.simplify.inline import inline_body
from ...graph.surgery.lookup import reads
from ...text import Text, say
from ..base import Change, Context, Example, ModelRule

_MOST_NODES = 200
# They compute the same whenever they run, and run on any values: what is not chosen does no harm.
_HARMLESS = frozenset(
    (
        *(
            "Abs",
            "Add",
            "And",
            "Cast",
            "Ceil",
            "Clip",
            "Concat",
            "Constant",
            "ConstantOfShape",
            "Conv",
            "Cos",
            "Div",
            "Equal",
            "Erf",
            "Exp",
        ),
        *("Expand", "Flatten", "Floor", "Gelu", "Gemm", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu"),
        *("Less", "LessOrEqual", "Log", "MatMul", "Max", "MaxPool", "AveragePool", "Min", "Mul", "Neg", "Not", "Or", "PRelu", "Pad", "Pow"),
        *("Reciprocal", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "Relu", "Reshape", "Round", "Shape", "Sigmoid", "Sign", "Sin"),
        *(
            "Slice",
            "Softmax",
            "Softplus",
            "Split",
            "Sqrt",
            "Squeeze",
            "Sub",
            "Sum",
            "Tanh",
            "Tile",
            "Transpose",
            "Unsqueeze",
            "Where",
            "Xor",
        ),
        *("BatchNormalization", "GlobalAveragePool", "InstanceNormalization", "LSTM", "GRU", "RNN", "LayerNormalization"),
    )
)


def obstacle(node: ir.Node) -> Text | None:
    """Why both branches may not be computed; None if they may."""
    if node.inputs[0] is None:
        return say("it has no condition", "没有条件")
    branches = [node.attributes["then_branch"].as_graph(), node.attributes["else_branch"].as_graph()]
    for branch in branches:
        inner = list(branch)
        if len(inner) > _MOST_NODES:
            return say("a branch has {count} nodes", "有分支包含 {count} 个节点", count=len(inner))
        odd = sorted({item.op_type for item in inner if item.op_type not in _HARMLESS or item.domain not in ("", "ai.onnx")})
        if odd:
            return say(
                "a branch has {ops}, which may fail or cost much where it is not chosen",
                "有分支包含 {ops}，未被选择时可能出错或代价高",
                ops=", ".join(odd[:4]),
            )
        integer_division = [
            item
            for item in inner
            if item.op_type == "Div" and item.inputs[0] is not None and item.inputs[0].dtype in (ir.DataType.INT32, ir.DataType.INT64)
        ]
        if integer_division:
            return say("a branch divides integers, which may fail where it is not chosen", "有分支做整数除法，未被选择时可能出错")
    for one, other in zip(branches[0].outputs, branches[1].outputs, strict=True):
        shapes = [static_shape(value) for value in (one, other)]
        if not isinstance(one.type, ir.TensorType) or not isinstance(other.type, ir.TensorType):
            return say("a result is no tensor", "有结果不是张量")
        if shapes[0] is None or shapes[0] != shapes[1]:
            return say("its branches give other shapes, or open ones", "两个分支的形状不同或未知")
    return None


def switch_of(node: ir.Node) -> tuple[str, list[object]] | None:
    """The scalar input of the model that alone decides the condition, and the values it is compared with."""
    names: set[str] = set()
    values: list[object] = []
    waiting, seen = [node.inputs[0]], set[ir.Value]()
    while waiting:
        value = waiting.pop()
        if value is None or value in seen:
            continue
        seen.add(value)
        constant = constant_of(value)
        if constant is not None:
            if constant.size == 1:
                values.append(constant.reshape(-1)[0].item())
            continue
        maker = value.producer()
        if maker is None:
            if static_shape(value) not in ((), (1,)):
                return None  # data, not a switch
            names.add(value.name or "")
        else:
            waiting += reads(maker)
    return (names.pop(), values) if len(names) == 1 else None


class RuntimeIf(ModelRule):
    code = "GR510"
    name = "runtime-if"
    since = "0.1"
    safety = "safe"
    severity = "warning"
    phase = 46
    DOC_EN = """
    What: an If whose condition depends on the values of the inputs.

    Why on Ascend: control flow takes a parser, subgraphs and a host round trip that few targets have.

    Fix: both branches are computed and a Where chooses, if no operator in them can fail on values it was not meant for and both give the same fixed shapes. An input that only switches between ways of working (a sampling rate) is better fixed with --set-const, which gives one model for each value.

    Fix safety: safe; equal in every element: the choice is by Where, so that NaN and infinities of the other branch do not leak. Both branches cost time. Refused above 200 nodes in a branch.

    Evidence: ONNX operator definitions; proven on the user's model.
    """
    DOC_ZH = """
    问题：If 的条件取决于输入数据。

    在昇腾上的原因：控制流需要解析器、子图以及与主机的往返，很少有目标具备。

    修复：若两个分支中的算子都不会因数据不符而出错，且形状固定且相同，则两个分支都计算，用 Where 选择。只用于切换工作方式的输入（例如采样率）更适合用 --set-const 固定，每个取值得到一个模型。

    修复安全性：安全；逐元素相等：用 Where 选择，另一分支的 NaN 与无穷大不会泄漏。两个分支都会耗时。分支超过 200 个节点时拒绝。

    依据：ONNX 算子定义；在用户的模型上证明。
    """
    EXAMPLES = (
        Example(
            """
        <ir_version: 8, opset_import: ["" : OPSET]>
        agraph (float[2,3] x, float[1] s) => (float[2,3] y) <float[1] zero = {0.0}> {
            more = Greater(s, zero)
            a = If (more) <
                then_branch = then_graph () => (float[2,3] t) { t = Relu(x) },
                else_branch = else_graph () => (float[2,3] e) { e = Neg(x) }
            >
            y = Exp(a)
        }
        """,
            also=("OP101",),
        ),
    )

    def check(self, ctx: Context) -> Iterator[Finding]:
        for node in ctx.model.graph:
            if node.op_type != "If" or node.domain not in ("", "ai.onnx") or constant_of(node.inputs[0]) is not None:
                continue
            reason, switch = obstacle(node), switch_of(node)
            remedy = (
                say("compute both branches and choose", "计算两个分支后选择")
                if reason is None
                else say("not rewritten: {reason}", "未改写：{reason}", reason=reason)
            )
            if switch is not None:
                remedy = say(
                    "{remedy}; or fix `{name}` with --set-const (it is compared with {values})",
                    "{remedy}；或用 --set-const 固定 `{name}`（与其比较的取值：{values}）",
                    remedy=remedy,
                    name=switch[0],
                    values=", ".join(map(str, switch[1])) or "-",
                )
            yield self.finding(
                say("`{node}`: its condition depends on the inputs", "`{node}`：其条件取决于输入", node=node_place(node)),
                say("few targets have subgraphs", "很少有目标支持子图"),
                remedy,
                node=node,
                fix="safe" if reason is None else "none",
            )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        done = []
        for node in [item for item in model.graph if item.op_type == "If" and item.domain in ("", "ai.onnx")]:
            if constant_of(node.inputs[0]) is not None or obstacle(node) is not None:
                continue
            done.append(node_place(node))
            _both(model, node)
        if not done:
            return None
        infer_shapes(model, forget=True)
        return Change(tuple(done))


def _both(model: ir.Model, node: ir.Node) -> None:
    edit = Edit(model, Journal(), DEFAULT_FOLD_LIMIT)
    branches = [node.attributes["then_branch"].as_graph(), node.attributes["else_branch"].as_graph()]
    shapes = [static_shape(value) for value in branches[0].outputs]
    yes, no = (inline_body(edit, node, branch, [], suffix) for branch, suffix in zip(branches, ("_then", "_else"), strict=True))
    builder = Builder(model, node, RuntimeIf.code)
    condition = node.inputs[0]
    if condition is not None and static_shape(condition) != ():
        condition = builder.op("Reshape", condition, builder.const([], "int64", "scalar"))
    for old, one, other, shape in zip(list(node.outputs), yes, no, shapes, strict=True):
        chosen = builder.op("Where", condition, one, other)
        chosen.type, chosen.shape = old.type or one.type, ir.Shape(list(shape or ()))
        builder.replace(old, chosen)
    builder.remove(node)
