"""A write is whole or has not happened."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from jumar import OutputError
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


def test_a_model_can_be_saved_over_itself(external: Path) -> None:
    target = external.with_name("again.onnx")
    save(load(external), target)
    before = weights_of(target)
    save(load(target), target)  # reads and replaces again.onnx.data
    for name, array in weights_of(target).items():
        np.testing.assert_array_equal(array, before[name])
    assert listing(external.parent) == ["again.onnx", "again.onnx.data", "model.onnx", "weights.bin"]


def test_a_failed_save_leaves_the_old_files(external: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out" / "new.onnx"
    save(load(external), target)
    before = {path.name: path.read_bytes() for path in target.parent.iterdir()}

    def fail(*_arguments: object, **_named: object) -> None:
        raise OSError(28, "No space left on device")

    model = load(external)
    monkeypatch.setattr(ir, "save", fail)
    with pytest.raises(OutputError, match="No space left"):
        save(model, target)
    assert {path.name: path.read_bytes() for path in target.parent.iterdir()} == before


def test_a_model_too_large_for_protobuf_gets_a_weights_file(external: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(external)
    ir.external_data.load_to_model(model)
    assert not has_external_data(model) and inline_bytes(model) == 4 * (64 * 64 + 1)
    monkeypatch.setitem(save_module_function.__globals__, "_INLINE_LIMIT", 100)
    target = tmp_path / "out" / "big.onnx"
    assert save(model, target) == [target, target.with_name("big.onnx.data")]
    np.testing.assert_array_equal(weights_of(target)["w"], weights_of(external)["w"])
