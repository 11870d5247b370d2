"""``jumar aipp``: statuses, one line for what is wrong, both languages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

NUMBERS = ["--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225", "--scale", "x/255"]


def test_from_numbers_to_a_proof(jumar: Callable[..., Any], tmp_path: Path) -> None:
    config, image = tmp_path / "a.cfg", tmp_path / "a.npy"
    np.save(image, np.zeros((8, 8, 3), np.uint8))
    (tmp_path / "p.json").write_text(json.dumps({"scale": "x/255", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}))
    assert jumar("aipp", "derive", *NUMBERS, "--size", "8", "-o", config).status == 0
    assert jumar("aipp", "emulate", config, "--image", image, "-o", tmp_path / "o.npz", "--soc", "Ascend310P3").status == 0
    done = jumar("aipp", "check", config, "--soc", "Ascend310P3", "--preprocess", tmp_path / "p.json", "--image", image, "--format", "json")
    record = json.loads(done.out)
    assert done.status == 0 and record["verdict"] == "ready" and record["data"]["blocks"][0]["equal"] is True
    config.write_text(config.read_text().replace("0.0171247", "58.395 #"))
    assert jumar("aipp", "check", config, "--preprocess", tmp_path / "p.json").status == 1
    chinese = jumar("aipp", "check", config, "--lang", "zh", "--preprocess", tmp_path / "p.json")
    assert chinese.status == 1 and "不属于常见疏漏" in chinese.out


def test_move(jumar: Callable[..., Any], save_text: Callable[..., Path], tmp_path: Path) -> None:
    model = save_text("agraph (float[1,3,8,8] x) => (float[1,3,8,8] y) <float m = {127.5}> { a = Sub(x, m) y = Relu(a) }")
    done = jumar("aipp", "move", model, "--to", "aipp", "-o", tmp_path / "o.onnx", "--config", tmp_path / "o.cfg")
    assert done.status == 0 and "proven on 3 images" in done.out and (tmp_path / "o.onnx").exists()


WRONG = [
    (["derive"], "no transform was given"),
    (["derive", *NUMBERS, "--size", "8;8"], "`8;8` is no size"),
    (["derive", *NUMBERS, "--preprocess", "x.json"], "describe two transforms"),
    (["derive", "--preprocess", "/nowhere/x.json"], "cannot be read"),
    (["derive", *NUMBERS, "--input", "rgb565"], "is no kind of image"),
    (["derive", *NUMBERS, "-o", "/dev/null/a.cfg"], "cannot be written"),
    (["derive", *NUMBERS, "--soc", "Ascend310P"], "is a family of SoCs"),
    (["emulate", "/nowhere/a.cfg", "--image", "x.npy"], "cannot be read"),
    (["check", "/nowhere/a.cfg"], "cannot be read"),
    (["check", "/nowhere/a.cfg", "--layout", "CHWN"], "expected NCHW or NHWC"),
    (["move", "/nowhere/m.onnx", "--to", "host"], "expected aipp or network"),
    (["move", "/nowhere/m.onnx", "--to", "aipp"], "/nowhere/m.onnx"),
]


@pytest.mark.parametrize(("words", "message"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_bad_input_is_one_line_and_status_2(words: list[str], message: str, jumar: Callable[..., Any]) -> None:
    done = jumar("aipp", *words)
    assert (done.status, done.out) == (2, "") and message in done.err and done.err.count("\n") == 1
    assert "jumar: " in jumar("aipp", *words, "--lang", "zh").err
