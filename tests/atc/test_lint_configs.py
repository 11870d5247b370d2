"""Configuration files: the kind is known by the content, and each mistake is found at its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.atc.configs import OP_PRECISIONS
from jumar.atc.lint_configs import KIND_OF, ConfigKind, check_config, config_kind
from jumar.atc.options import ModelFacts

GOOD: list[tuple[ConfigKind, str]] = [
    ("mixlist", '{"black-list": {"to-remove": ["Xlog1py"], "to-add": ["MatMul", "Cast"]}, "white-list": {"to-add": ["Bias"]}}'),
    ("mixlist", '{\n  "gray-list": {"to-add": []}\n}\n'),
    ("fusion-switch", '{"Switch": {"GraphFusion": {"ALL": "off"}, "UBFusion": {"TbePool2dQuantFusionPass": "on"}}}'),
    ("fusion-switch", "ConvBatchnormFusionPass:off\nSoftmaxFusionPass : on\n"),
    ("op-precision", "[ByOpType]\nGelu=high_performance\nConv2D = enable_float_32_execution\n\n[ByNodeName]\na/b=high_precision\n"),
    ("op-precision", "# comment\n[ByOpType]\nGatherV2=support_out_of_bound_index\n"),
    ("keep-dtype", "OpType::Conv2D\nconv/1:0\nAdd_7\n"),
    (
        "customize-dtypes",
        "conv_1::InputDtype:float16,float16,OutputDtype:float32\nOpType::MatMul:InputDtype:float16,,OutputDtype:float16\n",
    ),
    (
        "compression",
        'enable_first_layer_quantization:true\ncalibration:\n{\n  input_data_dir: ./d\n  input_shape: "x:1,3"\n  infer_port: 8000\n}\n',
    ),
    ("aipp", "aipp_op {\n  aipp_mode: static\n  nonsense: 1\n}\n"),
]


@pytest.mark.parametrize(("kind", "text"), GOOD)
def test_good_files(kind: ConfigKind, text: str) -> None:
    assert config_kind(text) == kind
    assert check_config(kind, text) == []


BAD: list[tuple[ConfigKind, str, int, str, str]] = [
    ("mixlist", '{\n"black-list": {"to-add": ["A"]},}', 2, "the file is no JSON", "error"),
    ("mixlist", '{\n "blacklist": {"to-add": ["A"]}}', 2, "`blacklist` is no list", "error"),
    ("mixlist", '{"black-list": {\n"add": ["A"]}}', 2, "`add` of `black-list` is no move", "error"),
    ("mixlist", '{"black-list": {"to-add": "A,B"}}', 1, "`to-add` of `black-list` is no list of operator types", "error"),
    ("mixlist", '{"black-list": ["A"]}', 1, "`black-list` holds no moves", "error"),
    ("mixlist", '{"black-list": {"to-add": ["A"]},\n"white-list": {"to-add": ["A"]}}', 1, "`A` is added to two lists", "error"),
    ("mixlist", '{"black-list": {}, "black-list": {}}', 1, "`black-list` is there twice", "error"),
    ("mixlist", "[1]", 1, "the file holds no lists", "error"),
    ("fusion-switch", '{"GraphFusion": {"ALL": "off"}}', 1, "there is no `Switch`", "error"),
    ("fusion-switch", '{"Switch": {"Graph": {"ALL": "off"}}}', 1, "`Graph` is no group of passes", "error"),
    ("fusion-switch", '{"Switch": {"UBFusion":\n{"ALL": "of"}}}', 2, "`ALL` is `of`", "error"),
    ("fusion-switch", "A:on\nB:yes\n", 2, "`B` is `yes`", "error"),
    ("op-precision", "[ByOpTypes]\nGelu=high_precision\n", 1, "`[ByOpTypes]` is no section", "error"),
    ("op-precision", "[ByOpType]\nGelu=high_preformance\n", 2, "`high_preformance` of `Gelu` is no mode", "error"),
    ("op-precision", "[ByOpType]\nGelu=quick\n", 2, "`quick` of `Gelu` is no mode", "warning"),
    ("op-precision", "[ByOpType]\nGelu\n", 2, "`Gelu` is not NAME=MODE", "error"),
    ("op-precision", "Gelu=high_precision\n", 1, "`Gelu=high_precision` stands before any section", "warning"),
    ("op-precision", "[ByNodeName]\nconv_2=high_precision\n", 2, "the model has no node `conv_2`", "warning"),
    ("keep-dtype", "OpType::Conv2D\nOptype:Add\n", 2, "`Optype:Add` does not name a type", "error"),
    ("keep-dtype", "a, b\n", 1, "`a, b` is no single name", "error"),
    ("keep-dtype", "conv_1\nconv_2\n", 2, "the model has no node `conv_2`", "warning"),
    (
        "customize-dtypes",
        "conv_1:InputDtype:float16,OutputDtype:float16\n",
        1,
        "`conv_1:InputDtype:float16,OutputDtype:float16` cannot be read",
        "error",
    ),
    ("compression", "calibration: {\n  input_dir: a\n}\n", 2, "`input_dir` is no setting", "error"),
    ("compression", "enable_first_layer_quantization: yes\n", 1, "`enable_first_layer_quantization` is `yes`", "error"),
    ("compression", "calibration {\n infer_port: x\n", 2, "`infer_port` is `x`", "error"),
]


@pytest.mark.parametrize(("kind", "text", "line", "message", "severity"), BAD)
def test_mistakes(kind: ConfigKind, text: str, line: int, message: str, severity: str) -> None:
    found = check_config(kind, text, ModelFacts((), nodes={"conv_1": 1}))
    assert (line, message, severity) in [(number, str(problem.message), problem.severity) for number, problem in found]
    for _, problem in found:
        assert problem.code == "AT912" and problem.remedy.render("zh")


def test_the_nearest_word_is_named() -> None:
    ((_, problem),) = check_config("op-precision", "[ByOpType]\nGelu=high_preformance\n")
    assert str(problem.remedy) == "write `high_performance`"
    ((_, problem),) = check_config("mixlist", '{"black_list": {}}')
    assert str(problem.remedy) == "write `black-list`"


@given(st.dictionaries(st.from_regex(r"[A-Za-z]\w{0,8}", fullmatch=True), st.sampled_from(OP_PRECISIONS), min_size=1, max_size=6))
def test_written_precision_files_pass(modes: dict[str, str]) -> None:
    text = "[ByOpType]\n" + "".join(f"{name}={mode}\n" for name, mode in modes.items())
    assert config_kind(text) == "op-precision" and check_config("op-precision", text) == []
    broken = text.replace("=", ":", 1)
    assert [number for number, _ in check_config("op-precision", broken)] == [2]


@given(st.sampled_from(sorted(KIND_OF.values())), st.text(alphabet='{}[]":,=\nOpType::abc_-#', max_size=60))
def test_no_text_crashes_it(kind: ConfigKind, text: str) -> None:
    config_kind(text)
    check_config(kind, text, ModelFacts((), nodes={"a": 1}))
