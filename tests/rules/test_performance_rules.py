"""Rules on what works and could be faster: random forms stay equal, and what they must leave alone stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from jumar.case import Case
from jumar.graph import Evaluator, infer_shapes
from jumar.proof import FeedSet
from jumar.verbs.check import check
from jumar.verbs.fix import fix

quick = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def applied(model: ir.Model, code: str, feed: dict[str, Any], evaluator: Evaluator) -> tuple[Case, bool]:
    """The model after the rule alone, and whether it was applied; a failed proof fails the test, since the rules promise to be right."""
    infer_shapes(model)
    case = fix(model, soc="Ascend310P3", select=[code], feeds=FeedSet((feed,), "test"), evaluator=evaluator)
    steps = [step for step in case.record.steps if step.code == code]
    assert all(step.status == "applied" for step in steps), [str(step.proof and step.proof.reason) for step in steps]
    return case, bool(steps)


def same(model: ir.Model, after: ir.Model, feed: dict[str, Any], evaluator: Evaluator, bound: float) -> bool:
    """Within ``bound`` of the largest element, in every output."""
    one, other = evaluator.run(model, feed), evaluator.run(after, feed)
    assert one.keys() == other.keys()
    return all(
        one[name].shape == other[name].shape and np.abs(one[name] - other[name]).max(initial=0) <= bound * np.abs(one[name]).max(initial=0)
        for name in one
    )


def counts(model: ir.Model, op: str) -> int:
    return sum(node.op_type == op for node in model.graph)


def random_feed(shape: Any, seed: int = 0) -> dict[str, Any]:
    return {"x": np.random.default_rng(seed).standard_normal(shape).astype(np.float32)}


@quick
@given(data=st.data())
def test_gathers_become_a_split(data: st.DataObject, evaluator: Evaluator) -> None:
    draw = data.draw
    sizes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    rank = draw(st.integers(2, 4))
    axis = draw(st.integers(-rank, rank - 1))
    shape = [2] * rank
    shape[axis] = sum(sizes)
    nodes, outputs, weights, start = [], [], [], 0
    for number, size in enumerate(sizes):
        index = np.arange(start, start + size, dtype=draw(st.sampled_from([np.int32, np.int64])))
        index -= sum(sizes) * (index.dtype == np.int64 and draw(st.booleans()))
        if size == 1 and draw(st.booleans()):
            index = index.reshape(())
        weights.append(onnx.numpy_helper.from_array(index, f"i{number}"))
        nodes.append(helper.make_node("Gather", ["x", f"i{number}"], [f"g{number}"], axis=axis))
        nodes.append(helper.make_node("Relu", [f"g{number}"], [f"y{number}"]))
        outputs.append(onnx.ValueInfoProto(name=f"y{number}"))
        start += size
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], outputs, weights)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", draw(st.sampled_from([11, 13, 18])))], ir_version=8)
    model, feed = ir.from_proto(onnx.shape_inference.infer_shapes(proto)), random_feed(shape)
    case, done = applied(model, "PF802", feed, evaluator)
    assert done
    assert (counts(case.model, "Split"), counts(case.model, "Gather")) == (1, 0)
    assert same(model, case.model, feed, evaluator, 0.0)


@pytest.mark.parametrize("indices", [(0, 0, 1), (0, 2), (1, 2), (2, 1)])
def test_gathers_that_leave_out_or_repeat_stay(indices: tuple[int, ...], evaluator: Evaluator) -> None:
    weights = ", ".join(f"int64 i{number} = {{{index}}}" for number, index in enumerate(indices))
    body = " ".join(f"y{number} = Gather(x, i{number})" for number in range(len(indices)))
    outputs = ", ".join(f"float[4] y{number}" for number in range(len(indices)))
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 13]> agraph (float[3,4] x) => ({outputs}) <{weights}> {{ {body} }}')
    assert not applied(model, "PF802", random_feed((3, 4)), evaluator)[1]


HEAD_OF_PARTS = '<ir_version: 8, opset_import: ["" : 13]> agraph '


@pytest.mark.parametrize(
    ("code", "op", "body"),
    [
        (
            "PF801",
            "Slice",
            """(float[2,6] x) => (float[2,2] p, float[2,2] q, float[2,2] y) <int64[1] i0 = {0}, int64[1] i2 = {2}, int64[1] i4 = {4}, int64[1] i6 = {6},
            int64[1] one = {1}> { a = Slice(x, i0, i4, one) b = Slice(x, i4, i6, one) c = Slice(a, i0, i2, one) d = Slice(a, i2, i4, one)
            p = Relu(c) q = Neg(d) y = Abs(b) }""",
        ),
        (
            "PF802",
            "Gather",
            """(float[2,6] x) => (float p, float q, float[6] y) <int64 i0 = {0}, int64 i1 = {1}, int64[5] rest = {1, 2, 3, 4, 5}> {
            a = Gather(x, i0) b = Gather(x, i1) r = Reshape(a, shape) c = Gather<axis = 1>(r, i0) d = Gather<axis = 1>(r, rest)
            p = ReduceMax<keepdims = 0>(c) q = ReduceMin<keepdims = 0>(d) y = Abs(b) }""".replace(
                "int64 i0", "int64[2] shape = {1, 6}, int64 i0"
            ),
        ),
        (
            "PF802",
            "Gather",
            """(float[2,2,4] x) => (float[4] p, float[4] q, float[2,4] y) <int64 i0 = {0}, int64 i1 = {1}> {
            a = Gather(x, i0) b = Gather(x, i1) c = Gather(a, i0) d = Gather(a, i1) p = Relu(c) q = Neg(d) y = Abs(b) }""",
        ),
    ],
)
def test_a_part_that_is_taken_apart_itself(code: str, op: str, body: str, evaluator: Evaluator) -> None:
    model = infer_shapes_of(body)
    feed = random_feed(tuple(int(size) for size in (model.graph.inputs[0].shape or ())))
    case, done = applied(model, code, feed, evaluator)
    assert done
    assert (counts(case.model, "Split"), counts(case.model, op)) == (2, 0)
    assert same(model, case.model, feed, evaluator, 0.0)


def infer_shapes_of(body: str) -> ir.Model:
    model = ir.from_onnx_text(HEAD_OF_PARTS + body)
    infer_shapes(model)
    return model


def test_a_transpose_that_is_an_output_stays(evaluator: Evaluator) -> None:
    model = infer_shapes_of(
        """(float[2,3,4] x) => (float[2,4,3] t, float[2,3,4] y) {
        t = Transpose<perm = [0, 2, 1]>(x) r = Relu(t) y = Transpose<perm = [0, 2, 1]>(r) }"""
    )
    feed = random_feed((2, 3, 4))
    case, done = applied(model, "PF803", feed, evaluator)
    assert done
    assert counts(case.model, "Transpose") == 1
    assert same(model, case.model, feed, evaluator, 0.0)


PERMS = [(0, 2, 1), (2, 0, 1), (1, 2, 0), (1, 0, 2)]
BETWEEN = {
    "Relu": ("Relu", {}), "Sigmoid": ("Sigmoid", {}), "Softmax": ("Softmax", {"axis": 2}), "LogSoftmax": ("LogSoftmax", {"axis": -2}),
}  # fmt: skip


def _chain(draw: Any, perm: tuple[int, ...], opset: int) -> onnx.ModelProto:
    """A Transpose, up to four nodes that may read it twice, and the Transpose that undoes it."""
    random = np.random.default_rng(draw(st.integers(0, 99)))
    shape = [2, 3, 4]
    inner = [shape[axis] for axis in perm]
    nodes, weights = [helper.make_node("Transpose", ["x"], ["t"], perm=perm)], []
    last = "t"
    for number in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from([*BETWEEN, "Add", "Mul", "Where", "Concat", "Clip", "both"]))
        name = f"v{number}"
        if kind in BETWEEN:
            op, attributes = BETWEEN[kind]
            nodes.append(helper.make_node(op, [last], [name], **attributes))
        elif kind in ("Add", "Mul"):
            size = draw(st.sampled_from([[], [1], inner[2:], [inner[1], 1], [1, *inner[1:]]]))
            weights.append(onnx.numpy_helper.from_array(random.standard_normal(size).astype(np.float32), f"w{number}"))
            nodes.append(helper.make_node(kind, [last, f"w{number}"], [name]))
        elif kind == "Clip":
            weights.append(onnx.numpy_helper.from_array(np.array(-0.5, np.float32), f"w{number}"))
            nodes.append(helper.make_node(kind, [last, f"w{number}"], [name]))
        elif kind == "Where":
            weights.append(onnx.numpy_helper.from_array(np.array(0.1, np.float32), f"w{number}"))
            nodes.append(helper.make_node("Less", [last, f"w{number}"], [f"c{number}"]))
            nodes.append(helper.make_node(kind, [f"c{number}", last, f"w{number}"], [name]))
        elif kind == "Concat":
            nodes.append(helper.make_node(kind, [last, last], [name], axis=draw(st.sampled_from([0, 1, -1]))))
            break  # sizes no longer fit what the others hold
        else:
            nodes.append(helper.make_node("Tanh", ["t"], [f"b{number}"]))
            nodes.append(helper.make_node("Sub", [last, f"b{number}"], [name]))
        last = name
    nodes.append(helper.make_node("Transpose", [nodes[-1].output[0]], ["y"], perm=np.argsort(perm).tolist()))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], [onnx.ValueInfoProto(name="y")], weights
    )
    return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8))


@settings(quick, max_examples=40)
@given(data=st.data(), perm=st.sampled_from(PERMS))
def test_transposes_around_nodes_go(data: st.DataObject, perm: tuple[int, ...], evaluator: Evaluator) -> None:
    model, feed = ir.from_proto(_chain(data.draw, perm, 13)), random_feed((2, 3, 4))
    case, done = applied(model, "PF803", feed, evaluator)
    assert done
    assert counts(case.model, "Transpose") == 0
    assert same(model, case.model, feed, evaluator, 1e-6)


def test_a_wrong_rewrite_would_be_noticed(evaluator: Evaluator) -> None:
    model, wrong = (
        ir.from_onnx_text(
            f'<ir_version: 8, opset_import: ["" : 13]> agraph (float[2,3] x) => (float[2,3] y) <float w = {{{w}}}> {{ y = Mul(x, w) }}'
        )
        for w in (1.0, 1.00001)
    )
    assert same(model, model, random_feed((2, 3)), evaluator, 0.0)
    assert not same(model, wrong, random_feed((2, 3)), evaluator, 1e-6)


KEPT = {
    "read transposed too": "y = Relu(t) z = Transpose<perm = [0, 2, 1]>(y)",
    "not undone": "r = Relu(t) y = Transpose<perm = [1, 0, 2]>(r)",
    "another operand": "r = Add(t, other) y = Transpose<perm = [0, 2, 1]>(r)",
    "an operator that minds": "r = LpNormalization<axis = 1>(t) y = Transpose<perm = [0, 2, 1]>(r)",
    "a mean of the last axis": "m = ReduceMean<axes = [2]>(t) r = Sub(t, m) y = Transpose<perm = [0, 2, 1]>(r)",
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_transposes_that_matter_stay(body: str, evaluator: Evaluator) -> None:
    text = f'<ir_version: 8, opset_import: ["" : 13]> agraph (float[2,3,4] x, float[2,4,3] other) => (float y) {{ t = Transpose<perm = [0, 2, 1]>(x) {body} }}'
    model = ir.from_onnx_text(text)
    assert not applied(model, "PF803", random_feed((2, 3, 4)) | {"other": random_feed((2, 4, 3))["x"]}, evaluator)[1]


def test_a_softmax_that_joins_axes_keeps_its_transposes(evaluator: Evaluator) -> None:
    text = '<ir_version: 8, opset_import: ["" : 11]> agraph (float[2,3,4] x) => (float[2,3,4] y) { t = Transpose<perm = [0, 2, 1]>(x) s = Softmax<axis = 2>(t) y = Transpose<perm = [0, 2, 1]>(s) }'
    assert not applied(ir.from_onnx_text(text), "PF803", random_feed((2, 3, 4)), evaluator)[1]


def test_regions_that_share_a_transpose(evaluator: Evaluator) -> None:
    """The Transpose that ends one region begins the next."""
    text = """<ir_version: 8, opset_import: ["" : 13]> agraph (float[2,3,4] x) => (float[2,4,3] y, float[2,3,4] z) {
        t = Transpose<perm = [0, 2, 1]>(x) a = Relu(t) b = Transpose<perm = [0, 2, 1]>(a) c = Neg(b) d = Transpose<perm = [0, 2, 1]>(c)
        y = Relu(d) z = Exp(b) }"""
    model, feed = ir.from_onnx_text(text), random_feed((2, 3, 4))
    case, done = applied(model, "PF803", feed, evaluator)
    assert done
    assert counts(case.model, "Transpose") == 1
    assert same(model, case.model, feed, evaluator, 0.0)


@settings(quick, max_examples=40)
@given(data=st.data())
def test_axes_that_move_together_are_joined(data: st.DataObject, evaluator: Evaluator) -> None:
    rank = data.draw(st.integers(5, 7))
    shape = data.draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    perm = data.draw(st.permutations(range(rank)))
    node = helper.make_node("Transpose", ["x"], ["y"], name="node", perm=perm)
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    proto = helper.make_model(
        helper.make_graph([node], "g", [value], [onnx.ValueInfoProto(name="y")]), opset_imports=[helper.make_opsetid("", 13)], ir_version=8
    )
    model, feed = ir.from_proto(onnx.shape_inference.infer_shapes(proto)), random_feed(shape)
    case, done = applied(model, "PF804", feed, evaluator)
    assert all(len(item.attributes["perm"].as_ints()) <= 4 for item in case.model.graph if item.op_type == "Transpose") == done
    assert same(model, case.model, feed, evaluator, 0.0)


def test_windows_become_four_axes(evaluator: Evaluator) -> None:
    text = """<ir_version: 8, opset_import: ["" : 13]> agraph (float[2,3,7,4,7,8] x) => (float[2,3,4,7,7,8] y) {
        y = Transpose<perm = [0, 1, 3, 2, 4, 5]>(x) }"""
    case, done = applied(ir.from_onnx_text(text), "PF804", random_feed((2, 3, 7, 4, 7, 8)), evaluator)
    assert done
    moved = next(node for node in case.model.graph if node.op_type == "Transpose")
    assert list(moved.attributes["perm"].as_ints()) == [0, 2, 1, 3]
    assert moved.inputs[0] is not None and list(moved.inputs[0].shape or ()) == [6, 7, 4, 56]


def _speech(draw: Any, opset: int) -> tuple[onnx.ModelProto, tuple[int, int, int]]:
    """Convolutions over one axis of random forms, with arithmetic between them; some results are read twice."""
    random = np.random.default_rng(draw(st.integers(0, 99)))
    batch, channels, length = draw(st.integers(1, 2)), draw(st.sampled_from([2, 4])), draw(st.integers(12, 16))
    nodes, weights, last = [], [], "x"

    def weight(name: str, *shape: int) -> str:
        weights.append(onnx.numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name))
        return name

    count = draw(st.integers(2, 3))
    for number in range(count):
        kernel, groups = draw(st.integers(1, 3)), draw(st.sampled_from([1, 2]))
        attributes: dict[str, Any] = {"group": groups}
        if draw(st.booleans()):
            attributes |= {"auto_pad": "SAME_UPPER"}
        else:
            attributes |= {"pads": draw(st.lists(st.integers(0, 2), min_size=2, max_size=2)), "dilations": [draw(st.integers(1, 2))]}
        if draw(st.booleans()):
            attributes["kernel_shape"] = [kernel]
        inputs = [last, weight(f"w{number}", channels, channels // groups, kernel)]
        inputs += [weight(f"b{number}", channels)] if draw(st.booleans()) else []
        nodes.append(helper.make_node("Conv", inputs, [f"c{number}"], **attributes))
        kind = draw(st.sampled_from(["Relu", "Mul", "Add", "BatchNormalization", "Concat", "Clip"]))
        last = f"a{number}"
        if kind in ("Relu", "Clip"):
            nodes.append(helper.make_node(kind, [f"c{number}"], [last]))
        elif kind in ("Mul", "Add"):
            shape = draw(st.sampled_from([(), (1,), (channels, 1), (1, channels, 1)]))
            nodes.append(helper.make_node(kind, [f"c{number}", weight(f"s{number}", *shape)], [last]))
        elif kind == "BatchNormalization":
            numbers = [weight(f"{name}{number}", channels) for name in ("scale", "bias", "mean")]
            weights.append(onnx.numpy_helper.from_array(np.full(channels, 1.5, np.float32), f"var{number}"))
            nodes.append(helper.make_node(kind, [f"c{number}", *numbers, f"var{number}"], [last]))
        else:
            nodes.append(helper.make_node("Tanh", [f"c{number}"], [f"t{number}"]))
            nodes.append(helper.make_node(kind, [f"c{number}", f"t{number}"], [last], axis=-1))
    read = ["c0", last] if draw(st.booleans()) else [last]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, channels, length])],
        [onnx.ValueInfoProto(name=name) for name in read], weights,
    )  # fmt: skip
    proto = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8))
    return proto, (batch, channels, length)


@settings(quick, max_examples=40)
@given(data=st.data(), opset=st.sampled_from([11, 13]))
def test_convolutions_of_one_axis_get_another(data: st.DataObject, opset: int, evaluator: Evaluator) -> None:
    proto, shape = _speech(data.draw, opset)
    model, feed = ir.from_proto(proto), random_feed(shape)
    case, done = applied(model, "PF805", feed, evaluator)
    assert done
    assert all(len(node.inputs[0].shape or ()) == 4 for node in case.model.graph if node.op_type == "Conv" and node.inputs[0] is not None)
    assert all("kernel_shape" in node.attributes for node in case.model.graph if node.op_type == "Conv")
    assert counts(case.model, "Unsqueeze") == 1
    assert counts(case.model, "Squeeze") == len(model.graph.outputs)
    assert sum(value.const_value.size for value in case.model.graph.initializers.values() if value.const_value is not None) < 2000
    assert same(model, case.model, feed, evaluator, 1e-5)


@pytest.mark.parametrize(
    "body",
    [
        "a = Conv(x, w) y = Relu(a)",  # alone ATC does the same
        "a = Conv(x, w) l = LpNormalization<axis = 2>(a) y = Conv(l, w)",  # between them stands what counts axes
        "v = Relu(w) a = Conv(x, v) y = Conv(a, v)",  # a computed weight
    ],
)
def test_other_convolutions_stay(body: str, evaluator: Evaluator) -> None:
    text = f'<ir_version: 8, opset_import: ["" : 13]> agraph (float[1,2,9] x) => (float y) <float[2,2,1] w = {{1.0, 2.0, 3.0, 4.0}}> {{ {body} }}'
    assert not applied(ir.from_onnx_text(text), "PF805", random_feed((1, 2, 9)), evaluator)[1]


def test_sizes_off_the_block_are_named_once() -> None:
    text = """<ir_version: 8, opset_import: ["" : 13]> agraph (float[1,197,64] q, float[1,64,197] k, float[1,197,20] v) => (float y)
        <float[20,7] w = {0.0}> { s = MatMul(q, k) a = Softmax<axis = -1>(s) m = MatMul(a, v) y = MatMul(m, w) }"""
    proto = onnx.parser.parse_model(text.replace("= {0.0}", "= {" + ", ".join(["0.5"] * 140) + "}"))
    found = [finding for finding in check(ir.from_proto(proto), soc="Ascend310P3").record.findings if finding.code == "PF806"]
    said = [finding.message.render("en") for finding in found]
    assert [message.split(" ")[0] for message in said] == ["1", "2"]  # 20 once, 197 twice; 64 is whole, and 7 is within a block
    assert "208" in found[1].remedy.render("en")


@pytest.mark.parametrize(
    ("shape", "axis", "named"), [("1,2000,3", 2, True), ("1,2000,3", 1, False), ("1,20,3", 2, False), ("1,2000,16", 2, False)]
)
def test_a_softmax_over_few_is_named(shape: str, axis: int, named: bool) -> None:
    text = f'<ir_version: 8, opset_import: ["" : 13]> agraph (float[{shape}] x) => (float[{shape}] y) {{ y = Softmax<axis = {axis}>(x) }}'
    record = check(ir.from_onnx_text(text), soc="Ascend310P3").record
    assert any(finding.code == "PF807" for finding in record.findings) == named
