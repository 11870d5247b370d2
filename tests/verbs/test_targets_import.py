"""targets import: an installed CANN becomes facts that win; a bad one is one line."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from installed import ADD, AICORE, AICPU, ERF, RELU, aicore_file, install, write

import jumar
from jumar.errors import OutputError, UsageError
from jumar.targets import InputFacts, NodeFacts, Status, find_target, judge, support
from jumar.targets.parser import known_operators
from jumar.verbs import targets_import


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where imported tables go; not there before."""
    found = tmp_path / "config" / "own"
    monkeypatch.setenv("JUMAR_TARGETS", str(found))
    return found


def test_an_installation_becomes_a_table_for_each_soc(tmp_path: Path, own: Path) -> None:
    opp = install(tmp_path)
    write(aicore_file(opp, "ascend999"), {"Add": ADD})
    record = jumar.import_targets(opp.parent)
    assert record.data["cann"] == "8.2.RC1"
    assert [(row["table"], row["aicore"], row["aicpu"], row["aicpu_tf"]) for row in record.data["tables"]] == [
        ("ascend310p", 2, 1, 1),
        ("ascend910b", 1, 1, 1),
    ]
    assert "Ascend310P3" in record.data["tables"][0]["socs"]
    assert record.data["skipped"] == ["ascend999"]
    assert sorted(path.name for path in own.iterdir()) == ["8.2.RC1_ascend310p.json.gz", "8.2.RC1_ascend910b.json.gz"]
    assert [Path(item.path).name for item in record.artifacts] == sorted(path.name for path in own.iterdir())
    json.dumps(record.to_dict(), allow_nan=False)


def test_the_answers_change_in_the_same_process(tmp_path: Path) -> None:
    target = find_target("Ascend310P3")
    assert support("", "Sub", 13, target).status is Status.SUPPORTED
    jumar.import_targets(install(tmp_path, "8.1.RC1"))
    refused = support("", "Sub", 13, target)
    assert refused.status is Status.NO_KERNEL
    assert any("from your installation" in fact for fact in refused.evidence)
    assert support("", "Add", 13, target).status is Status.SUPPORTED
    assert support("", "Erf", 13, target).status is Status.AICPU_ONLY
    # A second import replaces the first.
    shutil.rmtree(tmp_path / "ascend-toolkit")
    jumar.import_targets(install(tmp_path, "8.1.RC1", {"ascend310p": {"Sub": ADD}}))
    assert support("", "Sub", 13, target).status is Status.SUPPORTED
    assert support("", "Add", 13, target).status is Status.NO_KERNEL


def test_dtypes_are_judged_by_the_installation(tmp_path: Path) -> None:
    jumar.import_targets(install(tmp_path))
    target = find_target("Ascend310P3", cann="8.2.RC1")

    def status(dtype: str) -> Status:
        return judge(NodeFacts("", "Add", inputs=(InputFacts(dtype=dtype), InputFacts(dtype=dtype))), 13, target)[0].status

    assert status("INT32") is status("FLOAT") is Status.SUPPORTED
    assert status("INT64") is Status.DTYPE_NOT_TAKEN


@pytest.mark.parametrize("part", ["", "ascend-toolkit", "ascend-toolkit/latest", "ascend-toolkit/8.2.RC1", "ascend-toolkit/8.2.RC1/opp"])
def test_any_folder_of_the_toolkit_will_do(tmp_path: Path, part: str) -> None:
    opp = install(tmp_path / "Ascend")
    record = jumar.import_targets(tmp_path / "Ascend" / part)
    assert (record.data["installation"], record.data["cann"], len(record.data["tables"])) == (str(opp), "8.2.RC1", 2)


