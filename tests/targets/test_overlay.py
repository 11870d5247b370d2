"""Facts of the user's own: imported tables, declarations, and what wins."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import pytest

from jumar.errors import TargetError, UsageError
from jumar.targets import InputFacts, NodeFacts, Status, cann_states, declared, find_target, judge, overlay, soc_info, socs, support
from jumar.targets.encode import pack
from jumar.targets.parser import known_operators, registration
from jumar.targets.tables import cann_order, cann_state, spoken_by
from jumar.targets.versions import is_version, version_key

NOTHING_KNOWN = {"source": "from your installation: /cann/opp", "dtypes": ["float16"], "ops": {"Relu": {"A": [[["x", 1, ""]], "d"]}}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "own"
    found.mkdir()
    monkeypatch.setenv("JUMAR_TARGETS", str(found))
    return found


def declare(folder: Path, text: str, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    declared.forget()
    return path


def kernel(**changes: str) -> str:
    """A complete declaration with some keys given another TOML value (an empty one is left out)."""
    keys = {
        "domain": '"mine"',
        "op": '"FusedThing"',
        "opsets": '"11-13,17"',
        "socs": '["Ascend310P3"]',
        "cann": '"*"',
        "engine": '"aicore"',
        "dtypes": '[["float16", "float32"], ["int32"]]',
        "note": '"from our package 3.2"',
    } | changes
    return "[[kernel]]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items() if value)


def keep(folder: Path, cann: str, kernels: str, table: object = NOTHING_KNOWN) -> None:
    (folder / f"{cann}_{kernels}.json.gz").write_bytes(pack(table))
    overlay.forget()


# Where the folder is


def test_the_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert overlay.overlay_folder() == tmp_path / "own"
    monkeypatch.delenv("JUMAR_TARGETS")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/config")
    assert overlay.overlay_folder() == Path("/config/jumar/targets")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert overlay.overlay_folder() == Path("/home/somebody/.config/jumar/targets")


def test_no_folder_is_no_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMAR_TARGETS", str(tmp_path / "nowhere"))
    assert support("", "Relu", 13, find_target("Ascend310P3")).status is Status.SUPPORTED


# Imported tables


def test_an_imported_table_wins_at_a_known_state(folder: Path) -> None:
    target = find_target("Ascend310P3", cann="8.1.RC1")
    assert support("", "Add", 13, target).status is Status.SUPPORTED
    keep(folder, "8.1.RC1", "ascend310p")
    answer = support("", "Add", 13, target)
    assert answer.status is Status.NO_KERNEL, "the installation has no Add"
    assert any("from your installation: /cann/opp" in fact for fact in answer.evidence)
    assert support("", "Relu", 13, target).status is Status.SUPPORTED
    assert support("", "Add", 13, find_target("Ascend310B1")).status is Status.SUPPORTED, "another SoC keeps the packaged table"


def test_an_imported_release_is_accepted_for_its_socs_only(folder: Path) -> None:
    with pytest.raises(TargetError, match=r"no operator tables for CANN 8\.2\.RC1"):
        find_target("Ascend310P3", cann="8.2.RC1")
    keep(folder, "8.2.RC1", "ascend310p")
    target = find_target("Ascend310P3", cann="8.2.RC1")
    assert (target.opset_min, target.opset_max) == (8, 18)
    answer = support("", "Relu", 13, target)
    assert (answer.status, answer.engine, answer.confidence) == (Status.SUPPORTED, "aicore", "inferred")
    assert any("from your installation" in fact for fact in answer.evidence)
    assert any("no public parser sources of CANN 8.2.RC1" in fact for fact in answer.evidence)
    assert "8.2.RC1" in cann_states("Ascend310P3") and "8.2.RC1" not in cann_states("Ascend310B1") + cann_states()
    with pytest.raises(TargetError):
        find_target("Ascend310B1", cann="8.2.RC1")


def test_what_is_registered_on_one_side_of_an_imported_release_is_unknown(folder: Path) -> None:
    one_sided = [
        (key, min(found.maybe), found.alternatives(min(found.maybe)))
        for key in known_operators()
        if "::" not in key and (found := registration(key, "8.2.RC1")) is not None and found.maybe and not found.accepted
    ]
    assert one_sided
    ops = {ir: {"A": [[], ""]} for _, _, alternatives in one_sided for parts in alternatives for ir in parts}
    keep(folder, "8.2.RC1", "ascend310p", {**NOTHING_KNOWN, "ops": ops})
    target = find_target("Ascend310P3", cann="8.2.RC1")
    for key, opset, _ in one_sided:
        assert support("", key, opset, target).status in (Status.UNKNOWN, Status.NO_KERNEL_NEEDED)


def test_a_soc_without_a_public_table_gets_one_by_import(folder: Path) -> None:
    name = next(name for name in socs() if soc_info(name).kernels is None)
    assert support("", "Relu", 13, find_target(name)).status is Status.UNKNOWN
    keep(folder, "8.1.RC1", soc_info(name).short.lower())
    assert support("", "Relu", 13, find_target(name)).status is Status.SUPPORTED


def test_another_folder_is_noticed_without_forgetting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    target = find_target("Ascend310P3")
    keep(folder, "8.1.RC1", "ascend310p")
    assert support("", "Add", 13, target).status is Status.NO_KERNEL
    monkeypatch.setenv("JUMAR_TARGETS", str(tmp_path / "nowhere"))
    assert support("", "Add", 13, target).status is Status.SUPPORTED


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"not gzip",
        gzip.compress(b"{"),
        gzip.compress(b"[]"),
        gzip.compress(b'{"source": "x", "dtypes": [], "ops": {"Add": 1}}'),
        gzip.compress(b'{"source": "x", "dtypes": [], "ops": {"Add": {"A": [[["x", "1", ""]], ""]}}}'),
        gzip.compress(b'{"source": "x", "dtypes": [], "ops": {"Add": {"A": [[[1]], ""]}}}'),
    ],
    ids=["empty", "not gzip", "broken", "a list", "no engines", "a text as mask", "too few"],
)
def test_a_damaged_table_is_one_line(folder: Path, raw: bytes) -> None:
    (folder / "8.1.RC1_ascend310p.json.gz").write_bytes(raw)
    overlay.forget()
    with pytest.raises(UsageError, match=r"^imported facts `.*8\.1\.RC1_ascend310p\.json\.gz` cannot be read: .*import again, or delete"):
        support("", "Add", 13, find_target("Ascend310P3"))


def test_a_file_in_place_of_the_folder_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text("")
    monkeypatch.setenv("JUMAR_TARGETS", str(path))
    with pytest.raises(UsageError, match=r"^the folder of your own facts `.*file` cannot be read"):
        find_target("Ascend310P3")


# Releases


def test_releases_sort_as_they_were_published() -> None:
    order = [
        "5.0.4",
        "6.0.1",
        "7.0.0",
        "8.0.RC1.alpha001",
        "8.0.RC1",
        "8.0.RC2",
        "8.0.0.alpha001",
        "8.0.0",
        "8.0.0.1",
        "8.1.RC1",
        "8.5.0",
        "9.2.0-beta.2",
        "9.2.0",
        "10.0.0",
    ]
    assert all(is_version(name) for name in order)
    assert all(version_key(first) < version_key(second) for first, second in pairwise(order))
    releases = [name for name in cann_order() if is_version(name)]
    assert sorted(releases, key=version_key) == releases


@pytest.mark.parametrize("name", ["", "8", "latest", "canndev-2022-06", "../8.1", "8.1/x", "8.1_x", "8..1", "8.1\n", "８.1"])
def test_what_is_no_release(name: str) -> None:
    assert not is_version(name)


@pytest.mark.parametrize(
    ("cann", "around", "older", "newest"),
    [
        ("8.2.RC1", ("8.1.RC1", "8.5.0"), "canndev-2022-06", "9.2.0-beta.2"),
        ("6.3.RC1", ("canndev-2022-06", "7.0.0"), "canndev-2022-06", "9.2.0-beta.2"),
        ("9.3.0", ("9.2.0-beta.2", "master"), "9.2.0-beta.2", "master"),
        ("4.0.0", ("5.0.4",), "(no public source)", "canndev-2021-12"),
    ],
)
def test_an_unknown_release_stands_between_its_neighbours(cann: str, around: tuple[str, ...], older: str, newest: str) -> None:
    assert spoken_by(cann) == around
    state = cann_state(cann)
    assert (state["parser"]["older"], state["parser"]["newer"][-1], state["confidence"]) == (older, newest, "inferred")
    neighbours = [cann_state(name) for name in around]
    assert state["opset_max"] == min(item["opset_max"] for item in neighbours)
    assert state["opset_min"] == max(item["opset_min"] for item in neighbours)


def test_a_name_that_is_no_release_is_no_state() -> None:
    with pytest.raises(KeyError):
        cann_state("canndev-2099-01")


# Declarations


def test_a_declared_kernel_is_supported_with_its_file_as_evidence(folder: Path) -> None:
    target = find_target("Ascend310P3")
    assert support("mine", "FusedThing", 13, target).status is Status.NO_PARSER
    path = declare(folder, kernel())
    answer = support("mine", "FusedThing", 13, target)
    assert (answer.status, answer.engine, answer.opsets, answer.confidence) == (Status.SUPPORTED, "aicore", "11-13,17", "documented")
    assert answer.evidence == (f"declared in {path}: from our package 3.2",)
    refused = support("mine", "FusedThing", 14, target)
    assert (refused.status, refused.opsets) == (Status.NO_PARSER_AT_OPSET, "11-13,17")
    assert support("mine", "FusedThing", 13, find_target("Ascend310B1")).status is Status.NO_PARSER
    assert support("", "FusedThing", 13, target).status is Status.NO_PARSER


def test_engine_cann_and_confidence(folder: Path) -> None:
    declare(folder, kernel(engine='"aicpu"', cann='["8.1.RC1", "8.2.RC1"]', confidence='"observed"', socs='"*"', note=""))
    answer = support("mine", "FusedThing", 11, find_target("BS9SX1AA"))
    assert (answer.status, answer.engine, answer.confidence) == (Status.AICPU_ONLY, "aicpu", "observed")
    assert support("mine", "FusedThing", 11, find_target("BS9SX1AA", cann="8.0.0")).status is Status.NO_PARSER


def node(*dtypes: str, op: str = "FusedThing", domain: str = "mine", constant: bool = False) -> NodeFacts:
    return NodeFacts(domain, op, inputs=tuple(InputFacts(dtype=dtype, is_constant=constant) for dtype in dtypes))


def test_dtypes_of_a_declared_kernel_are_judged(folder: Path) -> None:
    target = find_target("Ascend310P3")
    declare(folder, kernel())

    def statuses(*dtypes: str, constant: bool = False) -> list[Status]:
        return [answer.status for answer in judge(node(*dtypes, constant=constant), 13, target)]

    assert statuses("FLOAT", "INT32") == statuses("FLOAT16", "INT32") == [Status.SUPPORTED]
    assert statuses("FLOAT", "INT32", "INT32") == [Status.SUPPORTED], "the last list speaks for all further inputs"
    assert statuses("FLOAT", "INT64") == statuses("FLOAT", "INT32", "FLOAT") == [Status.DTYPE_NOT_TAKEN]
    assert statuses("DOUBLE", "INT64") == [Status.DTYPE_NOT_TAKEN] * 2
    assert statuses("DOUBLE", "INT64", constant=True) == [Status.SUPPORTED], "constants are converted"
    (answer,) = judge(node("FLOAT", "INT64"), 13, target)
    assert "input 1 is int64" in str(answer.reason) and "taken are int32" in str(answer.reason)
    declare(folder, kernel(dtypes='[[], ["int32"]]'))
    assert statuses("STRING", "INT32") == [Status.SUPPORTED], "an empty list takes any"
    declare(folder, kernel(dtypes=""))
    assert statuses("STRING", "DOUBLE") == [Status.SUPPORTED]
    declare(folder, kernel(engine='"aicpu"'))
    assert statuses("FLOAT", "INT64") == [Status.DTYPE_NOT_TAKEN, Status.AICPU_ONLY]


def test_float32_is_cast_to_float16_but_not_to_double(folder: Path) -> None:
    target = find_target("Ascend310P3")
    declare(folder, kernel(dtypes='[["float16"]]'))
    assert judge(node("FLOAT"), 13, target)[0].status is Status.SUPPORTED
    declare(folder, kernel(dtypes='[["double"]]'))
    assert judge(node("FLOAT"), 13, target)[0].status is Status.DTYPE_NOT_TAKEN


def test_a_standard_operator_is_overridden_at_the_declared_opsets_only(folder: Path) -> None:
    target = find_target("Ascend310P3")
    before = support("", "Relu", 11, target)
    path = declare(folder, kernel(domain="", op='"Relu"', opsets='"13"', note=""))
    assert support("", "Relu", 13, target).evidence == support("ai.onnx", "Relu", 13, target).evidence == (f"declared in {path}",)
    assert support("", "Relu", 11, target) == before
    # A limit of the packaged facts says nothing of another kernel.
    declare(folder, kernel(domain='"ai.onnx"', op='"GRU"', dtypes="", opsets='"13"'))
    assert [answer.status for answer in judge(node("FLOAT", op="GRU", domain=""), 13, target)] == [Status.SUPPORTED]


def test_a_declaration_wins_over_an_installation(folder: Path) -> None:
    keep(folder, "8.1.RC1", "ascend310p")
    target = find_target("Ascend310P3")
    assert support("", "Add", 13, target).status is Status.NO_KERNEL
    declare(folder, kernel(domain="", op='"Add"', dtypes=""))
    assert support("", "Add", 13, target).status is Status.SUPPORTED


def test_the_first_declaration_wins_in_the_order_of_names(folder: Path) -> None:
    declare(folder, kernel(engine='"aicpu"'), "b.toml")
    declare(folder, kernel() + kernel(engine='"aicpu"'), "a.toml")
    assert support("mine", "FusedThing", 13, find_target("Ascend310P3")).engine == "aicore"


def test_a_declared_parser_leads_to_the_kernels_of_the_tables(folder: Path) -> None:
    """What a vendor's package needs: its kernels are imported, its parser plug-in is a binary."""
    table = {**NOTHING_KNOWN, "dtypes": ["float16", "int8"], "ops": {"VendorThing": {"A": [[["x", 3, ""]], "d"]}}}
    keep(folder, "8.1.RC1", "ascend310p", table)
    path = declare(folder, '[[parser]]\ndomain = "mine"\nop = "Thing"\nopsets = "11-18"\nir = ["VendorThing"]\n')
    target = find_target("Ascend310P3")
    answer = support("mine", "Thing", 13, target)
    assert (answer.status, answer.opsets) == (Status.SUPPORTED, "11-18")
    assert answer.evidence[0] == f"declared in {path}" and "VendorThing aicore" in answer.evidence[1]
    assert judge(node("INT64", op="Thing"), 13, target)[0].status is Status.DTYPE_NOT_TAKEN
    assert support("mine", "Thing", 10, target).status is Status.NO_PARSER_AT_OPSET
    assert support("mine", "Thing", 13, find_target("Ascend310B1")).status is Status.NO_KERNEL


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kernel = 1", "`kernel`: it is not a list of tables; expected [[kernel]]"),
        ("[kernel]\nop = 1", "`kernel`: it is not a list of tables"),
        ("kernel = [1]", "`kernel`: it is not a list of tables"),
        ("[[kernels]]", "`kernels`: it is not known; expected kernel or parser"),
        ("[[kernel", "cannot be read: "),
        (kernel(speed="3"), "`kernel[0].speed`: it is not known; expected one of domain, op, "),
        (kernel() + kernel(op=""), "`kernel[1].op`: it is missing; expected the name of an ONNX operator"),
        (kernel(op="3"), "`kernel[0].op`: 3 is not understood; "),
        (kernel(op='"a::b"'), "`kernel[0].op`: a::b is not understood; "),
        (kernel(op='"a\\u001bb"'), "`kernel[0].op`: "),
        (kernel(domain="[]"), "`kernel[0].domain`: [] is not understood; "),
        (kernel(opsets=""), "`kernel[0].opsets`: it is missing; "),
        (kernel(opsets="13"), "`kernel[0].opsets`: 13 is not understood; expected opsets such as "),
        (kernel(opsets='"13-999999999"'), "`kernel[0].opsets`: 13-999999999 is not understood; "),
        (kernel(opsets='"18-11"'), "`kernel[0].opsets`: 18-11 is not understood; "),
        (kernel(socs=""), "`kernel[0].socs`: it is missing; "),
        (kernel(socs='["Ascend310P"]'), "`kernel[0].socs`: ['Ascend310P'] is not understood; "),
        (kernel(socs="[]"), "`kernel[0].socs`: [] is not understood; "),
        (kernel(socs="[3]"), "`kernel[0].socs`: [3] is not understood; "),
        (kernel(cann='"newest"'), "`kernel[0].cann`: newest is not understood; "),
        (kernel(engine='"gpu"'), '`kernel[0].engine`: gpu is not understood; expected "aicore" or "aicpu"'),
        (kernel(dtypes='["float16"]'), "`kernel[0].dtypes`: ['float16'] is not understood; "),
        (kernel(dtypes='[["half"]]'), "`kernel[0].dtypes`: [['half']] is not understood; "),
        (kernel(dtypes="[[1]]"), "`kernel[0].dtypes`: [[1]] is not understood; "),
        (kernel(confidence='"high"'), "`kernel[0].confidence`: high is not understood; "),
        (kernel(note="1"), "`kernel[0].note`: 1 is not understood; "),
        ('[[parser]]\nop = "Thing"\nopsets = "13"\nir = []', "`parser[0].ir`: [] is not understood; "),
        ('[[parser]]\nop = "Thing"\nopsets = "13"\nir = [1]', "`parser[0].ir`: [1] is not understood; "),
        ('[[parser]]\nop = "Thing"\nopsets = "13"\nir = ["A"]\nengine = "aicpu"', "`parser[0].engine`: it is not known; "),
    ],
)
def test_a_mistake_names_the_file_and_the_key(folder: Path, text: str, message: str) -> None:
    path = declare(folder, text)
    with pytest.raises(UsageError) as caught:
        support("mine", "FusedThing", 13, find_target("Ascend310P3"))
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in caught.value.render("zh")


def test_unreadable_declarations_are_one_line(folder: Path) -> None:
    declare(folder, "# " + "x" * (1 << 20))
    with pytest.raises(UsageError, match="more than 1 MB"):
        declared.declarations()
    (folder / "mine.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="cannot be read"):
        declared.declarations()
    declare(folder, f"kernel = {'[' * 5000}")
    with pytest.raises(UsageError, match="cannot be read"):
        declared.declarations()
