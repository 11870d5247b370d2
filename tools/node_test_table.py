#!/usr/bin/env python3
"""Check the ONNX standard's node tests against four SoCs and write the table of verdicts into the documentation.

usage: python tools/node_test_table.py

The models are built in memory by the installed ``onnx``. A test runs the same sweep and compares it with what is committed.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import onnx
import onnx_ir as ir

from jumar import check
from jumar.graph import model_opset
from jumar.targets import Target, find_target

ROOT = Path(__file__).resolve().parent.parent
TARGETS = (("Ascend310P3", None), ("Ascend310B1", None), ("BS9SX1AA", "mdc510pro"), ("Ascend910B3", None))
VERDICTS = ("ready", "warnings", "blocked")


@dataclass(frozen=True)
class Result:
    """One model on one target."""

    model: str
    soc: str
    opset: int
    verdict: str
    codes: tuple[str, ...]


def targets() -> tuple[Target, ...]:
    return tuple(find_target(None if profile else soc, profile=profile) for soc, profile in TARGETS)


def node_models() -> dict[str, onnx.ModelProto]:
    """All node tests of the installed ``onnx``, by name."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some cases overflow on purpose
        return {case.name: case.model for case in collect_testcases(None) if case.model is not None}


def sweep(models: dict[str, onnx.ModelProto]) -> list[Result]:
    """Check every model on every target."""
    found = []
    for name, proto in models.items():
        # As onnx_ir.Model: a few of the models are refused by the file loader's checker, and every one needs a verdict.
        model = ir.from_proto(proto)
        for target in targets():
            record = check(model, target=target).record
            codes = tuple(sorted({finding.code for finding in record.findings}))
            found.append(Result(name, target.soc.name, model_opset(model), record.verdict, codes))
    return found


def page(results: list[Result], lang: str) -> str:
    """The documentation page in one language."""
    zh = lang == "zh"
    lines = [
        "# ONNX 标准节点测试" if zh else "# The ONNX standard's node tests",
        "",
        (
            f"由 `tools/node_test_table.py` 生成（onnx {onnx.__version__}），请勿手工修改。每个单算子测试模型都在四个目标上用 `jumar check` 检查，"
            "从不调用 ATC：结果是检查结论的数量，而不是编译结果。"
            if zh
            else f"Made by `tools/node_test_table.py` (onnx {onnx.__version__}); do not edit. Every one-operator test model is checked with "
            "`jumar check` on four targets. ATC is not run: these are counts of verdicts, not of compilations."
        ),
    ]
    for title, kept in (
        ("全部模型" if zh else "All models", results),
        ("opset 不超过目标上限的模型" if zh else "Models at an opset the target parses", [item for item in results if _parsed(item)]),
    ):
        counts = Counter((item.soc, item.verdict) for item in kept)
        head = ["目标", "模型数", "ready", "warnings", "blocked"] if zh else ["target", "models", "ready", "warnings", "blocked"]
        lines += ["", f"## {title}", "", f"| {' | '.join(head)} |", "|---|---|---|---|---|"]
        for target in targets():
            row = [counts[target.soc.name, verdict] for verdict in VERDICTS]
            name = target.label + (f" ({target.profile}, opset {target.opset_max})" if target.profile else "")
            lines.append(f"| {name} | {sum(row)} | {' | '.join(map(str, row))} |")
    lines += [
        "",
        (
            "大多数 blocked 的原因是 opset 高于解析器支持的 18（OP110）；其余见[检查结果一览](findings.md)。"
            if zh
            else "Most are blocked because their opset is above 18, the newest the parser knows (OP110); for the rest see [findings](findings.md)."
        ),
        "",
    ]
    return "\n".join(lines)


def _parsed(item: Result) -> bool:
    target = next(target for target in targets() if target.soc.name == item.soc)
    return target.opset_min <= item.opset <= target.opset_max


def main() -> int:
    results = sweep(node_models())
    for lang in ("en", "zh"):
        (ROOT / "docs" / lang / "node-tests.md").write_text(page(results, lang), encoding="utf-8")
    print(page(results, "en"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
