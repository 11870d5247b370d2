"""Shapes behind operators of ONNX Runtime's own domain, which ONNX's inference does not know.

For the inference alone each is replaced by a standard operator whose result has the same type and shape.
"""

from __future__ import annotations

import onnx

_RUNTIME = "com.microsoft"
# Results of the type and shape of the first input.
_SAME = frozenset(
    (
        *("BiasAdd", "BiasGelu", "BiasSoftmax", "FastGelu", "Gelu", "GroupNorm", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax"),
        *("QuickGelu", "RotaryEmbedding", "SimplifiedLayerNormalization", "SkipGroupNorm", "SkipLayerNormalization"),
        "SkipSimplifiedLayerNormalization",
    )
)
_KEPT = {
    "FusedConv": ("Conv", 3, ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")),
    "FusedGemm": ("Gemm", 3, ("alpha", "beta", "transA", "transB")),
}
_PRODUCTS = ("DynamicQuantizeMatMul", "FusedMatMul", "FusedMatMulActivation", "TransposeMatMul")


def stand_in(model: onnx.ModelProto) -> None:
    """Replace operators of the runtime's domain in the main graph, in place, one by one and with outputs of the same names."""
    opset = max((item.version for item in model.opset_import if item.domain in ("", "ai.onnx")), default=0)
    for node in model.graph.node:
        if node.domain == _RUNTIME:
            _replace(node, opset)
        elif is_runtime_operator(node, model):
            _become(node, "Identity", 1)


def is_runtime_operator(node: onnx.NodeProto, model: onnx.ModelProto) -> bool:
    """Whether ONNX Runtime has the operator in the standard's domain although the standard does not have it at the model's opset."""
    if node.domain not in ("", "ai.onnx"):
        return False
    opset = max((item.version for item in model.opset_import if item.domain in ("", "ai.onnx")), default=0)
    return node.op_type == "SimplifiedLayerNormalization" or (node.op_type == "LayerNormalization" and opset < 17)


def _replace(node: onnx.NodeProto, opset: int) -> None:
    kept = _KEPT.get(node.op_type)
    if node.op_type in _SAME:
        _become(node, "Identity", 1)
    elif kept is not None:
        _become(node, *kept)
    elif node.op_type in ("QLinearAdd", "QLinearMul") and len(node.input) > 3:
        operands = [node.input[0], node.input[3]]
        del node.input[:]
        node.input.extend(operands)
        _become(node, "Add", 2)
    elif node.op_type in _PRODUCTS:
        _become_product(node, opset)


def _become_product(node: onnx.NodeProto, opset: int) -> None:
    turned = {item.name: item.i for item in node.attribute if item.name.startswith("trans")}
    if turned.get("transBatchA") or turned.get("transBatchB"):
        return
    if not any(turned.values()):
        _become(node, "MatMul", 2)
    elif opset >= 12:
        left, right = ("...ji" if turned.get("transA") else "...ij"), ("...kj" if turned.get("transB") else "...jk")
        _become(node, "Einsum", 2)
        node.attribute.append(onnx.helper.make_attribute("equation", f"{left},{right}->...ik"))


def _become(node: onnx.NodeProto, op_type: str, inputs: int, attributes: tuple[str, ...] = ()) -> None:
    kept = [item for item in node.attribute if item.name in attributes]
    node.domain, node.op_type = "", op_type
    del node.input[inputs:]
    del node.output[1:]
    del node.attribute[:]
    node.attribute.extend(kept)
