"""The option model: compiled from the facts, read as ATC's parser reads, written back as it was."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.atc.options import ModelFacts, Options, atc_flags, check, nearest_flag, parse_argv, render
from jumar.case import TensorInfo
from jumar.targets.tables import table

ROOT = Path(__file__).resolve().parents[2]
WHOLE = {"model": "m.onnx", "framework": "5", "output": "m", "soc_version": "Ascend310P3"}


def codes(**changes: str | None) -> set[tuple[str, str]]:
    """Errors of a complete call with changes: our code and each of ATC's."""
    found = check(Options(WHOLE).with_(**changes))
    return {(problem.code, atc) for problem in found if problem.severity == "error" for atc in (problem.atc or ("",))}


def test_the_same_facts_give_the_same_bytes(shared: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "tools" / "compile_atc.py", shared / "facts", tmp_path], check=True, capture_output=True)
    assert (tmp_path / "atc.json").read_bytes() == (ROOT / "src" / "jumar" / "data" / "atc.json").read_bytes()


def test_a_fact_that_is_gone_is_noticed(shared: Path, tmp_path: Path) -> None:
    facts = tmp_path / "facts" / "toolchain"
    facts.mkdir(parents=True)
    text = (shared / "facts" / "toolchain" / "atc_flags.json").read_text(encoding="utf-8")
    (facts / "atc_flags.json").write_text(text.replace("VectorCore only on 310P", "VectorCore on all"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "compile_atc.py", facts.parent, tmp_path], check=False, capture_output=True, text=True
    )
    assert done.returncode != 0 and "no longer says of --core_type: VectorCore only on 310P" in done.stderr


def test_every_flag_of_the_facts_is_there(shared: Path) -> None:
    rows = json.loads((shared / "facts" / "toolchain" / "atc_flags.json").read_text(encoding="utf-8"))["flags"]
    assert set(atc_flags()) == {row["flag"].removeprefix("--") for row in rows}
    assert len(rows) == 90
    for row in rows:
        flag = atc_flags()[row["flag"].removeprefix("--")]
        assert flag.source == row["source"]
        assert flag.type == row["type"]
        assert len(flag.allowed) == len(row.get("allowed", []))


# Rules of the facts that no command line can show: ATC finds out from files, or from values of another program.
UNSEEN = {"E10023", "E10030", "E10032", "E10034", "E10052", "E10055", "E13001", "E10058"}


def test_every_code_of_the_facts_is_in_the_lint(shared: Path) -> None:
    """ATC's codes that the facts name for flags are those that the lint gives, but for those that need the files themselves."""
    rows = json.loads((shared / "facts" / "toolchain" / "atc_flags.json").read_text(encoding="utf-8"))
    named = set(re.findall(r"E\d{5}", json.dumps(rows["flags"]) + json.dumps(rows["exclusive_groups"])))
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src" / "jumar" / "atc").glob("lint_*.py"))
    data = (ROOT / "src" / "jumar" / "data" / "atc.json").read_text(encoding="utf-8")
    given_codes = set(re.findall(r'"(E\d{5})"', source)) | {
        code for row in json.loads(data)["flags"].values() for code in [row.get("code"), *(row.get("removed") or [])] if code is not None
    }
    given_codes |= {item["code"] for item in table("atc.json")["excludes"]}
    assert named - given_codes - UNSEEN == set()


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["--model=a", "--framework=5"], {"model": "a", "framework": "5"}),
        (["--model", "a", "--framework", "5"], {"model": "a", "framework": "5"}),
        (["-model=a", "-framework", "5"], {"model": "a", "framework": "5"}),
        (["--input-shape=x:1", "--soc-version=S"], {"input_shape": "x:1", "soc_version": "S"}),
        (["--help"], {"help": "true"}),
        (["-h"], {"help": "true"}),
        (["--help", "--model=a"], {"help": "true", "model": "a"}),
        (["--model=", "--output=b=c"], {"model": "", "output": "b=c"}),
        (["--log=info", "--log=error"], {"log": "error"}),
        (["--log=info", "--"], {"log": "info"}),
        ([], {}),
    ],
)
def test_words_are_read_as_atc_reads_them(words: list[str], values: dict[str, str]) -> None:
    options, problems = parse_argv(words)
    assert dict(options.values) == values
    assert not [problem for problem in problems if problem.severity == "error"]


