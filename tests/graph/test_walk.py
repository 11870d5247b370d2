"""Reading graphs at every depth, and finding a node again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx_ir as ir
import pytest

from jumar.graph import all_nodes, load, model_opset, node_place, source_line

STACK = "pkg.torch.onnx.stack_trace"
FRAME = 'File "{file}", line {line}, in forward\n    x = self.act(x)\n'

NESTED = """
<ir_version: 8, opset_import: ["" : 16, "local" : 1]>
agraph (float[2] x, bool c) => (float[2] y) {
    f = local.twice(x)
    y = If (c) <
        then_branch = inner () => (float[2] a) {
            a = If (c) <
                then_branch = deepest () => (float[2] b) { b = Neg(f) },
                else_branch = flat () => (float[2] d) { d = Abs(f) }
            >
        },
        else_branch = other () => (float[2] e) { e = Identity(f) }
    >
}
<domain: "local", opset_import: ["" : 16]> twice (x) => (z) { z = Add(x, x) }
"""


def test_nodes_of_bodies_and_functions_are_visited(save_text: Callable[..., Path]) -> None:
    model = load(save_text(NESTED))
    assert sorted(node.op_type for node in all_nodes(model)) == ["Abs", "Add", "Identity", "If", "If", "Neg", "twice"]


@pytest.mark.parametrize(("imports", "opset"), [({"": 13}, 13), ({"ai.onnx": 12}, 12), ({"other": 1}, 0)])
def test_the_opset_is_that_of_the_standard_domain(imports: dict[str, int], opset: int) -> None:
    assert model_opset(ir.Model(ir.Graph([], [], nodes=[], opset_imports=imports), ir_version=8)) == opset


def test_a_node_without_a_name_is_found_by_its_output() -> None:
    output = ir.Value(name="y")
    assert node_place(ir.Node("", "Relu", [], outputs=[output], name="act")) == "act"
    assert node_place(ir.Node("", "Relu", [], outputs=[ir.Value(name="y")])) == "Relu -> y"
    assert node_place(ir.Node("", "Relu", [], outputs=[ir.Value(name="")])) == "Relu"


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ([("/home/me/model.py", 12)], "/home/me/model.py:12"),
        ([("/home/me/main.py", 3), ("/home/me/model.py", 12)], "/home/me/model.py:12"),
        ([("/home/me/model.py", 12), ("/usr/lib/python3/site-packages/timm/layer.py", 7)], "/home/me/model.py:12"),
        ([("/home/me/model.py", 12), ("/opt/torch/nn/modules/module.py", 7)], "/home/me/model.py:12"),
        ([("/usr/lib/python3/dist-packages/x.py", 7), ("<string>", 1), ("<frozen importlib>", 2)], None),
        ([], None),
    ],
)
def test_the_source_line_is_the_innermost_of_the_user(files: list[tuple[str, int]], line: str | None) -> None:
    node = ir.node("Relu", [ir.Value(name="x")])
    assert source_line(node) is None
    node.metadata_props[STACK] = "".join(FRAME.format(file=file, line=number) for file, number in files)
    assert source_line(node) == line
