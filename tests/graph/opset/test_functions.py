"""Local functions, bodies and what is written out by the body of a schema: all of it ends up at the wanted opset."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from opset_models import assert_same, converted, unary, x_of

from jumar.graph import Evaluator, all_nodes, copy_model, infer_shapes, source_line
from jumar.graph.opset import RULE, Unconvertible, convert_opset

HEAD = '<ir_version: 8, opset_import: ["" : {opset}, "mine" : 1]>\n'
FUNCTION = '\n<domain: "mine", opset_import: ["" : {opset}]>\n{text}'


def with_function(graph: str, function: str, opset: int = 18, own: int | None = None) -> ir.Model:
    return ir.from_onnx_text(HEAD.format(opset=opset) + graph + FUNCTION.format(opset=own or opset, text=function))


def both(model: ir.Model, version: int) -> tuple[ir.Model, ir.Model]:
    after = copy_model(model)
    infer_shapes(after)
    convert_opset(after, version)
    onnx.checker.check_model(ir.to_proto(after), full_check=True)
    return model, after


GRAPH = "agraph (float[{rows},3,4] x) => (float[{rows},3,4] y) {{ y = mine.f(x) }}"


def test_a_function_is_converted_where_it_stands(evaluator: Evaluator) -> None:
    """Its constants stay nodes: a function has no weights."""
    before, after = both(
        with_function(
            GRAPH.format(rows=1),
            "f (a) => (b) { c = HardSwish(a) d = Shape<start = 1>(c) e = Reshape(c, d) f = Constant<value_ints = [0]>() b = Unsqueeze(e, f) }",
        ),
        11,
    )
    (function,) = after.functions.values()
    assert function.opset_imports == {"": 11}
    assert "HardSwish" not in {node.op_type for node in all_nodes(after)}
    assert not function.graph.initializers
    assert_same(before, after, evaluator, {"x": x_of(1, 3, 4)})


def test_a_function_that_needs_ranks_is_inlined(evaluator: Evaluator) -> None:
    before, after = both(with_function(GRAPH.format(rows=2), "f (a) => (b) { b = Softmax<axis = 1>(a) }"), 11)
    assert not after.functions
    assert [node.op_type for node in after.graph] == ["Transpose", "Softmax", "Transpose"]
    assert_same(before, after, evaluator, {"x": x_of(2, 3, 4)})


def test_a_function_whose_attribute_the_caller_gives_is_inlined(evaluator: Evaluator) -> None:
    graph = "agraph (float[2,3,4] x) => (float[2,3,4] y) { y = mine.f<slope = 0.5>(x) }"
    before, after = both(with_function(graph, "f <slope> (a) => (b) { b = Celu<alpha: float = @slope>(a) }"), 11)
    assert not after.functions and "Celu" not in {node.op_type for node in after.graph}
    assert_same(before, after, evaluator, {"x": x_of(2, 3, 4)})


def test_a_function_goes_up_from_its_own_opset(evaluator: Evaluator) -> None:
    function = "f (a) => (b) { c = Squeeze<axes = [0]>(a) b = Unsqueeze<axes = [0]>(c) }"
    before, after = both(with_function(GRAPH.format(rows=1), function, 11), 18)
    (found,) = after.functions.values()
    assert found.opset_imports == {"": 18}
    assert_same(before, after, evaluator, {"x": x_of(1, 3, 4)})


def test_a_function_that_cannot_be_converted_is_refused() -> None:
    model = with_function("agraph (float[2,2] x) => (float[N] y) { y = mine.f(x) }", "f (a) => (b) { b = Det(a) }", 11)
    infer_shapes(model)
    with pytest.raises(Unconvertible, match="Det"):
        convert_opset(model, 10)


def test_names_never_collide_and_say_where_they_come_from(evaluator: Evaluator) -> None:
    text = unary('["n"] y = LayerNormalization(x, s) ["n/Sub"] z = Relu(x)', weights="float[4] s = {1, 2, 3, 4}").replace(
        "(float[2,3,4] y)", "(float[2,3,4] y, float[2,3,4] z)"
    )
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}')
    trace = 'File "/home/me/net.py", line 7, in forward'
    next(iter(model.graph)).metadata_props["pkg.torch.onnx.stack_trace"] = trace
    before, after = both(model, 11)
    made = [node for node in after.graph if node.metadata_props.get("jumar.rule") == RULE]
    assert {source_line(node) for node in made} == {"/home/me/net.py:7"}
    for names in ([node.name for node in after.graph], [value.name for node in after.graph for value in node.outputs]):
        assert len(names) == len({*names})
    assert_same(before, after, evaluator, {"x": x_of(2, 3, 4, edges=False)}, written_out=True)


def test_shapes_that_are_known_become_weights() -> None:
    """ATC reads axes and shapes as constants only; nothing computes them."""
    text = "agraph (float[2,3,8,16] q, float[2,3,8,16] k, float[2,3,8,16] v) => (float[2,3,8,16] y) { y = Attention(q, k, v) }"
    for version in (18, 11):
        _, after, _ = converted(text, 23, version)
        used = {node.op_type for node in after.graph}
        assert not used & {"Shape", "Gather", "Concat", "Cast", "Constant", "ConstantOfShape", "Range"}
        assert {"MatMul", "Softmax"} <= used


@pytest.mark.parametrize("version", [18, 11])
def test_a_body_that_a_schema_carries_computes_the_same(version: int, evaluator: Evaluator) -> None:
    text = (
        "agraph (float[2,3,8,16] q, float[2,3,8,16] k, float[2,3,8,16] v, float[8,8] m) => (float[2,3,8,16] y) "
        "{ y = Attention<softcap = 2.0>(q, k, v, m) }"
    )
    before, after, places = converted(text, 23, version)
    assert places == ["Attention -> y"]
    random = np.random.default_rng(0)
    shapes = {"q": (2, 3, 8, 16), "k": (2, 3, 8, 16), "v": (2, 3, 8, 16), "m": (8, 8)}
    feeds = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    assert_same(before, after, evaluator, feeds, written_out=True)
    # Another scale would be seen.
    wrong = text.replace("softcap = 2.0", "softcap = 2.01")
    with pytest.raises(AssertionError):
        assert_same(before, converted(wrong, 23, version)[1], evaluator, feeds, written_out=True)