def test_the_older_layout(tmp_path: Path) -> None:
    opp = tmp_path / "5.0.2" / "opp"
    write(aicore_file(opp, "ascend310", "op_impl/built-in/ai_core/tbe/config"), {"Add": ADD, "Relu": RELU})
    write(aicore_file(opp, "ascend310", "op_impl/custom/ai_core/tbe/config"), {"Mine": ADD})
    write(opp / "op_impl/built-in/aicpu/aicpu_kernel/config/aicpu_kernel.json", {"Erf": ERF})
    record = jumar.import_targets(tmp_path / "5.0.2")
    assert record.data["cann"] == "5.0.2"
    assert [(row["table"], row["aicore"], row["aicpu"], row["vendors"]) for row in record.data["tables"]] == [
        ("ascend310", 3, 1, ["custom"])
    ]


def test_tables_in_several_files_and_of_the_random_engine(tmp_path: Path) -> None:
    opp = install(tmp_path, tables={"ascend910b": {"Add": ADD}})
    write(opp / AICORE / "ascend910b" / "aic-ascend910b-ops-info-nn.json", {"Relu": RELU})
    write(opp / "built-in/op_impl/dsa_core/config/ascend910b/dsa-ascend910b-ops-info.json", {"DSARandomUniform": ADD})
    assert jumar.import_targets(opp).data["tables"][0]["aicore"] == 3


def test_vendors_win_in_the_order_of_priority(tmp_path: Path) -> None:
    opp = install(tmp_path)

    def vendor(name: str, dtype: str) -> None:
        kernel = {**RELU, "input0": {**RELU["input0"], "dtype": dtype}}  # type: ignore[dict-item]
        write(aicore_file(opp, "ascend310p", f"vendors/{name}/op_impl/ai_core/tbe/config"), {"Relu": kernel, f"Of{name}": kernel})

    vendor("first", "int8")
    vendor("second", "int16")
    vendor("idle", "bool")
    write(opp / "vendors/second/op_impl/cpu/config/cust_aicpu_kernel.json", {"OfSecondCpu": ERF})
    write(opp / "vendors/config.ini", "load_priority=first, second,absent\n")
    record = jumar.import_targets(opp)
    row = record.data["tables"][0]
    assert (row["vendors"], row["aicore"], row["aicpu"]) == (["first", "second"], 4, 2)
    assert (record.data["vendors"], record.data["inactive_vendors"]) == (["first", "second"], ["idle"])
    assert record.data["tables"][1]["vendors"] == ["second"]
    target = find_target("Ascend310P3", cann="8.2.RC1")

    def taken(dtype: str) -> bool:
        return judge(NodeFacts("", "Relu", inputs=(InputFacts(dtype=dtype),)), 13, target)[0].status is Status.SUPPORTED

    assert taken("INT8") and not taken("INT16") and not taken("FLOAT")
    assert any("with the operator packages first, second" in fact for fact in support("", "Relu", 13, target).evidence)


@pytest.mark.parametrize("line", ["", "priority=first", "load_priority=../first", "load_priority=a/b"])
def test_a_wrong_vendor_list_is_one_line(tmp_path: Path, line: str) -> None:
    opp = install(tmp_path)
    write(opp / "vendors/config.ini", line)
    with pytest.raises(UsageError, match=r"config\.ini` cannot be imported: its first line is not load_priority"):
        jumar.import_targets(opp)


def test_where_the_release_is_read_from(tmp_path: Path) -> None:
    opp = install(tmp_path)
    (opp / "version.info").unlink()
    assert jumar.import_targets(tmp_path / "ascend-toolkit/latest").data["cann"] == "8.2.RC1"  # version.cfg
    plain = tmp_path / "cann-8.6.0"
    opp.parent.rename(plain)
    assert jumar.import_targets(plain).data["cann"] == "8.6.0"  # the name of the folder
    nameless = plain.rename(tmp_path / "toolkit")
    with pytest.raises(UsageError, match=r"the CANN release of .* is not known; expected one such as 8\.1\.RC1; give it with --cann"):
        jumar.import_targets(nameless)
    assert jumar.import_targets(nameless, cann="8.3.RC2").data["cann"] == "8.3.RC2"
    with pytest.raises(UsageError, match="`newest` is not a CANN release"):
        jumar.import_targets(nameless, cann="newest")


# Bad input


def refused(path: Path | str, own: Path, match: str) -> None:
    """One line, and nothing was written."""
    with pytest.raises(UsageError, match=match) as caught:
        jumar.import_targets(path)
    assert "\n" not in caught.value.render("zh")
    assert not own.exists()


