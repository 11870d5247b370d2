"""RoiAlign written out for regions of several images equals ONNX Runtime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.graph import Evaluator, used_names
from jumar.graph.expansions.sampling import roi_align
from jumar.graph.opset.schemas import find_schema
from jumar.graph.opset.step import Step

SIZES = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(2, 8), st.integers(2, 8), st.integers(1, 5))


def model_of(sizes: tuple[int, ...], opset: int, options: dict[str, Any]) -> ir.Model:
    batch, channels, height, width, count = sizes
    node = onnx.helper.make_node("RoiAlign", ["x", "regions", "owners"], ["y"], **options)
    info = onnx.helper.make_tensor_value_info
    inputs = [
        info("x", onnx.TensorProto.FLOAT, [batch, channels, height, width]),
        info("regions", onnx.TensorProto.FLOAT, [count, 4]),
        info("owners", onnx.TensorProto.INT64, [count]),
    ]
    graph = onnx.helper.make_graph([node], "g", inputs, [info("y", onnx.TensorProto.FLOAT, ["a", "b", "c", "d"])])
    return ir.from_proto(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=8))


def written(model: ir.Model, opset: int) -> ir.Model:
    step = Step(model, model.graph[0], used_names(model), opset)
    schema = find_schema("RoiAlign", opset)
    assert schema is not None
    step.source = schema
    roi_align(step)
    return model


def feeds_of(sizes: tuple[int, ...], seed: int) -> dict[str, Any]:
    batch, channels, height, width, count = sizes
    random = np.random.default_rng(seed)
    ends = random.random((2, count, 2)) * 12 - 1
    regions = np.concatenate([ends.min(axis=0), ends.max(axis=0)], axis=1).astype(np.float32)
    image = random.standard_normal((batch, channels, height, width)).astype(np.float32)
    return {"x": image, "regions": regions, "owners": random.integers(0, batch, count)}


@settings(max_examples=15, deadline=None)
@given(SIZES, st.sampled_from([10, 16]), st.integers(1, 3), st.integers(1, 3), st.sampled_from([0.5, 1.0]), st.integers(0, 99))
def test_regions_of_several_images(
    evaluator: Evaluator, sizes: tuple[int, ...], opset: int, bins: int, samples: int, scale: float, seed: int
) -> None:
    options = {"output_height": bins, "output_width": 2, "sampling_ratio": samples, "spatial_scale": scale}
    feeds = feeds_of(sizes, seed)
    right = evaluator.run(model_of(sizes, opset, options), feeds)["y"]
    found = evaluator.run(written(model_of(sizes, opset, options), opset), feeds)["y"]
    assert np.abs(found - right).max() <= 1e-5 * max(1.0, np.abs(right).max())


def test_the_wrong_image_is_noticed(evaluator: Evaluator) -> None:
    sizes, options = (2, 1, 6, 6, 3), {"output_height": 2, "output_width": 2, "sampling_ratio": 2}
    feeds = feeds_of(sizes, 5)
    found = evaluator.run(written(model_of(sizes, 16, options), 16), feeds | {"owners": 1 - feeds["owners"]})["y"]
    assert np.abs(found - evaluator.run(model_of(sizes, 16, options), feeds)["y"]).max() > 1e-2
