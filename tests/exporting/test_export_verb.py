"""What `export` hands over computes what the module computes; what does not is thrown away, and the line is named."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

import jumar  # noqa: E402
from jumar.atc.gear_words import read_gears  # noqa: E402
from jumar.case import Case, Finding  # noqa: E402
from jumar.exporting.dynamic import parse_dynamic  # noqa: E402
from jumar.graph import Evaluator, load, source_line  # noqa: E402
from jumar.proof import Interface  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
import modules  # noqa: E402

MDC = {"target": "mdc510pro"}


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    torch.manual_seed(0)
    yield


def finding(case: Case, code: str) -> Finding:
    found = [item for item in case.record.findings if item.code == code]
    assert found, [item.code for item in case.record.findings]
    return found[0]


def outputs(case: Case, feeds: dict[str, Any], evaluator: Evaluator) -> dict[str, Any]:
    told = case.record.data["export"]
    names = [{slot["name"]: slot["dtype"] for slot in told[key]} for key in ("inputs", "outputs")]
    interface = Interface.named(*names).changed(case.record.interface)
    return interface.to_caller(evaluator.run(case.model, interface.to_model(feeds)))


def test_what_values_froze_is_refused_with_both_lines(evaluator: Evaluator) -> None:
    case = jumar.export(modules.Frozen(), (torch.ones(1, 6), torch.tensor(2)), **MDC, evaluator=evaluator)
    assert case.record.verdict == "blocked" and not list(case.model.graph)
    found = finding(case, "EX105")
    assert modules.line_of("loop count") in str(found.why) and modules.line_of("branch") in str(found.why)
    assert found.source_line is not None and found.source_line.endswith(modules.line_of("loop count"))
    assert "does not read `n`" in str(found.message)
    refused = finding(case, "EX108")
    assert refused.source_line is not None and refused.source_line.endswith(modules.line_of("loop count"))


def test_a_number_that_no_tracer_warns_of_is_found(evaluator: Evaluator) -> None:
    case = jumar.export(modules.Listed(), (torch.randn(2, 3),), **MDC, evaluator=evaluator, exporters=["torchscript"])
    found = finding(case, "EX105")
    assert case.record.verdict == "blocked"
    assert found.source_line is not None and found.source_line.endswith(modules.line_of("scale"))


def test_a_silently_wrong_export_is_replaced_by_a_right_one(evaluator: Evaluator) -> None:
    case = jumar.export(*modules.make_scatter(), **MDC, evaluator=evaluator)
    assert case.record.data["export"]["exporter"] in ("dynamo@18", "torchscript@17")
    found = finding(case, "EX107")
    assert found.severity == "info" and "torchscript@11" in str(found.message)
    assert found.source_line is not None and found.source_line.endswith(modules.line_of("scatter"))
    index = np.array([0, 0, 0, 1, 2, 2])
    result = outputs(case, {"x": np.ones((6, 2), np.float32), "i": index}, evaluator)
    assert result["output"].tolist() == [[3, 3], [1, 1], [2, 2]]
    assert case.model.opset_imports[""] == 11
    assert all((source_line(node) or "").endswith(modules.line_of("scatter")) for node in case.model.graph)


def test_where_both_lie_nothing_is_handed_over(evaluator: Evaluator, tmp_path: Path) -> None:
    """The same at an opset where TorchScript has no reduction, as the only exporter: opset 9 to 13."""
    case = jumar.export(
        *modules.make_scatter(), **MDC, evaluator=evaluator, exporters=["torchscript"], opset_max=11, output=tmp_path / "m.onnx"
    )
    # At opset 17 it is right, and Jumar brings it down: still nothing wrong is handed over.
    assert case.record.data["export"]["exporter"] == "torchscript@17" and (tmp_path / "m.onnx").exists()


def test_structures_are_flattened_and_recorded(evaluator: Evaluator, tmp_path: Path) -> None:
    module, args = modules.make_nested()
    case = jumar.export(module, args, {"scale": 3.0}, **MDC, evaluator=evaluator, output=tmp_path / "m.onnx")
    told = case.record.data["export"]
    assert [slot["name"] for slot in told["inputs"]] == ["a", "b_0"]
    assert [slot["path"] for slot in told["inputs"]] == [["batch", "a"], ["batch", "b", 0]]
    assert [(slot["name"], slot["path"]) for slot in told["outputs"]] == [("pred", ["pred"]), ("aux_0", ["aux", 0])]
    assert {item.node for item in case.record.findings if item.code == "EX102"} == {"batch.b.1", "scale"}
    assert finding(case, "EX113").node == "kind"
    feeds = {slot["name"]: np.asarray(args[0][slot["path"][1]] if len(slot["path"]) == 2 else args[0]["b"][0]) for slot in told["inputs"]}
    wanted = module(*args, scale=3.0)
    found = outputs(case, feeds, evaluator)
    assert np.allclose(found["pred"], wanted["pred"], atol=1e-5) and np.allclose(found["aux_0"], wanted["aux"][0], atol=1e-5)
    assert "jumar.export" in load(tmp_path / "m.onnx").metadata_props


def test_training_mode_is_named_and_the_module_left_alone(evaluator: Evaluator) -> None:
    module = modules.Trained().train()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    case = jumar.export(module, (torch.randn(2, 3, 8, 8),), **MDC, evaluator=evaluator)
    found = finding(case, "EX101")
    assert "body.1 (BatchNorm2d)" in str(found.message) and "body.3 (Dropout)" in str(found.message)
    assert all(item.training for item in module.modules())
    assert all(torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
    assert {node.op_type for node in case.model.graph} == {"Conv", "Relu"}
    assert {node.metadata_props["jumar.module"] for node in case.model.graph} <= {"body.0", "body.1", "body.2"}
    assert all((source_line(node) or "").endswith(modules.line_of("body")) for node in case.model.graph)


@pytest.mark.parametrize(
    ("kind", "code", "mark", "severity"), [("Noisy", "EX111", "noise", "error"), ("Writes", "EX112", "write", "warning")]
)
def test_what_no_graph_can_hold(kind: str, code: str, mark: str, severity: str, evaluator: Evaluator) -> None:
    case = jumar.export(getattr(modules, kind)(), (torch.randn(2, 3),), **MDC, evaluator=evaluator, exporters=["torchscript"])
    found = finding(case, code)
    assert found.severity == severity
    assert found.source_line is not None and found.source_line.endswith(modules.line_of(mark))


def test_an_input_that_forward_ignores_is_named(evaluator: Evaluator) -> None:
    case = jumar.export(modules.Ignores(), (torch.randn(2, 3), torch.randn(4)), **MDC, evaluator=evaluator, exporters=["torchscript"])
    assert finding(case, "EX110").node == "unused" and case.record.verdict == "warnings"


def test_an_output_never_has_the_name_of_an_input(evaluator: Evaluator) -> None:
    case = jumar.export(
        torch.nn.ReLU(),
        (torch.randn(1, 4),),
        **MDC,
        evaluator=evaluator,
        exporters=["torchscript"],
        input_names=["data"],
        output_names=["data"],
    )
    assert [value.name for value in (*case.model.graph.inputs, *case.model.graph.outputs)] == ["data", "data_out"]
    assert "`data` is called `data_out`" in str(finding(case, "EX103").message)


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_open_dimensions_are_open_and_right_at_every_size(exporter: Any, evaluator: Evaluator) -> None:
    dynamic = parse_dynamic(["x:0=1..4,1=3|5"])
    case = jumar.export(
        modules.Rows(), (torch.randn(2, 3, 4),), soc="Ascend310P3", evaluator=evaluator, exporters=[exporter], dynamic=dynamic
    )
    assert case.record.data["export"]["exporter"] is not None, [str(item.message) for item in case.record.findings]
    assert case.record.data["export"]["dynamic"] == {"x": {"0": "1..4", "1": "3|5"}}
    shape = case.model.graph.inputs[0].shape
    assert shape is not None and [str(size) for size in shape] == ["x_0", "x_1", "4"]
    gears = next(item.remedy.render("en") for item in case.record.findings if item.code == "SH201" and item.severity == "info")
    assert '--gears "x[0] 1,2,4; x[1] 3,5"' in gears and case.record.verdict != "blocked"
    assert len(read_gears(["x[0] 1,2,4; x[1] 3,5"], case.model).shapes) == 6
    x = np.random.default_rng(0).standard_normal((4, 5, 4)).astype(np.float32)
    assert np.allclose(outputs(case, {"x": x}, evaluator)["output"], modules.Rows()(torch.from_numpy(x)), atol=1e-5)


def test_a_size_that_was_frozen_is_found(evaluator: Evaluator) -> None:
    case = jumar.export(
        modules.SizeFrozen(), (torch.randn(2, 3),), **MDC, evaluator=evaluator, exporters=["torchscript"], dynamic="x:1=2..6"
    )
    found = finding(case, "EX106")
    assert case.record.verdict == "blocked"
    assert found.source_line is not None and found.source_line.endswith(modules.line_of("steps"))


def test_computed_weights_become_weights(evaluator: Evaluator) -> None:
    module = modules.Weighted()
    case = jumar.export(module, (torch.randn(1, 3, 8),), **MDC, evaluator=evaluator, exporters=["torchscript"])
    assert [node.op_type for node in case.model.graph] == ["Conv"]
    assert torch.nn.utils.parametrize.is_parametrized(module.conv)


def test_a_factory_with_arrays_and_shapes(evaluator: Evaluator, tmp_path: Path) -> None:
    x = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    given = jumar.export("modules:make_rows", **MDC, evaluator=evaluator, exporters=["torchscript"], inputs=tmp_path / "in.npz")
    drawn = jumar.export("modules:make_rows", **MDC, evaluator=evaluator, exporters=["torchscript"], shapes={"x": (2, 3, 4)})
    replaced = jumar.export(
        "modules:make_nested", **MDC, evaluator=evaluator, exporters=["torchscript"], inputs={"batch.a": np.ones((2, 3), np.float32)}
    )
    for case in (given, drawn, replaced):
        assert case.record.data["export"]["exporter"] is not None


def test_a_write_that_the_graph_lost_is_named(evaluator: Evaluator) -> None:
    """TorchScript loses a write through a view; the graph goes on with the old values."""
    case = jumar.export(modules.ViewWrite(), (torch.randn(3, 5),), **MDC, evaluator=evaluator, exporters=["torchscript"])
    found = finding(case, "EX109")
    assert case.record.verdict == "blocked" and "mul_" in str(found.message)
    assert found.source_line is not None and found.source_line.endswith(modules.line_of("view write"))


def test_a_write_that_the_graph_has_in_another_form_is_not_blamed(evaluator: Evaluator) -> None:
    case = jumar.export(modules.HarmlessWrite(), (torch.ones(2, 3),), **MDC, evaluator=evaluator, exporters=["torchscript"])
    found = finding(case, "EX105")
    assert found.source_line is not None and found.source_line.endswith(modules.line_of("second branch"))


@pytest.mark.parametrize(("module", "decides"), [(modules.ScatterAdd(), False), (modules.Chaotic(), True)])
def test_where_rounding_decides_it_is_said(module: Any, decides: bool, evaluator: Evaluator) -> None:
    _, args = modules.make_scatter()
    case = jumar.export(module, args, **MDC, evaluator=evaluator, exporters=["torchscript"])
    assert ("rounding decides" in str(finding(case, "EX107").why)) is decides
