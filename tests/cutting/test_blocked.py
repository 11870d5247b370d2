"""Which nodes are blocked, and for whose sake."""

from __future__ import annotations

import onnx_ir as ir

from jumar.case import Finding, Severity
from jumar.cutting import blocked_nodes, causes, followers, still_wrong
from jumar.graph import infer_shapes
from jumar.text import say


def finding(place: str, severity: Severity = "error") -> Finding:
    return Finding("OP103", "no-kernel", severity, say("a", "a"), say("b", "b"), say("c", "c"), node=place)


def model(text: str) -> ir.Model:
    made = ir.from_onnx_text('<ir_version: 8, opset_import: ["" : 13]> agraph ' + text)
    for number, node in enumerate(made.graph):
        node.name = f"n{number}"
    infer_shapes(made)
    return made


COUNT = "(float[4] x) => (float y) { z = NonZero(x) c = Cast<to = 1>(z) s = ReduceSum<keepdims = 0>(c) y = Neg(s) }"


def test_sizes_that_depend_on_the_data_block_their_makers_and_readers() -> None:
    found = blocked_nodes(model(COUNT), ())
    assert [node.op_type for node in found] == ["NonZero", "Cast", "ReduceSum"]
    assert causes(found) == {("NonZero", ""): ["n0"]}
    assert followers(found) == {"Cast": 1, "ReduceSum": 1}


def test_open_inputs_say_nothing_of_the_data() -> None:
    assert not blocked_nodes(model(COUNT.replace("float[4]", "float[n]")), ())


def test_errors_block_and_warnings_do_not() -> None:
    made = model("(float[4] x) => (float[4] y) { a = Relu(x) b = Neg(a) y = Abs(b) }")
    found = blocked_nodes(made, [finding("n0"), finding("n1", "warning")])
    assert [node.name for node in found] == ["n0"] and causes(found) == {("Relu", "OP103"): ["n0"]}
    assert [node.name for node in blocked_nodes(made, (), more={"y": "OP101"})] == ["n2"]


def test_an_error_in_a_body_blocks_the_node_that_has_it() -> None:
    made = model(
        """(float[4] x, bool c) => (float[4] y) { y = If (c) <
        then_branch = one () => (float[4] t) { t = Relu(x) }, else_branch = two () => (float[4] e) { e = Neg(x) }> }"""
    )
    inner = next(node for graph in made.graphs() if graph is not made.graph for node in graph)
    inner.name = "inner"
    assert [node.op_type for node in blocked_nodes(made, [finding("inner")])] == ["If"]


def test_an_error_of_the_fixed_part_is_led_back_to_what_was_there() -> None:
    """`y` was there before; what it is made of now was not."""
    fixed = model("(float[4] x) => (float[4] y, float[4] z) { a = Relu(x) b = Neg(a) y = Abs(b) z = Abs(x) }")
    assert still_wrong(fixed, [finding("n0")], {"y", "z"}) == {"y": "OP103"}
    assert still_wrong(fixed, [finding("n0", "warning")], {"y", "z"}) == {}
