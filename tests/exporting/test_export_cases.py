"""The export cases: what a person had, what must be found, and the right export where the case wants one."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

import jumar  # noqa: E402
from jumar.case import Case  # noqa: E402
from jumar.graph import Evaluator  # noqa: E402
from jumar.proof import Interface  # noqa: E402

MDC: dict[str, Any] = {"target": "mdc510pro"}


def script_of(shared: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"case_{name}", shared / "cases" / f"export-{name}" / "export.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with warnings.catch_warnings():  # the scripts silence warnings for good
        spec.loader.exec_module(module)
    return module


def codes(case: Case) -> set[str]:
    return {finding.code for finding in case.record.findings}


def run(case: Case, args: tuple[Any, ...], evaluator: Evaluator) -> list[Any]:
    told = case.record.data["export"]
    ports = [{slot["name"]: slot["dtype"] for slot in told[key]} for key in ("inputs", "outputs")]
    interface = Interface.named(*ports).changed(case.record.interface)
    feeds = {slot["name"]: tensor.numpy() for slot, tensor in zip(told["inputs"], args, strict=True)}
    found = interface.to_caller(evaluator.run(case.model, interface.to_model(feeds)))
    return [found[slot["name"]] for slot in told["outputs"]]


def test_scatter_add_silent(shared: Path, evaluator: Evaluator) -> None:
    script = script_of(shared, "scatter-add-silent")
    case = jumar.export(script.net, script.args, **MDC, evaluator=evaluator, exporters=["torchscript"])
    assert "EX107" in codes(case)
    assert np.array_equal(run(case, script.args, evaluator)[0], script.net(*script.args).numpy())
    again = jumar.export(script.net2, script.args2, **MDC, evaluator=evaluator)
    assert "EX107" in codes(again)
    assert np.array_equal(run(again, script.args2, evaluator)[0], script.net2(*script.args2).numpy())


def test_frozen_control_flow(shared: Path, evaluator: Evaluator) -> None:
    script = script_of(shared, "frozen-control-flow")
    case = jumar.export(script.net, script.args, **MDC, evaluator=evaluator, exporters=["torchscript"])
    assert case.record.verdict == "blocked" and {"EX105"} <= codes(case)
    why = next(str(finding.why) for finding in case.record.findings if finding.code == "EX105")
    assert "export.py:7" in why and "export.py:10" in why


def test_qcnet_radius_graph(shared: Path, evaluator: Evaluator) -> None:
    script = script_of(shared, "qcnet-radius-graph")
    for net in (script.sparse, script.dense):
        case = jumar.export(net, script.args, **MDC, evaluator=evaluator)
        assert case.record.data["export"]["exporter"] is not None
        wanted = net(*script.args).detach().numpy()
        assert np.allclose(run(case, script.args, evaluator)[0], wanted, atol=1e-5)
        assert ("EX107" in codes(case)) is (net is script.sparse)
        assert case.model.opset_imports[""] == 11


def test_unsupported_at_11(shared: Path, evaluator: Evaluator) -> None:
    script = script_of(shared, "unsupported-at-11")
    case = jumar.export(script.net, script.args, **MDC, evaluator=evaluator)
    refused = [finding for finding in case.record.findings if finding.code == "EX108"]
    assert any(finding.node == "aten::scatter_reduce" and (finding.source_line or "").endswith("export.py:7") for finding in refused)
    assert np.allclose(run(case, script.args, evaluator)[0], script.net(*script.args).numpy())


@pytest.mark.parametrize(("name", "code"), [("train-mode", "EX101"), ("non-tensor-inputs", "EX102")])
def test_the_module_is_handled_and_told(name: str, code: str, shared: Path, evaluator: Evaluator) -> None:
    script = script_of(shared, name)
    case = jumar.export(script.net, script.args, **MDC, evaluator=evaluator, exporters=["torchscript"])
    assert code in codes(case) and case.record.data["export"]["exporter"] == "torchscript@11"


def test_same_io_name(shared: Path, evaluator: Evaluator) -> None:
    script = script_of(shared, "same-io-name")
    names = {"input_names": ["data"], "output_names": ["data"]}
    case = jumar.export(script.net, script.args, **MDC, evaluator=evaluator, exporters=["torchscript"], **names)
    assert [value.name for value in (*case.model.graph.inputs, *case.model.graph.outputs)] == ["data", "data_out"]
    assert "EX103" in codes(case)
