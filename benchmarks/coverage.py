#!/usr/bin/env python3
"""How many of the ONNX standard's node tests Jumar makes ready for a target, with results equal to the standard's.

usage: python benchmarks/coverage.py [--only PATTERN] [--list] [--jobs N] [--write]

Every numeric node test of the installed ``onnx`` goes through ``fix`` with the inputs the standard ships; the rewritten model is run in
ONNX Runtime and compared with the outputs the standard ships, within the tolerances of ONNX's own test runner (1e-3 relative,
1e-7 absolute or 1e-6 of the largest element), widened for outputs in half precision and bfloat16 to two
units and one unit of theirs. ATC is not run: ``ready`` is Jumar's verdict.

A node test has everything as an input of the model: also axes, shapes and K, which an export stores as weights, and which a target that
fixes shapes when it compiles cannot take. So each test is run in two forms: *as shipped*, and *told*, as a user tells with ``--set-const``
and ``--range``: operands that the standard calls axes, shape, k and so on (:data:`DECIDING`) are bound to their values, and other integer
inputs are declared to hold what the test gives them. Both figures are printed.

Left out are strings, sequences and optionals as inputs or outputs of the model, ai.onnx.ml, training operators, random operators, and
types of 8 bits and less that are not int8 or uint8.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

import jumar
from jumar import JumarError
from jumar.graph import Evaluator, model_opset
from jumar.proof import FeedSet, Interface
from jumar.targets import Target, find_target

ROOT = Path(__file__).resolve().parent.parent
TARGETS = {
    "Ascend310P3": {"soc": "Ascend310P3", "cann": "8.1.RC1"},
    "mdc510pro": {"profile": "mdc510pro"},
}
ASKED = {"Ascend310P3": 0.90, "mdc510pro": 0.85}
FORMS = ("told", "shipped")
DECIDING = frozenset(
    [
        "axes",
        "axis",
        "shape",
        "k",
        "repeats",
        "pads",
        "starts",
        "ends",
        "steps",
        "sizes",
        "scales",
        "roi",
        "split",
        "depth",
        "output_shape",
        "image_shape",
        "block_shape",
        "target_shape",
        "start",
        "limit",
        "delta",
        "M",
        "cond",
        "trip_count",
        "max_trip_count",
        "max_output_boxes_per_class",
        "iou_threshold",
        "score_threshold",
        "size",
        "dft_length",
        "frame_step",
        "frame_length",
        "ratio",
        "training_mode",
        "num_mel_bins",
        "sample_rate",
        "lower_edge_hertz",
        "upper_edge_hertz",
        "repeat",
        "output_size",
        "position",
    ]
)
"""Names the ONNX standard gives to operands that decide a shape, an axis or which branch is taken."""
OUTCOMES = ("ready", "fixed", "warnings", "blocked", "wrong", "unrun", "crash")
_RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
_SMALL = ("FLOAT4", "FLOAT8", "INT4", "UINT4", "INT2", "UINT2")


@dataclass(frozen=True)
class Case:
    """One node test: its model and the arrays the standard ships."""

    name: str
    proto: onnx.ModelProto
    data: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    rtol: float
    atol: float


@dataclass(frozen=True)
class Outcome:
    """What became of one node test on one target.

    Attributes:
        what: ``ready`` (nothing to do), ``fixed`` (ready after the rewrites), ``warnings``, ``blocked``, ``wrong`` (results differ from
            the standard's), ``unrun`` (ONNX Runtime does not run the rewritten model, so nothing is known of its results).
        codes: of the findings that remain.
    """

    name: str
    op: str
    target: str
    form: str
    what: str
    codes: tuple[str, ...] = ()
    reasons: tuple[str, ...] = field(default=())


def targets() -> dict[str, Target]:
    return {name: find_target(**options) for name, options in TARGETS.items()}


def numeric_cases(pattern: str = "*") -> dict[str, Case]:
    """The numeric node tests by name."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some cases overflow on purpose
        found = [case for case in collect_testcases(None) if case.model is not None]
    return {
        case.name: Case(case.name, case.model, [tuple(map(_arrays, pair)) for pair in case.data_sets], case.rtol, case.atol)
        for case in found
        if fnmatch.fnmatch(case.name, f"*{pattern}*") and _is_numeric(case.model)
    }


def _arrays(given: Iterable[Any]) -> list[Any]:
    return [onnx.numpy_helper.to_array(item) if isinstance(item, onnx.TensorProto) else np.asarray(item) for item in given]


def operator_of(proto: onnx.ModelProto) -> str:
    """The operator a node test is about: its name says it where its function body is spelled out."""
    return next((node.op_type for node in proto.graph.node if node.op_type != "Constant"), "Constant")


def _is_numeric(proto: onnx.ModelProto) -> bool:
    nodes = [node for graph in _graphs(proto.graph) for node in graph.node]
    if any(node.domain not in ("", "ai.onnx") for node in nodes) or any(node.op_type in _RANDOM for node in nodes):
        return False
    if any(attribute.name == "training_mode" and attribute.i for node in nodes for attribute in node.attribute):
        return False
    ports = [*proto.graph.input, *proto.graph.output]
    if any(port.type.WhichOneof("value") != "tensor_type" for port in ports):
        return False
    used = {onnx.TensorProto.DataType.Name(port.type.tensor_type.elem_type) for port in ports}
    used |= {
        onnx.TensorProto.DataType.Name(attribute.i) for node in nodes for attribute in node.attribute if attribute.name in ("to", "dtype")
    }
    return not any(name == "STRING" or "COMPLEX" in name or name.startswith(_SMALL) for name in used)


def _graphs(graph: onnx.GraphProto) -> Iterable[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)


def deciding(model: ir.Model) -> set[str]:
    """Inputs of the model that decide a shape: by their own name, or by what the operator that reads them calls them."""
    found = set()
    for value in model.graph.inputs:
        names = {value.name}
        for node, index in value.uses():
            schema = onnx.defs.get_schema(node.op_type, model_opset(model), node.domain)
            formal = schema.inputs[min(index, len(schema.inputs) - 1)].name
            names.add(formal)
        if names & DECIDING:
            found.add(value.name or "")
    return found


def told(model: ir.Model, feeds: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, tuple[int, int]]]:
    """What a user knows of a node test: operands that always have one value, and the ranges of the other integers."""
    decide = {name for name in deciding(model) if all(np.array_equal(feed[name], feeds[0][name]) for feed in feeds if name in feed)}
    constants = {name: feeds[0][name] for name in decide if name in feeds[0]}
    ranges = {}
    for value in model.graph.inputs:
        arrays = [feed[value.name] for feed in feeds if value.name in feed]
        if value.name not in constants and arrays and all(array.dtype.kind in "iu" and array.size for array in arrays):
            ranges[value.name or ""] = (min(int(array.min()) for array in arrays), max(int(array.max()) for array in arrays))
    return constants, ranges