@pytest.mark.parametrize(
    ("words", "code", "flag"),
    [
        (["--precision=fp16"], "AT901", "precision_mode_v2"),
        (["--soc=Ascend310P3"], "AT901", "soc_version"),  # a warning: only one flag begins so
        (["--dynamic_batch=1,2"], "AT901", "dynamic_batch_size"),
        (["--input_shapes=x:1"], "AT901", "input_shape"),
        (["--insert_op_config=a"], "AT901", "insert_op_conf"),
        (["--zzz=1"], "AT901", None),
        (["-o=x"], "AT901", None),
        (["--model"], "AT902", "model"),
        (["a.onnx"], "AT911", None),
        (["--", "a.onnx"], "AT911", None),
        (["-"], "AT911", None),
        (["--log=info", "--log=error"], "AT913", "log"),
    ],
)
def test_mistakes_in_words(words: list[str], code: str, flag: str | None) -> None:
    _, problems = parse_argv(words)
    assert [(problem.code, problem.flag) for problem in problems] == [(code, flag)]


def test_what_to_write_for_an_unknown_flag() -> None:
    (problem,) = parse_argv(["--precision=fp16"])[1]
    assert "--precision_mode_v2=fp16 or --precision_mode=force_fp16" in str(problem.remedy)
    (problem,) = parse_argv(["--precision=int8"])[1]
    assert "AMCT" in str(problem.remedy)
    assert nearest_flag("precison_mode") == "precision_mode"
    assert nearest_flag("zzzzzz") is None


@given(st.lists(st.tuples(st.sampled_from(sorted(atc_flags())), st.text(max_size=12)), unique_by=lambda item: item[0]))
def test_what_is_rendered_is_read_back(pairs: list[tuple[str, str]]) -> None:
    options = Options(dict(pairs))
    again, problems = parse_argv(render(options))
    assert dict(again.values) == dict(pairs) and list(again) == [name for name, _ in pairs]
    assert not problems


@given(st.lists(st.text(max_size=20), max_size=8))
def test_no_words_crash_it(words: list[str]) -> None:
    options, problems = parse_argv(words)
    for problem in [*problems, *check(options)]:
        assert problem.message.render("zh") and problem.why.render("zh") and problem.remedy.render("zh")


@given(st.sampled_from(sorted(atc_flags())), st.text(alphabet="0123456789,;:~[]-x ${}", max_size=24), st.sampled_from(["x:-1,3", "x:1"]))
def test_no_value_crashes_it(name: str, value: str, shape: str) -> None:
    options = Options({**WHOLE, "input_shape": shape, name: value})
    facts = ModelFacts((TensorInfo("x", "float32", ("n", 3)),), nodes={"a": 1})
    for problem in check(options, cann="8.1.RC1", soc="Ascend310", model_facts=facts):
        assert problem.message.render("zh") and problem.why.render("zh") and problem.remedy.render("zh")