def test_no_installation(tmp_path: Path, own: Path) -> None:
    refused(tmp_path / "nowhere", own, "there is no such folder")
    refused("a\0b", own, "there is no such folder")
    refused(write(tmp_path / "file", "x"), own, "there is no such folder")
    refused(tmp_path, own, r"no operator package \(`opp/built-in/op_impl`\) in it")
    (tmp_path / "opp" / AICORE / "ascend310p").mkdir(parents=True)
    refused(tmp_path, own, r"no aic-\*-ops-info\.json below it")


def test_only_unknown_socs(tmp_path: Path, own: Path) -> None:
    refused(install(tmp_path, tables={"ascend999": {"Add": ADD}}), own, "has tables of ascend999 only")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("{", "broken JSON"),
        ("", "broken JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "not an object of operators"),
        ('{"Add": []}', "Add is not an object"),
        ('{"Add": {"input0": []}}', "Add.input0 is not an object"),
        ('{"Add": {"input0": {"dtype": 1}}}', "Add: `dtype` is a int"),
        ('{"a b": {}}', "is not the name of an operator"),
        ("{}", "hold no operators"),
    ],
)
def test_a_broken_table_is_one_line(tmp_path: Path, own: Path, content: str, match: str) -> None:
    opp = install(tmp_path)
    write(aicore_file(opp, "ascend910b"), content)
    refused(opp, own, match)


def test_a_broken_aicpu_table_is_one_line(tmp_path: Path, own: Path) -> None:
    opp = install(tmp_path)
    write(opp / AICPU / "tf_kernel/config/tf_kernel.json", "nothing")
    refused(opp, own, r"tf_kernel\.json` cannot be imported: broken JSON")


def test_a_file_that_is_too_large(tmp_path: Path, own: Path) -> None:
    opp = install(tmp_path)
    with aicore_file(opp, "ascend310p").open("r+b") as file:
        file.truncate((64 << 20) + 1)
    refused(opp, own, "is larger than 64 MB")


def test_what_is_no_regular_file(tmp_path: Path, own: Path) -> None:
    opp = install(tmp_path)
    path = aicore_file(opp, "ascend310p")
    path.unlink()
    os.mkfifo(path)
    refused(opp, own, "it is not a regular file")


def test_nothing_outside_is_read(tmp_path: Path, own: Path) -> None:
    outside = write(tmp_path / "elsewhere" / "table.json", {"Add": ADD})
    opp = install(tmp_path / "Ascend")
    path = aicore_file(opp, "ascend310p")
    path.unlink()
    path.symlink_to(outside)
    refused(opp, own, r"aic-ascend310p-ops-info\.json` cannot be imported: it leads out of")
    path.unlink()
    path.symlink_to(path)
    refused(opp, own, r"aic-ascend310p-ops-info\.json` cannot be imported: ")
    path.unlink()
    path.symlink_to(aicore_file(opp, "ascend910b"))  # a link within is fine
    assert jumar.import_targets(opp).data["tables"][0]["aicore"] == 1


def test_a_linked_folder_outside(tmp_path: Path, own: Path) -> None:
    opp = install(tmp_path / "Ascend")
    folder = opp / AICORE / "ascend310p"
    moved = shutil.move(folder, tmp_path / "ascend310p")
    folder.symlink_to(moved)
    refused(opp, own, "it leads out of")


def test_opp_may_be_a_link_to_a_sibling_and_nothing_else(tmp_path: Path, own: Path) -> None:
    opp = install(tmp_path / "Ascend")
    other = tmp_path / "other"
    other.mkdir()
    (other / "opp").symlink_to(opp)
    refused(other, own, "it leads out of the folder, to ")
    (tmp_path / "cann").symlink_to(opp.parent)  # the folder given may be a link itself
    assert jumar.import_targets(tmp_path / "cann").data["cann"] == "8.2.RC1"


