"""A convolutional network in plain numpy: forward, backward, Adam. Enough to train on 8 x 8 digits in seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = Any
CHANNELS = (16, 32)
CLASSES = 10


def patches(x: Array) -> Array:
    """The 3 x 3 surroundings of every pixel, padded with zeros: [N, H, W, C * 9]."""
    wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(x.shape[0], x.shape[2], x.shape[3], -1)


def back(gradient: Array, shape: tuple[int, ...]) -> Array:
    """The gradient of :func:`patches`."""
    count, channels, height, width = shape
    parts = gradient.reshape(count, height, width, channels, 3, 3)
    wide = np.zeros((count, channels, height + 2, width + 2))
    for row in range(3):
        for column in range(3):
            wide[:, :, row : row + height, column : column + width] += parts[..., row, column].transpose(0, 3, 1, 2)
    return wide[:, :, 1:-1, 1:-1]


def pooled(x: Array) -> tuple[Array, Array]:
    """Largest of 2 x 2, and where it is."""
    count, channels, height, width = x.shape
    tiles = x.reshape(count, channels, height // 2, 2, width // 2, 2)
    best = tiles.max(axis=(3, 5), keepdims=True)
    chosen = tiles == best
    return best[:, :, :, 0, :, 0], chosen / chosen.sum(axis=(3, 5), keepdims=True)


def train(x: Array, y: Array, epochs: int = 25, batch: int = 50) -> onnx.ModelProto:
    """The network as ONNX: two convolutions with Relu and MaxPool, one Gemm."""
    random = np.random.default_rng(0)
    shapes = [(9, CHANNELS[0]), (CHANNELS[0],), (9 * CHANNELS[0], CHANNELS[1]), (CHANNELS[1],), (CHANNELS[1] * 4, CLASSES), (CLASSES,)]
    weights = [random.standard_normal(shape) * np.sqrt(2 / shape[0]) if len(shape) == 2 else np.zeros(shape) for shape in shapes]
    moments = [(np.zeros(shape), np.zeros(shape)) for shape in shapes]
    step = 0
    for _ in range(epochs):
        order = random.permutation(len(x))
        for start in range(0, len(x), batch):
            chosen = order[start : start + batch]
            step += 1
            for index, gradient in enumerate(gradients(weights, x[chosen].astype(np.float64), y[chosen])):
                first, second = moments[index]
                first += 0.1 * (gradient - first)
                second += 0.001 * (gradient**2 - second)
                weights[index] = weights[index] - 3e-3 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return to_onnx(weights)


def gradients(weights: list[Array], x: Array, y: Array) -> list[Array]:
    w1, b1, w2, b2, w3, b3 = weights
    p1 = patches(x)
    a1 = (p1 @ w1 + b1).transpose(0, 3, 1, 2)
    m1, where1 = pooled(np.maximum(a1, 0))
    p2 = patches(m1)
    a2 = (p2 @ w2 + b2).transpose(0, 3, 1, 2)
    m2, where2 = pooled(np.maximum(a2, 0))
    flat = m2.reshape(len(x), -1)
    scores = flat @ w3 + b3
    exponents = np.exp(scores - scores.max(axis=1, keepdims=True))
    d = exponents / exponents.sum(axis=1, keepdims=True)
    d[np.arange(len(x)), y] -= 1
    d /= len(x)
    g3, h3 = flat.T @ d, d.sum(axis=0)
    d = ((d @ w3.T).reshape(m2.shape)[:, :, :, None, :, None] * where2).reshape(a2.shape) * (a2 > 0)
    d = d.transpose(0, 2, 3, 1)
    g2, h2 = p2.reshape(-1, p2.shape[-1]).T @ d.reshape(-1, d.shape[-1]), d.sum(axis=(0, 1, 2))
    d = (back(d @ w2.T, m1.shape)[:, :, :, None, :, None] * where1).reshape(a1.shape) * (a1 > 0)
    d = d.transpose(0, 2, 3, 1)
    return [p1.reshape(-1, 9).T @ d.reshape(-1, d.shape[-1]), d.sum(axis=(0, 1, 2)), g2, h2, g3, h3]


def to_onnx(weights: list[Array]) -> onnx.ModelProto:
    w1, b1, w2, b2, w3, b3 = (weight.astype(np.float32) for weight in weights)
    arrays = {
        "w1": w1.T.reshape(CHANNELS[0], 1, 3, 3),
        "b1": b1,
        "w2": w2.T.reshape(CHANNELS[1], CHANNELS[0], 3, 3),
        "b2": b2,
        "w3": w3,
        "b3": b3,
    }
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("MaxPool", ["r1"], ["m1"], "pool1", **window),
        helper.make_node("Conv", ["m1", "w2", "b2"], ["c2"], "conv2", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"], "relu2"),
        helper.make_node("MaxPool", ["r2"], ["m2"], "pool2", **window),
        helper.make_node("Flatten", ["m2"], ["f"], "flat"),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], "fc"),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, CLASSES])],
        [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in arrays.items()],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
