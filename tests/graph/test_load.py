"""Whatever is wrong with a file gives one clear error of one line; nothing outside the model's folder is read."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from jumar import ExternalDataError, JumarError, ModelError
from jumar.graph import Evaluator, load, model_info

WEIGHTS = np.arange(12, dtype=np.float32).reshape(3, 4)
FLOAT = TensorProto.FLOAT


def external(location: str, *, shape: tuple[int, ...] = (3, 4), dtype: int = FLOAT, **entries: Any) -> TensorProto:
    tensor = TensorProto(name="w", data_type=dtype, dims=shape, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def write_model(folder: Path, nodes: list[Any], weights: list[TensorProto], name: str = "model.onnx") -> Path:
    ends = [helper.make_tensor_value_info(end, FLOAT, [3, 4]) for end in "xy"]
    graph = helper.make_graph(nodes, "agraph", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString())
    return path


def with_weight(folder: Path, tensor: TensorProto) -> Path:
    return write_model(folder, [helper.make_node("Add", ["x", "w"], ["y"])], [tensor])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder with a weights file, and a secret beside the folder."""
    inside = tmp_path / "model"
    inside.mkdir()
    (inside / "w.bin").write_bytes(WEIGHTS.tobytes())
    (tmp_path / "secret.bin").write_bytes(WEIGHTS.tobytes())
    return inside


def error_of(path: str | Path, kind: type[JumarError] = ModelError) -> str:
    with pytest.raises(JumarError) as caught:
        load(path)
    assert type(caught.value) is kind
    for lang in ("en", "zh"):
        line = caught.value.render(lang)
        assert line and "\n" not in line
    return str(caught.value)


