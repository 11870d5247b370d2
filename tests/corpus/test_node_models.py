"""The ONNX standard's node tests on four SoCs: always a verdict, never one that is too good, and the page shows the counts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import onnx
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import node_test_table as tool  # noqa: E402

sys.path.pop(0)

if TYPE_CHECKING:
    Registered = dict[str, dict[str, set[int]]]


@pytest.fixture(scope="module")
def models() -> dict[str, onnx.ModelProto]:
    return tool.node_models()


@pytest.fixture(scope="module")
def results(models: dict[str, onnx.ModelProto]) -> list[tool.Result]:
    """One sweep for all tests of this file (a quarter of a minute)."""
    return tool.sweep(models)


def operators(proto: onnx.ModelProto) -> Iterator[tuple[str, str]]:
    """Domain and name of every node at any depth, without calls of the model's own functions."""
    own = {(function.domain, function.name) for function in proto.functions}

    def walk(nodes: list[onnx.NodeProto]) -> Iterator[tuple[str, str]]:
        for node in nodes:
            if (node.domain, node.op_type) not in own:
                yield node.domain or "ai.onnx", node.op_type
            for attribute in node.attribute:
                for graph in [attribute.g, *attribute.graphs]:
                    yield from walk(list(graph.node))

    yield from walk(list(proto.graph.node))
    for function in proto.functions:
        yield from walk(list(function.node))


def test_every_model_gets_a_verdict_on_every_target(models: dict[str, onnx.ModelProto], results: list[tool.Result]) -> None:
    assert len(models) > 1500
    assert len(results) == 4 * len(models)
    assert {item.verdict for item in results} == {"ready", "warnings", "blocked"}


def test_nothing_without_a_parser_is_called_ready(models: dict[str, onnx.ModelProto], results: list[tool.Result], shared: Path) -> None:
    """Ready needs a registration of each operator at the model's opset before and after 8.1.RC1, read from the sources' table."""
    rows = json.loads((shared / "facts" / "ops" / "onnx_frontend.json").read_text(encoding="utf-8"))["rows"]
    registered = {
        (row["domain"], row["op"]): {state: {o for item in found for o in item["opsets"]} for state, found in row["releases"].items()}
        for row in rows
    }
    wrong = []
    for item in results:
        if item.verdict == "blocked":
            continue
        for domain, op in operators(models[item.model]):
            if op == "Constant":
                continue
            states = registered.get((domain, op), {})
            older = states.get("canndev-2022-06", set())
            newer = next((states[state] for state in ("8.5.0", "9.2.0-beta.2") if state in states), set())
            known = item.opset in newer and (item.opset in older or (bool(older) and item.opset > max(older)))
            if not known and (item.verdict == "ready" or item.opset not in older | newer):
                wrong.append((item.model, item.soc, op, item.opset, item.verdict))
    assert wrong == []


def test_an_opset_above_the_ceiling_is_blocked(results: list[tool.Result]) -> None:
    ceilings = {target.soc.name: target.opset_max for target in tool.targets()}
    above = [item for item in results if item.opset > ceilings[item.soc]]
    assert len(above) > 1000
    assert {item.verdict for item in above} == {"blocked"}


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_shows_the_counts(lang: str, results: list[tool.Result]) -> None:
    committed = (ROOT / "docs" / lang / "node-tests.md").read_text(encoding="utf-8")
    if f"onnx {onnx.__version__}" not in committed:
        pytest.skip("the page was made with another onnx, whose tests are others")
    assert tool.page(results, lang) == committed, "run tools/node_test_table.py"
