#!/usr/bin/env python3
"""Accuracy, size, time and memory of `jumar quantize` beside ONNX Runtime's static quantisation, on the same samples of the same tasks.

usage: python benchmarks/quantize.py [--task recognition|orientation|digits|detection|memory ...] [--models DIR] [--out FILE.json]

Tasks are those of quantize_tasks.py; they need pillow, scipy and, for the digits, scikit-learn. ONNX Runtime calibrates with MinMax, Entropy and
Percentile (weights per channel, int8, QDQ). Every quantiser runs in a process of its own, whose peak memory with that of its children is
read at the end. `memory` compares 100 and 500 samples of 224 x 224 for one model (`--memory-model`). Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

HELD = 200
"""Labelled samples beyond those that all calibrate on; the gate looks at them, as it would at a user's."""
FEWER = 20
"""Samples that ONNX Runtime is given where it runs out of memory on all."""
METHODS = ("MinMax", "Entropy", "Percentile")


def apart(work: Callable[..., dict[str, Any]], *arguments: Any, limit_mb: int = 0) -> dict[str, Any]:
    """Run in a fresh process that may take so much memory; adds seconds and the peak of its memory, children included, in MB."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        process = context.Process(target=_apart, args=(work, arguments, str(path), limit_mb))
        process.start()
        process.join()
        return json.loads(path.read_text()) if path.exists() else {"failed": f"status {process.exitcode}"}


def _apart(work: Callable[..., dict[str, Any]], arguments: tuple[Any, ...], path: str, limit_mb: int) -> None:
    if limit_mb:
        resource.setrlimit(resource.RLIMIT_AS, (limit_mb << 20, limit_mb << 20))
    begin = time.perf_counter()
    try:
        result = work(*arguments)
    except Exception as error:
        result = {"failed": f"{type(error).__name__}: {error}"[:300]}
    result.setdefault("seconds", round(time.perf_counter() - begin, 2))
    own, children = (resource.getrusage(who).ru_maxrss >> 10 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    result["peak_mb"] = own + children  # both at once at worst
    Path(path).write_text(json.dumps(result))


def task_of(name: str, models: str, folder: str) -> Any:
    import quantize_tasks  # type: ignore[import-not-found,unused-ignore]

    if name == "digits":
        return quantize_tasks.digits(Path(folder))
    task = getattr(quantize_tasks, name)(Path(models))
    if name == "detection":
        session = ort.InferenceSession(str(task.model), providers=["CPUExecutionProvider"])
        task.test[:] = [(x, session.run(None, {task.input: x})[0]) for x, _ in task.test]
    return task


def accuracy(model: str, task: Any) -> dict[str, float]:
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    totals: dict[str, float] = {}
    for x, label in task.test:
        for key, value in task.score(session.run(None, {task.input: x})[0], label).items():
            totals[key] = totals.get(key, 0.0) + value / len(task.test)
    return {key: round(value, 4) for key, value in totals.items()}


def by_jumar(name: str, models: str, folder: str, count: int) -> dict[str, Any]:
    import jumar

    task = task_of(name, models, folder)
    held = labelled(name, models)
    begin = time.perf_counter()
    case = jumar.quantize(
        task.model,
        calib=[{task.input: x} for x in task.calibration[:count]],
        held=[{task.input: x} for x, _ in held],
        output=Path(folder) / f"jumar-{name}",
        soc="Ascend310P3",
        metric=lambda number, outputs: task.score(next(iter(outputs.values())), held[number][1])[task.metric],
    )
    seconds = round(time.perf_counter() - begin, 2)
    data = case.record.data["quantize"]
    deploy = Path(folder) / f"jumar-{name}" / "deploy.onnx"
    return {
        **accuracy(str(Path(folder) / f"jumar-{name}" / "qdq.onnx"), task),
        "macs_int8": round(data["work_share"], 4),
        "size_ratio": round(deploy.stat().st_size / Path(task.model).stat().st_size, 4),
        "put_back": len(data["put_back"]),
        "recipe": data["recipe"],
        "forms": data["proof"],
        "seconds": seconds,
    }


def labelled(name: str, models: str) -> list[tuple[Any, Any]]:
    """Samples with labels for the gate, which are in neither calibration nor test."""
    import quantize_tasks

    if name == "digits":
        from sklearn.datasets import load_digits  # type: ignore[import-not-found,import-untyped,unused-ignore]

        data = load_digits()
        order = np.random.default_rng(4).permutation(len(data.target))[1000:1200]
        return [((data.images[index] / 16).astype(np.float32)[None, None], int(data.target[index])) for index in order]
    task = getattr(quantize_tasks, name)(Path(models), 0, HELD, seed=90)
    if name != "detection":
        return list(task.test)
    session = ort.InferenceSession(str(task.model), providers=["CPUExecutionProvider"])
    return [(x, session.run(None, {task.input: x})[0]) for x, _ in task.test]


class Reader:
    """What ONNX Runtime asks of calibration data."""

    def __init__(self, name: str, arrays: Any) -> None:
        self._arrays: Iterator[Any] = iter(arrays)
        self._name = name

    def get_next(self) -> dict[str, Any] | None:
        found = next(self._arrays, None)
        return None if found is None else {self._name: np.ascontiguousarray(found)}


def by_runtime(name: str, models: str, folder: str, method: str, count: int) -> dict[str, Any]:
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    task = task_of(name, models, folder)
    prepared, result = Path(folder) / f"{name}-prepared.onnx", Path(folder) / f"{name}-{method}.onnx"
    begin = time.perf_counter()
    quant_pre_process(str(raised(task.model, folder)), str(prepared), skip_symbolic_shape=True)
    quantize_static(
        str(prepared),
        str(result),
        Reader(task.input, task.calibration[:count]),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
        calibrate_method=getattr(CalibrationMethod, method),
    )
    seconds = round(time.perf_counter() - begin, 2)
    size = round(result.stat().st_size / Path(task.model).stat().st_size, 4)
    return {**accuracy(str(result), task), "size_ratio": size, "seconds": seconds}


def raised(path: Path, folder: str) -> Path:
    """At opset 13, which scales per channel need."""
    model = onnx.load(path)
    if model.opset_import[0].version >= 13:
        return path
    target = Path(folder) / f"{path.stem}-13.onnx"
    onnx.save(onnx.version_converter.convert_version(model, 13), target)
    return target


def stored(folder: str, count: int) -> Path:
    """Samples of 224 x 224 on disk."""
    path = Path(folder) / f"samples-{count}.npy"
    random = np.random.default_rng(7)
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (count, 3, 224, 224)}
        np.lib.format.write_array_header_1_0(file, header)
        for _ in range(count):
            file.write(np.clip(random.standard_normal((3, 224, 224)).cumsum(axis=-1) / 16, -3, 3).astype("<f4").tobytes())
    return path


def memory(model: str, folder: str, path: str, method: str) -> dict[str, Any]:
    """All of `jumar quantize`: the gate sees every fifth sample, and both forms are proven."""
    import jumar

    begin = time.perf_counter()
    jumar.quantize(model, calib=path, output=Path(folder) / f"memory-{Path(path).stem}", soc="Ascend310P3", method=method, max_drop=1.0)
    return {"seconds": round(time.perf_counter() - begin, 2)}


def memory_of_runtime(model: str, folder: str, path: str, method: str) -> dict[str, Any]:
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    prepared, name = Path(folder) / "prepared.onnx", onnx.load(model, load_external_data=False).graph.input[0].name
    begin = time.perf_counter()
    quant_pre_process(str(raised(Path(model), folder)), str(prepared), skip_symbolic_shape=True)
    reader = Reader(name, np.load(path, mmap_mode="r")[:, None])
    method_of = getattr(CalibrationMethod, method)
    quantize_static(
        str(prepared), str(Path(folder) / "r.onnx"), reader, quant_format=QuantFormat.QDQ, per_channel=True, calibrate_method=method_of
    )
    return {"seconds": round(time.perf_counter() - begin, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", action="append", choices=["recognition", "orientation", "digits", "detection", "memory"])
    parser.add_argument("--models", default=".", help="folder of the models of quantize_tasks.py")
    parser.add_argument("--memory-model", help="a model of 224 x 224 images")
    parser.add_argument("--samples", type=int, default=100, help="samples to calibrate on")
    parser.add_argument("--runtime-memory", type=int, default=6000, help="MB that ONNX Runtime's quantisers may take (0: no limit)")
    parser.add_argument("--skip-runtime", action="store_true", help="without ONNX Runtime's quantisers")
    parser.add_argument("--out", help="write the numbers here as JSON")
    options = parser.parse_args()
    results: dict[str, Any] = {"cpus": os.cpu_count()}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.task or ["digits", "orientation", "recognition", "detection"]:
            rows: dict[str, Any] = {}
            if name == "memory":
                few, many = (str(stored(folder, count)) for count in (100, 500))
                rows["jumar entropy 100"] = apart(memory, options.memory_model, folder, few, "entropy")
                print(name, rows, flush=True)
                if not options.skip_runtime:
                    rows["ONNX Runtime Entropy 100"] = apart(
                        memory_of_runtime, options.memory_model, folder, few, "Entropy", limit_mb=options.runtime_memory
                    )
                    print(name, rows, flush=True)
                rows["jumar entropy 500"] = apart(memory, options.memory_model, folder, many, "entropy")
                print(name, rows, flush=True)
            else:
                task = task_of(name, options.models, folder)
                rows["float"] = accuracy(str(task.model), task)
                print(name, "float", rows["float"], flush=True)
                rows["jumar"] = apart(by_jumar, name, options.models, folder, options.samples)
                print(name, "jumar", rows["jumar"], flush=True)
                for method in () if options.skip_runtime else METHODS:
                    for count in (options.samples, FEWER):
                        row = f"{method} {count}"
                        rows[row] = apart(by_runtime, name, options.models, folder, method, count, limit_mb=options.runtime_memory)
                        print(name, row, rows[row], flush=True)
                        if "failed" not in rows[row]:
                            break
            results[name] = rows
    if options.out:
        Path(options.out).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
