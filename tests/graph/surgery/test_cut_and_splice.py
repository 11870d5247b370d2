"""Pieces put together again compute what the whole does; names, interfaces and the given model are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper

from jumar import ShapeError, UsageError
from jumar.graph import (
    Evaluator,
    concat,
    cut,
    extract,
    infer_shapes,
    insert,
    load,
    pin,
    remove,
    rename,
    replace,
    replace_between,
    save,
    set_inputs,
    set_outputs,
)

QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
Arrays = dict[str, Any]

BODIES = """<ir_version: 8, opset_import: ["" : 16, "local" : 1]>
agraph (float[2,n] x, bool c) => (float[2,n] y, float[2,n] a) <float[2,1] w = {1, 2}> {
    a = Relu(x)
    b = Mul(a, w)
    d = If (c) <
        then_branch = t () => (float[2,n] p) { p = Add(b, a) },
        else_branch = e () => (float[2,n] q) { q = Sub(b, x) }
    >
    y = local.twice(d)
}
<domain: "local", opset_import: ["" : 16]> twice (u) => (v) { s = Neg(u) v = Add(u, s) }
"""


def model_of(text: str) -> ir.Model:
    return ir.from_onnx_text(text if text.startswith("<") else f'<ir_version: 8, opset_import: ["" : 16]>\n{text}')


def valid(model: ir.Model) -> ir.Model:
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
    return model


def text_of(model: ir.Model) -> bytes:
    return ir.to_proto(model).SerializeToString(deterministic=True)


def ops(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph]


def names(values: Sequence[ir.Value]) -> list[str | None]:
    return [value.name for value in values]


def feeds_of(model: ir.Model, known: Arrays) -> Arrays:
    return {value.name or "": known[value.name or ""] for value in model.graph.inputs}


def equal(found: Arrays, expected: Arrays) -> None:
    """Bit for bit: only the structure changed."""
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)


@pytest.fixture
def bodies() -> ir.Model:
    return model_of(BODIES)


def refusal(action: Callable[[], object], kind: type[UsageError] = UsageError) -> str:
    with pytest.raises(kind) as caught:
        action()
    assert caught.value.found.render("zh") and "\n" not in str(caught.value)
    return str(caught.value)


# Random models


@st.composite
def random_models(draw: st.DrawFn) -> ir.Model:
    """A graph of elementwise nodes, with bodies of If and Loop that read tensors of the graph around them."""
    nodes, made = [], ["x", "z", "w"]

    def pick() -> str:
        return draw(st.sampled_from(made))

    def end(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 3])

    for number in range(draw(st.integers(2, 8))):
        kind, out = draw(st.sampled_from(["Neg", "Abs", "Add", "Mul", "If", "Loop", "Split"])), f"t{number}"
        if kind in ("Neg", "Abs"):
            nodes.append(helper.make_node(kind, [pick()], [out], f"n{number}"))
        elif kind in ("Add", "Mul"):
            nodes.append(helper.make_node(kind, [pick(), pick()], [out], f"n{number}"))
        elif kind == "If":
            branches = {
                branch: helper.make_graph(
                    [helper.make_node(op, [pick(), pick()], [f"{out}_{op}"])], f"{out}_{branch}", [], [end(f"{out}_{op}")]
                )
                for branch, op in (("then_branch", "Add"), ("else_branch", "Sub"))
            }
            nodes.append(helper.make_node("If", ["c"], [out], f"n{number}", **branches))
        elif kind == "Loop":
            inside = [f"{out}_{item}" for item in ("step", "going", "held", "still", "next")]
            body = helper.make_graph(
                [helper.make_node("Identity", [inside[1]], [inside[3]]), helper.make_node("Sub", [inside[2], pick()], [inside[4]])],
                f"{out}_body",
                [
                    helper.make_tensor_value_info(inside[0], onnx.TensorProto.INT64, []),
                    helper.make_tensor_value_info(inside[1], onnx.TensorProto.BOOL, []),
                    end(inside[2]),
                ],
                [helper.make_tensor_value_info(inside[3], onnx.TensorProto.BOOL, []), end(inside[4])],
            )
            nodes.append(helper.make_node("Loop", ["trips", "", pick()], [out], f"n{number}", body=body))
        else:
            nodes.append(helper.make_node("Split", [pick()], [f"{out}_l", f"{out}_r"], f"n{number}s", axis=0))
            nodes.append(helper.make_node("Concat", [f"{out}_r", f"{out}_l"], [out], f"n{number}", axis=0))
        made.append(out)
    ends = draw(st.lists(st.sampled_from(made[3:]), min_size=1, max_size=2, unique=True))
    if made[-1] not in ends:
        ends.append(made[-1])
    inputs = [end("x"), end("z"), helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, [])]
    weights = [
        helper.make_tensor("w", onnx.TensorProto.FLOAT, [2, 3], [0.5, -1, 2, 3, 1, -2]),
        helper.make_tensor("trips", onnx.TensorProto.INT64, [], [2]),
    ]
    known = [end(name) for name in made[3:]]  # ONNX infers no rank for what a Loop makes
    graph = helper.make_graph(nodes, "random", inputs, [end(name) for name in ends], weights, value_info=known)
    return ir.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8))


def inputs_of(seed: int) -> Arrays:
    random = np.random.default_rng(seed)
    draw = random.standard_normal
    return {"x": draw((2, 3)).astype(np.float32), "z": draw((2, 3)).astype(np.float32), "c": np.array(bool(seed % 2))}


def inner_tensors(model: ir.Model) -> list[str]:
    return [value.name for node in model.graph for value in node.outputs if value.name and value.name.startswith("t")]


@QUICK
@given(model=random_models(), data=st.data())
def test_a_model_cut_anywhere_computes_the_same(model: ir.Model, data: st.DataObject, evaluator: Evaluator) -> None:
    before_bytes = text_of(model)
    tensors = data.draw(st.lists(st.sampled_from(inner_tensors(model)), min_size=1, max_size=2, unique=True))
    try:
        parts = cut(model, tensors)
    except UsageError as error:
        assert "nothing is left" in str(error)
        return
    known = inputs_of(data.draw(st.integers(0, 3)))
    first = evaluator.run(valid(parts.before), feeds_of(parts.before, known))
    assert {*tensors, *parts.carried} <= first.keys()
    second = evaluator.run(valid(parts.after), feeds_of(parts.after, {**known, **first}))
    expected = evaluator.run(model, feeds_of(model, known))
    equal({name: {**first, **second}[name] for name in expected}, expected)
    assert text_of(model) == before_bytes


@QUICK
@given(model=random_models(), data=st.data())
def test_an_extracted_part_computes_what_the_model_does_there(model: ir.Model, data: st.DataObject, evaluator: Evaluator) -> None:
    outputs = data.draw(st.lists(st.sampled_from(inner_tensors(model)), min_size=1, max_size=2, unique=True))
    chosen = data.draw(st.lists(st.sampled_from(["w", *inner_tensors(model)]), max_size=2, unique=True))
    piece = valid(extract(model, [*chosen, "x", "z", "c"], outputs))
    every = set_outputs(model, [*inner_tensors(model)])
    known = inputs_of(1)
    values = {**known, "w": model.graph.initializers["w"].const_value.numpy(), **evaluator.run(every, feeds_of(every, known))}  # type: ignore[union-attr]
    found = evaluator.run(piece, feeds_of(piece, values))
    equal(found, {name: values[name.removesuffix("_output")] for name in found})


@QUICK
@given(model=random_models(), data=st.data())
def test_concat_joins_what_cut_separated(model: ir.Model, data: st.DataObject, evaluator: Evaluator) -> None:
    try:
        parts = cut(model, [data.draw(st.sampled_from(inner_tensors(model)))])
    except UsageError:
        return
    seam = [name for name in names(parts.after.graph.inputs) if name in names(parts.before.graph.outputs)]
    if not seam:  # a tensor that nobody reads
        return
    known = inputs_of(2)
    joined = valid(concat(parts.before, parts.after, {name: name for name in seam if name}, keep_outputs=True))
    found = evaluator.run(joined, {name or "": known[(name or "").removeprefix("second/")] for name in names(joined.graph.inputs)})
    expected = evaluator.run(model, feeds_of(model, known))
    equal({name: found[f"second/{name}" if f"second/{name}" in found else name] for name in expected}, expected)


@QUICK
@given(model=random_models(), data=st.data())
def test_new_names_change_no_value(model: ir.Model, data: st.DataObject, evaluator: Evaluator) -> None:
    scopes = [value.name or "" for graph in model.graphs() for node in graph for value in node.outputs if value.name]
    every = sorted({*scopes, "x", "z", "c", "w", "trips"})
    chosen = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True))
    # A rotation of names that are all taken, and one new name.
    mapping = dict(zip(chosen, [*chosen[1:], chosen[0]], strict=True)) if len(chosen) > 1 else {chosen[0]: "new name"}
    before_bytes = text_of(model)
    renamed = valid(rename(model, mapping))
    known = inputs_of(3)
    found = evaluator.run(renamed, {mapping.get(name, name): array for name, array in feeds_of(model, known).items()})
    equal(found, {mapping.get(name, name): array for name, array in evaluator.run(model, feeds_of(model, known)).items()})
    assert text_of(model) == before_bytes


@QUICK
@given(model=random_models(), data=st.data())
def test_an_inserted_node_can_be_removed_again(model: ir.Model, data: st.DataObject, evaluator: Evaluator) -> None:
    tensor = data.draw(st.sampled_from(["x", "w", *inner_tensors(model)]))
    position = data.draw(st.sampled_from(["after", "before"])) if tensor != "x" else "after"
    longer = valid(insert(model, tensor, "Neg", position=position, name="extra"))  # type: ignore[arg-type]
    known = inputs_of(1)
    expected = evaluator.run(model, feeds_of(model, known))
    equal(evaluator.run(valid(remove(longer, "extra")), feeds_of(model, known)), expected)
    twice = insert(longer, next(node for node in longer.graph if node.name == "extra").outputs[0].name or "", "Neg")
    equal(evaluator.run(valid(twice), feeds_of(model, known)), expected)


def test_a_planted_error_is_noticed(evaluator: Evaluator) -> None:
    """What the tests above compare does differ for an edit that is wrong."""
    model = model_of("agraph (float[2,3] x) => (float[2,3] y) { a = Neg(x) y = Exp(a) }")
    wrong = remove(model, "a")
    with pytest.raises(AssertionError):
        equal(evaluator.run(wrong, {"x": X}), evaluator.run(model, {"x": X}))


# extract


def test_extract_keeps_captures_functions_and_their_imports(bodies: ir.Model, evaluator: Evaluator) -> None:
    piece = valid(extract(bodies, ["a", "x", "c"], ["y"]))
    assert names(piece.graph.inputs) == ["a", "x", "c"] and list(piece.functions) == [("local", "twice", "")]
    assert not extract(bodies, ["x"], ["b"]).functions
    feeds = {"a": X, "x": X, "c": np.array(False)}
    equal(evaluator.run(piece, feeds), {"y": np.zeros_like(X)})


def test_an_input_or_weight_can_be_an_output(bodies: ir.Model, evaluator: Evaluator) -> None:
    piece = valid(extract(bodies, ["a"], ["a", "w", "b"]))
    assert names(piece.graph.outputs) == ["a_output", "w", "b"]
    w = np.array([[1], [2]], np.float32)
    equal(evaluator.run(piece, {"a": X}), {"a_output": X, "w": w, "b": X * w})
    assert bodies.graph.initializers["w"].const_value.name == "w"  # type: ignore[union-attr]


def test_a_default_value_stays_one(evaluator: Evaluator) -> None:
    model = model_of("agraph (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { a = Neg(x) y = Add(a, w) }")
    piece = valid(extract(model, ["a"], ["y"]))
    assert names(piece.graph.inputs) == ["a", "w"] and "w" in piece.graph.initializers
    fed = valid(extract(model, ["a", "w"], ["y"]))
    assert names(fed.graph.inputs) == ["a", "w"] and not fed.graph.initializers


@pytest.mark.parametrize(
    ("inputs", "outputs", "says"),
    [
        (["aa"], ["y"], "nearest: `a`"),
        (["a"], ["y"], "also need `x`, `c`"),
        (["x"], ["p"], "no tensor in its main graph `p`"),
        (["x", "x"], ["b"], "given twice"),
        (["x"], [], "no outputs"),
    ],
)
def test_a_part_that_cannot_be_is_refused(bodies: ir.Model, inputs: list[str], outputs: list[str], says: str) -> None:
    assert says in refusal(lambda: extract(bodies, inputs, outputs))


def test_a_tensor_of_unknown_type_is_no_end() -> None:
    model = model_of('<ir_version: 8, opset_import: ["" : 16, "x" : 1]> agraph (float[2] x) => (float[2] y) { a = x.f(x) y = Neg(a) }')
    assert "dtype or rank of `a` is not known" in refusal(lambda: extract(model, ["x"], ["a"]))


def test_a_path_is_read(relu: Path) -> None:
    assert ops(extract(relu, ["x"], ["y"])) == ["Relu"]


# cut, inputs, outputs, pin


def test_cut_tells_what_it_carries(bodies: ir.Model) -> None:
    parts = cut(bodies, ["b"])
    assert parts.carried == ("a",)
    assert names(parts.before.graph.outputs) == ["b", "a"] and names(parts.after.graph.inputs) == ["a", "b", "x", "c"]
    assert names(parts.after.graph.outputs) == ["y"]


def test_constants_are_on_both_sides_of_a_cut_and_random_ones_are_not() -> None:
    text = "agraph (float[2] x) => (float[2] y) {{ k = {source} a = Add(x, k) y = Mul(a, k) }}"
    constant, random = "Constant<value_floats = [1.0, 2.0]>()", "RandomNormal<shape = [2]>()"
    assert cut(model_of(text.format(source=constant)), ["a"]).carried == ()
    assert cut(model_of(text.format(source=random)), ["a"]).carried == ("k",)


@pytest.mark.parametrize(
    ("tensors", "says"), [(["x"], "is an input or a weight"), (["y", "a"], "nothing is left"), ([], "nothing is left")]
)
def test_a_cut_that_leaves_nothing_is_refused(bodies: ir.Model, tensors: list[str], says: str) -> None:
    assert says in refusal(lambda: cut(bodies, tensors))


def test_outputs_and_inputs_are_chosen_and_ordered(bodies: ir.Model) -> None:
    assert names(valid(set_outputs(bodies, ["d", "y"])).graph.outputs) == ["d", "y"]
    assert names(valid(set_inputs(bodies, ["c", "x"])).graph.inputs) == ["c", "x"]
    assert "also need `c`" in refusal(lambda: set_inputs(bodies, ["x"]))


def test_pin_returns_a_new_model(bodies: ir.Model) -> None:
    pinned = pin(bodies, {"x": (2, 5)})
    assert pinned.graph.outputs[0].shape == ir.Shape([2, 5]) and bodies.graph.inputs[0].shape == ir.Shape([2, "n"])
    for shapes in ({"x": (3, 5)}, {"x": (2,)}, {"x": (2, -1)}, {"q": (1,)}):
        refusal(lambda shapes=shapes: pin(bodies, shapes), ShapeError)  # type: ignore[misc]


# insert, remove, replace


def test_only_chosen_consumers_read_an_inserted_node(bodies: ir.Model) -> None:
    model = valid(insert(bodies, "x", "Neg", consumers=["q"]))
    assert [value.name for value in next(node for node in model.graph if node.op_type == "Relu").inputs if value] == ["x"]
    assert "x/Neg_output" in str(model.graph)
    assert "no reader of `x` called `b`" in refusal(lambda: insert(bodies, "x", "Neg", consumers=["b"]))


def test_a_node_is_inserted_in_bodies_and_functions(bodies: ir.Model, evaluator: Evaluator) -> None:
    scale = np.full((2, 1), 10, np.float32)
    for tensor, c in (("p", True), ("s", False)):
        model = valid(insert(bodies, tensor, "Mul", inputs=[scale]))
        found = evaluator.run(model, {"x": X, "c": np.array(c)})["y"]
        d = np.maximum(X, 0) * [[1], [2]] - X if not c else None
        np.testing.assert_array_equal(found, np.zeros_like(X) if d is None else d - 10 * d)


@pytest.mark.parametrize(
    ("action", "says"),
    [
        (lambda m: insert(m, "a", "Cast", attributes={"to": 7}), "reads tensor(int64) and tensor(float)"),
        (lambda m: insert(m, "a", "NoSuchOp"), "NoSuchOp"),
        (lambda m: insert(m, "a", "Add", inputs=["y"]), "from its own result"),
        (lambda m: insert(m, "x", "Neg", position="before"), "is an input"),
        (lambda m: insert(m, "a", "Neg", scope="nowhere"), "no body or function `nowhere`"),
        (lambda m: replace(m, "b", "Shape", inputs=["a"]), "would be int64[2]"),
        (lambda m: replace(m, "b", model_of("agraph (float[2] q) => (float[2] r, float[2] s) { r = Neg(q) s = Abs(q) }")), "expected 1"),
        (lambda m: replace(m, "b", [helper.make_node("Neg", ["a"], ["other"])]), "do not make `b`"),
        (lambda m: replace(m, ["a", "p"], "Neg"), "not of one graph"),
        (lambda m: replace_between(m, ["x"], ["c"], "Neg"), "not made by a node"),
        (lambda m: remove(m, "nothing"), "no node `nothing`"),
        (lambda m: remove(m, "d"), "is bool[]"),
        (lambda m: remove(m, "a", bypass={"b": "x"}), "no result of a removed node `b`"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(bodies: ir.Model, action: Callable[[ir.Model], object], says: str) -> None:
    before = text_of(bodies)
    assert says in refusal(lambda: action(bodies))
    assert text_of(bodies) == before


def test_the_result_of_a_removed_node_may_come_from_elsewhere(bodies: ir.Model, evaluator: Evaluator) -> None:
    model = valid(remove(bodies, "d", bypass={"d": "x"}))
    assert ops(model) == ["Relu", "twice"]
    split = model_of("agraph (float[4] x) => (float[2] y) { a, b = Split<axis = 0>(x) y = Neg(b) }")
    assert "nothing takes the place of `b`" in refusal(lambda: remove(split, "b"))


def test_a_removed_node_before_an_output_leaves_an_identity() -> None:
    model = valid(remove(model_of("agraph (float[2] x) => (float[2] y) { y = Neg(x) }"), "y"))
    assert ops(model) == ["Identity"] and names(model.graph.outputs) == ["y"]


def test_nodes_are_replaced_by_an_operator_nodes_or_a_model(bodies: ir.Model, evaluator: Evaluator) -> None:
    w, feeds = np.array([[1], [2]], np.float32), {"x": X, "c": np.array(False)}
    cases: list[tuple[ir.Model, np.ndarray]] = [
        (replace(bodies, "b", "Add"), np.maximum(X, 0) + w),
        (
            replace(bodies, "b", [helper.make_node("Add", ["a", "w"], ["t"]), helper.make_node("Neg", ["t"], ["b"])]),
            -(np.maximum(X, 0) + w),
        ),
        (replace_between(bodies, ["x"], ["b"], model_of(FRAGMENT.replace("18", "16"))), X * 3 - 1),
    ]
    for model, expected in cases:
        found = evaluator.run(valid(set_outputs(model, ["b"])), {name or "": feeds[name or ""] for name in names(model.graph.inputs)})
        np.testing.assert_array_equal(found["b"], expected)


FRAGMENT = """<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
agraph (float[2,k] x) => (float[2,k] y) <float w = {3}, float one = {1}> { a = Mul(x, w) y = local.twice(a, one) }
<domain: "local", opset_import: ["" : 18]> twice (u, o) => (v) { v = Sub(u, o) }
"""


def test_a_function_of_the_same_name_in_a_replacement_gets_another(bodies: ir.Model) -> None:
    fragment = model_of(FRAGMENT.replace("18", "16"))
    model = valid(replace_between(bodies, ["x"], ["b"], fragment))
    assert sorted(name for _, name, _ in model.functions) == ["twice", "twice_1"]


# rename


def test_a_name_seen_by_a_body_is_taken(bodies: ir.Model) -> None:
    for old, new in (("a", "p"), ("p", "a"), ("x", "")):
        assert "empty or taken" in refusal(lambda old=old, new=new: rename(bodies, {old: new}))  # type: ignore[misc]


def test_nodes_dims_and_function_tensors_are_renamed(bodies: ir.Model) -> None:
    model = valid(rename(bodies, {"s": "a", "y": "result"}, nodes={"d": "choose"}, dims={"n": "length"}))
    assert "choose" in {node.name for node in model.graph}
    assert model.graph.inputs[0].shape == ir.Shape([2, "length"]) and names(model.graph.outputs) == ["result", "a"]
    assert "no dimension `m`" in refusal(lambda: rename(bodies, dims={"m": "k"}))


def test_a_name_of_two_branches_needs_its_scope() -> None:
    text = """agraph (bool c, float[2] x) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] p) { p = Neg(x) }, else_branch = e () => (float[2] p) { p = Abs(x) }>
    }"""
    assert "is there 2 times" in refusal(lambda: rename(model_of(text), {"p": "q"}))
    model = valid(rename(model_of(text), {"p": "q"}, scope="If -> y/else_branch"))
    assert [graph.outputs[0].name for graph in model.graph.subgraphs()] == ["p", "q"]


# concat


def test_concat_brings_both_to_the_higher_opset(evaluator: Evaluator) -> None:
    first = model_of('<ir_version: 7, opset_import: ["" : 11]> agraph (float[1,2,n] x) => (float[2,n] y) { y = Squeeze<axes = [0]>(x) }')
    second = model_of('<ir_version: 9, opset_import: ["" : 17]> agraph (float[2,k] a, float[n] b) => (float[2,k] c) { c = Neg(a) }')
    joined = valid(concat(first, second, {"y": "a"}))
    assert joined.opset_imports[""] == 17 and joined.ir_version == 9
    assert [str(value.shape) for value in (*joined.graph.inputs, *joined.graph.outputs)] == ["[1,2,n]", "[second/n]", "[2,n]"]
    x = X[None]
    equal(evaluator.run(joined, {"x": x, "b": np.zeros(1, np.float32)}), {"c": -X})


def test_functions_of_one_name_and_two_bodies_stay_apart(bodies: ir.Model, evaluator: Evaluator) -> None:
    other = model_of(FRAGMENT.replace("18", "16"))
    joined = valid(concat(bodies, other, {"y": "x"}))
    assert len(joined.functions) == 2 and names(joined.graph.outputs) == ["a", "second/y"]
    found = evaluator.run(joined, {"x": X, "c": np.array(True)})
    np.testing.assert_array_equal(found["second/y"], np.full_like(X, -1))
    assert len(concat(bodies, bodies, {"y": "x"}).functions) == 1


@pytest.mark.parametrize(
    ("second", "mapping", "says"),
    [
        ("agraph (int64[2,3] q) => (int64[2,3] r) { r = Neg(q) }", {"y": "q"}, "expected int64[2,3]"),
        ("agraph (float[3,3] q) => (float[3,3] r) { r = Neg(q) }", {"y": "q"}, "`y` is float[2,n]"),
        ("agraph (float[2,3] q) => (float[2,3] r) { r = Neg(q) }", {"z": "q"}, "no output `z`"),
        ("agraph (float[2,3] q) => (float[2,3] r) { r = Neg(q) }", {"y": "z"}, "no input `z`"),
        ("agraph (float[2,3] q) => (float[2,3] r) { r = Neg(q) }", None, "nothing says which output"),
        (FRAGMENT, {"y": "x"}, "its functions are of another opset"),
        (
            '<ir_version: 8, opset_import: ["" : 16, "local" : 2]> agraph (float[2,3] q) => (float[2,3] r) { r = Neg(q) }',
            {"y": "q"},
            "local",
        ),
    ],
)
def test_models_that_do_not_fit_are_refused(bodies: ir.Model, second: str, mapping: dict[str, str] | None, says: str) -> None:
    assert says in refusal(lambda: concat(bodies, model_of(second), mapping))


def test_pieces_share_the_weights_and_save_and_load(bodies: ir.Model, tmp_path: Path, evaluator: Evaluator) -> None:
    piece = extract(bodies, ["a"], ["b"])
    assert piece.graph.initializers["w"].const_value is bodies.graph.initializers["w"].const_value
    save(piece, tmp_path / "piece.onnx")
    infer_shapes(piece)
    equal(evaluator.run(load(tmp_path / "piece.onnx"), {"a": X}), evaluator.run(piece, {"a": X}))
