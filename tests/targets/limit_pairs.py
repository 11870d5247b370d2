"""For every line of ``limits.json`` a node that breaks it and one that keeps it: operator, start of its English text, bad, good."""

from __future__ import annotations

from typing import Any

import numpy as np

from jumar.targets import InputFacts, NodeFacts

ABSENT = InputFacts(present=False)
ANY = InputFacts(dtype="FLOAT")


def shaped(*sizes: int | None, dtype: str = "FLOAT") -> InputFacts:
    return InputFacts(dtype=dtype, shape=sizes)


def of_rank(rank: int) -> InputFacts:
    return shaped(*([2] * rank))


def constant(*values: Any, dtype: str = "INT64") -> InputFacts:
    return InputFacts(dtype=dtype, shape=(len(values),), constant=np.array(values), is_constant=True)


def node(op: str, *inputs: InputFacts, used: tuple[int, ...] = (0,), **attributes: Any) -> NodeFacts:
    return NodeFacts("", op, attributes, inputs, frozenset(used))


Pair = tuple[str, str, NodeFacts, NodeFacts]


def attribute(op: str, start: str, bad: dict[str, Any], good: dict[str, Any]) -> Pair:
    return op, start, node(op, ANY, **bad), node(op, ANY, **good)


def shared() -> list[Pair]:
    """Limits that several operators have in common."""
    pools, convolutions, averages = ("AveragePool", "MaxPool", "LpPool"), ("Conv", "ConvTranspose"), ("AveragePool", "MaxPool")
    pairs = [attribute(op, "select_last_index", {"select_last_index": 1}, {}) for op in ("ArgMax", "ArgMin")]
    pairs += [attribute(op, "kernel_shape must have", {"kernel_shape": [1, 2, 3, 4]}, {"kernel_shape": [3, 3]}) for op in pools]
    pairs += [attribute(op, "auto_pad=SAME_LOWER", {"auto_pad": "SAME_LOWER"}, {"auto_pad": "SAME_UPPER"}) for op in pools]
    pairs += [attribute(op, "pads has an odd", {"pads": [1, 1, 1]}, {"pads": [1, 1, 1, 1]}) for op in (*pools, *convolutions)]
    pairs += [attribute(op, "strides over 63", {"strides": [64, 1]}, {"strides": [63, 63]}) for op in averages]
    pairs += [attribute(op, "kernels over 255", {"kernel_shape": [17, 17]}, {"kernel_shape": [16, 16]}) for op in averages]
    pairs += [(op, "the input must have 3", node(op, of_rank(2)), node(op, of_rank(4))) for op in convolutions]
    sizes = {
        "dilations": ("dilations are", 255),
        "strides": ("strides are", 63),
        "pads": ("pads are", 255),
        "kernel_shape": ("kernel sizes", 255),
    }
    pairs += [attribute("Conv", start, {key: [1, most + 1]}, {key: [most, most]}) for key, (start, most) in sizes.items()]
    unread = ("clip", "activation_alpha", "activation_beta")
    pairs += [attribute(op, f"{name} is not read", {name: [1.0]}, {}) for op in ("GRU", "LSTM") for name in unread]
    pairs += [attribute(op, "layout=1", {"layout": 1}, {"layout": 0}) for op in ("GRU", "LSTM")]
    reduced = ("ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd")
    noop = {"noop_with_empty_axes": 1}
    return pairs + [(op, "noop_with", node(op, ANY, **noop), node(op, ANY, constant(0), **noop)) for op in reduced]


