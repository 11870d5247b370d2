"""The public bug reports of kind op, dtype, shape and log: each one's finding is made, by its meaning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jumar import JumarError, check, diagnose
from jumar.text import LANGS

# Folder, file, what must be found on the case's target: code, severity, operator; or the words with which the loader refuses the file.
# Where a report expects what the tables do not bear out, the comment says so.
FOUND: list[tuple[str, str, set[tuple[str, str, str | None]] | str]] = [
    ("dtype-bf16", "bf16", {("OP107", "error", "MatMul"), ("DT309", "warning", None)}),
    ("dtype-int64-hash-overflow", "hash", {("DT301", "warning", None), ("OP105", "warning", "Mod")}),
    ("dtype-int64-io", "int64io", {("DT301", "warning", None)}),
    ("dtype-string-input", "string", {("OP101", "error", "ai.onnx.ml::LabelEncoder"), ("DT304", "error", None)}),
    ("op-activation-family", "acts", {("OP202", "error", "HardSwish"), ("OP209", "error", "Mish"), ("OP110", "error", None)}),
    ("op-attention-rmsnorm-opset23", "attn_mask", {("OP267", "error", "Attention"), ("OP110", "error", None)}),
    ("op-attention-rmsnorm-opset23", "attn_causal", {("OP267", "error", "Attention"), ("OP110", "error", None)}),
    ("op-attention-rmsnorm-opset23", "rmsnorm", {("OP209", "error", "RMSNormalization"), ("OP110", "error", None)}),
    # Its bool operators have kernels on every SoC.
    ("op-bool-logic-where", "logic", {("DT303", "warning", None)}),
    (
        "op-com-microsoft-fused",
        "ort_fused",
        {("OP237", "error", f"com.microsoft::{op}") for op in ("BiasGelu", "FusedMatMul", "SkipLayerNormalization")},
    ),
    # The report says CumSum is unsupported on MDC; 8.1.RC1 has AI Core kernels for half, float and int32 (seeds_crosscheck.json).
    ("op-cumsum-exclusive-reverse", "cumsum", set()),
    ("op-cumsum-int-position-ids", "cumsum_int", set()),
    ("op-deformconv-opset19", "dcn", {("OP246", "error", "DeformConv"), ("OP110", "error", None)}),
    *[("op-einsum-forms", f"einsum0{number}", {("OP260", "error", "Einsum"), ("OP110", "error", None)}) for number in range(10)],
    *[("op-gru-variants", f"gru_lbr0_{form}", {("OP225", "error", "GRU")}) for form in ("for", "rev", "bid", "bid_opt")],
    # The report says GRU is unsupported on MDC; with linear_before_reset=1 it is lowered to DynamicGRUV2 (seeds_crosscheck.json), of which
    # the published pass does not set the direction, reads an end state at the wrong end, and which repeats states behind a sequence's end.
    ("op-gru-variants", "gru_lbr1_for", set()),
    *[("op-gru-variants", f"gru_lbr1_{form}", {("OP225", "warning", "GRU")}) for form in ("rev", "bid")],
    ("op-gru-variants", "gru_lbr1_bid_opt", {("OP225", "error", "GRU")}),
    ("op-layernorm-lost-opset", "ln_claims11", {("GR507", "error", None)}),
    ("op-loop-constant-trip", "loop3", {("OP101", "error", "Loop")}),
    ("op-maxpool-dilated", "maxpool", {("OP250", "error", "MaxPool")}),
    ("op-nms-arity-4", "nms4", {("OP201", "error", "NonMaxSuppression")}),
    ("op-nms-arity-4", "nms3", {("OP201", "error", "NonMaxSuppression")}),
    ("op-nms-center-point-box", "nms_cxcywh", {("OP230", "warning", "NonMaxSuppression")}),
    ("op-nms-default-max-zero", "nms2", {("OP201", "error", "NonMaxSuppression")}),
    ("op-nonzero-as-arange", "arange", {("OP210", "warning", "NonZero"), ("SH202", "info", None)}),
    # The report says OneHot is unsupported on MDC; it has a kernel there. Its int64 indices are reported.
    ("op-onehot-negative", "onehot", {("DT301", "warning", None)}),
    ("op-opset13-axes-as-inputs", "axes13", {("OP110", "error", None)}),
    ("op-pad-negative", "pad_neg", {("OP212", "error", "Pad")}),
    ("op-qdq-model", "qdq", {("OP275", "error", "QuantizeLinear"), ("OP275", "error", "DequantizeLinear")}),
    ("op-range-from-shape", "range", {("OP209", "warning", "Range"), ("SH202", "info", None)}),
    ("op-resize-tf-crop", "tfcrop", {("OP245", "error", "Resize")}),
    # ScatterND of floats has a kernel (by a pass); the strided Slice is what is doubtful.
    ("op-scatternd-strided-assign", "scatternd", {("OP211", "warning", "Slice")}),
    # Sequences are served outside the public tables: unknown, not refused.
    ("op-sequence-split", "seq", {("OP105", "warning", "SplitToSequence"), ("OP105", "warning", "SequenceAt")}),
    ("op-sequence-split", "seqc", {("OP105", "warning", "SequenceConstruct"), ("OP105", "warning", "ConcatFromSequence")}),
    ("op-stft-dft", "stft", {("OP247", "error", "STFT"), ("OP110", "error", None)}),
    ("op-stft-dft", "dft", {("OP247", "error", "DFT"), ("OP110", "error", None)}),
    ("op-topk-runtime-k", "topk_rtk", {("OP203", "error", "TopK")}),
    ("op-unused-domains", "unused_domain", {("GR502", "warning", None)}),
    ("shape-name-collisions", "passthrough", {("NM402", "error", None)}),
    ("shape-name-collisions", "dup_mean", "single static assignment"),
    ("shape-name-collisions", "dup_nodes", {("NM403", "warning", None)}),
    ("shape-scalar-io", "scalar", {("SH203", "warning", None)}),
]


def test_every_case_is_here(shared: Path) -> None:
    files = set()
    for path in (shared / "cases").glob("*/case.json"):
        case = json.loads(path.read_text(encoding="utf-8"))
        if case["kind"] in ("op", "dtype", "shape"):
            files |= {(path.parent.name, Path(name).stem) for name in case["input_files"] if name.endswith(".onnx")}
    assert {(folder, name) for folder, name, _ in FOUND} == files


@pytest.mark.parametrize(("folder", "name", "expected"), FOUND, ids=[f"{folder}-{name}" for folder, name, _ in FOUND])
def test_a_case_is_found(folder: str, name: str, expected: set[tuple[str, str, str | None]] | str, shared: Path) -> None:
    path = shared / "cases" / folder
    soc = json.loads((path / "case.json").read_text(encoding="utf-8"))["target"].get("soc") or "Ascend310P3"
    where = {"target": "mdc510pro"} if soc == "MDC510" else {"soc": soc}
    if isinstance(expected, str):
        with pytest.raises(JumarError, match=expected):
            check(path / f"{name}.onnx", **where)
        return
    findings = check(path / f"{name}.onnx", **where).record.findings
    assert expected <= {(item.code, item.severity, item.op) for item in findings}
    for item in findings:
        assert item.message.render("zh") and item.remedy.render("zh")


# Folder, file; of each finding in order: its code and what it must say in English and in Chinese; the line of the root cause.
LOGS: list[tuple[str, str, list[tuple[str, list[str], list[str]]], int]] = [
    (
        "log-507011-execute",
        "atc.log",
        [
            (
                "LG807",
                [
                    "507011",
                    "model execution failed on the device",
                    "0x800000",
                    "address out of range",
                    "asynchronous",
                    "NaN",
                    "plog",
                    "Gather",
                ],
                ["507011", "模型在设备上执行失败", "0x800000", "地址越界", "异步", "plog"],
            )
        ],
        3,
    ),
    ("log-e10037-ragged", "atc.log", [("LG802", ["E10037", "[2] dimensions"], ["E10037", "值的个数不一致"])], 1),
    ("log-e16005-domains", "atc.log", [("LG803", ["E16005", "more than one operator domain"], ["E16005", "多个算子域"])], 1),
    (
        "log-e19010-no-parser",
        "atc.log",
        [
            (
                "LG801",
                ["E19010", "E13010", "FindMax", "no known CANN registers", "/blk0/attn/FindMax", "plug-in"],
                ["没有为 ONNX 解析器注册", "插件"],
            ),
            ("LG801", ["SliceTransGeluMul", "no known CANN registers"], ["没有为 ONNX 解析器注册"]),
            ("LG801", ["Conv (opset 22)", "not at 22", "export again at an opset of 8-18"], ["不接受 22", "重新导出"]),
        ],
        3,
    ),
    (
        "log-ee1001-soc-load",
        "atc.log",
        [("LG806", ["Ascend910B,", "is Ascend910B2", "507008", "--soc_version=Ascend910B2"], ["507008", "--soc_version=Ascend910B2"])],
        2,
    ),
    (
        "log-ez3002-transdata",
        "atc.log",
        [("LG805", ["EZ3002", "TransData", "kernels package", "bfloat16", "310P"], ["TransData", "软件包", "bfloat16"])],
        1,
    ),
    ("log-numpy2-attribute", "atc.log", [("LG805", ["NumPy 2", "numpy<2"], ["NumPy 2", "numpy<2"])], 3),
    (
        "log-realpath-missing",
        "atc.log",
        [("LG804", [" /home/u/ops_info.json", "--modify_mixlist", "CANN"], ["/home/u/ops_info.json", "--modify_mixlist"])],
        2,
    ),
    (
        "rt-vnpu-load-failure",
        "scenario.json",
        [("LG806", ["507009", "ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT", "vNPU", "whole card", "driver"], ["vNPU", "整卡", "驱动"])],
        4,
    ),
]


def test_every_log_is_here(shared: Path) -> None:
    kinds = {path.parent.name: json.loads(path.read_text(encoding="utf-8"))["kind"] for path in (shared / "cases").glob("*/case.json")}
    assert {folder for folder, *_ in LOGS if folder.startswith("log-")} == {name for name, kind in kinds.items() if kind == "log"}


@pytest.mark.parametrize(("folder", "name", "expected", "line"), LOGS, ids=[folder for folder, *_ in LOGS])
def test_the_root_of_a_log_is_found(
    folder: str, name: str, expected: list[tuple[str, list[str], list[str]]], line: int, shared: Path
) -> None:
    record = diagnose(shared / "cases" / folder / name)
    assert record.verdict == "blocked"
    assert record.data["root"]["line"] == line
    assert [finding.code for finding in record.findings] == [code for code, *_ in expected]
    for finding, (_, english, chinese) in zip(record.findings, expected, strict=True):
        said = {lang: "; ".join(text.render(lang) for text in (finding.message, finding.why, finding.remedy)) for lang in LANGS}
        assert [word for word in english if word not in said["en"]] == []
        assert [word for word in chinese if word not in said["zh"]] == []
        assert not any("\u4e00" <= letter <= "\u9fff" for letter in said["en"])


def test_a_model_with_two_domains_is_rewritten_by_the_rule_the_log_names(shared: Path) -> None:
    """The report of UIE: the log beside a model whose second domain is not in use."""
    cases = shared / "cases"
    first, *_ = diagnose(
        cases / "log-e16005-domains" / "atc.log", model=cases / "op-unused-domains" / "unused_domain.onnx", soc="Ascend310P3"
    ).findings
    assert (first.code, first.fix) == ("LG803", "safe")
    assert "GR502" in first.remedy.render("zh")
