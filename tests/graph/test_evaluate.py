"""ONNX Runtime in a child: what it answers, and what becomes of crashes and limits."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from jumar import EvaluationError
from jumar.graph import Evaluator, load
from jumar.graph.evaluate import Session

HEADER = '<ir_version: 8, opset_import: ["" : 16]>\n'
# 2**62 rounds: ends by the time limit only.
ENDLESS = """agraph (float[1] x) => (float[1] y) <int64 rounds = {4611686018427387904}, bool go = {1}> {
    y = Loop (rounds, go, x) <body = round (int64 i, bool c, float[1] a) => (bool d, float[1] b) { d = Identity(c) b = Sin(a) }>
}"""


def model_of(text: str) -> ir.Model:
    return ir.from_onnx_text(HEADER + text)


@pytest.fixture
def own() -> Iterator[Evaluator]:
    """A child that a test may kill."""
    with Evaluator(timeout=60) as evaluator:
        yield evaluator


def child_of(evaluator: Evaluator) -> int:
    assert evaluator._process is not None
    return evaluator._process.pid


def test_a_model_runs(relu: Path, evaluator: Evaluator) -> None:
    x = np.array([[1, -2, np.nan], [-0.0, np.inf, -np.inf]], np.float32)
    found = evaluator.run(load(relu), {"x": x})
    assert list(found) == ["y"]
    np.testing.assert_array_equal(found["y"], np.array([[1, 0, np.nan], [0, np.inf, 0]], np.float32), strict=True)


def test_outputs_can_be_chosen(evaluator: Evaluator) -> None:
    model = model_of("agraph (float[2] x) => (float[2] y, float[2] z) { y = Neg(x) z = Abs(x) }")
    assert list(evaluator.run(model, {"x": np.ones(2, np.float32)}, ["z"])) == ["z"]


def test_the_model_runs_as_written(evaluator: Evaluator) -> None:
    """Not as optimised: (x + 1e8) - 1e8 loses x in float32, and a runtime that fuses constants would keep it."""
    model = model_of("agraph (float[1] x) => (float[1] y) <float b = {1e8}> { s = Add(x, b) y = Sub(s, b) }")
    assert evaluator.run(model, {"x": np.ones(1, np.float32)})["y"].tolist() == [0.0]


def test_strings_and_sequences_come_back(evaluator: Evaluator) -> None:
    model = model_of("agraph (string[2] s, float[3] x) => (string[2] t, seq(float[1]) y) { t = Identity(s) y = SplitToSequence(x) }")
    found = evaluator.run(model, {"s": np.array(["a", "二"], dtype=object), "x": np.arange(3, dtype=np.float32)})
    assert found["t"].tolist() == ["a", "二"]
    assert [part.tolist() for part in found["y"]] == [[0.0], [1.0], [2.0]]


@pytest.mark.parametrize("offset", [0, 4096])
def test_external_weights_are_read_from_their_file(offset: int, tmp_path: Path, evaluator: Evaluator) -> None:
    weights = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
    (tmp_path / "w.bin").write_bytes(b"\xff" * offset + weights.tobytes())
    model = model_of("agraph (float[32,32] x) => (float[32,32] y) { y = Add(x, w) }")
    value = model.graph[0].inputs[1]
    assert value is not None
    shape = ir.Shape([32, 32])
    value.const_value = ir.ExternalTensor("w.bin", offset, weights.nbytes, ir.DataType.FLOAT, shape=shape, name="w", base_dir=tmp_path)
    value.shape, value.type = shape, ir.TensorType(ir.DataType.FLOAT)
    model.graph.register_initializer(value)
    np.testing.assert_array_equal(evaluator.run(model, {"x": np.zeros((32, 32), np.float32)})["y"], weights)


@pytest.mark.parametrize(
    ("feeds", "says"),
    [
        ({}, "x"),
        ({"x": np.ones((2, 4), np.float32)}, "Got: 4 Expected: 3"),
        ({"x": np.ones((2, 3), np.int64)}, "int64"),
        ({"x": np.ones((2, 3), np.float32), "z": np.ones(1, np.float32)}, "z"),
    ],
    ids=["missing", "shape", "dtype", "unknown"],
)
def test_inputs_that_do_not_fit_are_an_error_of_one_line(relu: Path, evaluator: Evaluator, feeds: dict[str, np.ndarray], says: str) -> None:
    with pytest.raises(EvaluationError, match="could not be executed") as caught:
        evaluator.run(load(relu), feeds)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_an_operator_onnx_runtime_lacks_is_an_error(evaluator: Evaluator) -> None:
    model = ir.from_onnx_text(
        '<ir_version: 8, opset_import: ["" : 16, "mine" : 1]>\nagraph (float[2] x) => (float[2] y) { y = mine.Op(x) }'
    )
    with pytest.raises(EvaluationError, match="Op"):
        evaluator.session(model)


@pytest.mark.parametrize("noticed", [True, False])
def test_a_session_outlives_its_child(relu: Path, own: Evaluator, noticed: bool) -> None:
    x = np.ones((2, 3), np.float32)
    with own.session(load(relu)) as session:
        first = child_of(own)
        os.kill(first, signal.SIGKILL)
        assert own._process is not None
        if noticed:
            own._process.wait()
            np.testing.assert_array_equal(session.run({"x": x})["y"], x)
        else:
            try:
                found = session.run({"x": x})["y"]
            except EvaluationError as error:  # the kill came in the middle
                assert "SIGKILL" in str(error)
                found = session.run({"x": x})["y"]
            np.testing.assert_array_equal(found, x)
        assert child_of(own) != first


def test_a_crash_while_running_is_an_error_and_the_next_run_works(relu: Path, own: Evaluator) -> None:
    session = own.session(model_of(ENDLESS))
    pid = child_of(own)
    killer = os.fork()
    if killer == 0:  # a second process, so that this one can wait for the answer
        time.sleep(0.3)
        os.kill(pid, signal.SIGSEGV)
        os._exit(0)
    try:
        with pytest.raises(EvaluationError, match="SIGSEGV"):
            session.run({"x": np.ones(1, np.float32)})
    finally:
        os.waitpid(killer, 0)
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(own.run(load(relu), {"x": x})["y"], x)


def test_a_run_over_the_time_limit_is_an_error_and_the_next_run_works(relu: Path) -> None:
    with Evaluator(timeout=60) as evaluator:
        session = evaluator.session(model_of(ENDLESS))
        evaluator.timeout = 0.3
        with pytest.raises(EvaluationError, match=r"longer than 0\.3 s"):
            session.run({"x": np.ones(1, np.float32)})
        evaluator.timeout = 60
        session.close()
        assert evaluator._process is None  # nothing is started just to be told to forget
        x = np.ones((2, 3), np.float32)
        np.testing.assert_array_equal(evaluator.run(load(relu), {"x": x})["y"], x)


def test_a_model_over_the_memory_limit_is_an_error_and_the_next_run_works(relu: Path) -> None:
    huge = model_of("agraph (int64[1] n) => (float[N] y) { y = ConstantOfShape(n) }")
    with Evaluator(timeout=60, memory_mb=8000) as evaluator:
        assert evaluator.run(huge, {"n": np.array([1000])})["y"].shape == (1000,)
        with pytest.raises(EvaluationError):
            evaluator.run(huge, {"n": np.array([1 << 33])})  # 32 GB
        x = np.ones((2, 3), np.float32)
        np.testing.assert_array_equal(evaluator.run(load(relu), {"x": x})["y"], x)


def test_sessions_of_a_closed_evaluator_start_nothing(relu: Path) -> None:
    evaluator = Evaluator(timeout=60)
    session = evaluator.session(load(relu))
    evaluator.close()
    session.close()
    evaluator.close()
    assert evaluator._process is None


def test_sessions_are_independent(evaluator: Evaluator) -> None:
    texts = ["y = Neg(x)", "y = Abs(x)"]
    sessions: list[Session] = [evaluator.session(model_of(f"agraph (float[1] x) => (float[1] y) {{ {text} }}")) for text in texts]
    x = np.array([-3], np.float32)
    assert [session.run({"x": x})["y"].item() for session in sessions] == [3.0, 3.0]
    sessions[0].close()
    assert sessions[1].run({"x": -x})["y"].item() == 3.0
    sessions[1].close()


def test_the_child_imports_nothing_from_the_current_directory(
    relu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save_text: Callable[..., Path]
) -> None:
    """Jumar is run in the folder of a stranger's model, which may hold a file named like a module."""
    for name in ("onnxruntime", "numpy", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(7)")
    monkeypatch.chdir(tmp_path)
    x = np.ones((2, 3), np.float32)
    with Evaluator(timeout=60) as evaluator:
        np.testing.assert_array_equal(evaluator.run(load(relu), {"x": x})["y"], x)


def test_large_weights_are_written_once_and_mapped(random: np.random.Generator) -> None:
    array = random.standard_normal((200, 100)).astype(np.float32)
    model = model_of("agraph (float[1,200] x) => (float[1,100] y) <float[200,100] w> { y = MatMul(x, w) }")
    weight = ir.tensor(array, name="w")
    value = ir.Value(name="w", const_value=weight, shape=ir.Shape([200, 100]), type=ir.TensorType(ir.DataType.FLOAT))
    node = model.graph[0]
    node.replace_input_with(1, value)
    model.graph.initializers.clear()
    model.graph.register_initializer(value)
    x = random.standard_normal((1, 200)).astype(np.float32)
    with Evaluator(timeout=60) as evaluator:
        for _ in range(3):
            np.testing.assert_allclose(evaluator.run(model, {"x": x})["y"], x @ array, rtol=1e-4)
        assert value.const_value is weight
        folder = evaluator.weights._folder
        assert folder is not None
        assert (Path(folder.name) / "weights").stat().st_size == array.nbytes
        evaluator._stop()  # as after a crash
        np.testing.assert_allclose(evaluator.run(model, {"x": x})["y"], x @ array, rtol=1e-4)
    assert not Path(folder.name).exists()
