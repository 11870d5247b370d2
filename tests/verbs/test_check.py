"""check: findings, placement, and the model is never edited."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx_ir as ir
import pytest

from jumar import Case, Record, ShapeError, TargetError, check
from jumar.graph import Digester, all_nodes, load
from jumar.graph.digest import file_sha256
from jumar.targets import find_target

BRANCHES = """agraph (bool c, float[2,3] x) => (float[2,3] y) {
  y = If (c) <
    then_branch = g1 () => (float[2,3] a) { a = HardSwish(x) },
    else_branch = g2 () => (float[2,3] b) { t = Relu(x) b = HardSwish(t) }
  >
}"""


def summary(record: Record) -> list[tuple[str, str, str | None]]:
    return [(finding.code, finding.severity, finding.node) for finding in record.findings]


def test_findings_name_code_place_and_fix(hardswish: Path) -> None:
    record = check(hardswish, target="mdc510pro").record
    assert [(item.code, item.severity, item.op, item.fix) for item in record.findings] == [
        ("OP110", "error", None, "safe"),
        ("OP202", "error", "HardSwish", "safe"),
        ("OP202", "error", "HardSwish", "safe"),
        ("NM403", "info", None, "safe"),
    ]
    assert [item.node for item in record.findings if item.code == "OP202"] == ["HardSwish -> t", "HardSwish -> y"]
    assert record.verdict == "blocked"
    assert record.target == find_target(profile="mdc510pro").to_dict()


def test_record_knows_the_file(hardswish: Path) -> None:
    model = check(hardswish, soc="Ascend310P3").record.model
    assert model is not None
    assert (model.path, model.sha256, model.opset) == (str(hardswish), file_sha256(hardswish), 14)
    assert [(item.name, item.dtype, item.shape) for item in model.inputs] == [("x", model.inputs[0].dtype, (2, 3))]


@pytest.mark.parametrize("soc", ["Ascend310P3", "BS9SX1AA", "Ascend310B1", "Ascend031"])
def test_errors_come_first_and_every_node_is_placed_once(soc: str, save_text: Callable[..., Path]) -> None:
    path = save_text(BRANCHES, opset=14)
    record = check(path, soc=soc).record
    ranks = [["error", "warning", "info"].index(finding.severity) for finding in record.findings]
    assert ranks == sorted(ranks)
    assert record.placement is not None
    assert sum(record.placement.to_dict().values()) == len(list(all_nodes(load(path)))) == 4


def test_nodes_of_bodies_are_checked(save_text: Callable[..., Path]) -> None:
    record = check(save_text(BRANCHES, opset=14), soc="BS9SX1AA").record
    assert {item.node for item in record.findings if item.code == "OP202"} == {"HardSwish -> a", "HardSwish -> b"}


def test_path_model_and_case_give_the_same_findings(hardswish: Path) -> None:
    from_path = check(hardswish, target="mdc510pro")
    from_text = check(str(hardswish), target="mdc510pro")
    from_model = check(load(hardswish), target=find_target(profile="mdc510pro"))
    from_case = check(from_path)
    expected = summary(from_path.record)
    assert summary(from_text.record) == summary(from_model.record) == summary(from_case.record) == expected
    assert from_case.record.model == from_path.record.model
    assert from_model.record.model is not None
    assert (from_model.record.model.path, from_model.record.model.sha256) == (None, None)


def test_the_model_given_is_not_edited(save_text: Callable[..., Path]) -> None:
    model = load(save_text("agraph (float[N,3] x) => (float[N,3] y) { t = Relu(x) y = HardSwish(t) }", opset=14))
    text, digest = ir.to_onnx_text(model), Digester().model(model)
    case = check(model, target="mdc510pro", shapes={"x": (2, 3)})
    assert (ir.to_onnx_text(model), Digester().model(model)) == (text, digest)
    assert case.model is not model
    again = Digester().model(case.model)
    assert again != digest  # pinned
    check(case, target="mdc510pro", shapes={"x": (2, 3)})
    assert Digester().model(case.model) == again


def test_shapes_cure_open_dimensions(save_text: Callable[..., Path]) -> None:
    path = save_text("agraph (float[N,3] x) => (float[N,3] y) { y = Relu(x) }")
    assert "SH" in {item.code[:2] for item in check(path, soc="Ascend310P3").record.findings}
    assert "SH" not in {item.code[:2] for item in check(path, soc="Ascend310P3", shapes={"x": (2, 3)}).record.findings}
    with pytest.raises(ShapeError):
        check(path, soc="Ascend310P3", shapes={"x": (2, 4)})


def test_a_target_is_needed(relu: Path) -> None:
    with pytest.raises(TargetError, match=r"^no target was named; "):
        check(relu)
    case = check(relu, soc="Ascend310P3")
    with pytest.raises(TargetError, match=r"^no target was named"):
        check(Case(case.model, None, case.record))


def test_a_guessed_profile_says_so(relu: Path) -> None:
    assert [str(note)[:33] for note in check(relu, target="mdc510pro").record.notes] == ["profile mdc510pro: confidence low:"[:33]]
    assert check(relu, soc="BS9SX1AA").record.notes == ()


def test_a_name_that_is_often_taken_for_another_chip_is_cautioned(relu: Path) -> None:
    assert [str(note) for note in check(relu, soc="Ascend910B").record.notes] == [
        "caution: Ascend910B: old 910 (Short SoC Ascend910), not Atlas A2"
    ]
    assert not check(relu, soc="Ascend910B3").record.notes


def test_a_case_can_be_checked_again_under_a_lower_ceiling(relu: Path) -> None:
    case = check(relu, soc="Ascend310P3")
    again = check(case, opset_max=11)
    assert again.target is not None
    assert (again.target.soc.name, again.target.opset_max) == ("Ascend310P3", 11)


@pytest.mark.parametrize(("version", "code"), [(1, None), (13, "OP102")])
def test_an_operator_of_another_domain_is_looked_up_at_that_domains_version(
    save_text: Callable[..., Path], version: int, code: str | None
) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 13, "npu" : {version}]>
    agraph (float[2,3] x) => (float[2,3] y) {{ [a] h = npu.NPUAntiQuant(x) [b] y = Relu(h) }}"""
    record = check(save_text(text), soc="Ascend310P3", cann="9.2.0-beta.2").record
    found = {finding.code for finding in record.findings if finding.op == "npu::NPUAntiQuant"}
    assert ("OP102" in found) == (code == "OP102"), found
    assert "OP101" not in found
