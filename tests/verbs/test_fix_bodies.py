"""Rules of single nodes inside the bodies of control flow: those that keep every element equal, proven on the whole model."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from jumar import check, fix
from jumar.graph import Evaluator
from jumar.proof import FeedSet

TEXT = """<ir_version: 8, opset_import: ["" : 13]>
agraph (float[1,4,4] boxes, float[1,1,4] scores, bool some) => (int64[n,3] y) <int64[1] most = {3}, float[1] overlap = {0.5}> {
    y = If (some) <
        then_branch = then_graph () => (int64[n,3] t) { t = NonMaxSuppression(boxes, scores, most, overlap) },
        else_branch = else_graph () => (int64[n,3] e) { e = NonMaxSuppression(boxes, scores, most) }
    > }"""


def inner(model: ir.Model) -> list[ir.Node]:
    return [node for graph in model.graphs() for node in graph if node.op_type == "NonMaxSuppression"]


def test_nodes_in_branches_get_their_missing_inputs(evaluator: Evaluator) -> None:
    random = np.random.default_rng(0)
    corners = random.uniform(0, 1, (1, 4, 2))
    boxes = np.concatenate([corners, corners + 0.4], 2).astype(np.float32)
    scores = random.uniform(-1, 1, (1, 1, 4)).astype(np.float32)
    feeds = FeedSet(tuple({"boxes": boxes, "scores": scores, "some": np.array(flag)} for flag in (True, False)), "user")
    model = ir.from_onnx_text(TEXT)
    assert sum(item.code == "OP201" for item in check(model, soc="Ascend310P3").record.findings) == 2
    case = fix(model, soc="Ascend310P3", feeds=feeds, select=["OP201"], evaluator=evaluator)
    step = next(step for step in case.record.steps if step.code == "OP201")
    assert step.status == "applied" and len(step.nodes) == 2 and step.proof is not None and step.proof.max_rel == 0.0
    assert all(len(node.inputs) == 5 and None not in node.inputs for node in inner(case.model))
    assert not any(item.code == "OP201" for item in case.record.findings)
    # A threshold of 0 instead of the lowest number would drop the boxes of negative score, and the whole model shows it.
    for feed in feeds.cases:
        assert np.array_equal(evaluator.run(case.model, feed)["y"], evaluator.run(model, feed)["y"])
    assert (scores < 0).any()
