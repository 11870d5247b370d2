"""What the tests of If, Loop, Scan and sequences share."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from jumar.graph import Evaluator
from jumar.graph.simplify import Journal, simplify_graph
from jumar.graph.simplify.base import bodies

OPSETS = (11, 13, 18, 21)


def model_of(text: str, opset: int = 13) -> ir.Model:
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')
    onnx.checker.check_model(proto, full_check=True)
    return ir.from_proto(proto)


def ops_of(model: ir.Model) -> list[str]:
    """Operators at all depths."""
    return [node.op_type for graph in model.graphs() for node in graph]


def assert_valid(model: ir.Model) -> None:
    """The checker passes, and no body defines a name of a scope around it, wherever that is defined."""
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
    _assert_own_names(model.graph, frozenset())


def _assert_own_names(graph: ir.Graph, outer: frozenset[str]) -> None:
    values = {*graph.inputs, *graph.initializers.values(), *(value for node in graph for value in node.outputs)}
    names = [value.name or "" for value in values]
    assert len({*names}) == len(names)
    assert not outer & {*names}
    for node in graph:
        for body in bodies(node):
            _assert_own_names(body, outer | {*names})


def simplified(
    model: ir.Model, evaluator: Evaluator, *feeds: dict[str, Any], kinds: frozenset[str] | None = None
) -> tuple[ir.Model, Journal]:
    """A simplified copy, valid, with the same outputs on all feeds, bit for bit (ONNX Runtime made both)."""
    after = ir.from_proto(ir.to_proto(model))
    journal = simplify_graph(after, evaluator, journal=Journal(kinds=kinds))
    assert_valid(after)
    assert [value.name for value in after.graph.outputs] == [value.name for value in model.graph.outputs]
    assert [value.type for value in after.graph.outputs] == [value.type for value in model.graph.outputs]
    for feed in feeds:
        assert_same(model, after, evaluator, feed)
    again = simplify_graph(after, evaluator, journal=Journal(kinds=kinds))
    assert not again.rewrites
    return after, journal


def assert_same(before: ir.Model, after: ir.Model, evaluator: Evaluator, feed: dict[str, Any]) -> None:
    expected, found = evaluator.run(before, feed), evaluator.run(after, feed)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, strict=True)


def kinds_in(journal: Journal) -> set[str]:
    return {rewrite.kind for rewrite in journal.rewrites}


X = np.array([1.5, -2.0, 0.25], np.float32)