def examine(case: Case, name: str, target: Target, form: str, evaluator: Evaluator) -> Outcome:
    """Fix one node test for one target and compare with the standard."""
    model = ir.from_proto(case.proto)
    inputs = [value.name or "" for value in model.graph.inputs]
    feeds = [dict(zip(inputs, given, strict=False)) for given, _ in case.data]
    op = operator_of(case.proto)
    constants, ranges = told(model, feeds) if form == "told" else ({}, {})
    given = FeedSet(tuple({key: array for key, array in feed.items() if key not in constants} for feed in feeds), "user")
    try:
        result = jumar.fix(model, target=target, feeds=given, constants=constants, ranges=ranges, evaluator=evaluator)
    except JumarError as error:
        return Outcome(case.name, op, name, form, "blocked", ("refused",), (str(error),))
    record = result.record
    codes = tuple(sorted({finding.code for finding in record.findings if finding.severity != "info"}))
    reasons = tuple(
        f"{step.code}: {step.proof.reason}" for step in record.steps if step.status == "rolled-back" and step.proof and step.proof.reason
    )
    applied = any(step.status == "applied" for step in record.steps)
    interface = Interface.of(model).changed(record.interface or {})
    try:
        same = all(
            _equal(case, result.model, interface, feed, wanted, evaluator) for feed, (_, wanted) in zip(feeds, case.data, strict=True)
        )
    except JumarError as error:
        return Outcome(case.name, op, name, form, "unrun" if record.verdict != "blocked" else "blocked", codes, (str(error), *reasons))
    what = record.verdict if record.verdict != "ready" else ("fixed" if applied else "ready")
    if not same and record.verdict != "blocked":  # of a blocked model nothing is claimed
        what = "wrong"
    return Outcome(case.name, op, name, form, what, codes, reasons)


