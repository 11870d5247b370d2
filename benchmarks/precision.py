#!/usr/bin/env python3
"""What emulating float16 costs beside plain ONNX Runtime, and what it says of models.

usage: python benchmarks/precision.py [--runs N] [--model NAME.onnx=INPUT:SIZES]...

Each measurement is a process of its own, from the file on: ONNX Runtime as it comes loads the model and runs it once; the emulation loads it,
adds the roundings and runs it once; the table runs every node in three ways and compares. The kinds take turns, and the medians are compared.
Imports and the start of Jumar's child processes are left out of the times, since a command pays for them once whatever it does; the row
"child processes" states them. Memory is the peak of the process and its children together. Without --model: the three PP-OCRv4 models and a resnet50 of random weights.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("plain", "emulation", "per node", "child processes")
ASKED = {"emulation": 4.0, "per node": 12.0}


def resnet50(path: Path) -> None:
    """The usual residual network of 50 layers (He et al., 2015) with random weights; batch normalisation stands in the graph."""
    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []

    def weight(name: str, array: np.ndarray) -> str:
        weights.append(onnx.numpy_helper.from_array(array.astype(np.float32), name))
        return name

    def conv(x: str, inner: int, outer: int, size: int, stride: int, relu: bool) -> str:
        name = f"c{len(nodes)}"
        w = weight(f"{name}_w", rng.normal(size=(outer, inner, size, size)) * (2 / (inner * size * size)) ** 0.5)
        pads = [size // 2] * 4
        nodes.append(onnx.helper.make_node("Conv", [x, w], [name], name, kernel_shape=[size] * 2, strides=[stride] * 2, pads=pads))
        statistics_ = [weight(f"{name}_{kind}", np.full(outer, value)) for kind, value in (("s", 1.0), ("b", 0.0), ("m", 0.0), ("v", 1.0))]
        nodes.append(onnx.helper.make_node("BatchNormalization", [name, *statistics_], [f"{name}_n"], f"{name}_n"))
        if relu:
            nodes.append(onnx.helper.make_node("Relu", [f"{name}_n"], [f"{name}_r"], f"{name}_r"))
        return f"{name}_r" if relu else f"{name}_n"

    x = conv("x", 3, 64, 7, 2, True)
    nodes.append(onnx.helper.make_node("MaxPool", [x], ["p"], "p", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4))
    x, inner = "p", 64
    for stage, count in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(count):
            stride = 2 if stage and not block else 1
            short = conv(x, inner, 4 * width, 1, stride, False) if not block else x
            y = conv(x, inner, width, 1, 1, True)
            y = conv(y, width, width, 3, stride, True)
            y = conv(y, width, 4 * width, 1, 1, False)
            name = f"a{len(nodes)}"
            nodes.append(onnx.helper.make_node("Add", [y, short], [f"{name}_s"], f"{name}_s"))
            nodes.append(onnx.helper.make_node("Relu", [f"{name}_s"], [name], name))
            x, inner = name, 4 * width
    nodes.append(onnx.helper.make_node("GlobalAveragePool", [x], ["g"], "g"))
    nodes.append(onnx.helper.make_node("Flatten", ["g"], ["f"], "f"))
    nodes.append(onnx.helper.make_node("Gemm", ["f", weight("fc", rng.normal(size=(2048, 1000)) / 45)], ["y"], "y"))
    ends = [onnx.helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", [1, 3, 224, 224]), ("y", [1, 1000]))]
    graph = onnx.helper.make_graph(nodes, "resnet50", ends[:1], ends[1:], weights)
    onnx.save(onnx.helper.make_model(graph, ir_version=8, opset_imports=[onnx.helper.make_opsetid("", 13)]), path)


def one(kind: str, path: str, name: str, sizes: tuple[int, ...]) -> dict[str, float]:
    """One measurement, in this process. Imports do not count."""
    feed = {name: np.random.default_rng(0).random(sizes, np.float32)}
    if kind == "plain":
        import onnxruntime

        begin = time.perf_counter()
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        session.run(None, feed)
        seconds = time.perf_counter() - begin
    else:
        import jumar
        from jumar.graph import Evaluator, infer_shapes, load, pin_shapes
        from jumar.precision import emulate, find_mode
        from jumar.proof import FeedSet

        with Evaluator() as evaluator:
            begin = time.perf_counter()
            _start(evaluator)
            started = time.perf_counter()
            if kind == "emulation":
                model = load(path)
                pin_shapes(model, {name: sizes})
                infer_shapes(model)
                evaluator.run(emulate(model, find_mode("fp16")), feed)
            elif kind == "per node":
                feeds = FeedSet((feed,), "user")
                jumar.verify_precision(path, "fp16", shapes={name: sizes}, feeds=feeds, table=True, evaluator=evaluator)
            seconds = started - begin if kind == "child processes" else time.perf_counter() - started
    peak = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    return {"seconds": seconds, "megabytes": peak}


def _start(evaluator: Any) -> None:
    """Both child processes, with what they import."""
    from jumar.graph import infer_shapes

    tiny = ir.from_onnx_text('<ir_version: 8, opset_import: ["" : 13]> agraph (float[1] x) => (float[1] y) { y = Neg(x) }')
    infer_shapes(tiny)
    evaluator.run(tiny, {"x": np.zeros(1, np.float32)})


def measured(kind: str, model: tuple[str, str, tuple[int, ...]]) -> dict[str, float]:
    path, name, sizes = model
    command = [sys.executable, __file__, "--one", kind, "--model", f"{path}={name}:{','.join(map(str, sizes))}"]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def parsed(text: str) -> tuple[str, str, tuple[int, ...]]:
    path, _, rest = text.rpartition("=")
    name, _, sizes = rest.rpartition(":")
    return path, name, tuple(int(size) for size in sizes.split(","))


def standard(folder: Path) -> list[tuple[str, str, tuple[int, ...]]]:
    sys.path.insert(0, str(ROOT / "scripts"))
    from fetch_demo_models import fetch

    fetch(folder)
    resnet50(folder / "resnet50.onnx")
    return [
        (str(folder / "resnet50.onnx"), "x", (1, 3, 224, 224)),
        (str(folder / "det.onnx"), "x", (1, 3, 640, 640)),
        (str(folder / "rec.onnx"), "x", (1, 3, 48, 320)),
        (str(folder / "cls.onnx"), "x", (1, 3, 48, 192)),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--model", action="append", type=parsed)
    parser.add_argument("--one", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one, *options.model[0])))
        return 0
    with tempfile.TemporaryDirectory() as work:
        models = options.model or standard(Path(work))
        print(f"{'model':34s} {'kind':10s} {'median s':>9s} {'ratio':>6s} {'asked':>6s} {'peak MB':>8s} {'of plain':>8s}")
        for model in models:
            found: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
            for _ in range(options.runs):
                for kind in KINDS:
                    found[kind].append(measured(kind, model))
            plain, size = (statistics.median(item[key] for item in found["plain"]) for key in ("seconds", "megabytes"))
            for kind in KINDS:
                seconds, peak = (statistics.median(item[key] for item in found[kind]) for key in ("seconds", "megabytes"))
                asked = f"{ASKED[kind]:.0f}" if kind in ASKED else ""
                print(
                    f"{Path(model[0]).name[:34]:34s} {kind:10s} {seconds:9.2f} {seconds / plain:6.2f} {asked:>6s} {peak:8.0f} {peak / size:8.2f}"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
