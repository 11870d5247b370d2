"""A write is whole or has not happened."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from jumar import ExternalDataError, OutputError
from jumar.graph import load, save, write_atomic
from jumar.graph import save as save_module_function
from jumar.graph.save import has_external_data, inline_bytes


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_writing_makes_folders_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file.txt"
    write_atomic(path, "三\n")
    assert path.read_bytes() == "三\n".encode()
    assert listing(path.parent) == ["file.txt"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_writing_replaces(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"old", b"new"):
        write_atomic(path, content, mode=0o755)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"old")

    def fail(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os if broken == "fsync" else Path, broken, fail)
    with pytest.raises(OutputError, match="No space left on device"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert listing(tmp_path) == ["file"]


def test_a_place_below_a_file_cannot_be_written(relu: Path) -> None:
    for write in (lambda path: write_atomic(path, b""), lambda path: save(load(relu), path)):
        with pytest.raises(OutputError) as caught:
            write(relu / "below" / "model.onnx")
        assert "cannot be written" in str(caught.value) and "\n" not in str(caught.value)


def test_a_folder_cannot_be_overwritten_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError):
        write_atomic(tmp_path / "folder", b"")
    assert listing(tmp_path) == ["folder"]


def test_a_small_model_is_one_file(relu: Path, tmp_path: Path) -> None:
    model = load(relu)
    assert save(model, tmp_path / "out" / "model.onnx") == [tmp_path / "out" / "model.onnx"]
    assert listing(tmp_path / "out") == ["model.onnx"]
    assert not has_external_data(model)


@pytest.fixture
def external(save_text: Callable[..., Path], tmp_path: Path) -> Path:
    """A model with one large and one tiny external weight."""
    model = ir.load(save_text("agraph (float[64,64] x) => (float[64,64] y) { z = Add(x, w) y = Mul(z, s) }", "plain.onnx"))
    large = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    for value, array in zip((node.inputs[1] for node in model.graph), (large, np.array([2], np.float32)), strict=True):
        assert value is not None
        value.const_value = ir.tensor(array, name=value.name)
        model.graph.register_initializer(value)
    path = tmp_path / "external" / "model.onnx"
    path.parent.mkdir()
    ir.save(model, path, external_data="weights.bin", size_threshold_bytes=0)
    return path


def weights_of(path: Path) -> dict[str, np.ndarray]:
    return {name: np.array(value.const_value.numpy()) for name, value in load(path).graph.initializers.items()}


def test_external_weights_stay_external_and_equal(external: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "new.onnx"
    model = load(external)
    assert has_external_data(model) and inline_bytes(model) == 0
    assert save(model, target) == [target, target.with_name("new.onnx.data")]
    assert listing(target.parent) == ["new.onnx", "new.onnx.data"]
    before, after = weights_of(external), weights_of(target)
    assert before.keys() == after.keys() == {"w", "s"}
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)


def test_external_weights_of_an_attribute_move_with_the_model(tmp_path: Path) -> None:
    """Saved elsewhere, the model may not point back to the folder it came from."""
    weights = np.arange(400, dtype=np.float32)
    (tmp_path / "w.bin").write_bytes(weights.tobytes())
    tensor = ir.ExternalTensor("w.bin", 0, weights.nbytes, ir.DataType.FLOAT, shape=ir.Shape([400]), name="w", base_dir=tmp_path)
    text = "agraph (float[400] x) => (float[400] y) { c = Constant<value_floats = [1.0]>() y = Add(x, c) }"
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 16]>\n{text}')
    model.graph[0].attributes.clear()
    model.graph[0].attributes["value"] = ir.AttrTensor("value", tensor)
    (tmp_path / "model.onnx").write_bytes(ir.to_proto(model).SerializeToString())
    target = tmp_path / "elsewhere" / "model.onnx"
    save(load(tmp_path / "model.onnx"), target)
    (tmp_path / "w.bin").unlink()
    np.testing.assert_array_equal(load(target).graph[0].attributes["value"].as_tensor().numpy(), weights)


def same_weights(one: Path, other: Path) -> None:
    before, after = weights_of(one), weights_of(other)
    assert before.keys() == after.keys()
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)


def test_unchanged_weights_of_the_same_folder_are_not_copied(external: Path) -> None:
    target, stamp = external.with_name("again.onnx"), (external.parent / "weights.bin").stat()
    assert save(load(external), target) == [target]
    assert listing(external.parent) == ["again.onnx", "model.onnx", "weights.bin"]
    assert (external.parent / "weights.bin").stat() == stamp or (external.parent / "weights.bin").stat().st_mtime_ns == stamp.st_mtime_ns
    same_weights(external, target)


def test_only_a_changed_weight_goes_to_a_new_file(external: Path) -> None:
    model = load(external)
    value = model.graph.initializers["w"]
    value.const_value = ir.tensor(np.full((64, 64), 3, np.float32), name="w")
    target = external.with_name("new.onnx")
    assert save(model, target) == [target, target.with_name("new.onnx.data")]
    assert target.with_name("new.onnx.data").stat().st_size == 4 * 64 * 64
    assert weights_of(target)["w"].flat[5] == 3 and weights_of(target)["s"] == 2 and weights_of(external)["w"].flat[5] != 3


def test_a_model_can_be_saved_over_itself(external: Path, tmp_path: Path) -> None:
    target = tmp_path / "out" / "again.onnx"
    save(load(external), target)
    assert save(load(target), target) == [target]
    same_weights(external, target)
    # A file that the model in memory reads is not replaced: the model would read other bytes.
    model = load(target)
    assert save(model, target, share=False) == [target, target.with_name("again.onnx.1.data")]
    same_weights(external, target)
    np.testing.assert_array_equal(model.graph.initializers["w"].const_value.numpy(), weights_of(external)["w"])  # type: ignore[union-attr]


def test_a_data_file_that_another_model_reads_is_not_replaced(external: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "out" / "a.onnx", tmp_path / "out" / "b.onnx"
    save(load(external), first)
    save(load(first), second)
    other = load(external)
    other.graph.initializers["w"].const_value = ir.tensor(np.zeros((64, 64), np.float32), name="w")
    assert save(other, first) == [first, first.with_name("a.onnx.1.data")]
    same_weights(external, second)
    assert not weights_of(first)["w"].any()
    # Without the second model the name is free again.
    second.unlink()
    save(load(external), first)
    assert listing(first.parent) == ["a.onnx", "a.onnx.1.data", "a.onnx.data"]


def test_a_folder_above_may_refer_down_but_not_beside(external: Path, tmp_path: Path) -> None:
    assert save(load(external), tmp_path / "above.onnx") == [tmp_path / "above.onnx"]
    same_weights(external, tmp_path / "above.onnx")
    assert len(save(load(external), tmp_path / "beside" / "new.onnx")) == 2


def test_all_weights_can_be_put_into_one_file_or_beside_it(external: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.onnx"
    assert save(load(external), one, one_file=True) == [one]
    assert not has_external_data(load(one))
    same_weights(external, one)
    two = tmp_path / "two.onnx"
    assert save(load(one), two, one_file=False) == [two, two.with_name("two.onnx.data")]
    same_weights(external, two)
    offsets = [
        tensor.const_value.offset for tensor in load(two).graph.initializers.values() if isinstance(tensor.const_value, ir.ExternalTensor)
    ]
    assert offsets == [0]  # the weight of four bytes stays inside
    assert len(save(load(one), two, one_file=False, inline_below=0)) == 2
    assert [offset % 4096 for offset in offsets] == [0]


@pytest.mark.parametrize("dtype", [ir.DataType.FLOAT, ir.DataType.BFLOAT16, ir.DataType.INT4, ir.DataType.BOOL])
def test_a_large_weight_is_written_as_protobuf_would_write_it(tmp_path: Path, dtype: ir.DataType) -> None:
    array = np.random.default_rng(0).integers(0, 2, (513, 300)).astype(dtype.numpy())
    model = ir.from_onnx_text('<ir_version: 10, opset_import: ["" : 21]>\nagraph (float[2] x) => (float[2] y) { y = Relu(x) }')
    value = ir.Value(name="w", const_value=ir.Tensor(array, dtype=dtype, name="w", doc_string="large"))
    value.type, value.shape = ir.TensorType(dtype), ir.Shape(array.shape)
    model.graph.register_initializer(value)
    save(model, tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == ir.to_proto(model).SerializeToString()
    read = load(tmp_path / "model.onnx").graph.initializers["w"].const_value
    assert read is not None and read.dtype == dtype and read.doc_string == "large"
    np.testing.assert_array_equal(read.numpy().astype(np.float32), array.astype(np.float32))


def test_weights_that_have_become_shorter_are_an_error(external: Path, tmp_path: Path) -> None:
    model = load(external)
    with (external.parent / "weights.bin").open("r+b") as file:
        file.truncate(100)
    with pytest.raises(ExternalDataError, match="no longer as long"):
        save(model, tmp_path / "new.onnx")
    (external.parent / "weights.bin").unlink()
    with pytest.raises(ExternalDataError, match="no longer as long"):
        save(model, external)


def test_one_file_beyond_what_a_protobuf_holds_is_refused(external: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(save_module_function.__globals__, "_PROTOBUF_LIMIT", 10_000)
    with pytest.raises(OutputError, match="more than a protobuf holds"):
        save(load(external), tmp_path / "one.onnx", one_file=True)
    assert not (tmp_path / "one.onnx").exists()


@pytest.mark.parametrize("without", ["copy_file_range", "range that copies nothing"])
def test_weights_are_copied_where_the_system_cannot_do_it(
    external: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    if without == "copy_file_range":
        monkeypatch.delattr(os, "copy_file_range", raising=False)
    else:
        monkeypatch.setattr(os, "copy_file_range", lambda *_arguments: 0, raising=False)
    save(load(external), tmp_path / "out" / "new.onnx")
    same_weights(external, tmp_path / "out" / "new.onnx")


def test_a_failed_save_leaves_the_old_files(external: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out" / "new.onnx"
    save(load(external), target)
    before = {path.name: path.read_bytes() for path in target.parent.iterdir()}

    def fail(*_arguments: object, **_named: object) -> None:
        raise OSError(28, "No space left on device")

    model = load(external)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OutputError, match="No space left"):
        save(model, target)
    assert {path.name: path.read_bytes() for path in target.parent.iterdir()} == before
    assert isinstance(model.graph.initializers["w"].const_value, ir.ExternalTensor)
    assert str(model.graph.initializers["w"].const_value.path).endswith("weights.bin")


def test_a_model_too_large_for_protobuf_gets_a_weights_file(external: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(external)
    ir.external_data.load_to_model(model)
    assert not has_external_data(model) and inline_bytes(model) == 4 * (64 * 64 + 1)
    monkeypatch.setitem(save_module_function.__globals__, "_INLINE_LIMIT", 100)
    target = tmp_path / "out" / "big.onnx"
    assert save(model, target) == [target, target.with_name("big.onnx.data")]
    np.testing.assert_array_equal(weights_of(target)["w"], weights_of(external)["w"])
