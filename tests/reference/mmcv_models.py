"""Models of one operator of MMCV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import onnx_ir as ir
from onnx import helper


def one(
    op: str,
    feeds: Mapping[str, Any],
    outputs: Sequence[tuple[int, int]] = ((1, 4),),
    *,
    domain: str = "mmcv",
    opset: int = 16,
    **attributes: Any,
) -> ir.Model:
    """A model of a single node. ``outputs``: element type and rank of each."""
    names = [f"y{number}" for number in range(len(outputs))]
    node = helper.make_node(op, list(feeds), names, domain=domain, name="node", **attributes)
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(item.dtype), item.shape) for name, item in feeds.items()]
    results = [
        helper.make_tensor_value_info(name, kind, [f"{name}_{axis}" for axis in range(rank)])
        for name, (kind, rank) in zip(names, outputs, strict=True)
    ]
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    model = helper.make_model(helper.make_graph([node], "g", inputs, results), opset_imports=imports, ir_version=9)
    onnx.checker.check_model(model)
    return ir.from_proto(model)
