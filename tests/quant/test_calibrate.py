"""Calibration in the child: the right tensors, in passes, resumed, and what is wrong with the samples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from jumar.errors import EvaluationError
from jumar.graph import Evaluator, infer_shapes
from jumar.quant.calibrate import Calibration, calibrate, calibration_key
from jumar.quant.layers import survey
from jumar.quant.samples import Samples

Open = Callable[..., Samples]

TEXT = """<ir_version: 8, opset_import: ["" : 13]>
agraph (float[1,3,20,20] x) => (float[1,5] y)
<float[4,3,3,3] w1 = {%s}, float[4] b1 = {1, 2, 3, 4}, float[4,5] w2 = {%s}> {
    c = Conv<pads = [1,1,1,1]>(x, w1, b1) r = Relu(c) m = GlobalAveragePool(r) f = Flatten(m) y = MatMul(f, w2)
}"""


@pytest.fixture
def model(random: np.random.Generator) -> ir.Model:
    numbers = [", ".join(f"{value:.4f}" for value in random.standard_normal(count)) for count in (108, 20)]
    made = ir.from_onnx_text(TEXT % tuple(numbers))
    infer_shapes(made)
    return made


@pytest.fixture
def samples(model: ir.Model, random: np.random.Generator, opened: Open) -> Samples:
    smooth = random.standard_normal((12, 3, 20, 20)).cumsum(axis=-1).astype(np.float32)
    return opened(list(smooth[:, None]), model)


def test_what_the_layers_read(model: ir.Model, samples: Samples, evaluator: Evaluator) -> None:
    layers = survey(model).layers
    found = calibrate(model, layers, samples, range(12), evaluator)
    assert sorted(found.histograms) == ["f", "x"]
    xs = np.concatenate([samples.feeds(number)["x"] for number in range(12)])
    assert found.histograms["x"].low == xs.min() and found.histograms["x"].high == xs.max()
    assert found.histograms["x"].means() == pytest.approx(xs.mean(axis=(0, 2, 3)), rel=1e-4)
    assert found.histograms["x"].counts.sum() == xs.size
    assert found.histograms["f"].counts.sum() == 12 * 4
    assert not found.is_noise and not found.outliers


def test_several_passes_give_the_same(model: ir.Model, samples: Samples, evaluator: Evaluator) -> None:
    layers = survey(model).layers
    one, many = (calibrate(model, layers, samples, range(12), evaluator, group_bytes=size) for size in (1 << 27, 1))
    for name, item in one.histograms.items():
        assert np.array_equal(item.counts, many.histograms[name].counts)


def test_a_killed_run_goes_on(
    model: ir.Model, samples: Samples, evaluator: Evaluator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jumar.quant.calibrate._SAVE_SECONDS", 0.0)
    layers, state = survey(model).layers, tmp_path / "state.npz"
    whole = calibrate(model, layers, samples, range(12), evaluator)
    read: list[int] = []

    def stop(fraction: float) -> None:
        if fraction > 0.6:
            raise KeyboardInterrupt

    key = calibration_key("m", layers, samples, range(12))
    with pytest.raises(KeyboardInterrupt):
        calibrate(model, layers, samples, range(12), evaluator, key=key, state=state, progress=stop)
    kept = samples.feeds
    monkeypatch.setattr(samples, "feeds", lambda number: (read.append(number), kept(number))[1])
    again = calibrate(model, layers, samples, range(12), evaluator, key=key, state=state)
    assert 0 < len(read) < 8  # only what was left
    assert all(np.array_equal(again.histograms[name].counts, item.counts) for name, item in whole.histograms.items())
    read.clear()
    calibrate(model, layers, samples, range(12), evaluator, key=key, state=state)
    assert not read
    calibrate(model, layers, samples, range(12), evaluator, key="another", state=state)
    assert len(read) == 12


def test_the_key_sees_other_samples(model: ir.Model, samples: Samples, random: np.random.Generator, opened: Open) -> None:
    layers = survey(model).layers
    other = opened(list(random.standard_normal((12, 1, 3, 20, 20)).astype(np.float32)), model)
    keys = {calibration_key("m", layers, samples, range(12)), calibration_key("m", layers, samples, range(11))}
    assert len(keys | {calibration_key("m", layers, other, range(12)), calibration_key("n", layers, samples, range(12))}) == 4


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", b"\x93NUMPY"])
def test_a_broken_state_is_no_start(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "s.npz").write_bytes(content)
    assert Calibration.from_file(tmp_path / "s.npz", "k") is None


def test_noise_is_noticed(model: ir.Model, evaluator: Evaluator, random: np.random.Generator, opened: Open) -> None:
    noise = opened(list(random.standard_normal((6, 1, 3, 20, 20)).astype(np.float32)), model)
    assert calibrate(model, survey(model).layers, noise, range(6), evaluator).is_noise


def test_an_outlier_is_named(model: ir.Model, evaluator: Evaluator, random: np.random.Generator, opened: Open) -> None:
    data: Any = random.standard_normal((9, 1, 3, 20, 20)).astype(np.float32)
    data[4] *= 100
    found = calibrate(model, survey(model).layers, opened(list(data), model), range(9), evaluator)
    assert set(found.outliers) == {4} and "x" in found.outliers[4]


def test_a_model_that_does_not_run(samples: Samples, evaluator: Evaluator) -> None:
    broken = ir.from_onnx_text(
        '<ir_version: 8, opset_import: ["" : 13]> agraph (float[1,3,20,20] x) => (float[1,3] y) '
        "<int64[2] s = {1, 7}, float[7,3] w = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}> { r = Reshape(x, s) y = MatMul(r, w) }"
    )
    with pytest.raises(EvaluationError):
        calibrate(broken, survey(broken).layers, samples, range(2), evaluator)
