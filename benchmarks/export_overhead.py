"""How long `jumar export` takes beside torch's own two exporters on the same modules.

usage: python benchmarks/export_overhead.py [NAME ...]      needs torch and onnxscript; names are those of tests/exporting/architectures.py

Three times for each module, each the least of some runs, side by side in one process: torch's dynamo exporter and its TorchScript exporter called directly,
one after the other; the children in which Jumar runs them; and all of `jumar.export`, comparison and fix included. The ratio of the second to the
first is what isolation costs.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DEFAULT = ("yolo_like", "unet", "decoder_rope", "polyline_encoder", "radius_graph_dense")
RUNS = 3


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """The exporters print whole graphs, partly from native code."""
    kept = [os.dup(descriptor) for descriptor in (1, 2)]
    null = os.open(os.devnull, os.O_WRONLY)
    sys.stdout.flush()
    for descriptor in (1, 2):
        os.dup2(null, descriptor)
    try:
        yield
    finally:
        sys.stdout.flush()
        for descriptor, old in zip((1, 2), kept, strict=True):
            os.dup2(old, descriptor)
            os.close(old)
        os.close(null)


def direct(module: Any, args: tuple[Any, ...], opset: int, folder: str) -> float:
    """Seconds that both exporters take when they are simply called; one that refuses counts with the time until it did."""
    import torch

    start = time.perf_counter()
    for options in ({"dynamo": True, "opset_version": 18, "verbose": False}, {"dynamo": False, "opset_version": opset}):
        with contextlib.suppress(Exception), silence(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(module, args, f"{folder}/m.onnx", **options)
    return time.perf_counter() - start


def main(names: list[str]) -> None:
    import torch

    import jumar
    from jumar.graph import Evaluator

    sys.path.insert(0, str(ROOT / "tests" / "exporting"))
    import architectures

    torch.set_num_threads(1)
    print(f"{'module':24}{'torch':>10}{'children':>10}{'ratio':>8}{'all':>10}")
    with Evaluator() as evaluator, tempfile.TemporaryDirectory() as folder:
        for architecture in architectures.ARCHITECTURES:
            if architecture.name not in (names or DEFAULT):
                continue
            module, args = architectures.module_of(architecture)
            times: list[tuple[float, float, float]] = []
            for _ in range(RUNS):
                plain = direct(module, args, 11, folder)
                start = time.perf_counter()
                case = jumar.export(module, args, target="mdc510pro", evaluator=evaluator)
                whole = time.perf_counter() - start
                attempts = case.record.data["export"]["attempts"]
                times.append((plain, sum(attempt["seconds"] for attempt in attempts), whole))
            plain, children, whole = (min(column) for column in zip(*times, strict=True))
            print(f"{architecture.name:24}{plain:9.2f}s{children:9.2f}s{children / plain:8.2f}{whole:9.2f}s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
