"""CANN's operators of quantised models in the standard's domain are read, and computed as their prototypes say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from jumar import fix
from jumar.errors import EvaluationError, ModelError
from jumar.graph import Evaluator, load


def saved(folder: Path, body: str, inputs: str, outputs: str) -> Path:
    text = f'<ir_version: 8, opset_import: ["" : 13]> agraph ({inputs}) => ({outputs}) {{ {body} }}'
    path = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    return path


@pytest.mark.parametrize(("mode", "rounded"), [("Round", np.rint), ("Floor", np.floor), ("Ceiling", np.ceil), ("Truncate", np.trunc)])
@pytest.mark.parametrize("root", [0, 1])
def test_quantised_and_back(mode: str, rounded: Any, root: int, tmp_path: Path, evaluator: Evaluator) -> None:
    body = f"""q = AscendQuant<scale = 1.5, offset = 3.0, sqrt_mode = {root}, round_mode = "{mode}">(x)
               y = AscendAntiQuant<scale = 0.5, offset = 3.0, dtype = 1>(q)"""
    path = saved(tmp_path, body, "float[3,7] x", "int8[3,7] q, float16[3,7] y")
    x = np.linspace(-120, 120, 21, dtype=np.float32).reshape(3, 7)
    found = evaluator.run(load(path), {"x": x})
    right = np.clip(rounded(x * np.float32(2.25 if root else 1.5) + 3), -128, 127).astype(np.int8)
    assert np.array_equal(found["q"], right)
    assert np.array_equal(found["y"], ((right.astype(np.float32) - 3) * 0.5).astype(np.float16))
    assert not np.array_equal(found["q"], np.clip(rounded(x * 1.5), -128, 127).astype(np.int8))


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (4, 3)])
def test_scales_of_channels_in_the_lower_half_of_64_bits(shape: tuple[int, ...], tmp_path: Path, evaluator: Evaluator) -> None:
    dims = ",".join(map(str, shape))
    path = saved(tmp_path, "y = AscendDequant<relu_flag = 1>(x, scale)", f"int32[{dims}] x, uint64[3] scale", f"float[{dims}] y")
    x = np.arange(-30, -30 + np.prod(shape), dtype=np.int32).reshape(shape)
    scale = np.array([0.5, 2.0, 0.125], np.float32)
    found = evaluator.run(load(path), {"x": x, "scale": scale.view(np.uint32).astype(np.uint64)})["y"]
    wide = scale.reshape((1, 3, 1, 1)[: len(shape)])
    assert np.array_equal(found, np.maximum(x * wide, 0))


def test_a_model_with_them_is_repaired_and_proven(tmp_path: Path, evaluator: Evaluator) -> None:
    body = "h = HardSwish(x) q = AscendQuant<scale = 8.0, offset = 0.0>(h) y = AscendAntiQuant<scale = 0.125, offset = 0.0>(q)"
    path = saved(tmp_path, body.replace("HardSwish", "HardSigmoid"), "float[2,8] x", "float[2,8] y")
    case = fix(path, soc="Ascend310P3", evaluator=evaluator)
    assert "VF602" not in {item.code for item in case.record.findings}


def test_what_nobody_registers_is_still_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="No Op registered for AscendNothing"):
        load(saved(tmp_path, "y = AscendNothing(x)", "float[2] x", "float[2] y"))


def test_what_is_not_known_is_not_computed(tmp_path: Path, evaluator: Evaluator) -> None:
    path = saved(tmp_path, "y = AscendQuant<scale = 1.0, offset = 0.0, dst_type = 29>(x)", "float[2] x", "int8[2] y")
    with pytest.raises(EvaluationError, match="another type than int8"):
        evaluator.run(load(path), {"x": np.ones(2, np.float32)})
