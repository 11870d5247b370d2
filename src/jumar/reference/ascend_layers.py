"""Layers of a deploy model between AscendQuant and AscendDequant: the standard's operators on int8, which the standard does not define.

On anything else they are the reference implementation's own.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_conv import Conv as FloatConv
from onnx.reference.ops.op_conv_transpose import ConvTranspose as FloatConvTranspose
from onnx.reference.ops.op_gemm import Gemm_7
from onnx.reference.ops.op_matmul import numpy_matmul

from .integer import as_int32, convolved, convolved_back, multiplied

Array = Any
OFFSET = "offset_x"
LAYERS = ("Conv", "ConvTranspose", "Gemm", "MatMul")


def tell_offsets(proto: Any) -> None:
    """Give each layer behind an AscendQuant its offset, as ATC's pass does (the attribute has the same name there)."""
    from onnx import helper

    made = {node.output[0]: node for node in proto.graph.node if node.op_type == "AscendQuant" and node.output}
    for node in proto.graph.node:
        if node.op_type not in LAYERS or not node.input or node.input[0] not in made:
            continue
        offset = next((item.f for item in made[node.input[0]].attribute if item.name == "offset"), 0.0)
        node.attribute.append(helper.make_attribute(OFFSET, int(offset)))


def _standard(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if name != OFFSET}


def _plus(sums: Array, bias: Array, rank: int) -> Array:
    if bias is None:
        return sums
    if bias.dtype != np.int32:
        raise ValueError(f"a bias of {bias.dtype} beside sums of int32")
    return as_int32(sums.astype(np.int64) + bias.reshape([-1 if axis == 1 else 1 for axis in range(rank)]))


class Conv(FloatConv):
    op_domain = ""

    def _run(self, X: Array, W: Array, B: Array = None, **named: Any) -> tuple[Array]:  # type: ignore[override]  # noqa: N803 - as ONNX names them
        if X.dtype != np.int8:
            return cast(Any, super())._run(X, W, B, **_standard(named))  # type: ignore[no-any-return]
        sums = convolved(
            X,
            W,
            offset=getattr(self, OFFSET, 0),
            strides=named.get("strides"),
            pads=named.get("pads"),
            dilations=named.get("dilations"),
            group=named.get("group") or 1,
            auto_pad=named.get("auto_pad") or "NOTSET",
        )
        return (_plus(sums, B, X.ndim),)


class ConvTranspose(FloatConvTranspose):
    op_domain = ""

    def _run(self, X: Array, W: Array, B: Array = None, **named: Any) -> tuple[Array]:  # type: ignore[override]  # noqa: N803
        if X.dtype != np.int8:
            return cast(Any, super())._run(X, W, B, **_standard(named))  # type: ignore[no-any-return]
        if named.get("output_shape") is not None or named.get("auto_pad") not in (None, "NOTSET", ""):
            raise ValueError("ConvTranspose of int8 with output_shape or auto_pad")
        sums = convolved_back(
            X,
            W,
            offset=getattr(self, OFFSET, 0),
            strides=named.get("strides"),
            pads=named.get("pads"),
            dilations=named.get("dilations"),
            output_padding=named.get("output_padding"),
            group=named.get("group") or 1,
        )
        return (_plus(sums, B, X.ndim),)


class MatMul(OpRun):
    """Not a subclass of the reference's own, which holds the output to the type of the inputs."""

    op_domain = ""

    def _run(self, a: Array, b: Array, **_: Any) -> tuple[Array]:
        if a.dtype != np.int8:
            return (cast(Any, numpy_matmul)(a, b),)
        return (multiplied(a, b, offset=getattr(self, OFFSET, 0)),)


class Gemm(Gemm_7):
    op_domain = ""

    def _run(self, a: Array, b: Array, c: Array = None, **named: Any) -> tuple[Array]:  # type: ignore[override]
        if a.dtype != np.int8:
            return cast(Any, super())._run(a, b, c, **_standard(named))  # type: ignore[no-any-return]
        if named.get("alpha", 1.0) != 1.0 or named.get("beta", 1.0) != 1.0 or named.get("transA"):
            raise ValueError("Gemm of int8 with alpha, beta or transA")
        return (_plus(multiplied(a, b.T if named.get("transB") else b, offset=getattr(self, OFFSET, 0)), c, 2),)


OPERATORS = [Conv, ConvTranspose, MatMul, Gemm]
