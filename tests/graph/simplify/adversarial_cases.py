"""The small models on which the retired Ascend surgeon was probed, one for each line of its record, and one for each rule that was not.

A name is ``rule: probe``, as the record writes them; weights are given as arrays because ONNX text would need every element spelled out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

NOT_PROBED = "not probed"
_RANDOM = np.random.default_rng(17)


@dataclass(frozen=True)
class Probe:
    """A model, and the inputs that show a wrong rewrite (others are drawn from a normal distribution, five times as wide)."""

    text: str
    opset: int = 13
    weights: Mapping[str, Any] = field(default_factory=dict)
    feeds: Mapping[str, Any] = field(default_factory=dict)

    def model(self) -> ir.Model:
        proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {self.opset}]>\n{self.text}')
        proto.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in self.weights.items())
        onnx.checker.check_model(proto, full_check=True)
        return ir.from_proto(proto)

    def inputs(self) -> dict[str, Any]:
        drawn, random = {}, np.random.default_rng(5)
        for value in self.model().graph.inputs:
            shape = [size if isinstance(size, int) else 3 for size in value.shape]
            drawn[value.name] = (random.standard_normal(shape) * 5).astype(value.dtype.numpy())
        return {**drawn, **self.feeds}


def numbers(*shape: int) -> Any:
    return _RANDOM.standard_normal(shape).astype(np.float32)


def integers(*values: int) -> Any:
    return np.array(values, np.int64)


def conv1d(form: str, shape: str, weight: tuple[int, ...], opset: int = 11, source: str = "1,4,20") -> Probe:
    """Relu, a convolution of one dimension, Tanh."""
    text = f"agraph (float[{source}] x) => (float[{shape}] y) {{ a = Relu(x) c = Conv<{form}>(a, w, b) y = Tanh(c) }}"
    return Probe(text, opset, {"w": numbers(*weight), "b": numbers(weight[0])})


def slices(text: str, outputs: str = "float[1,3,3,4] y", steps: bool = False) -> Probe:
    weights = {"s1": integers(1, 1), "e1": integers(7, 7), "a1": integers(2, 3), "s2": integers(0), "e2": integers(3), "a2": integers(1)}
    weights |= {"t1": integers(2, 1), "one": integers(1), "s3": integers(0), "e3": integers(3), "a3": integers(3)} if steps else {}
    used = {name: array for name, array in weights.items() if name in text.replace("(", ",").replace(")", ",").replace(" ", "").split(",")}
    return Probe(f"agraph (float[1,4,8,8] x) => ({outputs}) {{ {text} }}", 11, used)


def pad(pads: tuple[int, ...], shape: str) -> Probe:
    return Probe(
        f'agraph (float[1,2,6,6] x) => (float[{shape}] y) {{ a = Relu(x) y = Pad<mode="reflect">(a, p) }}', 11, {"p": integers(*pads)}
    )


_MERGED = "KnowledgeMergeConsecutiveSlice"
_CONV1D = "KnowledgeConv1d2Conv2d"
_REFLECT = "KnowledgeModifyReflectionPad"

PROBES: dict[tuple[str, str], Probe] = {
    (_CONV1D, "symmetric pads"): conv1d("pads=[1,1]", "1,6,20", (6, 4, 3)),
    (_CONV1D, "opset 13"): conv1d("pads=[1,1]", "1,6,20", (6, 4, 3), 13),
    (_CONV1D, "group conv, stride 2"): conv1d("pads=[1,1], group=2, strides=[2]", "1,6,10", (6, 2, 3)),
    (_CONV1D, "asymmetric pads [2,0]"): conv1d("pads=[2,0]", "1,6,20", (6, 4, 3)),
    (_CONV1D, "Concat axis=2 in the subgraph"): Probe(
        "agraph (float[1,4,20] x) => (float[1,6,40] y) { a = Conv<pads=[1,1]>(x, w) r = Relu(a) c = Concat<axis=2>(a, r) y = Tanh(c) }",
        11,
        {"w": numbers(6, 4, 3)},
    ),
    (_CONV1D, "Add with a [1,C,1] constant"): Probe(
        "agraph (float[1,4,20] x) => (float[1,6,20] y) { a = Conv<pads=[1,1]>(x, w) s = Add(a, c) y = Relu(s) }",
        11,
        {"w": numbers(6, 4, 3), "c": numbers(1, 6, 1)},
    ),
    (_MERGED, "slice merge 2 axes, no steps"): slices("a = Slice(x, s1, e1, a1) b = Slice(a, s2, e2, a2) y = Relu(b)", "float[1,3,6,6] y"),
    (_MERGED, "slice merge, first slice is a graph output too"): slices(
        "a = Slice(x, s1, e1, a1) b = Slice(a, s2, e2, a2) y = Relu(b)", "float[1,3,6,6] y, float[1,4,6,6] a"
    ),
    (_MERGED, "slice merge, only the last has steps"): slices(
        "a = Slice(x, s2, e2, a2) b = Slice(a, s1, e1, a1, t1) y = Relu(b)", "float[1,3,3,6] y", True
    ),
    (_MERGED, "slice merge, first 2 axes without steps, last with"): slices(
        "a = Slice(x, s1, e1, a1) b = Slice(a, s2, e2, a2, one) y = Relu(b)", "float[1,3,6,6] y", True
    ),
    (_MERGED, "slice merge, all with steps, inner is a graph output"): slices(
        "a = Slice(x, s1, e1, a1, t1) b = Slice(a, s2, e2, a2, one) c = Slice(b, s3, e3, a3, one) y = Relu(c)",
        "float[1,3,3,3] y, float[1,4,3,6] a",
        True,
    ),
    ("KnowledgeTransposeLargeInputConv", NOT_PROBED): Probe(
        """agraph (float[1,2,3,20000] x) => (float[1,2,1,6666] y) {
            a = Selu(x) b = Conv<pads=[1,1,1,1]>(a, w, c) d = Selu(b) e = Conv<pads=[0,1,0,1]>(d, v) s = Add(e, x) y = MaxPool<kernel_shape=[3,3], strides=[3,3]>(s)
        }""",
        11,
        {"w": numbers(2, 2, 3, 3), "c": numbers(2), "v": numbers(2, 2, 1, 3)},
    ),
    ("KnowledgeMergeConsecutiveConcat", "inner Concat is the second input"): Probe(
        "agraph (float[1,2] x, float[1,2] z) => (float[1,6] y) { n = Neg(x) i = Concat<axis=1>(n, z) y = Concat<axis=1>(x, i) }"
    ),
    ("KnowledgeTypeCast", "Mul then Div by 100000 on values 30000..50000"): Probe(
        "agraph (int64[4] x) => (int64[4] y) <int64[1] k = {100000}> { m = Mul(x, k) d = Div(m, k) y = Add(d, d) }",
        feeds={"x": integers(30000, 40000, 45000, 50000)},
    ),
    ("KnowledgeSplitQKVMatmul", NOT_PROBED): Probe(
        """agraph (float[1,4,6] x) => (float[1,2,4,3] q, float[1,2,4,3] k, float[1,2,4,3] v)
        <int64[5] shape = {1, 4, 3, 2, 3}, int64 zero = {0}, int64 one = {1}, int64 two = {2}> {
            m = MatMul(x, w) a = Add(m, b) r = Reshape(a, shape) t = Transpose<perm=[2,0,3,1,4]>(r)
            q = Gather<axis=0>(t, zero) k = Gather<axis=0>(t, one) v = Gather<axis=0>(t, two)
        }""",
        weights={"w": numbers(6, 18), "b": numbers(18)},
    ),
    ("KnowledgeSplitLargeKernelConv", "kernel 1x400, pads 10"): Probe(
        "agraph (float[1,1,1,600] x) => (float[1,2,1,221] y) { a = Conv<pads=[0,10,0,10]>(x, w, b) y = Relu(a) }",
        11,
        {"w": numbers(2, 1, 1, 400), "b": numbers(2)},
    ),
    ("KnowledgeResizeModeToNearest", "linear x2"): Probe(
        """agraph (float[1,2,5,5] x) => (float[1,2,10,10] y) <float[4] scales = {1.0, 1.0, 2.0, 2.0}> {
            a = Relu(x) y = Resize<mode="linear", coordinate_transformation_mode="half_pixel">(a, , scales)
        }"""
    ),
    ("KnowledgeTopkFix", "any"): Probe(
        "agraph (float[2,8] x) => (float[2,3] y, int64[2,3] i) <int64[1] k = {3}> { a = Neg(x) y, i = TopK<axis=1>(a, k) }", 11
    ),
    ("KnowledgeMergeCasts", "float->int32->float"): Probe(
        "agraph (float[2,8] x) => (float[2,8] y) { i = Cast<to=6>(x) f = Cast<to=1>(i) y = Neg(f) }"
    ),
    ("KnowledgeEmptySliceFix", "start 2 end 1"): Probe(
        """agraph (float[1,4] x) => (float[1,8] y) <int64[1] s = {2}, int64[1] e = {1}, int64[1] axis = {1}> {
            n = Neg(x) empty = Slice(x, s, e, axis) y = Concat<axis=1>(n, empty, x)
        }"""
    ),
    ("KnowledgeDynamicReshape", NOT_PROBED): Probe(
        """agraph (float[N,3,M,4] x) => (float[N,M,12] y) <int64 zero = {0}, int64 two = {2}, int64[1] axis = {0}, int64[1] rest = {12}> {
            t = Transpose<perm=[0,2,1,3]>(x) s = Shape(x) n = Gather(s, zero) m = Gather(s, two)
            nn = Unsqueeze(n, axis) mm = Unsqueeze(m, axis) target = Concat<axis=0>(nn, mm, rest) y = Reshape(t, target)
        }""",
        feeds={"x": numbers(2, 3, 5, 4)},
    ),
    ("KnowledgeGatherToSplit", "indices 0 and -1 with a gap"): Probe(
        """agraph (float[2,3,4] x) => (float[2,4] y, float[2,4] z) <int64 first = {0}, int64 last = {-1}> {
            r = Relu(x) a = Gather<axis=1>(r, first) b = Gather<axis=1>(r, last) y = Neg(a) z = Abs(b)
        }"""
    ),
    ("KnowledgeGatherToSplit", "different axes"): Probe(
        """agraph (float[2,3,4] x) => (float[2,4] y, float[2,3] z) <int64 first = {0}, int64 last = {1}> {
            r = Relu(x) a = Gather<axis=1>(r, first) b = Gather<axis=2>(r, last) y = Neg(a) z = Abs(b)
        }"""
    ),
    ("KnowledgeAvgPoolSplit", "no pad"): Probe(
        "agraph (float[1,2,32,32] x) => (float[1,2,2,2] y) { a = Relu(x) y = AveragePool<kernel_shape=[16,16], strides=[16,16]>(a) }", 11
    ),
    ("KnowledgeAvgPoolSplit", "pads 8, count_include_pad"): Probe(
        """agraph (float[1,2,32,32] x) => (float[1,2,3,3] y) {
            a = Relu(x) y = AveragePool<kernel_shape=[16,16], strides=[16,16], pads=[8,8,8,8], count_include_pad=1>(a)
        }""",
        11,
    ),
    ("KnowledgeBNFolding", NOT_PROBED): Probe(
        """agraph (float[2,5,3] x) => (float[2,5,3] y) {
            t = Transpose<perm=[0,2,1]>(x) n = BatchNormalization<epsilon=0.001>(t, g, b, m, v) y = Transpose<perm=[0,2,1]>(n)
        }""",
        weights={"g": numbers(3), "b": numbers(3), "m": numbers(3), "v": np.abs(numbers(3)) + np.float32(0.1)},
    ),
    (_REFLECT, "pads 2 all round"): pad((0, 0, 2, 2, 0, 0, 2, 2), "1,2,10,10"),
    (_REFLECT, "pads 1 all round"): pad((0, 0, 1, 1, 0, 0, 1, 1), "1,2,8,8"),
    (_REFLECT, "asymmetric pads"): pad((0, 0, 1, 2, 0, 0, 3, 0), "1,2,10,8"),
    (_REFLECT, "two Pads in one model"): Probe(
        """agraph (float[1,2,6,6] x) => (float[1,2,14,14] y) {
            a = Pad<mode="reflect">(x, p) r = Neg(a) y = Pad<mode="reflect">(r, p)
        }""",
        11,
        {"p": integers(0, 0, 2, 2, 0, 0, 2, 2)},
    ),
    ("KnowledgeBigKernel", NOT_PROBED): Probe(
        """agraph (float[1,4,6] x, float[1,1,1,4] mask) => (float[1,4,6] y) <int64[4] heads = {1, 4, 2, 3}, int64[3] whole = {1, 4, 6}, float scale = {1.7320508}> {
            q0 = MatMul(x, wq) q1 = Add(q0, bq) q2 = Reshape(q1, heads) q = Transpose<perm=[0,2,1,3]>(q2)
            k0 = MatMul(x, wk) k1 = Add(k0, bk) k2 = Reshape(k1, heads) k = Transpose<perm=[0,2,3,1]>(k2)
            v0 = MatMul(x, wv) v1 = Add(v0, bv) v2 = Reshape(v1, heads) v = Transpose<perm=[0,2,1,3]>(v2)
            s = MatMul(q, k) d = Div(s, scale) m = Add(d, mask) p = Softmax<axis=-1>(m)
            c = MatMul(p, v) t = Transpose<perm=[0,2,1,3]>(c) r = Reshape(t, whole) o = MatMul(r, wo) a = Add(bo, o) y = Add(a, x)
        }""",
        weights={f"w{name}": numbers(6, 6) for name in "qkvo"} | {f"b{name}": numbers(6) for name in "qkvo"},
    ),
}
