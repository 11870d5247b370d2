"""Every operator of the corpus is exported equal to the module, or refused with line and reason: nothing is silently wrong."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

import onnx_ir as ir  # noqa: E402
import onnxruntime as ort  # noqa: E402

import jumar  # noqa: E402
from jumar.exporting.program import to_array, to_tensor  # noqa: E402
from jumar.graph import Evaluator  # noqa: E402
from jumar.proof import Interface  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
import operators  # noqa: E402

TARGETS: dict[str, dict[str, Any]] = {"mdc510pro": {"target": "mdc510pro"}, "Ascend310P3": {"soc": "Ascend310P3"}}
REFUSED = {"data_dep_loop": "operators.py"}
"""What cannot be exported: the number of trips is a value."""
QUICK = ("cummax", "slice_assign")
BY_NAME = {operator.name: operator for operator in operators.OPERATORS}


def judge(name: str, target: str, evaluator: Evaluator) -> None:
    operator = BY_NAME[name]
    if operator.needs and importlib.util.find_spec(operator.needs) is None:
        pytest.skip(f"{operator.needs} is not installed")
    module, args = operators.module_of(operator)
    case = jumar.export(module, args, evaluator=evaluator, **TARGETS[target])
    told = case.record.data["export"]
    if name in REFUSED:
        assert told["exporter"] is None and case.record.verdict == "blocked"
        assert any(REFUSED[name] in (finding.source_line or "") for finding in case.record.findings)
        return
    assert told["exporter"] is not None, [str(finding.message) for finding in case.record.findings]
    assert case.model.opset_imports[""] <= (11 if target == "mdc510pro" else 18)
    assert differs(case, module, args) is None


def differs(case: jumar.Case, module: Any, args: tuple[Any, ...]) -> str | None:
    """The first output that is not what the module computes, by ONNX Runtime itself and numpy: nothing of the verb's own comparison."""
    told = case.record.data["export"]
    ports = [{slot["name"]: slot["dtype"] for slot in told[key]} for key in ("inputs", "outputs")]
    interface = Interface.named(*ports).changed(case.record.interface)
    session = ort.InferenceSession(ir.to_proto(case.model).SerializeToString(), providers=["CPUExecutionProvider"])
    arrays = [to_array(tensor) for tensor in args]
    feeds = {slot["name"]: array for slot, array in zip(told["inputs"], arrays, strict=True)}
    names = {port.name for port in session.get_inputs()}
    outputs = [port.name for port in session.get_outputs()]
    feed = {name: array for name, array in interface.to_model(feeds).items() if name in names}
    found = interface.to_caller(dict(zip(outputs, session.run(outputs, feed), strict=True)))
    with torch.no_grad():
        wanted = module(*[to_tensor(array) for array in arrays])
    for slot, tensor in zip(told["outputs"], [wanted] if isinstance(wanted, torch.Tensor) else flat(wanted), strict=True):
        if not np.allclose(found[slot["name"]], to_array(tensor), rtol=1e-3, atol=1e-4, equal_nan=True):
            return str(slot["name"])
    return None


def flat(value: Any) -> list[Any]:
    return [value] if isinstance(value, torch.Tensor) else [tensor for part in value for tensor in flat(part)]


@pytest.mark.parametrize("name", QUICK)
def test_operators_that_both_exporters_refuse_or_get_wrong(name: str, evaluator: Evaluator) -> None:
    judge(name, "mdc510pro", evaluator)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", BY_NAME)
def test_every_operator(name: str, target: str, evaluator: Evaluator) -> None:
    judge(name, target, evaluator)


def test_a_graph_of_other_numbers_would_be_noticed(evaluator: Evaluator) -> None:
    module, args = operators.module_of(BY_NAME["hardswish"])
    case = jumar.export(module, args, target="mdc510pro", evaluator=evaluator, exporters=["torchscript"])
    assert differs(case, module, args) is None
    assert differs(case, torch.nn.ReLU6(), args) is not None
