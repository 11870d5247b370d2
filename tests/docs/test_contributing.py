"""The example rule of CONTRIBUTING.md works as printed: put beside the real rules, it is found, fires, and cures with proof."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import onnx_ir as ir
import pytest

from jumar import check, fix
from jumar.graph import infer_shapes
from jumar.rules import Rule, all_rules, find_rule, op
from jumar.rules.op.composite_operator import claimed
from jumar.targets import find_target

ROOT = Path(__file__).resolve().parents[2]
MODULE = "castlike_no_kernel"


@pytest.fixture
def rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rule]:
    """The printed file in a folder that the registry scans as part of ``jumar.rules.op``."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / f"{MODULE}.py").write_text(block, encoding="utf-8")
    monkeypatch.setattr(op, "__path__", [*op.__path__, str(tmp_path)])
    forget()
    yield find_rule("OP290")
    sys.modules.pop(f"{op.__name__}.{MODULE}", None)
    if hasattr(op, MODULE):
        delattr(op, MODULE)
    forget()


def forget() -> None:
    """What is remembered of the rules there are."""
    all_rules.cache_clear()
    claimed.cache_clear()


@pytest.mark.parametrize("opset", [15, 18])
def test_the_printed_rule_fires_and_cures(rule: Rule, opset: int) -> None:
    example = rule.EXAMPLES[0]
    assert opset in example.opsets
    model = ir.from_onnx_text(example.text.replace("OPSET", str(opset)))
    infer_shapes(model)
    target = find_target(example.soc)
    codes = [finding.code for finding in check(model, target=target).record.findings]
    assert rule.code in codes
    assert "OP103" not in codes, "the rule covers the general finding"

    fixed = fix(model, target=target)
    (step,) = [step for step in fixed.record.steps if step.code == rule.code]
    assert step.status == "applied"
    assert step.proof is not None
    assert step.proof.passed
    assert step.proof.max_rel <= rule.bound == 0.0
    assert [node.op_type for node in fixed.model.graph] == ["Cast"]
    assert rule.code not in [finding.code for finding in fixed.record.findings]


def test_the_printed_facts_are_lines_of_the_data() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    printed = [line for block in re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) for line in block.splitlines()]
    data = ROOT / "src" / "jumar" / "data"
    lines = {
        line.rstrip(",") for name in ("limits.json", "onnx_parser.json") for line in (data / name).read_text(encoding="utf-8").splitlines()
    }
    assert len(printed) == 2
    assert set(printed) <= lines


def test_the_code_of_the_example_is_free() -> None:
    assert "OP290" not in {rule.code for rule in all_rules()}, "take another number for the example in CONTRIBUTING.md"
