#!/usr/bin/env python3
"""How long ``jumar check`` takes and how much memory it needs.

usage: python benchmarks/check.py [MODEL.onnx ...]      without a model: a made one of 7,001 nodes

Prints seconds after loading (best of three) and the peak resident memory of a process of its own per model. Nothing is asserted: one
machine's numbers are no test.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

SOC = "Ascend310P3"
# One block: operator, inputs (numbers are nodes of the block, h what came before), attributes.
BLOCK: list[tuple[str, list[str], dict[str, object]]] = [
    ("MatMul", ["h", "weight"], {}),
    ("Add", ["0", "bias"], {}),
    ("Relu", ["1"], {}),
    ("Shape", ["2"], {}),
    ("Gather", ["3", "zero"], {}),
    ("Unsqueeze", ["4"], {"axes": [0]}),
    ("Concat", ["5", "minus"], {"axis": 0}),
    ("Reshape", ["2", "6"], {}),
    ("Sigmoid", ["7"], {}),
    ("Mul", ["7", "8"], {}),
    ("Softmax", ["9"], {"axis": -1}),
    ("Transpose", ["10"], {"perm": [0, 1]}),
    ("Add", ["11", "h"], {}),
    ("Identity", ["12"], {}),
]


def made(path: Path, blocks: int = 500) -> None:
    """A model of 14 nodes a block, with the shape arithmetic and the clutter that exporters leave."""
    random = np.random.default_rng(0)
    weights = {"bias": np.zeros(64, np.float32), "zero": np.array(0), "minus": np.array([-1])}
    nodes, before = [], "x"
    for block in range(blocks):
        weights[f"weight{block}"] = random.standard_normal((64, 64)).astype(np.float32)
        names = {"h": before, "weight": f"weight{block}", **{str(index): f"b{block}_{index}" for index in range(len(BLOCK))}}
        for index, (op, inputs, attributes) in enumerate(BLOCK):
            nodes.append(helper.make_node(op, [names.get(name, name) for name in inputs], [names[str(index)]], **attributes))
        before = names[str(len(BLOCK) - 1)]
    nodes.append(helper.make_node("Identity", [before], ["y"]))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 64]) for name in ("x", "y")]
    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "made", ends[:1], ends[1:], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)]), path)


def peak_kilobytes() -> int:
    """Peak resident memory (getrusage would count what the parent held when it forked)."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def measure(path: Path) -> None:
    """In a process of its own, so that the peak is this model's."""
    from jumar import check
    from jumar.graph import all_nodes, load

    before = peak_kilobytes()
    start = time.perf_counter()
    model = load(path)
    loaded = time.perf_counter() - start
    held = peak_kilobytes()
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        record = check(model, soc=SOC).record
        seconds.append(time.perf_counter() - start)
    peak = peak_kilobytes()
    nodes = sum(1 for _ in all_nodes(model))
    print(
        f"{path.name}: {nodes} nodes, {record.verdict}; load {loaded:.2f} s, check {min(seconds):.2f} s; "
        f"peak RSS {before >> 10} MB at start, {held >> 10} MB loaded, {peak >> 10} MB checked"
    )


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--measure"]:
        measure(Path(arguments[1]))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(item) for item in arguments]
        if not paths:
            paths = [Path(folder) / "made.onnx"]
            made(paths[0])
        for path in paths:
            subprocess.run([sys.executable, __file__, "--measure", str(path)], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