def test_a_place_that_cannot_be_written(tmp_path: Path, own: Path) -> None:
    own.parent.mkdir()
    own.write_text("a file")
    with pytest.raises((OutputError, UsageError), match="cannot be"):
        jumar.import_targets(install(tmp_path))


def test_a_killed_import_leaves_whole_files(tmp_path: Path, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    opp = install(tmp_path)
    monkeypatch.setattr(targets_import, "write_atomic", fail)
    with pytest.raises(KeyboardInterrupt):
        jumar.import_targets(opp)
    assert not own.exists()


# The packaged tables come from such files: writing them back and importing them must change nothing


def rebuilt(table: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The three files of an installation from which a table of the shared facts was read."""
    aicore: dict[str, Any] = {}
    aicpu: dict[str, Any] = {}
    tf: dict[str, Any] = {}
    for name, engines in table["ops"].items():
        if "AICore" in engines:
            aicore[name] = _aicore(engines["AICore"])
        for engine, file in (("AICPU", aicpu), ("AICPU_TF", tf)):
            if engine in engines:
                inputs = engines[engine]["inputs"]
                file[name] = {"opInfo": {"engine": "DNN_VM_AICPU"}} | {
                    f"input{index}": {"name": item["name"] or "", "type": ",".join(_aicpu_dtype(dtype) for dtype in item["dtypes"])}
                    for index, item in enumerate(inputs)
                }
    return aicore, aicpu, tf


def _aicore(kernel: dict[str, Any]) -> dict[str, Any]:
    info: dict[str, Any] = {"opFile": {"value": "x"}}
    for index, item in enumerate(kernel["inputs"]):
        info[f"input{index}"] = {
            "name": item["name"],
            "paramType": item["param"],
            "dtype": ",".join("float" if dtype == "float32" else dtype for dtype in item["dtypes"]),
        } | ({"valueDepend": item["value_depend"]} if item.get("value_depend") else {})
    flags = {
        "dynamic_shape": "dynamicShapeSupport",
        "dtype_chosen_at_compile_time": "dynamicFormat",
        "extra_runtime_check": "needCheckSupport",
    }
    return info | {word: {"flag": str(bool(kernel.get(key))).lower()} for key, word in flags.items()}


def _aicpu_dtype(dtype: str) -> str:
    return {"float32": "DT_FLOAT", "bfloat16": "DT_BF16"}.get(dtype, dtype if dtype.isupper() else f"DT_{dtype.upper()}")


def every_answer(target: jumar.Target) -> dict[tuple[str, int], list[tuple[object, ...]]]:
    """On every operator, with inputs of several dtypes; evidence left out, since it names the source."""
    found = {}
    for key in known_operators():
        domain, _, op = key.rpartition("::")
        for opset in (9, 11, 13, 16, 18):
            found[key, opset] = [
                (answer.status, answer.engine, answer.opsets, str(answer.reason), answer.confidence)
                for dtype in ("FLOAT", "FLOAT16", "INT32", "INT64", "BOOL", "DOUBLE")
                for answer in judge(NodeFacts(domain, op, inputs=(InputFacts(dtype=dtype),) * 4), opset, target)
            ]
    return found


def test_a_real_table_written_back_and_imported_gives_the_same_answers(shared: Path, tmp_path: Path) -> None:
    table = json.loads((shared / "facts/ops/ir_dtypes_8.1.RC1_ascend310b.json").read_text(encoding="utf-8"))
    aicore, aicpu, tf = rebuilt(table)
    assert (len(aicore), len(aicpu), len(tf)) == (698, 231, 648)
    opp = install(tmp_path, "8.1.RC1", {"ascend310b": aicore}, aicpu)
    write(opp / AICPU / "tf_kernel/config/tf_kernel.json", tf)
    target = find_target("Ascend310B1", cann="8.1.RC1")
    before = every_answer(target)
    record = jumar.import_targets(opp)
    assert record.data["tables"][0]["aicore"] == 698
    after = every_answer(target)
    assert [key for key in before if before[key] != after[key]] == []
    assert len(before) == 5 * 340
    assert any("from your installation" in fact for fact in support("", "Add", 13, target).evidence)