def test_values_that_a_run_decides_are_not_judged() -> None:
    assert codes(input_shape="x:${bs},3", dynamic_batch_size="$1", soc_version="Ascend${chip_name}", log="{level}") == set()


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"soc_version": "Ascend310P"}, ("AT905", "")),
        ({"soc_version": "310P3"}, ("AT905", "")),
        ({"soc_version": "ascend310p3"}, ("AT905", "")),
        ({"soc_version": "MDC510"}, ("AT905", "")),
        ({"soc_version": "Ascend310310${x}"}, ("AT905", "")),
        ({"soc_version": None}, ("AT903", "E10054")),
        ({"model": ""}, ("AT903", "E10054")),
        ({"framework": None}, ("AT903", "E10007")),
        ({"framework": "4"}, ("AT902", "E10007")),
        ({"framework": "onnx"}, ("AT902", "E10007")),
        ({"framework": "3"}, ("AT908", "E10041")),
        ({"framework": "0", "model": "a.prototxt"}, ("AT903", "E10008")),
        ({"mode": "2"}, ("AT902", "E10001")),
        ({"mode": "1", "model": None}, ("AT903", "E10004")),
        ({"om": "a.om"}, ("AT904", "E10057")),
        ({"log": "ERROR"}, ("AT902", "E10010")),
        ({"precision_mode": ""}, ("AT902", "E10001")),
        ({"output_type": "FP64"}, ("AT902", "E10001")),
        ({"output_type": "a:FP16"}, ("AT902", "E10001")),
        ({"output_type": "a:x:FP16"}, ("AT902", "E10001")),
        ({"output_type": "a:0:FP16", "out_nodes": "b:0"}, ("AT902", "E10001")),
        ({"out_nodes": "a:b:x"}, ("AT902", "E10014")),
        ({"output": "folder/"}, ("AT902", "E10022")),
        ({"output": "x" * 5000}, ("AT902", "E10021")),
        ({"input_format": "NHWC"}, ("AT902", "E10001")),
        ({"disable_reuse_memory": "2"}, ("AT902", "E10006")),
        ({"raw_ge_options_ignore_unsupported": "maybe"}, ("AT902", "E10003")),
        ({"is_input_adjust_hw_layout": "true,1"}, ("AT902", "E10005")),
        ({"enable_compress_weight": "yes"}, ("AT902", "E10005")),
        ({"auto_tune_mode": "RL,GA"}, ("AT910", "E10001")),
        ({"precision_mode": "force_fp16", "precision_mode_v2": "fp16"}, ("AT904", "E10056")),
        ({"enable_compress_weight": "true", "compress_weight_conf": "c"}, ("AT904", "E10047")),
        ({"optypelist_for_implmode": "Gelu"}, ("AT903", "E10001")),
        ({"modify_mixlist": "a.json"}, ("AT903", "E10001")),
        ({"modify_mixlist": "a.json", "precision_mode_v2": "fp16"}, ("AT904", "E10001")),
        ({"singleop": "a.json"}, ("AT904", "E10001")),
        ({"mode": "7", "json": "a"}, ("AT904", "E10001")),
        ({"deterministic": "1", "deterministic_level": "0"}, ("AT904", "E10001")),
        ({"mode": "30"}, ("AT909", "E10055")),
        ({"core_type": "VectorCore", "soc_version": "Ascend310"}, ("AT909", "")),
        ({"precision_mode_v2": "mixed_hif8"}, ("AT909", "")),
        ({"soc_version": "Ascend310B1", "input_shape": "x:1~4,3"}, ("AT909", "")),
        ({"soc_version": "Ascend310", "input_shape_range": "x:[-1,3]"}, ("AT909", "")),
        ({"input_shape": "x:1.5"}, ("AT906", "E10002")),
        ({"input_shape": "1,3"}, ("AT906", "E10002")),
        ({"input_shape": "x:0,3"}, ("AT906", "E10011")),
        ({"input_shape": f"x:{10**20}"}, ("AT906", "E10013")),
        ({"input_shape": "x:1,,3"}, ("AT906", "E10014")),
        ({"input_shape": "x:8~4"}, ("AT906", "E10002")),
        ({"input_shape": "x:[1~4,3]"}, ("AT906", "E10002")),
        ({"input_shape_range": "x:1~4,3"}, ("AT906", "E10048")),
        ({"input_shape_range": "x:[a]"}, ("AT906", "E10048")),
        ({"input_shape": "x:-1", "input_hint_shape": "0:[1]", "dynamic_dims": "1;2"}, ("AT904", "E10001")),
        ({"input_shape": "x:1~4,-1", "dynamic_dims": "1;2"}, ("AT904", "E10040")),
        ({"input_shape": "x:-1", "dynamic_dims": "1;2", "insert_op_conf": "a"}, ("AT904", "E10001")),
        ({"input_shape": "x:-1", "dynamic_dims": "1;2", "dynamic_batch_size": "1,2"}, ("AT904", "E10009")),
        ({"dynamic_dims": "1;2"}, ("AT903", "E10004")),
        ({"input_shape": "x:-1,3", "dynamic_batch_size": "1"}, ("AT907", "E10035")),
        ({"input_shape": "x:-1,3", "dynamic_batch_size": "1,1"}, ("AT907", "E10039")),
        ({"input_shape": "x:-1,3", "dynamic_batch_size": "0,1"}, ("AT907", "E10038")),
        ({"input_shape": "x:-1,3", "dynamic_batch_size": "-1,1"}, ("AT907", "E10003")),
        ({"input_shape": "x:-1,3", "dynamic_batch_size": "1;2"}, ("AT907", "E10003")),
        ({"input_shape": "x:-1,3", "dynamic_batch_size": "1, 2"}, ("AT907", "E10003")),
        ({"input_shape": "x:1,3", "dynamic_batch_size": "1,2"}, ("AT907", "E10031")),
        ({"input_shape": "x:1,-1", "dynamic_batch_size": "1,2"}, ("AT907", "E10018")),
        ({"input_shape": "x:-1,1;y:", "dynamic_batch_size": "1,2"}, ("AT907", "E10012")),
        ({"input_shape": "x:1,3,-1", "dynamic_image_size": "1,2;3,4"}, ("AT907", "E10019")),
        ({"input_shape": "x:1,-1,-1,3", "dynamic_image_size": "1,2;3,4"}, ("AT907", "E10019")),
        ({"input_shape": "x:1,3,-1,-1", "dynamic_image_size": "1,2;3"}, ("AT907", "E10020")),
        ({"input_shape": "x:1,3,-1,-1", "dynamic_image_size": "1,2;3,4", "input_format": "ND"}, ("AT907", "E10003")),
        ({"input_shape": "x:1,3", "dynamic_dims": "1;2"}, ("AT907", "E10001")),
        ({"input_shape": "x:-1,3", "dynamic_dims": "1; 2"}, ("AT907", "E10001")),
        ({"input_shape": "x:-1,-1", "dynamic_dims": "1,2;3"}, ("AT907", "E10037")),
        ({"input_shape": "x:-1,-1", "dynamic_dims": "1;2"}, ("AT907", "E10045")),
        ({"input_shape": "x:-1", "dynamic_dims": ";".join(map(str, range(1, 102)))}, ("AT907", "E10036")),
    ],
)
def test_each_rule_is_kept(changes: dict[str, str | None], found: tuple[str, str]) -> None:
    assert codes() == set()
    assert found in codes(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"input_shape": "image:0:1,3"},  # a colon in the name: the last one ends it
        {"input_shape": "x:"},  # a scalar
        {"input_shape": "1~4,3;2"},  # by place, where a size is open
        {"input_shape": "x:1~-1,3"},  # no upper bound
        {"input_shape": "x:-1,3", "dynamic_batch_size": "1,2,"},  # ATC drops the comma
        {"input_shape": "x:-1,3", "dynamic_dims": "1;2;"},  # and this
        {"input_shape": "x:1,3,-1,-1", "dynamic_image_size": "1,2; 3,4"},
        {"input_shape": "x:1,-1,-1,3", "dynamic_image_size": "1,2;3,4", "input_format": "NHWC", "framework": "3", "model": "a.pb"},
        {"out_nodes": "a:0;b:c:1"},
        {"out_nodes": "dets;labels"},
        {"output_type": "a:0:FP16", "out_nodes": "a:0"},
        {"singleop": "a.json", "framework": None, "model": None},
        {"mode": "6", "om": "a.om", "model": None, "output": None, "soc_version": None, "framework": None},
        {"help": "true", "model": None},
        {"enable_compress_weight": "false", "compress_weight_conf": "c"},
    ],
)
def test_what_atc_takes_is_no_error(changes: dict[str, str | None]) -> None:
    assert codes(**changes) == set()


