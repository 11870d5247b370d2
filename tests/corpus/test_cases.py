"""The public bug reports of kind op, dtype and shape: each one's finding is made, by its meaning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jumar import JumarError, check

# Folder, file, what must be found on the case's target: code, severity, operator; or the words with which the loader refuses the file.
# Where a report expects what the tables do not bear out, the comment says so.
FOUND: list[tuple[str, str, set[tuple[str, str, str | None]] | str]] = [
    ("dtype-bf16", "bf16", {("OP107", "error", "MatMul")}),
    ("dtype-int64-hash-overflow", "hash", {("DT301", "warning", None), ("OP105", "warning", "Mod")}),
    ("dtype-int64-io", "int64io", {("DT301", "warning", None)}),
    ("dtype-string-input", "string", {("OP101", "error", "ai.onnx.ml::LabelEncoder"), ("DT304", "error", None)}),
    ("op-activation-family", "acts", {("OP202", "error", "HardSwish"), ("OP102", "error", "Mish"), ("OP110", "error", None)}),
    ("op-attention-rmsnorm-opset23", "attn_mask", {("OP101", "error", "Attention"), ("OP110", "error", None)}),
    ("op-attention-rmsnorm-opset23", "attn_causal", {("OP101", "error", "Attention"), ("OP110", "error", None)}),
    ("op-attention-rmsnorm-opset23", "rmsnorm", {("OP101", "error", "RMSNormalization"), ("OP110", "error", None)}),
    # Its bool operators have kernels on every SoC.
    ("op-bool-logic-where", "logic", {("DT303", "warning", None)}),
    (
        "op-com-microsoft-fused",
        "ort_fused",
        {("OP101", "error", f"com.microsoft::{op}") for op in ("BiasGelu", "FusedMatMul", "SkipLayerNormalization")},
    ),
    # The report says CumSum is unsupported on MDC; 8.1.RC1 has AI Core kernels for half, float and int32 (seeds_crosscheck.json).
    ("op-cumsum-exclusive-reverse", "cumsum", set()),
    ("op-cumsum-int-position-ids", "cumsum_int", set()),
    ("op-deformconv-opset19", "dcn", {("OP101", "error", "DeformConv"), ("OP110", "error", None)}),
    *[("op-einsum-forms", f"einsum0{number}", {("OP103", "error", "Einsum"), ("OP110", "error", None)}) for number in range(10)],
    *[("op-gru-variants", f"gru_lbr0_{form}", {("OP111", "error", "GRU")}) for form in ("for", "rev", "bid", "bid_opt")],
    # The report says GRU is unsupported on MDC; with linear_before_reset=1 it is lowered to DynamicGRUV2 (seeds_crosscheck.json).
    *[("op-gru-variants", f"gru_lbr1_{form}", set()) for form in ("for", "rev", "bid", "bid_opt")],
    ("op-layernorm-lost-opset", "ln_claims11", "No Op registered for LayerNormalization"),
    ("op-loop-constant-trip", "loop3", {("OP101", "error", "Loop")}),
    ("op-maxpool-dilated", "maxpool", {("OP108", "error", "MaxPool")}),
    ("op-nms-arity-4", "nms4", {("OP201", "error", "NonMaxSuppression")}),
    ("op-nms-arity-4", "nms3", {("OP201", "error", "NonMaxSuppression")}),
    ("op-nms-center-point-box", "nms_cxcywh", {("OP112", "warning", "NonMaxSuppression")}),
    ("op-nms-default-max-zero", "nms2", {("OP201", "error", "NonMaxSuppression")}),
    ("op-nonzero-as-arange", "arange", {("OP105", "warning", "NonZero"), ("SH202", "info", None)}),
    # The report says OneHot is unsupported on MDC; it has a kernel there. Its int64 indices are reported.
    ("op-onehot-negative", "onehot", {("DT301", "warning", None)}),
    ("op-opset13-axes-as-inputs", "axes13", {("OP110", "error", None)}),
    ("op-pad-negative", "pad_neg", {("OP108", "error", "Pad")}),
    ("op-qdq-model", "qdq", {("OP101", "error", "QuantizeLinear"), ("OP101", "error", "DequantizeLinear")}),
    ("op-range-from-shape", "range", {("OP105", "warning", "Range"), ("SH202", "info", None)}),
    ("op-resize-tf-crop", "tfcrop", {("OP111", "error", "Resize")}),
    # ScatterND of floats has a kernel (by a pass); the strided Slice is what is doubtful.
    ("op-scatternd-strided-assign", "scatternd", {("OP112", "warning", "Slice")}),
    # Sequences are served outside the public tables: unknown, not refused.
    ("op-sequence-split", "seq", {("OP105", "warning", "SplitToSequence"), ("OP105", "warning", "SequenceAt")}),
    ("op-sequence-split", "seqc", {("OP105", "warning", "SequenceConstruct"), ("OP105", "warning", "ConcatFromSequence")}),
    ("op-stft-dft", "stft", {("OP101", "error", "STFT"), ("OP110", "error", None)}),
    ("op-stft-dft", "dft", {("OP101", "error", "DFT"), ("OP110", "error", None)}),
    ("op-topk-runtime-k", "topk_rtk", {("OP203", "error", "TopK")}),
    ("op-unused-domains", "unused_domain", {("GR502", "warning", None)}),
    ("shape-name-collisions", "passthrough", {("NM402", "error", None)}),
    ("shape-name-collisions", "dup_mean", "single static assignment"),
    ("shape-name-collisions", "dup_nodes", {("NM403", "warning", None)}),
    # No rule speaks of inputs and outputs of rank 0 yet.
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