def test_a_good_file_loads(relu: Path) -> None:
    assert [node.op_type for node in load(relu).graph] == ["Relu"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "`" + str(tmp_path / "no.onnx") + "` does not exist" in error_of(tmp_path / "no.onnx")


def test_a_path_below_a_file_does_not_exist(relu: Path) -> None:
    assert "does not exist" in error_of(relu / "model.onnx")


@pytest.mark.parametrize("name", ["n" * 300, "a\0b"])
def test_a_path_the_system_refuses_is_an_error_of_ours(name: str) -> None:
    assert "expected an ONNX model" in error_of(name)


def test_a_directory_is_named(tmp_path: Path) -> None:
    assert "is a directory" in error_of(tmp_path)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    assert "is not a regular file" in error_of(tmp_path / "pipe.onnx")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"print('this is a Python script, and no model at all')\n" * 4, "it is a text file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git lfs pull"),
        (bytes(range(256)) * 4, "is not an ONNX protobuf"),
        (b"\x08\x08", "holds no ONNX graph"),
    ],
    ids=["empty", "text", "lfs", "bytes", "no-graph"],
)
def test_another_kind_of_file_is_told_apart(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    assert says in error_of(path)


def test_a_zip_archive_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data.pkl", b"0" * 100)
    assert "ZIP archive" in error_of(path)


def test_no_truncation_passes(relu: Path, tmp_path: Path) -> None:
    data = relu.read_bytes()
    path = tmp_path / "short.onnx"
    for length in range(len(data)):
        path.write_bytes(data[:length])
        # Cut exactly after the graph the file is complete but for its opset imports, which the checker misses.
        error_of(path)


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ([helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Abs", ["x"], ["y"])], "SSA"),
        ([helper.make_node("NoSuchOperator", ["x"], ["y"])], "NoSuchOperator"),
        ([helper.make_node("Relu", ["nobody"], ["y"])], "nobody"),
        ([helper.make_node("Relu", ["x", "x"], ["y"])], "input size 2"),
    ],
    ids=["ssa", "unknown-operator", "dangling", "arity"],
)
def test_what_the_checker_refuses_is_refused_with_its_reason(tmp_path: Path, nodes: list[Any], says: str) -> None:
    message = error_of(write_model(tmp_path, nodes, []))
    assert "fails the ONNX checker" in message and says in message and "ai.onnx 13" in message


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200))
def test_random_bytes_give_an_error_of_ours(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "random.onnx"
    path.write_bytes(data)
    with pytest.raises(ModelError):
        load(path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_model_is_a_model_or_an_error_of_ours(relu: Path, tmp_path: Path, changes: list[tuple[int, int]]) -> None:
    data = bytearray(relu.read_bytes())
    for place, byte in changes:
        data[place % len(data)] = byte
    path = tmp_path / "damaged.onnx"
    path.write_bytes(bytes(data))
    try:
        assert isinstance(load(path), ir.Model)
    except JumarError as error:
        assert "\n" not in str(error)


# External weights


@pytest.mark.parametrize("entries", [{}, {"offset": 0, "length": 48}, {"offset": 0}, {"length": 48}])
def test_external_weights_are_read(folder: Path, entries: dict[str, int]) -> None:
    model = load(with_weight(folder, external("w.bin", **entries)))
    tensor = model.graph.initializers["w"].const_value
    assert isinstance(tensor, ir.ExternalTensor)
    np.testing.assert_array_equal(tensor.numpy(), WEIGHTS)


def test_missing_weights_are_named(folder: Path) -> None:
    message = error_of(with_weight(folder, external("other.bin")), ExternalDataError)
    assert "weights of `w` are missing" in message and "put `other.bin` beside `model.onnx`" in message


@pytest.mark.parametrize("location", ["n" * 300, "loop"])
def test_weights_that_cannot_be_reached_are_missing(folder: Path, location: str) -> None:
    (folder / "loop").symlink_to("pool")
    (folder / "pool").symlink_to("loop")
    assert "are missing" in error_of(with_weight(folder, external(location)), ExternalDataError)


@pytest.mark.parametrize("location", ["../secret.bin", "sub/../../secret.bin", "..\\secret.bin", "", "w.bin\0.txt"])
def test_a_location_outside_the_folder_is_refused(folder: Path, location: str) -> None:
    assert "outside the model's folder" in error_of(with_weight(folder, external(location)), ExternalDataError)


def test_an_absolute_location_is_refused_even_inside_the_folder(folder: Path) -> None:
    for place in (folder / "w.bin", folder.parent / "secret.bin"):
        assert "outside the model's folder" in error_of(with_weight(folder, external(str(place))), ExternalDataError)


def test_a_link_that_leads_outside_is_refused(folder: Path) -> None:
    (folder / "link.bin").symlink_to("../secret.bin")
    assert "through a link" in error_of(with_weight(folder, external("link.bin")), ExternalDataError)
    (folder / "sub").symlink_to("..")
    assert "through a link" in error_of(with_weight(folder, external("sub/secret.bin")), ExternalDataError)


def test_a_folder_is_no_weights_file(folder: Path) -> None:
    (folder / "sub").mkdir()
    assert "are missing" in error_of(with_weight(folder, external("sub")), ExternalDataError)


@pytest.mark.parametrize("make_link", [Path.symlink_to, Path.hardlink_to])
def test_a_link_inside_the_folder_is_followed(folder: Path, make_link: Callable[[Path, Path], None], evaluator: Evaluator) -> None:
    make_link(folder / "link.bin", folder / "w.bin")
    model = load(with_weight(folder, external("link.bin")))
    np.testing.assert_array_equal(evaluator.run(model, {"x": np.zeros((3, 4), np.float32)})["y"], WEIGHTS)


def test_a_model_with_external_weights_is_checked_too(folder: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "w"], ["y"]), helper.make_node("Abs", ["x"], ["y"])]
    assert "SSA" in error_of(write_model(folder, nodes, [external("w.bin")]))