PAIRS: list[Pair] = [
    *shared(),
    ("NonZero", "its output size", node("NonZero", ANY), node("NonZero", constant(1))),
    ("Unique", "its output size", node("Unique", ANY), node("Unique", constant(1))),
    ("Compress", "its output size", node("Compress", ANY, ANY), node("Compress", ANY, constant(1))),
    attribute("AveragePool", "count_include_pad", {"count_include_pad": 1, "pads": [0, 1]}, {"count_include_pad": 1, "pads": [0, 0]}),
    attribute("BitShift", "direction", {}, {"direction": "LEFT"}),
    ("Clip", "both min and max", node("Clip", ANY, ABSENT, ABSENT), node("Clip", ANY, ABSENT, constant(6.0))),
    attribute("Conv", "none of kernel_shape", {"group": 1}, {"strides": [1, 1]}),
    ("Conv", "auto_pad on 5-D", node("Conv", of_rank(5), auto_pad="SAME_UPPER"), node("Conv", of_rank(4), auto_pad="SAME_UPPER")),
    attribute("ConvTranspose", "kernel_shape is mandatory", {}, {"kernel_shape": [2, 2]}),
    ("ConvTranspose", "only 4-D input", node("ConvTranspose", of_rank(3)), node("ConvTranspose", of_rank(4))),
    attribute("ConvTranspose", "dilations other", {"dilations": [2, 2]}, {"dilations": [1, 1]}),
    attribute("ConvTranspose", "auto_pad=SAME", {"auto_pad": "SAME_UPPER"}, {"auto_pad": "VALID"}),
    attribute("DepthToSpace", "blocksize", {"blocksize": 1}, {"blocksize": 2}),
    attribute("Einsum", "equation", {}, {"equation": "ij->ji"}),
    attribute("GRU", "linear_before_reset=0", {}, {"linear_before_reset": 1}),
    attribute("GRU", "activations other", {"activations": ["Relu", "Tanh"]}, {"activations": ["Sigmoid", "Tanh"]}),
    attribute("LSTM", "activations other", {"activations": ["Sigmoid", "Relu", "Tanh"]}, {"activations": ["Sigmoid", "Tanh", "Tanh"]}),
    attribute("LSTM", "input_forget", {"input_forget": 1}, {"input_forget": 0}),
    ("GRU", "behind the end", node("GRU", *[ANY] * 5), node("GRU", *[ANY] * 5, used=(1,))),
    attribute("GRU", "direction=reverse", {"direction": "reverse"}, {"direction": "bidirectional"}),
    ("GRU", "the backward half", node("GRU", ANY, used=(0, 1), direction="bidirectional"), node("GRU", ANY, direction="bidirectional")),
    ("LSTM", "the peepholes", node("LSTM", *[ANY] * 8), node("LSTM", *[ANY] * 7, ABSENT)),
    ("LSTM", "W, R and B", node("LSTM", ANY, constant(1), ANY), node("LSTM", ANY, constant(1), constant(1), ABSENT)),
    ("LSTM", "Y_h and Y_c", node("LSTM", ANY, used=(2,), direction="reverse"), node("LSTM", ANY, direction="reverse")),
    ("LSTM", "the forward halves", node("LSTM", ANY, used=(1,), direction="bidirectional"), node("LSTM", ANY, used=(0, 1))),
    ("Gather", "negative indices", node("Gather", ANY, constant(0, -1)), node("Gather", ANY, constant(0, 1))),
    attribute("GatherND", "batch_dims", {"batch_dims": 1}, {}),
    ("GatherND", "negative indices", node("GatherND", ANY, constant(-1)), node("GatherND", ANY, shaped(1, dtype="INT64"))),
    ("ScatterND", "negative indices", node("ScatterND", ANY, constant(-1)), node("ScatterND", ANY, constant(3))),
    attribute("ScatterND", "reduction is not read", {"reduction": "add"}, {"reduction": "none"}),
    attribute("ScatterND", "reduction=mul", {"reduction": "mul"}, {"reduction": "add"}),
    attribute("ScatterElements", "reduction is not read:", {"reduction": "add"}, {}),
    attribute("ScatterElements", "reduction is not read in", {"reduction": "add"}, {}),
    attribute("IsInf", "only the form", {"detect_negative": 0}, {"detect_positive": 1}),
    attribute("LRN", "size must be odd", {"size": 4}, {"size": 5}),
    attribute("LpPool", "ceil_mode and dilations", {"dilations": [2, 2]}, {"ceil_mode": 0}),
    ("MaxPool", "the second output", node("MaxPool", ANY, used=(0, 1)), node("MaxPool", ANY)),
    attribute("MaxPool", "storage_order", {"storage_order": 1}, {"storage_order": 0}),
    attribute("MaxPool", "kernel_shape is mandatory", {}, {"kernel_shape": [2, 2]}),
    ("MaxPool", "dilations other", node("MaxPool", of_rank(4), dilations=[2, 2]), node("MaxPool", of_rank(5), dilations=[2, 2, 2])),
    attribute("MaxRoiPool", "pooled_shape", {}, {"pooled_shape": [2, 2]}),
    attribute("MaxUnpool", "kernel_shape", {}, {"kernel_shape": [2, 2]}),
    ("Mod", "fmod is ignored:", node("Mod", shaped(2, dtype="INT32"), fmod=1), node("Mod", shaped(2, dtype="INT32"))),
    ("Mod", "fmod is ignored by", node("Mod", shaped(2), fmod=1), node("Mod", shaped(2, dtype="INT32"), fmod=1)),
    (
        "NonMaxSuppression",
        "max_output_boxes_per_class must",
        node("NonMaxSuppression", ANY, ANY, shaped(1, dtype="INT64")),
        node("NonMaxSuppression", ANY, ANY, constant(5)),
    ),
    attribute("OneHot", "axis under -1", {"axis": -2}, {"axis": -1}),
    ("Pad", "axes (opset 18)", node("Pad", ANY, constant(1, 1), ABSENT, constant(0)), node("Pad", ANY, constant(1, 1))),
    ("Pad", "only the value 0", node("Pad", ANY, constant(1, 1), constant(1.0)), node("Pad", ANY, constant(1, 1), constant(0.0))),
    ("Pad", "negative pads", node("Pad", ANY, constant(-1, 0)), node("Pad", ANY, constant(1, 0))),
    ("Resize", "the scales input", node("Resize", ANY, ANY), node("Resize", ANY, ABSENT, ABSENT, constant(2, 2))),
    attribute("Resize", "mode must be nearest, linear or cubic", {"mode": "area"}, {"mode": "cubic"}),
    attribute("Resize", "mode must be nearest or linear", {"mode": "cubic"}, {"mode": "linear"}),
    attribute("Resize", "cubic is parsed", {"mode": "cubic"}, {"mode": "linear"}),
    attribute("Resize", "nearest_mode=ceil", {"nearest_mode": "ceil"}, {"mode": "linear", "nearest_mode": "ceil"}),
    attribute(
        "Resize",
        "asymmetric nearest",
        {"coordinate_transformation_mode": "asymmetric"},
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    attribute(
        "Resize",
        "this coordinate mode",
        {"coordinate_transformation_mode": "tf_crop_and_resize"},
        {"coordinate_transformation_mode": "align_corners"},
    ),
    attribute("Resize", "antialias", {"antialias": 1}, {"keep_aspect_ratio_policy": "stretch"}),
    attribute("Resize", "cubic_coeff_a", {"mode": "cubic", "cubic_coeff_a": -0.5}, {"mode": "cubic", "cubic_coeff_a": -0.75}),
    ("Resize", "scales must be", node("Resize", ANY, ABSENT, ANY), node("Resize", ANY, ABSENT, constant(1.0, 2.0))),
    ("Resize", "sizes must be", node("Resize", ANY, ABSENT, ABSENT, ANY), node("Resize", ANY, ABSENT, ABSENT, constant(2, 2))),
    attribute("RoiAlign", "mode is not read", {"mode": "max"}, {"mode": "avg"}),
    attribute("Selu", "alpha and gamma", {"alpha": 1.5}, {"alpha": 1.6732632423543772}),
    attribute("Shape", "start and end", {"start": 1}, {"start": 0}),
    (
        "Slice",
        "a step other than 1",
        node("Slice", ANY, ANY, ANY, constant(2, 3), constant(1, 2)),
        node("Slice", ANY, ANY, ANY, constant(2, 3), constant(2, 1)),
    ),
    ("Softmax", "before opset 13", node("Softmax", of_rank(3)), node("Softmax", of_rank(3), axis=-1)),
    ("TopK", "K over 4096", node("TopK", ANY, constant(4097)), node("TopK", ANY, constant(4096))),
    attribute("Transpose", "perm is mandatory", {}, {"perm": [1, 0]}),
    ("Trilu", "1 or 2 inputs", node("Trilu"), node("Trilu", ANY)),
    attribute("Unique", "axis is not read", {"axis": 0}, {}),
    ("Unique", "the second output", node("Unique", ANY, used=(0, 1)), node("Unique", ANY, used=(0, 2))),
    attribute("Unsqueeze", "axes is mandatory", {}, {"axes": [0]}),
    attribute("Upsample", "mode must be", {"mode": "cubic"}, {"mode": "linear"}),
    attribute("EyeLike", "k must be 0", {"k": 1}, {}),
    attribute("Flatten", "a negative axis", {"axis": -1}, {"axis": 1}),
    ("GatherElements", "the data must have", node("GatherElements", of_rank(1)), node("GatherElements", of_rank(2))),
    ("ReverseSequence", "the input must have", node("ReverseSequence", of_rank(1)), node("ReverseSequence", of_rank(2))),
    ("Expand", "shape must be", node("Expand", ANY, shaped(2, dtype="INT64")), node("Expand", ANY, constant(2, 3))),
    ("MatMul", "operands of 1 to 6", node("MatMul", of_rank(2), of_rank(7)), node("MatMul", of_rank(6), of_rank(6))),
    attribute("GlobalLpPool", "p is not read", {"p": 3}, {"p": 2}),
    attribute("TfIdfVectorizer", "none of its", {"mode": "TF"}, {}),
    attribute("Cast", "the parser refuses target types", {"to": 8}, {"to": 1}),
    attribute("RandomNormal", "dtype", {"dtype": 16}, {}),
    attribute("RandomNormalLike", "dtype", {"dtype": 16}, {}),
    attribute("RandomUniformLike", "dtype", {"dtype": 16}, {}),
    attribute("RandomUniform", "dtype", {"dtype": 11}, {"dtype": 6}),
    (
        "Resize",
        "5-D input",
        node("Resize", of_rank(5), mode="linear"),
        node("Resize", of_rank(5), mode="linear", coordinate_transformation_mode="align_corners"),
    ),
    attribute("AveragePool", "ceil_mode", {"ceil_mode": 1, "auto_pad": "VALID"}, {"ceil_mode": 1}),
    attribute("MaxPool", "auto_pad=VALID", {"ceil_mode": 1, "auto_pad": "VALID"}, {"auto_pad": "VALID"}),
    ("Hardmax", "only 2-D", node("Hardmax", of_rank(3)), node("Hardmax", of_rank(2))),
    (
        "NonMaxSuppression",
        "the thresholds",
        node("NonMaxSuppression", ANY, ANY, constant(5), ANY),
        node("NonMaxSuppression", ANY, ANY, constant(5), constant(0.5)),
    ),
    (
        "NonMaxSuppression",
        "max_output_boxes_per_class over",
        node("NonMaxSuppression", ANY, ANY, constant(701)),
        node("NonMaxSuppression", ANY, ANY, constant(700)),
    ),
    attribute("NonMaxSuppression", "center_point_box", {"center_point_box": 1}, {}),
    ("*", "tensors have 1 to 8", node("Relu", of_rank(9)), node("Relu", of_rank(8))),
]
