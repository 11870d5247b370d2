"""Damage that the ONNX checker does not see is one clear error, whatever a stranger's file holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from jumar import JumarError, ModelError, check
from jumar.graph import load, native
from jumar.graph.evaluate import ChildFailure
from jumar.text import say


def model_with(tensor: TensorProto) -> onnx.ModelProto:
    node = helper.make_node("Identity", ["w"], ["y"], name="n")
    output = helper.make_tensor_value_info("y", tensor.data_type or 1, ["d"] * len(tensor.dims))
    graph = helper.make_graph([node], "g", [], [output], [tensor])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def saved(model: onnx.ModelProto, tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize(
    "dtype",
    [
        "FLOAT",
        "DOUBLE",
        "INT64",
        "INT32",
        "INT16",
        "UINT8",
        "BOOL",
        "UINT32",
        "UINT64",
        "FLOAT16",
        "BFLOAT16",
        "COMPLEX64",
        "INT4",
        "UINT4",
    ],
)
def test_typed_and_raw_data_of_the_declared_size_pass_and_others_do_not(dtype: str, tmp_path: Path) -> None:
    kind = TensorProto.DataType.Value(dtype)
    for raw in (False, True):
        values: list[complex] | bytes = [1] * 5
        if raw:
            bits = {"INT4": 4, "UINT4": 4}.get(dtype) or helper.tensor_dtype_to_np_dtype(kind).itemsize * 8
            values = b"\0" * -(-5 * bits // 8)
        tensor = helper.make_tensor("w", kind, [5], values, raw=raw)
        load(saved(model_with(tensor), tmp_path))
        for wrong in ([11], [0], [2, 5], [-5], [2**40]):
            tensor.dims[:] = wrong
            with pytest.raises(ModelError, match="damaged"):
                load(saved(model_with(tensor), tmp_path))


def test_a_constant_without_a_value_is_damage(tmp_path: Path, save_text: Callable[..., Path]) -> None:
    model = onnx.load(save_text("agraph (float[1] x) => (float[1] y) { c = Constant<value_float = 1.0>() y = Add(x, c) }"))
    del model.graph.node[0].attribute[:]
    with pytest.raises(ModelError, match=r"Constant `.*` has 0 values|checker"):
        load(saved(model, tmp_path))


@pytest.mark.parametrize("word", [b"node_name", b"Einsum", b"in_name", b"ij->ji", b"symbol", b"init_name"])
def test_a_name_that_is_not_text_is_damage(word: bytes, tmp_path: Path) -> None:
    node = helper.make_node("Einsum", ["in_name"], ["y"], name="node_name", equation="ij->ji")
    other = helper.make_node("Add", ["y", "init_name"], ["z"], name="second")
    inputs = [helper.make_tensor_value_info("in_name", 1, ["symbol", 3])]
    weight = numpy_helper.from_array(np.ones(1, np.float32), "init_name")
    graph = helper.make_graph([node, other], "g", inputs, [helper.make_tensor_value_info("z", 1, [3, 1])], [weight])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    load(path)
    path.write_bytes(data.replace(word, b"\xff" + word[1:]))
    with pytest.raises(ModelError):
        check(path, soc="Ascend310P3")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(places=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=6))
def test_check_never_fails_otherwise_on_damaged_bytes(places: list[tuple[int, int]], tmp_path: Path, relu: Path) -> None:
    data = bytearray(relu.read_bytes())
    for place, value in places:
        data[place % len(data)] = value
    path = tmp_path / "damaged.onnx"
    path.write_bytes(bytes(data))
    try:
        check(path, soc="Ascend310P3")
    except JumarError as error:
        assert "\n" not in str(error)


def test_inference_that_takes_too_long_means_unknown_shapes(relu: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def slow(_model: onnx.ModelProto) -> onnx.ModelProto:
        asked.append(1)
        raise ChildFailure(say("late", "超时"), True)

    monkeypatch.setattr(native, "infer_shapes", slow)
    record = check(relu, soc="Ascend310P3", shapes={"x": (2, 3)}).record
    assert record.verdict == "ready"
    assert len(asked) >= 1


def overwritten(first: onnx.NodeProto, second: str) -> onnx.ModelProto:
    """A model of opset 11 whose first node exists only later."""
    values = [helper.make_tensor_value_info(name, 1, [3] if name == "s" else [2, 3]) for name in (*first.input, "y")]
    graph = helper.make_graph([first, helper.make_node(second, ["a"], ["y"], name="m")], "g", values[:-1], values[-1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)


def test_an_opset_older_than_the_operators_is_taken_for_the_one_they_need_if_that_is_clear(tmp_path: Path) -> None:
    model = overwritten(helper.make_node("LayerNormalization", ["x", "s"], ["a"], name="n"), "Relu")
    assert load(saved(model, tmp_path)).opset_imports[""] == 17
    model.opset_import[0].version = 17
    assert "jumar.declared_opset" not in load(saved(model, tmp_path)).metadata_props


def test_an_overwritten_opset_is_not_guessed(tmp_path: Path) -> None:
    """A Softmax means something else from 13 on, so that nobody can tell what the model means. ONNX Runtime has a LayerNormalization of its
    own at every opset, though, so that a model with one means what it declares."""
    with pytest.raises(ModelError, match="exist only from opset 18 on"):
        load(saved(overwritten(helper.make_node("Mish", ["x"], ["a"], name="n"), "Softmax"), tmp_path))
    model = overwritten(helper.make_node("LayerNormalization", ["x", "s"], ["a"], name="n"), "Softmax")
    assert load(saved(model, tmp_path)).opset_imports[""] == 11
