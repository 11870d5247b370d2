"""Public bug reports about AIPP, through the verbs: each is found and explained, and the corrected file is right on its model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import jumar
from jumar.graph import Evaluator, load

CASES = {
    "aipp-mean-unit-scale": "scale 0..1",
    "aipp-scale-only": "only x/255 is done",
    "aipp-var-not-reciprocal": "var_reci_chn holds the standard deviation",
    "aipp-bgr-rgb-swap": "the model takes BGR, AIPP gives RGB",
}


@pytest.mark.parametrize("case", CASES)
def test_the_wrong_file_is_explained_and_corrected(case: str, shared: Path, tmp_path: Path, evaluator: Evaluator) -> None:
    """Tolerance of the input: 0.02, as the case has it; of the output: 0.5 % of its largest element, since a small net follows its input."""
    folder, fixed = shared / "cases" / case, tmp_path / "fixed.cfg"
    found = jumar.check_aipp(
        folder / "aipp.cfg",
        soc="Ascend310P3",
        model=folder / "net.onnx",
        preprocess=folder / "preprocess.json",
        images=[folder / "raw_hwc_rgb_u8.npy"],
        output=fixed,
    )
    assert [finding.code for finding in found.findings if finding.severity == "error"] == ["AI108"]
    assert CASES[case] in str(found.findings[0].message)
    for good in (fixed, folder / "aipp_good.cfg"):
        again = jumar.check_aipp(good, soc="Ascend310P3", model=folder / "net.onnx", preprocess=folder / "preprocess.json")
        assert again.verdict == "ready" and again.data["blocks"][0]["equal"]
        tensor = jumar.emulate_aipp(good, np.load(folder / "raw_hwc_rgb_u8.npy"), soc="Ascend310P3", model=folder / "net.onnx").data[
            "array"
        ]
        with np.load(folder / "net.onnx.in.npz") as inputs, np.load(folder / "net.onnx.ref.npz") as outputs:
            ((name, wanted),), ((_, answer),) = inputs.items(), outputs.items()
            assert np.abs(tensor.astype(np.float64) - wanted).max() < 0.02
            (made,) = evaluator.run(load(folder / "net.onnx"), {name: tensor.astype(np.float32)}).values()
            assert np.abs(made - answer).max() < 0.005 * np.abs(answer).max()


def test_a_float16_node_and_a_wrong_input(shared: Path) -> None:
    folder = shared / "cases" / "aipp-fp16-node-and-wrong-input"
    for record in (jumar.lint(folder / "cmd.txt"), jumar.lint(folder / "cmd.txt", model=folder / "two.onnx")):
        said = [f"{finding.message} {finding.why} {finding.remedy}" for finding in record.findings if finding.code == "AI104"]
        assert len(said) == 2 and record.verdict == "blocked"
        assert any("`im_info` [1,3] int32, not an image" in text and "related_input_rank: 0 (`images`)" in text for text in said)
        assert any("E10034" in text and "`images` is fed by AIPP" in text and "take it out of --input_fp16_nodes" in text for text in said)
    alone = jumar.check_aipp(folder / "aipp.cfg", soc="Ascend310P3", model=folder / "two.onnx")
    assert [finding.code for finding in alone.findings] == ["AI104"]


def test_gears_of_dims_with_aipp_are_refused(shared: Path) -> None:
    record = jumar.lint(shared / "cases" / "atc-dims-with-aipp" / "cmd.txt")
    assert any(finding.code == "AT904" and "--dynamic_image_size with AIPP" in str(finding.remedy) for finding in record.findings)
