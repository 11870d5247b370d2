#!/usr/bin/env python3
"""Jumar, onnxsim, onnxslim and ONNX Runtime simplify the same models, side by side.

usage: python benchmarks/simplify.py MODEL_OR_FOLDER... [--peers PYTHON] [--tools A,B] [--repeat N] [--shapes TABLE.csv]
                                     [--json FILE] [--write PAGE.md ...]

No corpus comes with Jumar: name the ``.onnx`` files, or folders that hold them. Any exported model will do; for a start,
``python -c "import onnx, pathlib; print(pathlib.Path(onnx.__file__).parent / 'backend/test/data/light')"`` prints a folder with nine
networks. TABLE.csv says how to run models whose inputs need it; its columns are ``name`` (the file's, without .onnx), ``shape`` (sizes as
in ``--shape``: ``x:1,3,224,224;y:1,64``) and ``feeds`` (``integers 0..20`` draws integer inputs from 0 to 19; ``sr is a scalar int64,
16000`` fixes one); a row with ``feeds`` gives Jumar's proof these inputs too. Without a row, symbolic dimensions are 1 on the first axis and a few small sizes elsewhere.

``--peers`` is the Python of another environment that has onnxsim, onnxslim and onnxruntime (they need not share Jumar's). Each tool
runs in a process of its own, from file to file: read, simplify, write. A made model of three nodes goes first, so that late imports and
helper processes count as imports. Measured are CPU seconds of the process and of all its children, wall seconds, and the peak resident
memory of both together. The tools take turns within one model, so that a noisy machine is noisy to all: compare ratios, not seconds.

What they wrote is judged in yet another process: ONNX's full check, and ONNX Runtime without optimisations on the same seeded inputs, in
two sizes where a dimension is open. The difference of an output is divided by its largest value. Above 1e-4 the result counts as wrong,
unless the original itself moves by a quarter of that when the last bit of its inputs does; so does it where a name, type, shape, integer or
NaN differs. (A fused convolution rounds differently: bits are not asked for.) Detections are compared as sets of rows, because tied scores
have no order. Models whose outputs do not depend on their inputs (constant weights) are named below the tables: their equality says little.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
from simplify_judge import Row

TOOLS = ("jumar", "jumar+proof", "onnxsim", "onnxslim", "ort-basic")
PEERS = TOOLS[2:]
LIMIT = 300.0
WARM = "warm.onnx"
WARM_MODEL = """<ir_version: 8, opset_import: ["" : 13]> warm (float[n,2] x) => (float[n,2] y)
{ a = Constant<value = float[2] {1.0, 2.0}>()  b = Softmax(a)  y = Add(x, b) }"""
JUDGE = Path(__file__).with_name("simplify_judge.py")
BEGIN, END = "<!-- benchmark: written by benchmarks/simplify.py -->", "<!-- benchmark: end -->"


# --- one tool, in a process of its own ---------------------------------------------------------------------------------------------------


def make_tool(tool: str, feeds: str) -> Callable[[str, str], object]:
    """A function that reads, simplifies and writes with one tool, as its documentation says for a script."""
    if tool.startswith("jumar"):
        import jumar
        from jumar.graph import Evaluator

        evaluator = Evaluator()  # its process stays, and is started by the first model
        given = feeds if tool == "jumar+proof" and feeds else None
        return lambda source, output: jumar.simplify(
            source, prove=tool == "jumar+proof", feeds=None if source.endswith(WARM) else given, output=output, evaluator=evaluator
        )
    if tool == "onnxsim":
        import onnxsim

        return lambda source, output: onnxsim.simplify(source, output_path=output)
    if tool == "onnxslim":
        import onnxslim

        return lambda source, output: onnx.save(onnxslim.slim(source), output)
    import onnxruntime

    def optimise(source: str, output: str) -> None:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = output
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])

    return optimise


def children_of(process: int) -> list[int]:
    """All living descendants."""
    found = []
    for task in Path(f"/proc/{process}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *children_of(int(child))]
    return found


def cpu_seconds() -> float:
    """CPU time of this process, of its children that ended and of those that live."""
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    # The clock of another process has the number ~pid << 3 | 2 on Linux (MAKE_PROCESS_CPUCLOCK), to the nanosecond.
    return total + sum(time.clock_gettime((~child << 3) | 2) for child in children_of(os.getpid()))


def peak_megabytes() -> float:
    """Peak resident memory of this process and of its children together."""

    def peak(process: int | str) -> int:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)

    ended = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return (peak("self") + max(ended, sum(peak(child) for child in children_of(os.getpid())))) / 1024


def run_tool(tool: str, source: str, output: str, feeds: str = "") -> Row:
    """What one run costs, after imports and start-up."""
    simplify = make_tool(tool, feeds)
    with tempfile.TemporaryDirectory() as folder:
        warm = Path(folder) / WARM
        onnx.save(onnx.parser.parse_model(WARM_MODEL), warm)
        simplify(str(warm), str(Path(folder) / "warmed.onnx"))
    cpu, wall = cpu_seconds(), time.perf_counter()
    simplify(source, output)
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    return {"cpu": cpu, "wall": wall, "peak_mb": peak_megabytes()}


# --- all of them -------------------------------------------------------------------------------------------------------------------------


def in_process(python: str, arguments: list[str], limit: float) -> Row:
    """The JSON that a process prints last; ``failed`` if it prints none in time."""
    process = subprocess.Popen([python, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        output, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return {"failed": f"no answer in {limit:.0f} s"}
    with contextlib.suppress(IndexError, ValueError):
        answer: Row = json.loads(output.strip().splitlines()[-1])
        return answer
    last = errors.strip().splitlines()[-1:] or ["no words"]
    return {"failed": f"exit status {process.returncode}: {last[0][:300]}"}


def measure(model: Path, tools: list[str], pythons: dict[str, str], options: argparse.Namespace, row: Row) -> Iterator[Row]:
    """One row a tool. The order moves on with each round."""
    with tempfile.TemporaryDirectory() if options.keep is None else contextlib.nullcontext(options.keep / model.stem) as folder:
        inputs = str(Path(folder) / "feeds.npz") if row.get("feeds") else ""
        if inputs:
            subprocess.run([sys.executable, str(JUDGE), "--feeds", str(model), inputs, json.dumps(row)], check=True)
        runs: dict[str, list[Row]] = {tool: [] for tool in tools}
        outputs = {tool: Path(folder) / tool / "out.onnx" for tool in tools}
        for turn in range(options.repeat):
            for tool in tools[turn % len(tools) :] + tools[: turn % len(tools)]:
                if any("failed" in run for run in runs[tool]):
                    continue
                for old in outputs[tool].parent.glob("*"):
                    old.unlink()
                outputs[tool].parent.mkdir(parents=True, exist_ok=True)
                runs[tool].append(in_process(pythons[tool], [__file__, "--one", tool, str(model), str(outputs[tool]), inputs], LIMIT))
        for tool in tools:
            result: Row = {"model": model.stem, "tool": tool}
            failed = next((run for run in runs[tool] if "failed" in run), None)
            if failed is not None:
                yield result | failed
                continue
            result |= {key: statistics.median(run[key] for run in runs[tool]) for key in ("cpu", "wall", "peak_mb")}
            verdict = in_process(sys.executable, [str(JUDGE), str(model), str(outputs[tool]), json.dumps(row)], LIMIT)
            yield result | ({"unjudged": verdict["failed"], "nodes": 0} if "failed" in verdict else verdict)


def is_right(row: Row) -> bool:
    return bool(row.get("valid") and row.get("equal"))


def fault(row: Row) -> str:
    """In one word what is wrong with a result, or nothing."""
    if is_right(row):
        return ""
    return next((word for word in ("failed", "unjudged") if word in row), "wrong" if row.get("valid") else "invalid")


def in_a_cell(row: Row) -> str:
    return "failed" if "failed" in row else f"{row['nodes']}, {row['cpu']:.2f} s {fault(row)}".rstrip()


def per_model(rows: list[Row], tools: list[str]) -> list[str]:
    """Nodes and CPU seconds of every model."""
    by_model: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_model.setdefault(row["model"], {})[row["tool"]] = row
    lines = ["| model | nodes | " + " | ".join(tools) + " |", "|---|---:|" + "---:|" * len(tools)]
    for model, cells in by_model.items():
        before = max(row.get("before", 0) for row in cells.values())
        words = [in_a_cell(cells[tool]) for tool in tools]
        lines.append(f"| {model} | {before} | " + " | ".join(words) + " |")
    return lines


def totals(rows: list[Row], tools: list[str]) -> list[str]:
    """What each tool did over the whole, and how Jumar stands to it on the models it completed."""
    by_tool = {tool: {row["model"]: row for row in rows if row["tool"] == tool} for tool in tools}
    ours = [tool for tool in tools if tool.startswith("jumar")]
    lines = [
        "| tool | right | wrong | invalid | failed | nodes where right | CPU s | wall s | peak MB | "
        + " | ".join(f"CPU of {tool} to it" for tool in ours)
    ]
    lines[0] += " | " + " | ".join(f"nodes of {tool} to it" for tool in ours) + " |" if ours else ""
    lines.append("|---|" + "---:|" * (8 + 2 * len(ours)))
    for tool, found in by_tool.items():
        faults = Counter(fault(row) or "right" for row in found.values())
        ran = [row for row in found.values() if "failed" not in row]
        cells = [str(faults[word]) for word in ("right", "wrong", "invalid", "failed")]
        cells += [str(sum(row["nodes"] for row in ran if is_right(row))), f"{sum(row['cpu'] for row in ran):.1f}"]
        cells += [f"{sum(row['wall'] for row in ran):.1f}", f"{max((row['peak_mb'] for row in ran), default=0):.0f}"]
        for key, fits in (("cpu", lambda row: "failed" not in row), ("nodes", is_right)):
            for our in ours:
                both = [model for model, row in found.items() if fits(row) and fits(by_tool[our][model])]
                base = sum(found[model][key] for model in both)
                cells.append(f"{sum(by_tool[our][model][key] for model in both) / base:.3f}" if base else "")
        lines.append(f"| {tool} | " + " | ".join(cells) + " |")
    return lines


def exceptions(rows: list[Row]) -> list[str]:
    """Models where Jumar leaves over 2 % more nodes than the best peer that is right, and every result that is not right."""
    lines = []
    best: dict[str, Row] = {}
    for row in rows:
        if row["tool"] in PEERS and is_right(row) and row["nodes"] < best.get(row["model"], {"nodes": float("inf")})["nodes"]:
            best[row["model"]] = row
    for row in rows:
        peer = best.get(row["model"])
        if row["tool"] == "jumar" and is_right(row) and peer is not None and row["nodes"] > 1.02 * peer["nodes"]:
            lines.append(f"- {row['model']}: jumar {row['nodes']} nodes, {peer['tool']} {peer['nodes']}")
        if fault(row):
            lines.append(
                f"- {row['model']}: {row['tool']} {fault(row)}: {row.get('failed') or row.get('unjudged') or row.get('why') or 'largest relative difference ' + format(row['max_rel'], '.2g')}"
            )
    deaf = sorted({row["model"] for row in rows if row.get("moves", 1.0) < 1e-4})
    return [*lines, f"- Outputs hardly depend on inputs: {', '.join(deaf)}"] if deaf else lines


def write_page(page: Path, report: str) -> None:
    """Put the report between the marks of a page."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN, 1)
    page.write_text(f"{before}{BEGIN}\n\n{report}\n\n{END}{rest.split(END, 1)[1]}", encoding="utf-8")


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--one"]:
        print(json.dumps(run_tool(*arguments[1:])))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="the Python that has the peers")
    parser.add_argument("--tools", default=",".join(TOOLS), help="which tools (default: all that can be imported)")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each tool; the median counts")
    parser.add_argument("--shapes", type=Path, metavar="CSV", help="sizes and ranges of inputs")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep what the tools wrote")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure")
    parser.add_argument("--write", type=Path, nargs="*", default=[], metavar="PAGE", help="put the tables between the marks of these pages")
    options = parser.parse_args(arguments)
    paths = [path for item in options.models for path in (sorted(item.glob("*.onnx")) if item.is_dir() else [item])]
    pythons = {tool: options.peers if tool in PEERS else sys.executable for tool in TOOLS}
    modules = {tool: "jumar; jumar.simplify" if tool not in PEERS else tool.replace("ort-basic", "onnxruntime") for tool in TOOLS}
    wanted = options.tools.split(",")
    tools = [
        tool
        for tool in TOOLS
        if tool in wanted and subprocess.run([pythons[tool], "-c", f"import {modules[tool]}"], capture_output=True).returncode == 0
    ]
    if absent := [tool for tool in wanted if tool not in tools]:
        print(f"left out: {', '.join(absent)}", file=sys.stderr)
    table = list(csv.DictReader(options.shapes.read_text(encoding="utf-8").splitlines())) if options.shapes else []
    known = {row["name"]: {"shape": row["shape"], "feeds": row["feeds"]} for row in table}
    rows: list[Row] = []
    for path in paths:
        print(path.stem, file=sys.stderr, flush=True)
        rows += measure(path, tools, pythons, options, known.get(path.stem, {}))
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    report = "\n".join([*totals(rows, tools), "", *per_model(rows, tools), "", *exceptions(rows)])
    print(report)
    for page in options.write:
        write_page(page, report)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
