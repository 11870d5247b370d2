"""Small networks of well-known shape are exported equal to the module, or refused with a reason."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

import jumar  # noqa: E402
from jumar.graph import Evaluator  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
import architectures  # noqa: E402
from test_operators import TARGETS, differs  # noqa: E402

BY_NAME = {architecture.name: architecture for architecture in architectures.ARCHITECTURES}
REFUSED = {"tv_ssdlite320", "tv_fasterrcnn_mnv3"}
"""With random weights their scores are so close that rounding decides which boxes are kept."""
QUICK = ("packed_lstm",)
LARGE = {"tv_retinanet"}
"""Too large for the time a test may take; measured by tools/export_table.py."""


def judge(name: str, target: str, evaluator: Evaluator) -> None:
    architecture = BY_NAME[name]
    if architecture.needs and importlib.util.find_spec(architecture.needs) is None:
        pytest.skip(f"{architecture.needs} is not installed")
    module, args = architectures.module_of(architecture)
    case = jumar.export(module, args, evaluator=evaluator, **TARGETS[target])
    if name in REFUSED:
        assert case.record.verdict == "blocked" and any(finding.code.startswith("EX10") for finding in case.record.findings)
        return
    assert case.record.data["export"]["exporter"] is not None, [str(finding.message) for finding in case.record.findings]
    assert differs(case, module, args) is None


@pytest.mark.parametrize("name", QUICK)
def test_networks_that_one_exporter_refuses(name: str, evaluator: Evaluator) -> None:
    judge(name, "mdc510pro", evaluator)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", sorted(set(BY_NAME) - LARGE))
def test_every_network(name: str, target: str, evaluator: Evaluator) -> None:
    judge(name, target, evaluator)
