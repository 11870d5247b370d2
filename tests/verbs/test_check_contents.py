"""Everything a model can hold: ``check`` gives a record, with the operator named, and never an exception that is not Jumar's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from jumar import JumarError, Record, check
from jumar.graph import all_nodes, load
from jumar.targets import find_target

SOC = "Ascend310P3"
INNER = {
    "If": """<ir_version: 8, opset_import: ["" : 13]>
agraph (bool c, float[2] x) => (float[2] y) {
  y = If (c) <then_branch = t () => (float[2] a) { a = Nonsense(x) }, else_branch = e () => (float[2] b) { b = Relu(x) }>
}""",
    "Loop": """<ir_version: 8, opset_import: ["" : 13]>
agraph (int64 n, bool c, float[2] x) => (float[2] y) {
  y = Loop (n, c, x) <body = g (int64 i, bool k, float[2] s) => (bool m, float[2] t) { m = Identity(k) t = Nonsense(s) }>
}""",
    "Scan": """<ir_version: 8, opset_import: ["" : 13]>
agraph (float[3,2] x) => (float[3,2] y) {
  y = Scan <num_scan_inputs = 1, body = g (float[2] s) => (float[2] t) { t = Nonsense(s) }> (x)
}""",
    "If in Loop": """<ir_version: 8, opset_import: ["" : 13]>
agraph (int64 n, bool c, float[2] x) => (float[2] y) {
  y = Loop (n, c, x) <body = g (int64 i, bool k, float[2] s) => (bool m, float[2] t) {
    m = Identity(k)
    t = If (k) <then_branch = u () => (float[2] a) { a = Nonsense(s) }, else_branch = e () => (float[2] b) { b = Relu(s) }>
  }>
}""",
    "local function": """<ir_version: 8, opset_import: ["" : 13, "own" : 1]>
