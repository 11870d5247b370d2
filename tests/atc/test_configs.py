"""The files beside the command line."""

from __future__ import annotations

import json
from typing import Any

import onnx_ir as ir
import pytest

from jumar.atc.configs import Configs
from jumar.errors import UsageError

MODEL = ir.from_onnx_text(
    '<ir_version: 8, opset_import: ["" : 13]> agraph (float[1] x) => (float[1] y) { [first] t = Relu(x) [second] y = Exp(t) }'
)


def files(precision_mode: str | None = None, **parts: Any) -> dict[str, tuple[str, str]]:
    return Configs(**parts).files(MODEL, precision_mode)


def test_nothing_asked_for_makes_no_file() -> None:
    assert files() == {}


def test_each_file_has_the_form_that_atc_reads() -> None:
    made = files(
        "mixed_float16",
        keep_dtype=["first", "OpType::Exp"],
        mixlist={"black": ["SoftmaxV2"], "white": ["Conv2D", "MatMulV2"]},
        fusion_off=["ConvConcatFusionPass", "UBFusion:TbePool2dQuantFusionPass"],
        op_precision={"OpType::Exp": "high_precision", "first": "high_performance"},
        compression={"enable_first_layer_quantization": "true", "input_data_dir": "./data.bin", "infer_device_id": "0"},
    )
    assert made["keep_dtype"] == ("keep_dtype.cfg", "first\nOpType::Exp\n")
    assert json.loads(made["modify_mixlist"][1]) == {
        "black-list": {"to-add": ["SoftmaxV2"]},
        "white-list": {"to-add": ["Conv2D", "MatMulV2"]},
    }
    assert json.loads(made["fusion_switch_file"][1]) == {
        "Switch": {"GraphFusion": {"ConvConcatFusionPass": "off"}, "UBFusion": {"TbePool2dQuantFusionPass": "off"}}
    }
    assert made["op_precision_mode"][1] == "[ByOpType]\nExp=high_precision\n[ByNodeName]\nfirst=high_performance\n"
    assert made["compression_optimize_conf"][1] == (
        "enable_first_layer_quantization:true\ncalibration:\n{\n    input_data_dir: ./data.bin\n    infer_device_id: 0\n}\n"
    )


@pytest.mark.parametrize(
    ("mode", "parts", "message"),
    [
        (None, {"keep_dtype": ["third"]}, "`third` is no node of the model"),
        (None, {"keep_dtype": ["OpType::a b"]}, "is no node"),
        (None, {"mixlist": {"black": ["Exp"]}}, r"needs a mixed precision mode.*E10001"),
        ("mixed_float16", {"mixlist": {"grey": ["Exp"]}}, "`grey` is no value of --mixlist; expected one of: black, white, gray"),
        ("mixed_float16", {"mixlist": {"black": ["Exp"], "white": ["Exp"]}}, "is in two lists"),
        (None, {"fusion_off": ["Other:Pass"]}, "`Other:Pass` is no value of --fusion-off"),
        (None, {"op_precision": {"first": "high"}}, "`high` is no value of --op-precision"),
        (None, {"op_precision": {"none": "high_precision"}}, "`none` is no node"),
        (None, {"compression": {"bits": "8"}}, "`bits` is no value of --compression"),
        (None, {"compression": {"infer_port": "x"}}, "`infer_port=x` is no value"),
        (None, {"compression": {"log": "info\n}"}}, "is no value"),
    ],
)
def test_what_would_have_no_effect_is_refused(mode: str | None, parts: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        files(mode, **parts)