def test_warnings() -> None:
    def warned(**changes: str) -> set[str]:
        return {problem.code for problem in check(Options(WHOLE).with_(**changes)) if problem.severity == "warning"}

    assert warned(soc_version="Ascend910B") == {"AT905"}  # the old 910, although A2 was meant more often than not
    assert warned(soc_version="Ascend710") == {"AT905"}  # a name of another release, perhaps
    assert warned(output="m.om") == {"AT913"}
    assert warned(keep_dtype="k", precision_mode_v2="origin") == {"AT913"}
    assert warned(buffer_optimize="l1_and_l2_optimize") == {"AT902"}
    assert warned(sparsity="1") == {"AT909"}
    assert warned() == set()


def test_a_release_has_the_flags_of_its_time() -> None:
    def named(cann: str, **changes: str) -> list[str]:
        return [str(problem.remedy) for problem in check(Options(WHOLE).with_(**changes), cann=cann) if problem.code == "AT909"]

    assert named("6.0.1", precision_mode_v2="fp16") == ["write --precision_mode=force_fp16"]
    assert named("canndev-2022-06", precision_mode_v2="fp16") == ["write --precision_mode=force_fp16"]
    assert named("8.1.RC1", precision_mode_v2="fp16") == []
    assert named("8.1.RC1", enable_attr_compression="true") == ["leave it out"]
    assert named("9.0.0", enable_attr_compression="true") == []
    assert named("8.1.RC1", mode="7") == ["leave it out"]
    assert named("master", enable_attr_compression="true") == []


