"""Judges what a simplifier wrote: ONNX's full check, and equality with the original in ONNX Runtime. Used by simplify.py."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx

BOUND = 1e-4
Row = dict[str, Any]


def count_nodes(model: onnx.ModelProto) -> Counter[str]:
    """Operators of the graph, of all bodies and of local functions."""
    counts: Counter[str] = Counter()

    def walk(nodes: Iterable[onnx.NodeProto]) -> None:
        for node in nodes:
            counts[node.op_type] += 1
            for attribute in node.attribute:
                for graph in [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs:
                    walk(graph.node)

    walk(model.graph.node)
    for function in model.functions:
        walk(function.node)
    return counts


def interface(model: onnx.ModelProto) -> list[tuple[str, int]]:
    """Names and types of inputs and outputs."""
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    return [(value.name, value.type.tensor_type.elem_type) for value in [*inputs, *model.graph.output]]


def shape_of(value: onnx.ValueInfoProto, given: list[int] | None, double: str, open_size: int) -> list[int]:
    """Sizes to run one input with: as given, else 1 for an open first axis and ``open_size`` for others; ``double`` says what is doubled."""
    shape = []
    for axis, dim in enumerate(value.type.tensor_type.shape.dim):
        if dim.dim_value > 0:
            shape.append(dim.dim_value)
            continue
        is_batch = axis == 0 or "batch" in dim.dim_param
        size = given[axis] if given else 1 if is_batch else open_size
        shape.append(size * 2 if double == "all" or (double == "batch" and is_batch) else size)
    return shape


def draw_feeds(model: onnx.ModelProto, row: Row, double: str, open_size: int, style: str) -> dict[str, Any]:
    """Seeded inputs."""
    random = np.random.default_rng(0)
    sizes = {name: [int(size) for size in text.split(",")] for name, text in re.findall(r"([^;]+):([\d,]+)", row.get("shape") or "")}
    limits = re.search(r"integers (\d+)\.\.(\d+)", row.get("feeds") or "")
    low, high = (int(limits[1]), int(limits[2])) if limits else (0, 2)
    fixed = {name: int(number) for name, number in re.findall(r"(\w+) is a scalar int64, (\d+)", row.get("feeds") or "")}
    weights = {tensor.name for tensor in model.graph.initializer}
    feeds: dict[str, Any] = {}
    for value in model.graph.input:
        if value.name in weights:
            continue
        shape = shape_of(value, sizes.get(value.name), double, open_size)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if value.name in fixed:
            feeds[value.name] = np.full(shape, fixed[value.name], dtype)
        elif style == "ones":
            feeds[value.name] = np.ones(shape, dtype)
        elif dtype.kind == "f":
            feeds[value.name] = random.standard_normal(shape).astype(dtype)
        else:
            feeds[value.name] = random.integers(low, high, shape).astype(dtype)
    return feeds


class Session:
    """A model in ONNX Runtime with nothing optimised."""

    def __init__(self, path: str) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(self, feeds: dict[str, Any]) -> dict[str, Any]:
        return dict(zip([output.name for output in self.session.get_outputs()], self.session.run(None, feeds), strict=True))


class Case(NamedTuple):
    """One set of inputs, what the original gives for it, and how far that moves when the last bit of the inputs does."""

    feeds: dict[str, Any]
    wanted: dict[str, Any]
    noise: dict[str, float]


def try_case(session: Session, feeds: dict[str, Any]) -> Case | None:
    """None where the original does not run on the inputs."""
    try:
        wanted = session.run(feeds)
        moved = session.run({name: np.nextafter(array, 0) if array.dtype.kind == "f" else array for name, array in feeds.items()})
    except Exception:
        return None
    return Case(feeds, wanted, {name: difference(moved[name], wanted[name]) for name in wanted})


def influence(session: Session, case: Case) -> float:
    """How far the outputs move when every input is mirrored; infinite where a shape or an integer changes."""
    try:
        moved = session.run({name: np.ascontiguousarray(array[..., ::-1]) if array.ndim else array for name, array in case.feeds.items()})
    except Exception:
        return float("inf")
    return max((difference(moved[name], wanted) for name, wanted in case.wanted.items()), default=0.0)


def make_cases(path: str, model: onnx.ModelProto, row: Row) -> tuple[list[Case], float]:
    """The wanted sizes, and if dimensions are open a batch of two, or where the batch is not open all of them doubled.

    Networks with random weights damp their input until nothing of it arrives. Louder inputs are added to these, until the outputs move by
    a hundredth. Also returns how far they move in the end: where that is nothing, equal outputs prove little.
    """
    session = Session(path)
    cases: list[Case] = []
    for double in ("", "batch", "all"):
        for style, open_size in ((style, size) for style in ("natural", "ones") for size in (64, 32, 224, 16, 8, 1)):
            feeds = draw_feeds(model, row, double, open_size, style)
            if cases and all(feeds[name].shape == array.shape for name, array in cases[0].feeds.items()):
                break
            case = try_case(session, feeds)
            if case is not None:
                cases.append(case)
                break
        if len(cases) != 1:
            break
    moves = influence(session, cases[0]) if cases else 0.0
    for loudness in (1e2, 1e4, 1e6):
        if not cases or moves >= 0.01 or not any(array.dtype.kind == "f" for array in cases[0].feeds.values()):
            break
        louder = {
            name: array * array.dtype.type(loudness) if array.dtype == np.float32 else array for name, array in cases[0].feeds.items()
        }
        case = try_case(session, louder)
        if case is not None and influence(session, case) > moves:
            cases, moves = [*cases, case], influence(session, case)
    return cases, moves


def difference(array: Any, reference: Any) -> float:
    """The largest difference relative to the largest value of the reference; infinite where they cannot be compared."""
    array, reference = np.asarray(array), np.asarray(reference)
    if array.shape != reference.shape or array.dtype != reference.dtype:
        return float("inf")
    if np.array_equal(array, reference):
        return 0.0
    if array.dtype.kind != "f":
        return float("inf")
    array, reference = array.astype(np.float64), reference.astype(np.float64)
    finite = np.isfinite(reference)
    if not np.array_equal(array[~finite], reference[~finite], equal_nan=True) or not np.isfinite(array[finite]).all():
        return float("inf")
    if not finite.any():
        return 0.0
    return float(np.abs(array[finite] - reference[finite]).max()) / (float(np.abs(reference[finite]).max()) or 1.0)


def compare(found: dict[str, Any], case: Case) -> tuple[float, bool]:
    """The largest difference of an output, and whether each is within what rounding explains."""
    if list(found) != list(case.wanted):
        return float("inf"), False
    worst, within = 0.0, True
    for name, reference in case.wanted.items():
        relative = difference(found[name], reference)
        noise = case.noise[name] if np.isfinite(case.noise[name]) else 0.0
        worst, within = max(worst, relative), within and relative <= max(BOUND, 4 * noise)
    return worst, within


def difference_of_rows(found: dict[str, Any], wanted: dict[str, Any]) -> float:
    """The same for detections, whose rows have no order where scores are tied: each row against the nearest one of the other side."""
    try:
        sides = []
        scales = [float(np.abs(array).max()) or 1.0 for array in wanted.values()]
        for outputs in (found, wanted):
            columns = [
                np.asarray(array, np.float64).reshape(len(array), -1) / scale for array, scale in zip(outputs.values(), scales, strict=True)
            ]
            sides.append(np.concatenate(columns, axis=1))
        one, other = sides
        if list(found) != list(wanted) or one.shape != other.shape:
            return float("inf")
        distances = np.abs(one[:, None, :] - other[None, :, :]).max(axis=2)
        return float(max(distances.min(axis=0).max(), distances.min(axis=1).max()))
    except (ValueError, TypeError):
        return float("inf")


def judge(original: str, simplified: str, row: Row) -> Row:
    """Is it valid, is it equal, and how large is it?"""
    before = onnx.load(original, load_external_data=False)
    after = onnx.load(simplified, load_external_data=False)
    operators = count_nodes(after)
    verdict: Row = {"nodes": sum(operators.values()), "before": sum(count_nodes(before).values()), "operators": dict(operators)}
    try:
        onnx.checker.check_model(simplified, full_check=True)
        verdict["valid"] = True
    except Exception as error:
        verdict |= {"valid": False, "why": str(error)[:300]}
    verdict["size_mb"] = (
        sum(file.stat().st_size for file in Path(simplified).parent.iterdir() if file.name.startswith(Path(simplified).name)) / 1e6
    )
    cases, moves = make_cases(original, before, row)
    verdict |= {"cases": len(cases), "moves": moves}
    if not cases:
        return verdict | {"unjudged": "the original does not run on generated inputs"}
    try:
        session = Session(simplified)
        results = [(session.run(case.feeds), case) for case in cases]
    except Exception as error:
        return verdict | {"equal": False, "why": str(error)[:300]}
    compared = [compare(found, case) for found, case in results]
    worst, within = max(relative for relative, _ in compared), all(fits for _, fits in compared)
    if not within and {"NonMaxSuppression", "TopK"} & set(count_nodes(before)):
        worst = max(difference_of_rows(found, case.wanted) for found, case in results)
        within = worst <= BOUND
    return verdict | {"max_rel": worst, "equal": within and interface(before) == interface(after)}


if __name__ == "__main__":
    if sys.argv[1] == "--feeds":
        np.savez(sys.argv[3], **draw_feeds(onnx.load(sys.argv[2], load_external_data=False), json.loads(sys.argv[4]), "", 64, "natural"))
    else:
        print(json.dumps(judge(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))))
