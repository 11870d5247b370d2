"""Operators without a parser are named, with what brings one or avoids them where that is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jumar.targets import Status, find_target, package_hint, support
from jumar.targets.tables import table

PACKAGES = table("packages.json")["packages"]


@pytest.mark.parametrize("item", PACKAGES, ids=lambda item: (item.get("operators") or item["domains"])[0])
def test_a_package_is_complete(item: dict[str, object]) -> None:
    assert {*item} <= {"operators", "domains", "en", "zh", "source"} and (item.get("operators") or item.get("domains"))
    assert str(item["en"]).isascii() and any("\u4e00" <= letter <= "\u9fff" for letter in str(item["zh"])) and item["source"]


HINTS = [
    ("", "FindMax", "SD-XL"),
    ("custom", "TomeMerged", "SD-XL"),
    ("", "TomeUnmerge", "operator package"),
    ("", "UnpadFlashAttentionMix", "SD-XL"),
    ("", "SliceTransGeluMul", "SD-XL"),
    ("mmcv", "MMCVDeformConv2d", "MMDeploy"),
    ("mmdeploy", "grid_sampler", "MMDeploy"),
    ("com.microsoft", "SkipLayerNormalization", "ONNX Runtime"),
    ("ai.onnx.ml", "LabelEncoder", "host"),
    ("org.pytorch.aten", "ATen", "export"),
    ("TRT", "EfficientNMS_TRT", "TensorRT"),
    ("", "QuantizeLinear", "AMCT"),
    ("mine", "AscendQuant", "ai.onnx::AscendQuant"),
    ("mine", "NPUFlashAttention", "npu::NPUFlashAttention"),
    ("npu", "NPUNotYetKnown", "torch_npu"),
]


@pytest.mark.parametrize(("domain", "op", "says"), HINTS)
def test_a_known_origin_is_named(domain: str, op: str, says: str) -> None:
    assert support(domain, op, 13, find_target("Ascend310P3")).status is Status.NO_PARSER
    hint = package_hint(domain, op)
    assert hint is not None and says in hint.render("en") and hint.render("zh") != hint.render("en")


@pytest.mark.parametrize(("domain", "op"), [("", "NoSuchOperator"), ("mine", "NoSuchOperator"), ("", "Loop")])
def test_nothing_is_invented_about_others(domain: str, op: str) -> None:
    assert package_hint(domain, op) is None


def test_every_operator_of_ascend_in_another_domain_is_led_home(shared: Path) -> None:
    rows = json.loads((shared / "facts" / "ops" / "onnx_frontend.json").read_text(encoding="utf-8"))["rows"]
    for row in rows:
        if row["kind"] == "ascend":
            hint = package_hint("elsewhere", row["op"])
            assert hint is not None and f"{row['domain']}::{row['op']}" in hint.render("en")