def test_a_call_for_another_chip_is_reported() -> None:
    found = check(Options(WHOLE), soc="Ascend310")
    assert [(problem.code, problem.severity) for problem in found] == [("AT909", "warning")]
    assert check(Options(WHOLE), soc="Ascend310P3") == []


FACTS = ModelFacts(
    inputs=(TensorInfo("image", "float32", ("n", 3, 8, 8)), TensorInfo("scale", "float32", ())),
    outputs=(TensorInfo("scores", "float32", ("n", 4)),),
    nodes={"conv_1": 1, "split_1": 2},
    initializers=frozenset({"weight"}),
)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"input_shape": "images:1,3,8,8"}, {("AT908", "E10016"), ("AT908", "E11005")}),
        ({"input_shape": "weight:1;image:1,3,8,8"}, {("AT908", "E10017")}),
        ({"input_shape": "conv_1:1;image:1,3,8,8"}, {("AT908", "E10017")}),
        ({"input_shape": "image:1,3,8"}, {("AT908", "E10049")}),
        ({"input_shape": "image:1,4~8,8,8"}, {("AT908", "E10050")}),
        ({"input_shape": None}, {("AT908", "E11005")}),
        ({"input_shape": "scale:"}, {("AT908", "E11005")}),
        ({"input_shape": "image:1,3,8,8", "out_nodes": "conv_2:0"}, {("AT908", "E11017")}),
        ({"input_shape": "image:1,3,8,8", "out_nodes": "split_1:2"}, {("AT908", "E11016"), ("AT908", "E10013")}),
        ({"input_shape": "image:1,3,8,8", "input_fp16_nodes": "imag"}, {("AT908", "E10016")}),
        ({"input_shape": "image:1,3,8,8", "out_nodes": "split_1:1", "input_fp16_nodes": "image"}, set()),
        ({"input_shape": "${name}:1"}, set()),
        ({"input_shape": "image:${dims}"}, set()),
    ],
)
def test_a_call_is_compared_with_the_model(changes: dict[str, str | None], found: set[tuple[str, str]]) -> None:
    problems = check(Options(WHOLE).with_(**changes), model_facts=FACTS)
    assert {(problem.code, atc) for problem in problems if problem.severity == "error" for atc in problem.atc} == found


def test_names_with_separators() -> None:
    def severities(name: str, side: str = "inputs") -> list[str]:
        facts = ModelFacts(**{"inputs": (), side: (TensorInfo(name, "float32", (1,)),)})
        return [problem.severity for problem in check(Options(WHOLE), model_facts=facts)]

    assert severities("a;b") == ["error"]
    assert severities("a:0") == ["warning"]  # newer ATC splits at the last colon
    assert severities("a:0", "outputs") == ["error"]
    assert severities("a/b.0") == []