@pytest.mark.parametrize(
    "tensor",
    [
        external("w.bin", length=49),
        external("w.bin", offset=1, length=48),
        external("w.bin", offset=4),
        external("w.bin", offset=-4, length=48),
        external("w.bin", offset="no number"),
        external("w.bin", length=8),
        external("w.bin", shape=(300, 4)),
        external("w.bin", shape=(1 << 40, 1 << 40)),
        external("w.bin", shape=(-3, 4)),
        external("w.bin", dtype=TensorProto.STRING),
    ],
    ids=["long", "shifted", "shifted-no-length", "negative", "no-number", "length<shape", "shape", "overflow", "shape<0", "string"],
)
def test_an_extent_that_the_file_does_not_have_is_refused(folder: Path, tensor: TensorProto) -> None:
    assert "the file has 48 bytes" in error_of(with_weight(folder, tensor), ExternalDataError)


def in_a_constant(folder: Path, tensor: TensorProto) -> Path:
    constant = helper.make_node("Constant", [], ["w"], value=tensor)
    return write_model(folder, [constant, helper.make_node("Add", ["x", "w"], ["y"])], [])


def in_a_body(folder: Path, tensor: TensorProto) -> Path:
    end = helper.make_tensor_value_info("b", FLOAT, [3, 4])
    then = helper.make_graph([helper.make_node("Add", ["x", "w"], ["b"])], "then", [], [end], [tensor])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["b"])], "else", [], [end])
    node = helper.make_node("If", ["yes"], ["y"], then_branch=then, else_branch=other)
    return write_model(folder, [node], [helper.make_tensor("yes", TensorProto.BOOL, [], [True])])


def in_a_function(folder: Path, tensor: TensorProto) -> Path:
    path = write_model(folder, [helper.make_node("add_w", ["x"], ["y"], domain="local")], [])
    model = onnx.load(path)
    nodes = [
        helper.make_node("Constant", [], ["w"], value=tensor),
        helper.make_node("Add", ["a", "w"], ["c"]),
        helper.make_node("LeakyRelu", ["c"], ["b"]),
    ]
    nodes[-1].attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    model.opset_import.add(domain="local", version=1)
    model.functions.append(helper.make_function("local", "add_w", ["a"], ["b"], nodes, [helper.make_opsetid("", 13)], ["slope"]))
    model.graph.node[0].attribute.add(name="slope", f=0.5, type=onnx.AttributeProto.FLOAT)
    path.write_bytes(model.SerializeToString())
    return path


PLACES = pytest.mark.parametrize("place", [in_a_constant, in_a_body, in_a_function])


@PLACES
def test_weights_of_attributes_and_bodies_are_checked_too(folder: Path, place: Callable[..., Path]) -> None:
    assert "outside" in error_of(place(folder, external("../secret.bin")), ExternalDataError)
    assert "are missing" in error_of(place(folder, external("other.bin")), ExternalDataError)


@PLACES
def test_weights_of_attributes_and_bodies_run(folder: Path, place: Callable[..., Path], evaluator: Evaluator) -> None:
    """ONNX Runtime cannot find them when it gets a model in memory, so they must have been read."""
    found = evaluator.run(load(place(folder, external("w.bin"))), {"x": np.ones((3, 4), np.float32)})
    np.testing.assert_array_equal(found["y"], WEIGHTS + 1)


# What the record says of a model


@pytest.mark.parametrize("dim", ["-1", '"?"'])
def test_placeholder_dimensions_are_unnamed(tmp_path: Path, dim: str) -> None:
    size = int(dim) if dim == "-1" else "?"
    ends = [helper.make_tensor_value_info(name, FLOAT, [size, 4, "N"]) for name in "xy"]
    model = helper.make_model(
        helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "agraph", ends[:1], ends[1:]),
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=8,
    )
    onnx.save(model, tmp_path / "model.onnx")
    info = model_info(load(tmp_path / "model.onnx"))
    assert [tensor.shape for tensor in (*info.inputs, *info.outputs)] == [(None, 4, "N"), (None, 4, "N")]


