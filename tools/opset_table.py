#!/usr/bin/env python3
"""Convert the ONNX standard's node tests to other opsets, run them, and write what cannot be converted into the documentation.

usage: python tools/opset_table.py [--only WORD] [--to VERSION ...]    (a few minutes for all)

The models are built in memory by the installed ``onnx``. Each is converted, checked, and run in ONNX Runtime (in a child process), or in
ONNX's reference evaluator where ONNX Runtime cannot run it, and compared with what the standard expects.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime

from jumar.errors import EvaluationError
from jumar.graph import Evaluator, infer_shapes
from jumar.graph.opset import Unconvertible, convert_opset, newest_opset
from jumar.text import Text

ROOT = Path(__file__).resolve().parent.parent
DOWN = (18, 11)
UP = (18, 21)
# Their outputs are drawn at random: only dtype and shape can be compared.
RANDOM = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Dropout"}
CONSTANTS = " (constants)"
# Inputs of floats that exporters write as weights.
PARAMETERS = {"ratio", "scales", "roi", "lower_edge_hertz", "upper_edge_hertz"}


@dataclass(frozen=True)
class Result:
    """One test converted to one version.

    ``status``: equal, refused, wrong, invalid, or unrun (nothing here can run the converted model).
    """

    test: str
    opset: int
    version: int
    status: str
    detail: str = ""
    op: str = ""
    """Of a refusal: the operator that stands in the way."""
    reason: Text | None = None
    identical: bool | None = None
    """Whether ONNX Runtime gives the very same bits before and after; None where it does not run one of them."""

    @property
    def constants(self) -> bool:
        return self.test.endswith(CONSTANTS)


def node_tests(only: str = "") -> list[Any]:
    """The node tests of the installed ``onnx`` that are of the standard domain."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some cases overflow on purpose
        return [case for case in collect_testcases(None) if case.model is not None and only in case.name and opset_of(case.model)]


def opset_of(model: onnx.ModelProto) -> int:
    return next((item.version for item in model.opset_import if item.domain in ("", "ai.onnx")), 0)


def main_op(model: onnx.ModelProto) -> str:
    return str(model.graph.node[0].op_type) if model.graph.node else ""


def targets_of(opset: int) -> list[int]:
    down = [version for version in DOWN if version < opset]
    up = [version for version in (*UP, newest_opset()) if version > opset] if opset <= 17 else []
    return [*down, *up]


def convert(proto: onnx.ModelProto, version: int) -> onnx.ModelProto | Unconvertible:
    """A model at another version, or why not."""
    model = ir.from_proto(proto)
    infer_shapes(model)
    try:
        convert_opset(model, version)
    except Unconvertible as error:
        return error
    return ir.to_proto(model)


def judge(case: Any, version: int, evaluator: Evaluator) -> Result:
    """Convert one test, check it, run it, compare it."""
    opset = opset_of(case.model)
    try:
        proto = convert(case.model, version)
    except Exception as error:  # a crash is a result as well
        return Result(case.name, opset, version, "invalid", f"{type(error).__name__}: {error}")
    if isinstance(proto, Unconvertible):
        return Result(case.name, opset, version, "refused", str(proto), proto.node.op_type, proto.bare)
    problem = invalid(proto, case.model, version)
    if problem:
        return Result(case.name, opset, version, "invalid", problem)
    identical: bool | None = True
    for feeds, expected in case.data_sets:
        feeds, expected = [as_array(value) for value in feeds], [as_array(value) for value in expected]
        names = [item.name for item in case.model.graph.input]
        found = run(proto, dict(zip(names, feeds, strict=False)), evaluator)
        if isinstance(found, str):
            return Result(case.name, opset, version, "unrun", found)
        before, native = original(case, dict(zip(names, feeds, strict=False)), evaluator)
        same = not isinstance(before, str) and not difference(before, found, 0, 0)
        problem = difference(expected, found, case.rtol, case.atol, values=main_op(case.model) not in RANDOM)
        # In a few tests ONNX Runtime itself gives something else than the standard: no worse than that is right.
        if problem and not same and not no_worse(expected, before, found):
            return Result(case.name, opset, version, "wrong", problem)
        identical = None if not native or identical is None else identical and same
    return Result(case.name, opset, version, "equal", identical=identical)


