"""Measure what `jumar export` makes of the operators and architectures of the tests, and write docs/*/export-coverage.md.

usage: python tools/export_table.py measure RESULTS.jsonl [NAME ...]     needs torch, torchvision, timm and onnxscript; goes on where it stopped
       python tools/export_table.py write RESULTS.jsonl
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests" / "exporting"
TARGETS: Mapping[str, Mapping[str, Any]] = {"mdc510pro": {"target": "mdc510pro"}, "Ascend310P3": {"soc": "Ascend310P3"}}
COLUMNS = ("dynamo@18", "torchscript@11", "torchscript@17", "+own")


def _corpus() -> Iterator[tuple[str, str, Any]]:
    """Kind, name, and what makes (module, args) of everything whose packages are there."""
    sys.path.insert(0, str(TESTS))
    for kind in ("operators", "architectures"):
        corpus = __import__(kind)
        for entry in corpus.OPERATORS if kind == "operators" else corpus.ARCHITECTURES:
            if entry.needs is None or importlib.util.find_spec(entry.needs) is not None:
                yield kind, entry.name, lambda entry=entry, corpus=corpus: corpus.module_of(entry)
            else:
                print(f"{entry.name}: {entry.needs} is not installed", file=sys.stderr)


def measure(results: Path, names: list[str]) -> None:
    import torch

    import jumar
    from jumar.graph import Evaluator

    torch.set_num_threads(1)
    done = {(row["name"], row["target"]) for row in _rows(results)}
    with Evaluator() as evaluator, results.open("a", encoding="utf-8") as sink:
        for kind, name, make in _corpus():
            for target, where in TARGETS.items():
                if (name, target) in done or (names and name not in names):
                    continue
                start = time.monotonic()
                module, args = make()
                case = jumar.export(module, args, evaluator=evaluator, **where)
                told = case.record.data["export"]
                row = {
                    "kind": kind,
                    "name": name,
                    "target": target,
                    "torch": torch.__version__,
                    "chosen": told["exporter"],
                    "nodes": len(list(case.model.graph)),
                    "errors": sorted({item.code for item in case.record.findings if item.severity == "error"}),
                    "attempts": {attempt["label"]: _verdict(attempt) for attempt in told["attempts"]},
                    "reasons": [f"{item.message} ({item.source_line})" for item in case.record.findings if item.code.startswith("EX10")],
                    "seconds": round(time.monotonic() - start, 1),
                }
                sink.write(json.dumps(row) + "\n")
                sink.flush()
                print(f"{name} {target} {row['chosen']} {row['seconds']} s")


def _verdict(attempt: Mapping[str, Any]) -> str:
    if attempt["right"]:
        return "right"
    if "refused" in attempt:
        return "refused"
    return "wrong" if any(case == "given" for case, *_ in attempt["failed"]) else "frozen"


def _rows(results: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()] if results.exists() else []


WORDS = {
    "en": {"right": "right", "refused": "refused", "wrong": "**wrong**", "frozen": "frozen", "": ""},
    "zh": {"right": "正确", "refused": "拒绝", "wrong": "**错误**", "frozen": "被固定", "": ""},
}
TEXTS = {
    "en": (
        "# Coverage of export",
        (
            "What `jumar export` makes of modules of one operator and of small architectures (`tests/exporting`), measured with torch {torch} by `tools/export_table.py`. "
            "*right*: equal to the module on all inputs that were compared; *wrong*: the exporter reported no error, and the numbers differ on the given inputs; "
            "*frozen*: they differ on other inputs; *refused*: no graph. The target column names what was written, and its nodes after `fix`. "
            "`+own` is an export with Jumar's own forms, tried where no other is right. Nothing was run on Ascend hardware."
        ),
        {"operators": "Operators", "architectures": "Architectures"},
        "name",
        "not exported",
        "{good} of {count} exported equal to the module for {target}; {liars} exports that torch made without an error were wrong or frozen, and none of them was written.",
    ),
    "zh": (
        "# 导出覆盖情况",
        (
            "`jumar export` 对单算子模块和小型网络（`tests/exporting`）的结果，由 `tools/export_table.py` 在 torch {torch} 上测得。"
            "*正确*：在所有对比输入上与模块一致；*错误*：导出器没有报错，但在给定输入上数值不同；*被固定*：在其他输入上数值不同；*拒绝*：没有计算图。"
            "目标列给出所写出的结果及其经 `fix` 后的节点数。`+own` 是使用 Jumar 自有写法的导出，仅在其余都不正确时尝试。没有在昇腾硬件上运行过。"
        ),
        {"operators": "算子", "architectures": "网络结构"},
        "名称",
        "未导出",
        "面向 {target}：{count} 个中有 {good} 个导出结果与模块一致；torch 没有报错的导出中有 {liars} 个错误或被固定，均未写出。",
    ),
}


REFUSED = {
    "en": (
        "What is not exported, and why",
        (
            "A loop whose number of trips is a value has no graph. The two detectors are torchvision's with random weights: their scores are equal or "
            "nearly so, and rounding decides which boxes NonMaxSuppression keeps. In double precision the modules themselves keep other ones "
            "(`tv_ssdlite320`: 300 instead of 272)."
        ),
    ),
    "zh": (
        "未导出的内容及原因",
        (
            "循环次数取决于数值的循环没有对应的计算图。两个检测模型是随机权重的 torchvision 模型：各框得分相等或几乎相等，NonMaxSuppression 保留哪些框由舍入决定；"
            "改用双精度时，模块自身保留的框也不同（`tv_ssdlite320`：300 个而不是 272 个）。"
        ),
    ),
}


def write(results: Path) -> None:
    rows = _rows(results)
    for lang, (title, intro, kinds, name, missing, summary) in TEXTS.items():
        lines = [title, "", intro.format(torch=rows[0]["torch"].partition("+")[0])]
        for kind, heading in kinds.items():
            chosen = [row for row in rows if row["kind"] == kind]
            if not chosen:
                continue
            lines += ["", f"## {heading}", ""]
            for target in TARGETS:
                here = [row for row in chosen if row["target"] == target]
                liars = sum(verdict in ("wrong", "frozen") for row in here for verdict in row["attempts"].values())
                good = sum(row["chosen"] is not None for row in here)
                lines.append("- " + summary.format(good=good, count=len(here), target=target, liars=liars))
            lines += ["", f"| {name} | {' | '.join(TARGETS)} | {' | '.join(COLUMNS)} |", "|---" * (1 + len(TARGETS) + len(COLUMNS)) + "|"]
            lines += [_line(entry, chosen, lang, missing) for entry in sorted({row["name"] for row in chosen})]
        lines += ["", f"## {REFUSED[lang][0]}", "", REFUSED[lang][1], ""]
        reasons = {row["name"]: row["reasons"] for row in rows if row["chosen"] is None}
        lines += [f"- `{name}`: {'; '.join(f'`{_plain(reason)}`' for reason in reasons[name])}" for name in sorted(reasons)]
        (ROOT / "docs" / lang / "export-coverage.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _plain(reason: str) -> str:
    """A message without quotes of its own, as code."""
    return " ".join(reason.replace("`", "").split())


def _line(name: str, rows: list[dict[str, Any]], lang: str, missing: str) -> str:
    mine: dict[str, Any] = {row["target"]: row for row in rows if row["name"] == name}
    verdicts: dict[str, str] = {}
    for row in mine.values():
        for label, verdict in row["attempts"].items():
            column = "+own" if label.endswith("+own") else label
            verdicts[column] = "right" if "right" in (verdict, verdicts.get(column)) else verdict
    cells = [
        missing if row["chosen"] is None else f"{row['chosen']}, {row['nodes']}"
        for target in TARGETS
        if (row := mine.get(target)) is not None
    ]
    cells += [""] * (len(TARGETS) - len(cells))
    return f"| `{name}` | {' | '.join([*cells, *(WORDS[lang][verdicts.get(column, '')] for column in COLUMNS)])} |"


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("measure", "write"):
        sys.exit(__doc__)
    if sys.argv[1] == "measure":
        measure(Path(sys.argv[2]), sys.argv[3:])
    else:
        write(Path(sys.argv[2]))
