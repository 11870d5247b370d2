"""What people really saw with ATC on Ascend310P3 (facts/peers/observed.md): what compiled is not blocked, what failed is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from jumar import Record, check, fix

SOC = "Ascend310P3"

# The end-to-end head of YOLO26: the best anchors by their best class, then the best classes of those.
HEAD = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[1,8400,84] preds) => (float[1,300,6] y)
<int64[1] k = {300}, int64 classes = {80}, int64[2] sizes = {4, 80}, int64[1] last = {-1}, int64[3] four = {1,1,4}, int64[3] eighty = {1,1,80}> {
  boxes, scores = Split<axis = -1>(preds, sizes)
  best = ReduceMax<axes = [-1], keepdims = 0>(scores)
  ignored, anchor = TopK<axis = -1>(best, k)
  row = Unsqueeze(anchor, last)
  rows4 = Tile(row, four)
  rows80 = Tile(row, eighty)
  kept_boxes = GatherElements<axis = 1>(boxes, rows4)
  kept_scores = GatherElements<axis = 1>(scores, rows80)
  flat = Flatten<axis = 1>(kept_scores)
  score, place = TopK<axis = -1>(flat, k)
  box = Div(place, classes)
  label = Mod(place, classes)
  box1 = Unsqueeze(box, last)
  box4 = Tile(box1, four)
  final_boxes = GatherElements<axis = 1>(kept_boxes, box4)
  score1 = Unsqueeze(score, last)
  label1 = Unsqueeze(label, last)
  labels = Cast<to = 1>(label1)
  y = Concat<axis = -1>(final_boxes, score1, labels)
}"""


def on_card(model: ir.Model) -> Record:
    return check(model, soc=SOC).record


def errors(record: Record) -> set[str]:
    return {finding.code for finding in record.findings if finding.severity == "error"}


# Positive


def test_the_head_with_topk_mod_and_reducemax_is_not_blocked() -> None:
    """Its Mod is int64 in ONNX and int32 on the device, because TopK makes int32 indices there."""
    record = on_card(ir.from_onnx_text(HEAD))
    assert errors(record) == set()
    assert record.placement is not None and record.placement.to_dict()["aicpu"] == 0


def test_the_same_mod_of_a_real_int64_falls_to_the_ai_cpu() -> None:
    """The AI Core lists no int64 for Mod, the TensorFlow library of the AI CPU does: slow, not refused."""
    text = HEAD.replace("label = Mod(place, classes)", "wide = Cast<to = 7>(place) label = Mod(wide, classes)")
    record = on_card(ir.from_onnx_text(text))
    assert errors(record) == set()
    assert [(finding.op, finding.severity) for finding in record.findings if finding.code == "OP104"] == [("Mod", "warning")]


@pytest.fixture(scope="module")
def hydrated(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A graph of the corpus with drawn weights."""
    sys.path.insert(0, str(shared / "corpus"))
    try:
        from hydrate import hydrate
    finally:
        sys.path.pop(0)
    folder = tmp_path_factory.mktemp("graphs")

    def get(name: str) -> Path:
        path = folder / f"{name}.onnx"
        if not path.is_file():
            onnx.save(hydrate(str(shared / "corpus" / "graphs" / f"{name}.onnx")), path)
        return path

    return get


READY = ["tv_mobilenet_v3_large__ts11", "timm_efficientnet_b0__ts11", "timm_mobilevit_s__ts16", "hf_whisper_tiny_enc__ts16"]
LARGE = ["hf_bert_base__ts11", "hf_bert_base__ts16", "tv_convnext_tiny__ts11", "tv_resnet50__ts11", "tv_vit_b_16__ts16"]


@pytest.mark.parametrize("name", [*READY, *(pytest.param(name, marks=pytest.mark.slow) for name in LARGE)])
def test_a_cnn_or_transformer_is_not_blocked(name: str, hydrated: Callable[[str], Path]) -> None:
    record = check(hydrated(name), soc=SOC).record
    assert record.verdict in ("ready", "warnings") and errors(record) == set()


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("yolo_like__ts11", "blocked"),
        pytest.param("tv_deeplabv3_mnv3__ts11", "blocked", marks=pytest.mark.slow),
        pytest.param("tv_swin_t__ts11", "warnings", marks=pytest.mark.slow),  # its int64 Mod falls to the AI CPU
    ],
)
def test_what_its_exporter_left_computed_is_not_blocked_once_folded(name: str, before: str, hydrated: Callable[[str], Path]) -> None:
    """TorchScript computes sizes and grids from shapes; before folding, that arithmetic is refused or slow, with reason."""
    assert check(hydrated(name), soc=SOC).record.verdict == before
    assert fix(hydrated(name), soc=SOC).record.verdict in ("ready", "warnings")


# Negative


def suppression(inputs: int) -> ir.Model:
    names = ["boxes", "scores", "most", "overlap", "least"]
    nodes = [
        helper.make_node("NonMaxSuppression", names[:inputs], ["kept"]),
        helper.make_node("Cast", ["kept"], ["y"], to=TensorProto.INT32),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("boxes", [1, 9, 4]), ("scores", [1, 2, 9]))]
    weights = [helper.make_tensor("most", TensorProto.INT64, [1], [5])]
    weights += [helper.make_tensor(name, TensorProto.FLOAT, [1], [0.5]) for name in names[3:]]
    graph = helper.make_graph(nodes, "g", ends, [helper.make_tensor_value_info("y", TensorProto.INT32, ["n", 3])], weights)
    return ir.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))


@pytest.mark.parametrize("inputs", [2, 3, 4])
def test_suppression_with_missing_inputs_is_blocked(inputs: int) -> None:
    assert errors(on_card(suppression(inputs))) == {"OP201"}


def test_suppression_with_all_inputs_is_not() -> None:
    assert errors(on_card(suppression(5))) == set()


@pytest.mark.parametrize("opset", [19, 20, 21, 22, 23])
def test_an_opset_above_18_is_blocked(opset: int) -> None:
    text = f'<ir_version: 10, opset_import: ["" : {opset}]> agraph (float[2] x) => (float[2] y) {{ y = Relu(x) }}'
    assert errors(on_card(ir.from_onnx_text(text))) == {"OP110"}


@pytest.mark.parametrize(
    ("attribute", "expected"), [("", {"OP225"}), (", linear_before_reset = 0", {"OP225"}), (", linear_before_reset = 1", set())]
)
def test_a_gru_that_resets_before_the_product_is_blocked(attribute: str, expected: set[str]) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 13]>
    agraph (float[5,1,3] x, float[1,12,3] w, float[1,12,4] r) => (float[5,1,1,4] y) {{ y = GRU<hidden_size = 4{attribute}>(x, w, r) }}"""
    assert errors(on_card(ir.from_onnx_text(text))) == expected


@pytest.mark.parametrize("op", ["FindMax", "TomeMerged", "TomeUnmerge", "UnpadFlashAttentionMix", "SliceTransGeluMul"])
def test_a_private_operator_is_blocked_and_its_package_named(op: str) -> None:
    record = on_card(ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 11]> agraph (float[2] x) => (float[2] y) {{ y = {op}(x) }}'))
    stops = [item for item in record.findings if item.severity == "error"]
    assert [(item.code, item.op) for item in stops] == [("OP101", op)]
    assert "SD-XL" in str(stops[0].remedy)
