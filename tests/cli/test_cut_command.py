"""``--cut`` and ``--cut-aicpu`` at the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

LABEL = """<ir_version: 8, opset_import: ["" : 13, "ai.onnx.ml" : 2]> agraph (float[4,8] x) => (float[4,8] z, string[4] y) {
    z = Softmax<axis = 1>(x) b = ArgMax<axis = 1, keepdims = 0>(z)
    y = ai.onnx.ml.LabelEncoder<keys_int64s = [0, 1], values_strings = ["car", "bus"], default_string = "?">(b) }"""
HASH = """<ir_version: 8, opset_import: ["" : 11]> agraph (int64[6] ids) => (float[6,3] y)
<int64 factor = {2654435761}, int64 size = {2}, float[2,3] w = {1, 2, 3, 4, 5, 6}> {
    h = Mul(ids, factor) i = Mod(h, size) r = Gather(w, i) y = Relu(r) }"""


def test_the_parts_are_written_and_told(save_text: Callable[..., Path], tmp_path: Path, jumar: Callable[..., tuple[int, str, str]]) -> None:
    out = tmp_path / "device.onnx"
    status, text, error = jumar("fix", save_text(LABEL), "--soc", "Ascend310P3", "--cut", "-o", out, "--format", "json")
    assert (status, error) == (0, "")
    record = json.loads(text)
    assert {Path(item["path"]).name for item in record["artifacts"]} == {"device.onnx", "device.after.onnx"}
    step = next(item for item in record["steps"] if item["name"] == "cut")
    assert [part["file"] for part in step["options"]["cut"]] == ["device.onnx", "device.after.onnx"]
    assert all(part["sha256"] for part in step["options"]["cut"])
    status, text, _ = jumar("fix", save_text(LABEL), "--soc", "Ascend310P3", "-o", out)
    assert status == 1 and "CU850" not in text


def test_the_ai_cpu_is_cut_only_when_asked(
    save_text: Callable[..., Path], tmp_path: Path, jumar: Callable[..., tuple[int, str, str]]
) -> None:
    path, out = save_text(HASH), tmp_path / "out.onnx"
    assert "CU850" not in jumar("fix", path, "--target", "mdc510pro", "--cut", "-o", out)[1]
    status, text, _ = jumar("fix", path, "--target", "mdc510pro", "--cut-aicpu", "-o", out)
    assert status == 0 and "CU850" in text and (tmp_path / "out.before.onnx").exists()