def _equal(case: Case, model: ir.Model, interface: Interface, feed: Mapping[str, Any], wanted: Sequence[Any], evaluator: Evaluator) -> bool:
    found = interface.to_caller(evaluator.run(model, interface.to_model(feed)))
    for original, expected in zip(interface.outputs, wanted, strict=True):
        one, other = np.asarray(found[original]), np.asarray(expected)
        if one.shape != other.shape or one.dtype != other.dtype:
            return False
        rtol = (
            case.rtol
            if one.dtype.itemsize > 2 or one.dtype.kind not in "fV"
            else max(case.rtol, 2.0**-7 if one.dtype.name == "bfloat16" else 2.0**-9)
        )
        if one.dtype.kind in "fV":
            one, other = one.astype(np.float64), other.astype(np.float64)
        finite = np.abs(other[np.isfinite(other)]) if other.dtype.kind == "f" else np.zeros(0)
        unit = 1e-6 if np.asarray(expected).dtype.itemsize > 2 else rtol
        atol = max(case.atol, unit * float(finite.max(initial=0.0)))
        if not np.allclose(one, other, rtol=rtol, atol=atol, equal_nan=True):
            return False
    return True


def _work(names: Sequence[str], pattern: str, chosen: Sequence[str], forms: Sequence[str]) -> list[Outcome]:
    cases, where = numeric_cases(pattern), targets()
    with Evaluator(timeout=60) as evaluator:
        return [attempt(cases[name], target, where[target], form, evaluator) for name in names for target in chosen for form in forms]


def attempt(case: Case, name: str, target: Target, form: str, evaluator: Evaluator) -> Outcome:
    """:func:`examine`, with a crash of Jumar as a result too."""
    try:
        return examine(case, name, target, form, evaluator)
    except Exception as error:
        return Outcome(case.name, operator_of(case.proto), name, form, "crash", (), (repr(error),))