def test_weights_listed_among_the_inputs_are_no_inputs(save_text: Callable[..., Path]) -> None:
    path = save_text("agraph (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }")
    model = load(path)
    assert [value.name for value in model.graph.inputs] == ["x", "w"]
    info = model_info(model, path)
    assert [tensor.name for tensor in info.inputs] == ["x"]
    assert (info.path, info.opset, info.inputs[0].dtype) == (str(path), 13, "float")


def test_what_is_no_tensor_is_named_by_its_kind(save_text: Callable[..., Path]) -> None:
    model = load(save_text("agraph (seq(float[2]) x) => (int64 y) { y = SequenceLength(x) }"))
    assert model_info(model).inputs[0].dtype == "sequence"


# Large weights, which are read beside the protobuf


def large_model(tmp_path: Path, dtype: int = FLOAT, shape: tuple[int, ...] = (200, 100), **changes: Any) -> tuple[Path, np.ndarray]:
    array = np.random.default_rng(0).standard_normal(shape).astype(helper.tensor_dtype_to_np_dtype(dtype))
    tensor = onnx.numpy_helper.from_array(array, "w")
    for name, value in changes.items():
        setattr(tensor, name, value)
    path = with_weight(tmp_path, tensor)
    return path, array


def test_large_weights_are_those_of_the_file(tmp_path: Path) -> None:
    path, array = large_model(tmp_path, doc_string="large")
    tensor = load(path).graph.initializers["w"].const_value
    assert isinstance(tensor, ir.Tensor) and tensor.doc_string == "large" and not tensor.numpy().flags.writeable
    np.testing.assert_array_equal(tensor.numpy(), array)


@pytest.mark.parametrize(
    "changes", [{"raw_data": b"0" * 70_000}, {"data_type": 99}, {"data_type": 0}, {"data_type": TensorProto.STRING}, {"name": ""}]
)
def test_a_large_weight_that_is_wrong_has_the_error_of_a_small_one(tmp_path: Path, changes: dict[str, Any]) -> None:
    path, _ = large_model(tmp_path, **changes)
    assert "is damaged" in error_of(path) or "fails the ONNX checker" in error_of(path) or "cannot be read" in error_of(path)


def test_no_truncation_of_a_large_model_passes(tmp_path: Path) -> None:
    path, _ = large_model(tmp_path)
    data = path.read_bytes()
    for length in (*range(0, 200, 7), *range(1000, len(data), 9973), *range(len(data) - 60, len(data), 3)):
        path.write_bytes(data[:length])
        error_of(path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.integers(-120, 120), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_damaged_large_model_is_read_as_protobuf_reads_it(tmp_path: Path, changes: list[tuple[int, int]]) -> None:
    path, _ = large_model(tmp_path)
    data = bytearray(path.read_bytes())
    for place, byte in changes:
        data[place] = byte
    path.write_bytes(bytes(data))
    try:
        model = load(path)
    except JumarError as error:
        assert "\n" not in str(error)
        return
    expected = onnx.load_model_from_string(bytes(data))
    for tensor in expected.graph.initializer:
        value = model.graph.initializers[tensor.name].const_value
        assert value is not None
        np.testing.assert_array_equal(value.numpy(), onnx.numpy_helper.to_array(tensor))


@pytest.mark.parametrize(
    ("inputs", "outputs", "fits"),
    [(", float[3] a", ", a2", True), (", float[3] a, float[3] q", ", a2", False), (", float[3] a", ", a2, a2", False)],
)
def test_a_body_that_does_not_fit_its_node(inputs: str, outputs: str, fits: bool, tmp_path: Path) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 13]> agraph (float[3] v) => (float[3] y) <int64 m = {{4}}> {{
        y = Loop <body = b (int64 i, bool c{inputs}) => (bool c2{outputs.replace(", a2", ", float[3] a2")}) {{ c2 = Identity(c) a2 = Add(a, a) }}> (m, , v)
    }}"""
    path = tmp_path / "loop.onnx"
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    if fits:
        load(path)
        return
    with pytest.raises(ModelError, match="the body of Loop"):
        load(path)