def invalid(proto: onnx.ModelProto, before: onnx.ModelProto, version: int) -> str:
    """What is wrong with the converted model itself."""
    if opset_of(proto) != version:
        return f"opset {opset_of(proto)}"
    if [item.name for item in proto.graph.output] != [item.name for item in before.graph.output]:
        return "other outputs"
    if [item.name for item in proto.graph.input] != [item.name for item in before.graph.input]:
        return "other inputs"
    try:
        onnx.checker.check_model(proto, full_check=True)
    except Exception as error:
        try:
            onnx.checker.check_model(before, full_check=True)
        except Exception:
            return ""  # the test itself does not pass
        return " ".join(str(error).split())[:300]
    return ""


def run(proto: onnx.ModelProto, feeds: dict[str, Any], evaluator: Evaluator, reference: bool = True) -> list[Any] | str:
    """Outputs in order, from ONNX Runtime or else from ONNX's reference; the reason as text if neither runs it."""
    reason = "values that are no arrays"
    if all(isinstance(value, np.ndarray) for value in feeds.values()):
        try:
            found = evaluator.run(ir.from_proto(proto), feeds)
            return [found[item.name] for item in proto.graph.output]
        except (EvaluationError, ValueError, TypeError, KeyError, AttributeError) as error:
            reason = str(error)
    if not reference:
        return reason
    from onnx.reference import ReferenceEvaluator

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(ReferenceEvaluator(proto).run(None, feeds))
    except Exception as error:
        return f"{reason}; reference: {type(error).__name__} {str(error)[:200]}"


_originals: dict[str, tuple[list[Any] | str, bool]] = {}


def original(case: Any, feeds: dict[str, Any], evaluator: Evaluator) -> tuple[list[Any] | str, bool]:
    """What the test gives as it is, and whether ONNX Runtime ran it; run once."""
    if case.name not in _originals:
        found = run(case.model, feeds, evaluator, reference=False)
        _originals[case.name] = (found, True) if not isinstance(found, str) else (run(case.model, feeds, evaluator), False)
    return _originals[case.name]


def no_worse(expected: list[Any], before: list[Any] | str, found: list[Any]) -> bool:
    """Whether the result is at most as far from what is expected as that of the original (arrays of floats)."""
    if isinstance(before, str):
        return False
    for one, two, three in zip(expected, before, found, strict=True):
        if not all(isinstance(item, np.ndarray) and item.dtype.kind == "f" and item.shape == one.shape for item in (one, two, three)):
            return False
        if np.max(np.abs(three - one), initial=0) > np.max(np.abs(two - one), initial=0):
            return False
    return True


def as_array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, (np.generic, int, float, bool)) else value


def difference(expected: Sequence[Any], found: Sequence[Any], rtol: float, atol: float, values: bool = True) -> str:
    """The first difference in words; empty if there is none."""
    one_by_one = list(zip(_flat(expected), _flat(found), strict=False))
    if len(_flat(expected)) != len(_flat(found)):
        return "another number of tensors"
    for number, (one, other) in enumerate(one_by_one):
        problem = array_difference(one, other, rtol, atol, values)
        if problem:
            return f"output {number}: {problem}"
    return ""


def _flat(values: Any) -> list[Any]:
    """Sequences and optionals without their nesting, which the evaluators show differently."""
    if isinstance(values, (list, tuple)):
        return [inner for value in values for inner in _flat(value)]
    return [values]


def array_difference(one: Any, other: Any, rtol: float, atol: float, values: bool) -> str:
    if one is None or other is None:
        return "" if one is other else "one is missing"
    left, right = np.asarray(one), np.asarray(other)
    if left.shape != right.shape:
        return f"shape {right.shape}, not {left.shape}"
    if left.dtype.kind in "OUS" or right.dtype.kind in "OUS":
        return "" if [str(item) for item in left.ravel()] == [str(item) for item in right.ravel()] else "other text"
    if left.dtype != right.dtype:
        return f"dtype {right.dtype}, not {left.dtype}"
    if not values:
        return ""
    if left.dtype.kind not in "iubc":
        left, right = left.astype(np.float64), right.astype(np.float64)
    if np.allclose(right, left, rtol=rtol, atol=atol, equal_nan=left.dtype.kind in "fc"):
        return ""
    with np.errstate(all="ignore"):
        return f"differs by up to {np.nanmax(np.abs(left.astype(np.float64) - right.astype(np.float64))):.3g}"


