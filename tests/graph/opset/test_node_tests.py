"""The ONNX standard's node tests at other opsets: equal to what the standard expects, or refused with a reason."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from jumar.graph import Evaluator
from jumar.graph.opset import newest_opset
from jumar.graph.opset.step import LOWER, Step

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))
import opset_table as tool  # noqa: E402

sys.path.pop(0)
# One test of each of these words is run every time; the others in the long sweep.
QUICK = (
    *("attention_3d_gqa", "rms_normalization_2d_axis0", "rotary_embedding_interleaved", "group_normalization_example", "gelu_tanh_1"),
    *("swish", "tensorscatter", "center_crop_pad_crop_and_pad", "col2im_dilations", "bitwise_xor_i32_2d", "trilu_tril_neg", "mish"),
    *("gridsample_bicubic_align_corners", "affine_grid_2d", "resize_downsample_sizes_linear_antialias", "dft_inverse", "stft"),
    *("scatternd_max", "cumprod_1d", "quantizelinear_axis", "dequantizelinear_blocked", "averagepool_2d_dilations", "einsum_transpose"),
    *("lstm_batchwise", "batchnorm_example_training_mode", "argmax_default_axis_example_select_last_index", "wrap_pad", "castlike"),
    *("reduce_log_sum_exp_default_axes", "split_variable_parts", "softmax_axis_1", "clip_default_int8_max", "pow_types_float32_int64"),
    *("upsample_nearest", "scatter_with_axis", "flatten_axis1", "nllloss_NCd1", "hardswish", "celu", "shape_start_1"),
)


@pytest.fixture(scope="module")
def cases() -> list[Any]:
    return tool.node_tests()


def test_the_chosen_node_tests_are_equal_at_other_opsets(cases: list[Any], evaluator: Evaluator) -> None:
    chosen = [next((case for case in cases if case.name.startswith(f"test_{word}")), None) for word in QUICK]
    results = tool.sweep([case for case in chosen if case is not None], evaluator)
    assert len(results) > 60
    bad = [item for item in results if item.status in ("wrong", "invalid", "unrun")]
    # An ONNX Runtime older than the installed ONNX does not run its newest opset.
    assert [item for item in bad if item.status != "unrun" or item.version < newest_opset()] == []
    assert sum(item.status == "equal" for item in results) > 0.9 * len(results)


def test_a_wrong_conversion_would_be_seen(cases: list[Any], evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(step: Step) -> bool:
        step.finish(step.op("Mul", step.needed(0), step.like(1.001)))
        return True

    monkeypatch.setitem(LOWER, ("Mish", 18), wrong)
    case = next(case for case in cases if case.name == "test_mish")
    assert tool.judge(case, 11, evaluator).status == "wrong"


def test_the_comparison_sees_shapes_dtypes_and_values() -> None:
    array = np.array([1.0, 2.0], np.float32)
    assert tool.difference([array], [array.copy()], 0, 0) == ""
    for other in (array.astype(np.float64), array[:1], array + 1, np.array([np.nan, 2], np.float32)):
        assert tool.difference([array], [other], 1e-3, 1e-6)


@pytest.mark.slow
def test_every_node_test_is_equal_or_refused(cases: list[Any], evaluator: Evaluator) -> None:
    results = tool.sweep(cases, evaluator)
    assert [item for item in results if item.status in ("wrong", "invalid", "unrun")] == []
    refused = [item for item in results if item.status == "refused"]
    assert all(item.reason is not None and item.reason.render("zh") != item.reason.render("en") for item in refused)
    # Going up changes forms only: ONNX Runtime gives the same bits.
    up = [item for item in results if item.status == "equal" and item.version > item.opset]
    assert len(up) > 1000 and not [item for item in up if item.identical is False]
    for lang in ("en", "zh"):
        committed = (ROOT / "docs" / lang / "opsets.md").read_text(encoding="utf-8")
        if f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}" in committed:
            assert tool.page(results, lang) == committed, "run tools/opset_table.py"


@pytest.mark.slow
def test_no_node_test_is_wrong_below_eleven_either(cases: list[Any], evaluator: Evaluator) -> None:
    results = tool.sweep(cases, evaluator, (9, 7))
    assert [item for item in results if item.status in ("wrong", "invalid", "unrun")] == []
    assert Counter(item.status for item in results)["equal"] > 1500


@pytest.mark.slow
def test_there_and_back(cases: list[Any], evaluator: Evaluator) -> None:
    """Down to 11 and up to 18 again."""
    wrong = []
    for case in cases:
        first = tool.convert(case.model, 11)
        if not isinstance(first, onnx.ModelProto):
            continue
        again = tool.convert(first, 18)
        if not isinstance(again, onnx.ModelProto):
            wrong.append((case.name, again))
            continue
        feeds, _ = case.data_sets[0]
        names = [item.name for item in case.model.graph.input]
        given = {name: tool.as_array(value) for name, value in zip(names, feeds, strict=False)}
        found = tool.run(again, given, evaluator)
        middle = tool.run(first, given, evaluator)
        if isinstance(found, str) or isinstance(middle, str):
            continue
        problem = tool.difference(middle, found, 1e-6, 1e-7, values=tool.main_op(case.model) not in tool.RANDOM)
        if problem:
            wrong.append((case.name, problem))
    assert wrong == []
