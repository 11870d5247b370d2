"""Configurations: ours and AMCT's, written, edited and read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jumar.errors import UsageError
from jumar.quant.config import LayerChoice, QuantConfig, load_config, read_config, with_options, write_amct, write_config

CONFIG = QuantConfig(
    method="percentile",
    percentile=99.9,
    offset=False,
    search_weights=True,
    fusion=False,
    skip_layers=("a",),
    skip_types=("Gemm",),
    layers={"b": LayerChoice(True, "max"), "c": LayerChoice(False)},
)
TOLD: dict[str, dict[str, Any]] = {
    "b": {"quantise": True, "method": "max", "scale": 0.5, "offset": -3},
    "c": {"quantise": False, "why": "because"},
}


def test_ours_is_read_back() -> None:
    assert read_config(write_config(CONFIG, TOLD)) == CONFIG
    assert read_config('{"jumar": 1}') == QuantConfig()


def test_an_edited_file_changes_the_choice() -> None:
    data = json.loads(write_config(CONFIG, TOLD))
    data["layers"]["b"]["quantise"] = False
    found = read_config(json.dumps(data))
    assert found.refusal("b", "Conv") is not None and CONFIG.refusal("b", "Conv") is None


@pytest.mark.parametrize("method", ["histogram", "max", "percentile", "mse"])
def test_amct_is_read_back(method: str) -> None:
    text = write_amct(QuantConfig(offset=False, percentile=99.9), {"conv": ("Conv", True, method), "fc": ("Gemm", False, method)})
    data, found = json.loads(text), read_config(text)
    assert found.layers == {"conv": LayerChoice(True, method), "fc": LayerChoice(False, method)}
    assert not found.offset and found.fusion
    assert data["conv"]["weight_quant_params"]["channel_wise"] is True and data["fc"]["weight_quant_params"]["channel_wise"] is False
    assert list(data)[:5] == ["version", "batch_num", "activation_offset", "do_fusion", "skip_fusion_layers"]


def test_what_wins() -> None:
    assert CONFIG.method_of("b", "entropy") == "max" and CONFIG.method_of("z", "entropy") == "percentile"
    assert QuantConfig().method_of("z", "entropy") == "entropy"
    assert with_options(CONFIG, method="max", offset=None).method == "max"
    assert [str(CONFIG.refusal(*pair)) for pair in (("a", "Conv"), ("z", "Gemm"), ("c", "Conv"), ("z", "Conv"))] == [
        "in skip_layers",
        "its type Gemm is in skip_layer_types",
        "switched off in the configuration",
        "None",
    ]


BAD = {
    "": "Expecting value",
    "[]": "neither key",
    "{}": "neither key",
    '{"jumar": 1, "metod": "max"}': "`metod` is unknown",
    '{"jumar": 1, "method": "best"}': "`best` of config.json is no calibration method",
    '{"jumar": 1, "method": 3}': "`method` is of another type",
    '{"jumar": 1, "fusion": 1}': "`fusion` is of another type",
    '{"jumar": 1, "skip_layers": [1]}': "`skip_layers` is of another type",
    '{"jumar": 1, "percentile": 3}': "percentile 3 makes no sense",
    '{"jumar": 1, "layers": {"a": 1}}': "`a` is of another type",
    '{"jumar": 1, "layers": {"a": {"quantize": true}}}': "`quantize` is unknown",
    '{"version": 1, "conv": true}': "`conv` is unknown",
    '{"version": 1, "conv": {"quant_enable": "yes"}}': "`quant_enable` is of another type",
    "[" * 100_000: "is no quantisation configuration",
}


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_what_is_none(text: str) -> None:
    with pytest.raises(UsageError, match=BAD[text]):
        read_config(text)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("none.json", "binary", "."):
        with pytest.raises(UsageError, match="no quantisation configuration"):
            load_config(tmp_path / name)