def sweep(pattern: str = "*", jobs: int = 2, chosen: Sequence[str] = tuple(TARGETS), forms: Sequence[str] = FORMS) -> list[Outcome]:
    """All numeric node tests on all targets, in ``jobs`` processes."""
    names = sorted(numeric_cases(pattern))
    parts = [names[start::jobs] for start in range(jobs)]
    with ProcessPoolExecutor(jobs) as pool:
        found = [item for part in pool.map(_work, parts, [pattern] * jobs, [chosen] * jobs, [forms] * jobs) for item in part]
    return sorted(found, key=lambda item: (item.target, item.form, item.op, item.name))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="*", help="part of the names of node tests")
    parser.add_argument("--target", action="append", choices=list(TARGETS))
    parser.add_argument("--form", action="append", choices=list(FORMS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write docs/en/coverage.md and docs/zh/coverage.md (all tests, both forms)")
    parser.add_argument("--list", action="store_true", help="print every test that does not end ready")
    options = parser.parse_args()
    chosen, forms = options.target or list(TARGETS), options.form or list(FORMS)
    found = sweep(options.only, options.jobs, chosen, forms)
    for name in chosen:
        for form in forms:
            show([item for item in found if item.target == name and item.form == form], name, form, options.list)
    if options.write and options.only == "*" and not options.target and not options.form:
        for lang in ("en", "zh"):
            (ROOT / "docs" / lang / "coverage.md").write_text(page(found, lang), encoding="utf-8")
    return 0


def page(found: Sequence[Outcome], lang: str) -> str:
    """The documentation page of a sweep over everything."""
    zh = lang == "zh"
    lines = [
        "# ONNX 标准节点测试的覆盖率" if zh else "# Coverage of the ONNX standard's node tests",
        "",
        (
            f"由 `python benchmarks/coverage.py --write` 生成（onnx {onnx.__version__}），请勿手工修改。每个数值节点测试都经过 `fix`，改写后的模型在 ONNX Runtime "
            "中运行，并与标准给出的输出比较。没有运行 ATC，也没有使用昇腾硬件：`ready` 是 Jumar 的结论。"
            if zh
            else f"Made by `python benchmarks/coverage.py --write` (onnx {onnx.__version__}); do not edit. Every numeric node test goes through "
            "`fix`, the rewritten model runs in ONNX Runtime, and its outputs are compared with the standard's. Neither ATC nor Ascend hardware "
            "was used: `ready` is Jumar's verdict."
        ),
        "",
        (
            "节点测试把一切都作为模型输入，包括轴、形状和 K，而导出的模型将其存为权重。*按原样*：就是这样；*告知后*：用 `--set-const` 固定这些输入，并用 `--range` "
            "声明其他整数输入的取值范围。不含字符串、序列、optional、ai.onnx.ml、训练、随机算子以及 8 位以下和 float8 类型。"
            if zh
            else "A node test has everything as an input of the model, also axes, shapes and K, which an export stores as weights. *As shipped* is "
            "just that; *told* fixes such inputs with `--set-const` and declares the ranges of other integer inputs with `--range`. Strings, "
            "sequences, optionals, ai.onnx.ml, training and random operators, and types below 8 bits and float8 are left out."
        ),
        "",
        "| 目标 | 形式 | 测试数 | ready | 占比 | warnings | blocked | wrong |"
        if zh
        else "| target | form | tests | ready | share | warnings | blocked | wrong |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    forms = {"told": "告知后" if zh else "told", "shipped": "按原样" if zh else "as shipped"}
    for target in TARGETS:
        for form, label in forms.items():
            counts = Counter(item.what for item in found if item.target == target and item.form == form)
            total, good = sum(counts.values()), counts["ready"] + counts["fixed"]
            rest = f"{counts['warnings']} | {counts['blocked']} | {counts['wrong'] + counts['crash'] + counts['unrun']}"
            lines.append(f"| {target} | {label} | {total} | {good} | {good / max(total, 1):.1%} | {rest} |")
    lines += ["", "## 各算子（告知后）" if zh else "## By operator (told)", ""]
    lines.append(
        f"| {'算子' if zh else 'operator'} | {'测试数' if zh else 'tests'} | {' | '.join(TARGETS)} | {'其余的代码' if zh else 'codes of the rest'} |"
    )
    lines.append(f"|---|---:|{'---:|' * len(TARGETS)}---|")
    rows: dict[str, list[Outcome]] = defaultdict(list)
    for item in found:
        if item.form == "told":
            rows[item.op].append(item)
    for op, items in sorted(rows.items()):
        good = [sum(item.what in ("ready", "fixed") for item in items if item.target == target) for target in TARGETS]
        codes = sorted({code for item in items if item.what not in ("ready", "fixed") for code in item.codes})
        lines.append(f"| {op} | {len(items) // len(TARGETS)} | {' | '.join(map(str, good))} | {' '.join(codes)} |")
    return "\n".join(lines) + "\n"


def show(mine: Sequence[Outcome], name: str, form: str, everything: bool) -> None:
    """Print the figures of one target and form."""
    counts = Counter(item.what for item in mine)
    good = counts["ready"] + counts["fixed"]
    share = good / max(len(mine), 1)
    print(f"\n{name}, {form}: {good} of {len(mine)} ready = {share:.1%} (asked {ASKED[name]:.0%}); {dict(counts)}")
    by_op: dict[str, Counter[str]] = defaultdict(Counter)
    for item in mine:
        by_op[item.op][item.what] += 1
    for op, row in sorted(by_op.items()):
        if set(row) - {"ready", "fixed"}:
            print(f"  {op:28s} {dict(row)}")
    for item in mine if everything else ():
        if item.what not in ("ready", "fixed"):
            print(f"    {item.what:9s} {item.op:24s} {item.name:60s} {' '.join(item.codes)} | {' ; '.join(item.reasons)[:200]}")


if __name__ == "__main__":
    sys.exit(main())