agraph (float[2] x) => (float[2] y) { y = own.f(x) }
<domain: "own", opset_import: ["" : 13]>
f (a) => (b) { b = Nonsense(a) }""",
}


def found(record: Record, code: str) -> list[str]:
    return [str(finding.op) for finding in record.findings if finding.code == code]


def on(model: onnx.ModelProto | ir.Model, soc: str = SOC) -> Record:
    return check(model if isinstance(model, ir.Model) else ir.from_proto(model), soc=soc).record


@pytest.mark.parametrize("text", INNER.values(), ids=INNER)
def test_an_operator_in_a_body_or_function_is_found(text: str) -> None:
    model = ir.from_onnx_text(text)
    record = on(model)
    assert "Nonsense" in found(record, "OP101")
    assert record.verdict == "blocked"
    calls = {"f"} & {node.op_type for node in all_nodes(model)}
    assert record.placement is not None and sum(record.placement.to_dict().values()) == len(list(all_nodes(model))) - len(calls)


@pytest.mark.parametrize(
    ("domain", "op", "says"),
    [
        ("mmcv", "MMCVRoIAlign", "MMDeploy"),
        ("", "FindMax", "SD-XL"),
        ("com.microsoft", "GatherBlockQuantized", "ONNX Runtime"),
        ("own", "Thing", "host"),
    ],
)
def test_an_operator_of_another_domain_is_named_with_its_package(domain: str, op: str, says: str) -> None:
    finding = next(item for item in on(one(op, domain=domain)).findings if item.code == "OP101")
    assert finding.op == (f"{domain}::{op}" if domain else op) and op in str(finding.message) and says in str(finding.remedy)


def test_an_operator_of_ascend_is_no_stranger() -> None:
    record = on(one("AscendQuant"))
    assert found(record, "OP101") == [] == found(record, "OP102")


def test_a_domain_that_is_imported_and_not_used_is_reported() -> None:
    model = ir.from_proto(one("Relu"))
    model.opset_imports["com.microsoft"] = 1
    assert on(model).verdict == "warnings" and "GR502" in {finding.code for finding in on(model).findings}


def value(name: str, dtype: int = TensorProto.FLOAT, shape: list[int] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, [2, 3] if shape is None else shape)


def one(op: str, dtype: int = TensorProto.FLOAT, *, domain: str = "", opset: int = 13, **attributes: object) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"], domain=domain, **attributes)], "g", [value("x", dtype)], [value("y", dtype)]
    )
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=imports)


def sparse() -> onnx.ModelProto:
    model = one("Relu")
    values = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("i", TensorProto.INT64, [1], [4])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 3]))
    model.graph.node[0].CopyFrom(helper.make_node("Add", ["x", "w"], ["y"]))
    return model


def sequence() -> onnx.ModelProto:
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 3]))
    nodes = [helper.make_node("SequenceConstruct", ["x", "x"], ["s"]), helper.make_node("SequenceAt", ["q", "i"], ["y"])]
    inputs = [value("x"), helper.make_value_info("q", kind), value("i", TensorProto.INT64, [])]
    return helper.make_model(
        helper.make_graph(nodes, "g", inputs, [helper.make_value_info("s", kind), value("y")]), opset_imports=[helper.make_opsetid("", 13)]
    )


def optional() -> onnx.ModelProto:
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 3]))
    nodes = [helper.make_node("OptionalHasElement", ["o"], ["b"]), helper.make_node("OptionalGetElement", ["o"], ["y"])]
    return helper.make_model(
        helper.make_graph(nodes, "g", [helper.make_value_info("o", kind)], [value("b", TensorProto.BOOL, []), value("y")]),
        opset_imports=[helper.make_opsetid("", 18)],
    )


def shapeless() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Nonsense", ["x"], ["t"]),
        helper.make_node("Conv", ["t", "w"], ["u"]),
        helper.make_node("MatMul", ["u", "u"], ["y"]),
    ]
    ends = [onnx.ValueInfoProto(name=name) for name in ("x", "w", "y")]
    return helper.make_model(helper.make_graph(nodes, "g", ends[:2], ends[2:]), opset_imports=[helper.make_opsetid("", 13)])


HELD = {
    "sequences": sequence(),
    "optionals": optional(),
    "no shapes": shapeless(),
    "strings": one("Identity", TensorProto.STRING),
    "bfloat16": one("Relu", TensorProto.BFLOAT16),
    "float8": one("Identity", TensorProto.FLOAT8E4M3FN, opset=19),
    "int4": one("Identity", TensorProto.INT4, opset=21),
    "float4": one("Identity", TensorProto.FLOAT4E2M1, opset=23),
    "no nodes": helper.make_model(helper.make_graph([], "g", [value("x")], [value("x")])),
    "no standard opset": helper.make_model(helper.make_graph([], "g", [], []), opset_imports=[helper.make_opsetid("own", 1)]),
}


@pytest.mark.parametrize("soc", [SOC, "BS9SX1AA", "Ascend910B3"])
@pytest.mark.parametrize("model", HELD.values(), ids=HELD)
def test_whatever_a_model_holds_there_is_a_verdict(model: onnx.ModelProto, soc: str) -> None:
    assert on(model, soc).verdict in ("ready", "warnings", "blocked")


@pytest.mark.parametrize("where", ["graph", "body"])
def test_a_sparse_initializer_of_a_file_is_written_out(where: str, tmp_path: Path) -> None:
    path, model = tmp_path / "sparse.onnx", sparse()
    if where == "body":
        inner = helper.make_graph(list(model.graph.node), "t", [], [value("y")])
        inner.sparse_initializer.extend(model.graph.sparse_initializer)
        other = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "e", [], [value("y")])
        model = one("Relu")
        model.graph.node[0].CopyFrom(helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=other))
        model.graph.input.append(value("c", TensorProto.BOOL, []))
    onnx.save(model, path)
    graph = next(graph for graph in load(path).graphs() if "w" in graph.initializers)
    weight = graph.initializers["w"].const_value
    assert weight is not None and weight.numpy().tolist() == [[0, 0, 0], [0, 1, 0]]
    assert check(path, soc=SOC).record.verdict in ("ready", "warnings", "blocked")


def test_a_model_in_pieces_is_an_error_with_a_remedy() -> None:
    """onnx_ir drops sparse initializers, so that a model from memory misses the tensor."""
    with pytest.raises(JumarError, match="cannot be copied") as caught:
        on(sparse())
    assert "path of the file" in caught.value.render("en") and "\n" not in caught.value.render("zh")


@pytest.mark.parametrize(
    ("inputs", "attributes", "says"), [(["x"], {"perm": 3}, "attribute perm"), ([], {"perm": [0, 1]}, "number of inputs")]
)
def test_a_node_from_memory_that_is_no_onnx_is_an_error(inputs: list[str], attributes: dict[str, object], says: str) -> None:
    model = one("Relu")
    model.graph.node[0].CopyFrom(helper.make_node("Transpose", inputs, ["y"], **attributes))
    with pytest.raises(JumarError, match=says):
        on(model)


@pytest.mark.parametrize(("name", "code"), [("sequences", "OP105"), ("bfloat16", "DT309"), ("float8", "OP110"), ("no shapes", "OP109")])
def test_what_they_hold_is_reported(name: str, code: str) -> None:
    assert code in {finding.code for finding in on(HELD[name]).findings}


@pytest.mark.parametrize("opset", range(7, onnx.defs.onnx_opset_version() + 1))
def test_every_opset_gets_a_verdict_and_only_those_of_the_parser_can_be_ready(opset: int) -> None:
    target = find_target(SOC)
    assert (on(one("Relu", opset=opset)).verdict == "ready") is (target.opset_min <= opset <= target.opset_max)


OPERATORS = sorted({schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == ""})
NAMES = ("x", "y", "z", "")


@st.composite
def strange_models(draw: st.DrawFn) -> onnx.ModelProto:
    """Nodes of any operator with any number of inputs, attributes of any kind and inputs of any dtype and shape, mostly invalid."""
    attribute = st.one_of(
        st.integers(-3, 9),
        st.floats(-2, 2),
        st.sampled_from(["", "NOTSET", "linear"]),
        st.lists(st.integers(-2, 300), min_size=1, max_size=4),
    )
    names = st.sampled_from(
        ["axis", "axes", "mode", "pads", "perm", "kernel_shape", "strides", "dilations", "to", "k", "batch_dims", "activations"]
    )
    nodes = []
    for index in range(draw(st.integers(1, 3))):
        inputs = draw(st.lists(st.sampled_from(["a", "b", "c", "", *(f"v{item}" for item in range(index))]), max_size=5))
        attributes = draw(st.dictionaries(names, attribute, max_size=3))
        nodes.append(helper.make_node(draw(st.sampled_from(OPERATORS)), inputs, [f"v{index}"], **attributes))
    dtypes = st.sampled_from(sorted(set(TensorProto.DataType.values()) - {0}))
    shapes = st.one_of(st.none(), st.lists(st.sampled_from([0, 1, 3, "n", None]), max_size=9))
    ends = [helper.make_tensor_value_info(name, draw(dtypes), draw(shapes)) for name in ("a", "b")]
    constant = helper.make_tensor("c", TensorProto.INT64, [2], np.array([draw(st.integers(-5, 5000)), -1]))
    graph = helper.make_graph(nodes, "g", ends, [onnx.ValueInfoProto(name=nodes[-1].output[0])], [constant])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", draw(st.integers(1, 26)))])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(model=strange_models())
def test_no_model_makes_check_fail_in_another_way_than_jumars(model: onnx.ModelProto) -> None:
    try:
        record = check(ir.from_proto(model), soc=SOC).record
    except JumarError:
        return
    assert record.placement is not None and sum(record.placement.to_dict().values()) == len(model.graph.node)
