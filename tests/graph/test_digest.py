"""A digest changes with what the model computes and with nothing else."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from jumar.graph import Digester, file_sha256

TEXT = "agraph (float[2,3] x) => (float[2,3] y) <float[3] w = {1, 2, 3}> { z = Add(x, w) y = LeakyRelu<alpha = 0.5>(z) }"
HEADER = '<ir_version: 8, opset_import: ["" : 13]>\n'


def model_of(text: str = TEXT) -> ir.Model:
    return ir.from_onnx_text(text if text.lstrip().startswith("<") else HEADER + text)


def digest(model: ir.Model) -> str:
    return Digester().model(model)


def test_a_file_is_hashed_by_its_bytes(tmp_path: Path) -> None:
    data = bytes(range(256)) * 5000  # more than one block
    (tmp_path / "file").write_bytes(data)
    assert file_sha256(tmp_path / "file") == hashlib.sha256(data).hexdigest()


def test_the_same_model_has_the_same_digest_everywhere(tmp_path: Path) -> None:
    assert digest(model_of().clone()) == digest(model_of())
    program = f"""if True:
        import onnx_ir
        from jumar.graph import Digester
        print(Digester().model(onnx_ir.from_onnx_text({HEADER + TEXT!r})))
    """
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
    assert found.stdout.strip() == digest(model_of())


@pytest.mark.parametrize(
    "change",
    [
        ("{1, 2, 3}", "{1, 2, 4}"),
        ("float[2,3] x", "float[3,3] x"),
        ("Add", "Sub"),
        ("alpha = 0.5", "alpha = 0.25"),
        ("LeakyRelu", "Elu"),
        ("Add(x, w)", "Add(w, x)"),
    ],
)
def test_a_change_of_what_it_computes_changes_the_digest(change: tuple[str, str]) -> None:
    changed = model_of(TEXT.replace(*change))
    assert digest(changed) != digest(model_of())


def test_the_opset_is_part_of_the_digest() -> None:
    model = model_of()
    model.opset_imports[""] = 14
    assert digest(model) != digest(model_of())


def test_cosmetics_are_not_part_of_the_digest() -> None:
    model = model_of()
    node = model.graph[0]
    node.outputs[0].shape = ir.Shape([2, 3])
    node.outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
    node.metadata_props["anything"] = "else"
    node.doc_string = model.doc_string = "words"
    assert digest(model) == digest(model_of())


@pytest.mark.parametrize("number", [1, 2])
def test_bodies_and_functions_are_part_of_the_digest(number: int) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 16, "local" : 1]>
    agraph (float[2] x, bool c) => (float[2] y) {
        f = local.twice(x)
        y = If (c) <then_branch = a () => (float[2] a) { a = Neg(f) }, else_branch = b () => (float[2] b) { b = Abs(f) }>
    }
    <domain: "local", opset_import: ["" : 16]> twice (x) => (z) { z = Add(x, x) }
    """
    changed = text.replace("Neg", "Exp") if number == 1 else text.replace("Add(x, x)", "Mul(x, x)")
    assert digest(model_of(changed)) != digest(model_of(text)) == digest(model_of(text))


@pytest.mark.parametrize(
    "array",
    [
        np.array(1.5, np.float32),
        np.zeros((0, 3), np.int64),
        np.array([1, 2], ml_dtypes.bfloat16),
        np.array([1, 2], ml_dtypes.int4),
        np.array(["a", "b"], dtype=object),
        np.array([[True, False]]),
        np.arange(6, dtype=np.float64).reshape(2, 3).T,
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_every_kind_of_weight_is_hashed_by_dtype_shape_and_value(array: np.ndarray) -> None:
    def with_weight(weight: ir.TensorProtocol) -> str:
        model = model_of()
        model.graph.initializers["w"].const_value = weight
        return digest(model)

    tensor = ir.StringTensor(array) if array.dtype == object else ir.tensor(array)
    again = ir.StringTensor(array.copy()) if array.dtype == object else ir.tensor(array.copy(order="C"))
    assert with_weight(tensor) == with_weight(again)
    other = np.array(["a", "c"], dtype=object) if array.dtype == object else array.reshape((1, *array.shape))
    assert with_weight(ir.StringTensor(other) if array.dtype == object else ir.tensor(other)) != with_weight(tensor)