def with_constants(case: Any) -> Any | None:
    """The same test with its axes, sizes, shapes and flags as weights, which exporters write; None if it has none."""
    if len(case.data_sets) != 1:
        return None
    feeds, expected = case.data_sets[0]
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    kept = []
    for index, (item, value) in enumerate(zip(case.model.graph.input, map(as_array, feeds), strict=False)):
        small = isinstance(value, np.ndarray) and value.ndim <= 1 and value.size <= 64
        if small and (index or item.name == "num_mel_bins") and (value.dtype.kind in "ib" or item.name in PARAMETERS):
            model.graph.initializer.append(onnx.numpy_helper.from_array(value, item.name))
        else:
            kept.append((item, feeds[index]))
    if len(kept) == len(feeds):
        return None
    del model.graph.input[:]
    model.graph.input.extend(item for item, _ in kept)
    return replace(case, name=case.name + CONSTANTS, model=model, data_sets=[([value for _, value in kept], expected)])


def sweep(cases: Iterable[Any], evaluator: Evaluator, versions: Sequence[int] = ()) -> list[Result]:
    """Every case to every version that matters; one that is refused once more with its axes and shapes as weights."""
    results = []
    for case in cases:
        for version in versions or targets_of(opset_of(case.model)):
            results.append(judge(case, version, evaluator))
            other = with_constants(case) if results[-1].status == "refused" else None
            if other is not None:
                results.append(judge(other, version, evaluator))
    return results


def solved(results: Sequence[Result]) -> set[tuple[str, int]]:
    """Tests and versions that are refused as they are and equal with their axes, sizes and flags as weights."""
    return {(item.test.removesuffix(CONSTANTS), item.version) for item in results if item.constants and item.status == "equal"}


def page(results: Sequence[Result], lang: str) -> str:
    """The documentation page in one language."""
    zh = lang == "zh"
    made = f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}"
    lines = ["# opset 转换" if zh else "# Opset conversion", ""]
    lines += [(_INTRO_ZH if zh else _INTRO_EN).format(made=made), ""]
    lines += ["## 数量" if zh else "## Counts", "", *_counts(results, zh), ""]
    lines += ["## 不能转换的算子与形式" if zh else "## Operators and forms that cannot be converted", "", *_refusals(results, zh), ""]
    lines += ["## 不能转换的数据类型" if zh else "## Dtypes that cannot be converted", "", *_dtypes(results, zh), ""]
    lines += ["## 必须是常量的参数" if zh else "## Parameters that must be constants", "", *_parameters(results, zh), ""]
    return "\n".join(lines)


_INTRO_EN = (
    "Made by `tools/opset_table.py` ({made}); do not edit. The node tests of the ONNX standard are converted to the opsets that matter on "
    "Ascend: 18 (the ceiling of CANN 8.5 and newer) and 11 (the default of MDC), and tests of opset 17 and older also up. Each converted "
    "model passes the ONNX checker, is run, and its outputs are equal to what the standard expects, within the tolerance of the test. What "
    "cannot be expressed is refused with the reason. These are one-operator models that run on this computer; ATC is not run."
)
_INTRO_ZH = (
    "由 `tools/opset_table.py` 生成（{made}），请勿手工修改。ONNX 标准的节点测试被转换到昇腾上常用的 opset：18（CANN 8.5 及更新版本的上限）和 11"
    "（MDC 的默认值）；opset 17 及更早的测试还会向上转换。每个转换后的模型都通过 ONNX 检查器、实际运行，并且输出在测试的容差内等于标准的期望值。"
    "无法表示的会被拒绝并给出原因。这些是在本机运行的单算子模型，不运行 ATC。"
)


