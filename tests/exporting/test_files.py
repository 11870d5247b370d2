"""Modules from files, and files that are not loaded because that would run their code."""

from __future__ import annotations

import pickle
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

import jumar  # noqa: E402
from jumar.exporting.files import kind_of  # noqa: E402
from jumar.graph import Evaluator  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
import modules  # noqa: E402

MDC: dict[str, Any] = {"target": "mdc510pro"}
MARK = Path("ran")


class Payload:
    """What a hostile pickle does."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (MARK.absolute(),)


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    torch.manual_seed(0)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_torchscript(evaluator: Evaluator) -> None:
    torch.jit.script(modules.Trained().train()).save("net.pt")
    assert kind_of(Path("net.pt")) == "torchscript"
    case = jumar.export("net.pt", **MDC, evaluator=evaluator, shapes={"x": (1, 3, 8, 8)}, exporters=["torchscript"])
    assert case.record.data["export"]["exporter"] == "torchscript@11"
    assert [value.name for value in case.model.graph.inputs] == ["x"]
    assert any(finding.code == "EX101" and "BatchNorm2d" in str(finding.message) for finding in case.record.findings)


def test_a_program_of_torch_export_with_its_own_inputs(evaluator: Evaluator) -> None:
    program = torch.export.export(modules.Trained().eval(), (torch.randn(1, 3, 8, 8),))
    torch.export.save(program, "net.pt2")
    case = jumar.export("net.pt2", **MDC, evaluator=evaluator, exporters=["dynamo"])
    assert case.record.data["export"]["exporter"] == "dynamo@18", [str(item.message) for item in case.record.findings]
    x = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32)
    found = evaluator.run(case.model, {case.model.graph.inputs[0].name or "": x})
    assert np.allclose(next(iter(found.values())), program.module()(torch.from_numpy(x)).detach(), atol=1e-5)


@pytest.mark.parametrize("wrap", ["plain", "checkpoint", "parallel"])
def test_weights_for_a_factory(wrap: str, evaluator: Evaluator) -> None:
    state = modules.Trained().state_dict()
    held = {
        "plain": state,
        "checkpoint": {"epoch": 3, "state_dict": state},
        "parallel": {f"module.{name}": tensor for name, tensor in state.items()},
    }[wrap]
    torch.save(held, "weights.pt")
    case = jumar.export(
        "modules:Trained", **MDC, evaluator=evaluator, weights="weights.pt", shapes={"x": (1, 3, 8, 8)}, exporters=["torchscript"]
    )
    x = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32)
    module = modules.Trained().eval()
    module.load_state_dict(state)
    found = evaluator.run(case.model, {"x": x})
    assert np.allclose(next(iter(found.values())), module(torch.from_numpy(x)).detach(), atol=1e-5)


def test_weights_of_another_module_are_refused() -> None:
    torch.save({"body.0.weight": torch.zeros(1)}, "weights.pt")
    with pytest.raises(jumar.UsageError, match=r"6 missing, 0 unknown, 1 of another shape \(body.0.weight"):
        jumar.export("modules:Trained", **MDC, weights="weights.pt", shapes={"x": (1, 3, 8, 8)})


def test_weights_alone_are_no_module() -> None:
    torch.save(modules.Trained().state_dict(), "weights.pt")
    with pytest.raises(jumar.ModelError, match=r"holds 7 weights and no module.*--weights"):
        jumar.export("weights.pt", **MDC)


@pytest.mark.parametrize("place", ["module", "weights"])
def test_a_whole_pickled_module_is_refused_and_nothing_of_it_runs(place: str) -> None:
    torch.save({"state_dict": Payload()} if place == "weights" else modules.Trained(), "net.pt")
    with pytest.raises(jumar.ModelError, match=r"loading it would run code from the file.*save module.state_dict"):
        if place == "module":
            jumar.export("net.pt", **MDC)
        else:
            jumar.export("modules:Trained", **MDC, weights="net.pt", shapes={"x": (1, 3, 8, 8)})
    assert not MARK.exists()


def test_a_program_that_hides_a_pickle_is_refused_and_nothing_of_it_runs() -> None:
    """torch.export.load falls back to a full unpickling of example inputs and weights."""
    torch.export.save(torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), "good.pt2")
    torch.save(Payload(), "payload.pt")
    with zipfile.ZipFile("good.pt2") as good, zipfile.ZipFile("bad.pt2", "w") as bad:
        names = good.namelist()
        assert any("sample_inputs" in name for name in names)
        for name in names:
            bad.writestr(name, Path("payload.pt").read_bytes() if "sample_inputs" in name else good.read(name))
    with pytest.raises(jumar.ModelError, match=r"would run code|cannot be exported"):
        jumar.export("bad.pt2", **MDC)
    assert not MARK.exists()


def test_the_payload_would_run_where_pickles_are_loaded() -> None:
    pickle.loads(pickle.dumps(Payload()))
    assert MARK.exists()


@pytest.mark.parametrize(("name", "data"), [("no.pt", None), ("text.pt", b"hello"), ("zip.pt", b"PK\x03\x04" + bytes(64))])
def test_other_files_are_refused(name: str, data: bytes | None) -> None:
    if data is not None:
        Path(name).write_bytes(data)
    with pytest.raises(jumar.ModelError, match="cannot be exported"):
        jumar.export(name, **MDC)
