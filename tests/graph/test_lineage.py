"""Nodes that rewrites make know the line of what they stand for."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

import jumar
from jumar.graph import Evaluator, all_nodes, source_line
from jumar.graph.lineage import inherit_lines, node_origins
from jumar.graph.walk import MODULE, SOURCE

TEXT = """<ir_version: 8, opset_import: ["" : 16]>
agraph (float[2,3,8,8] x, int64[2] i) => (float[2,3,8,8] y, float[2] s) <float[2] zero = {0, 0}> {
    h = HardSwish(x)
    y = Add(h, h)
    m = ReduceMean<axes = [1, 2, 3], keepdims = 0>(y)
    s = ScatterElements<axis = 0, reduction = "add">(zero, i, m)
}"""


def with_lines() -> ir.Model:
    model = ir.from_onnx_text(TEXT)
    for number, node in enumerate(model.graph, 1):
        node.metadata_props[SOURCE] = f"net.py:{number}"
        node.metadata_props[MODULE] = f"block.{number}"
    return model


def test_every_node_has_a_line_after_fix(evaluator: Evaluator) -> None:
    case = jumar.fix(with_lines(), target="mdc510pro", evaluator=evaluator)
    lines = {origin.line for origin in node_origins(case.model)}
    assert len([step for step in case.record.steps if step.status == "applied"]) > 1
    assert lines == {"net.py:1", "net.py:2", "net.py:3", "net.py:4"}


def test_findings_show_the_line(evaluator: Evaluator) -> None:
    record = jumar.check(with_lines(), target="mdc510pro").record
    assert {finding.source_line for finding in record.findings if finding.op == "HardSwish"} == {"net.py:1"}


def test_a_model_without_lines_is_left_alone() -> None:
    model = ir.from_onnx_text(TEXT)
    inherit_lines(model)
    assert not any(node.metadata_props for node in all_nodes(model))


def test_a_node_takes_the_line_of_what_feeds_it_else_of_what_reads_it() -> None:
    model = with_lines()
    nodes = list(model.graph)
    for node in (nodes[0], nodes[2]):
        node.metadata_props.clear()
    inherit_lines(model)
    assert [source_line(node) for node in nodes] == ["net.py:2", "net.py:2", "net.py:2", "net.py:4"]


def test_inspect_lists_the_lines(tmp_path: Path) -> None:
    ir.save(with_lines(), tmp_path / "m.onnx")
    record = jumar.inspect(tmp_path / "m.onnx", source=True)
    assert record.data["sources"][0] == {"node": "HardSwish -> h", "op": "HardSwish", "module": "block.1", "line": "net.py:1"}
    assert any("4 of 4 nodes" in str(note) for note in record.notes) and any("net.py:3" in str(note) for note in record.notes)
    assert "sources" not in jumar.inspect(tmp_path / "m.onnx").data