def _counts(results: Sequence[Result], zh: bool) -> list[str]:
    done = solved(results)
    head = (
        ["转换到", "方向", "测试数", "相等", "参数为常量时相等", "拒绝", "错误", "无效"]
        if zh
        else ["to", "direction", "tests", "equal", "equal with parameters as weights", "refused", "wrong", "invalid"]
    )
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for version in sorted({item.version for item in results}):
        for down in (True, False):
            rows = [item for item in results if item.version == version and not item.constants and (item.opset > version) == down]
            if not rows:
                continue
            counts = Counter(item.status for item in rows)
            late = sum((item.test, version) in done for item in rows)
            way = ("向下" if down else "向上") if zh else ("down" if down else "up")
            figures = (len(rows), counts["equal"], late, counts["refused"] - late, counts["wrong"], counts["invalid"])
            lines.append(f"| {version} | {way} | {' | '.join(map(str, figures))} |")
    return lines


def _refused(results: Sequence[Result]) -> list[Result]:
    done = solved(results)
    return [item for item in results if item.status == "refused" and not item.constants and (item.test, item.version) not in done]


def _versions(found: Iterable[Result]) -> list[str]:
    counts = Counter(item.version for item in found)
    return [str(counts[version] or "") for version in DOWN] + [str(sum(counts[version] for version in counts if version not in DOWN) or "")]


def _head(first: str, second: str, zh: bool) -> list[str]:
    names = [first, second, *[f"到 {version}" if zh else f"to {version}" for version in DOWN], "其他" if zh else "others"]
    return [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]


def _refusals(results: Sequence[Result], zh: bool) -> list[str]:
    groups: dict[tuple[str, str], list[Result]] = {}
    for item in _refused(results):
        if item.reason is not None and "dtype" not in item.reason.params:
            groups.setdefault((item.op, item.reason.render("zh" if zh else "en")), []).append(item)
    lines = _head("算子" if zh else "operator", "原因" if zh else "reason", zh)
    for (op, reason), found in sorted(groups.items()):
        lines.append(f"| {op} | {reason.replace('|', '/')} | {' | '.join(_versions(found))} |")
    return lines


def _dtypes(results: Sequence[Result], zh: bool) -> list[str]:
    groups: dict[str, list[Result]] = {}
    for item in _refused(results):
        if item.reason is not None and "dtype" in item.reason.params:
            groups.setdefault(str(item.reason.params["dtype"]), []).append(item)
    lines = _head("数据类型" if zh else "dtype", "算子" if zh else "operators", zh)
    for dtype, found in sorted(groups.items()):
        lines.append(f"| {dtype} | {', '.join(sorted({item.op for item in found}))} | {' | '.join(_versions(found))} |")
    return lines


def _parameters(results: Sequence[Result], zh: bool) -> list[str]:
    done = solved(results)
    groups: dict[str, set[str]] = {}
    for item in results:
        if item.status == "refused" and (item.test, item.version) in done and item.reason is not None and "name" in item.reason.params:
            groups.setdefault(item.op, set()).add(f"`{item.reason.params['name']}`")
    lines = ["| 算子 | 参数 |" if zh else "| operator | parameters |", "|---|---|"]
    return [*lines, *(f"| {op} | {', '.join(sorted(names))} |" for op, names in sorted(groups.items()))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="tests whose name contains this; nothing is written")
    parser.add_argument("--to", type=int, nargs="*", default=[], help="these versions; nothing is written")
    given = parser.parse_args()
    with Evaluator(timeout=60) as evaluator:
        results = sweep(node_tests(given.only), evaluator, given.to)
    for (version, status), count in sorted(Counter((item.version, item.status) for item in results).items()):
        print(version, status, count)
    for item in results:
        if item.status in ("wrong", "invalid", "unrun") or given.only:
            print(item.status, item.test, item.opset, "->", item.version, item.detail, item.identical)
    if not given.only and not given.to:
        for lang in ("en", "zh"):
            (ROOT / "docs" / lang / "opsets.md").write_text(page(results, lang), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
