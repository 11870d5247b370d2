"""Form changes on shapes, axes and sizes drawn at random: up, down, and there and back."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from opset_models import HYPOTHESIS, assert_same, converted, x_of

from jumar.graph import Evaluator, copy_model, infer_shapes
from jumar.graph.opset import convert_opset


@HYPOTHESIS
@given(data=st.data())
def test_any_axes_survive(data: st.DataObject, evaluator: Evaluator) -> None:
    rank = data.draw(st.integers(1, 4))
    shape = data.draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    places = data.draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True))
    axes = [axis - rank if data.draw(st.booleans()) else axis for axis in places]
    op, opset = data.draw(st.sampled_from([("ReduceSum", 13), ("ReduceMax", 18), ("ReduceMean", 18), ("ReduceL2", 18)]))
    dims, listed = ",".join(map(str, shape)), ", ".join(map(str, axes))
    kept = ",".join("1" if axis in places else str(size) for axis, size in enumerate(shape))
    text = f"agraph (float[{dims}] x) => (float[{kept}] y) <int64[{len(axes)}] a = {{{listed}}}> {{ y = {op}(x, a) }}"
    before, after, _ = converted(text, opset, 11)
    assert_same(before, after, evaluator, {"x": x_of(*shape, edges=False)})


@HYPOTHESIS
@given(data=st.data())
def test_any_pads_survive(data: st.DataObject, evaluator: Evaluator) -> None:
    shape = data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=3))
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, max_size=len(shape), unique=True))
    pads = data.draw(st.lists(st.integers(-1, 3), min_size=2 * len(axes), max_size=2 * len(axes)))
    out = list(shape)
    for position, axis in enumerate(axes):
        out[axis] += pads[position] + pads[position + len(axes)]
    signed = [axis - len(shape) if data.draw(st.booleans()) else axis for axis in axes]
    text = (
        f"agraph (float[{','.join(map(str, shape))}] x) => (float[{','.join(map(str, out))}] y) "
        f"<int64[{len(pads)}] p = {{{', '.join(map(str, pads))}}}, float v = {{1.5}}, int64[{len(axes)}] a = {{{', '.join(map(str, signed))}}}> "
        "{ y = Pad(x, p, v, a) }"
    )
    for version in (13, 10):
        before, after, _ = converted(text, 18, version)
        assert_same(before, after, evaluator, {"x": x_of(*shape, edges=False)})


@HYPOTHESIS
@given(sizes=st.lists(st.integers(0, 4), min_size=2, max_size=4), rest=st.integers(1, 3))
def test_any_split_sizes_survive(sizes: list[int], rest: int, evaluator: Evaluator) -> None:
    names = ", ".join(f"y{number}" for number in range(len(sizes)))
    outputs = ", ".join(f"float[{rest},{size}] y{number}" for number, size in enumerate(sizes))
    text = (
        f"agraph (float[{rest},{sum(sizes)}] x) => ({outputs}) <int64[{len(sizes)}] s = {{{', '.join(map(str, sizes))}}}> "
        f"{{ {names} = Split<axis = 1>(x, s) }}"
    )
    before, after, _ = converted(text, 13, 11)
    assert_same(before, after, evaluator, {"x": x_of(rest, sum(sizes), edges=False)})


@HYPOTHESIS
@given(count=st.integers(1, 4), chunk=st.integers(1, 3), data=st.data())
def test_any_number_of_chunks_survives(count: int, chunk: int, data: st.DataObject, evaluator: Evaluator) -> None:
    last = data.draw(st.integers(1, chunk))
    sizes = [chunk] * (count - 1) + [last]
    assume(-(-sum(sizes) // count) == chunk)  # else the chunks are smaller
    names = ", ".join(f"y{number}" for number in range(count))
    outputs = ", ".join(f"float[{size},2] y{number}" for number, size in enumerate(sizes))
    text = f"agraph (float[{sum(sizes)},2] x) => ({outputs}) {{ {names} = Split<num_outputs = {count}>(x) }}"
    for version in (17, 11):
        before, after, _ = converted(text, 18, version)
        assert_same(before, after, evaluator, {"x": x_of(sum(sizes), 2, edges=False)})


@HYPOTHESIS
@given(shape=st.lists(st.integers(1, 4), min_size=1, max_size=4), data=st.data())
def test_any_softmax_axis_survives_both_ways(shape: list[int], data: st.DataObject, evaluator: Evaluator) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    op = data.draw(st.sampled_from(["Softmax", "LogSoftmax"]))
    dims = ",".join(map(str, shape))
    text = f"agraph (float[{dims}] x) => (float[{dims}] y) {{ y = {op}<axis = {axis}>(x) }}"
    feeds = {"x": x_of(*shape, edges=False)}
    for opset, version in ((13, 11), (13, 9), (11, 13), (11, 18)):
        before, after, _ = converted(text, opset, version)
        assert_same(before, after, evaluator, feeds)


@HYPOTHESIS
@given(size=st.integers(1, 6), data=st.data())
def test_any_slice_survives_both_ways(size: int, data: st.DataObject, evaluator: Evaluator) -> None:
    start, end = data.draw(st.integers(-size - 1, size + 1)), data.draw(st.integers(-size - 1, size + 1))
    stride = data.draw(st.sampled_from([1, 2, -1, -2]))
    count = len(range(size)[start:end:stride])
    assume(count)
    text = (
        f"agraph (float[{size},2] x) => (float[{count},2] y) <int64[1] s = {{{start}}}, int64[1] e = {{{end}}}, int64[1] a = {{0}}, "
        f"int64[1] t = {{{stride}}}> {{ y = Slice(x, s, e, a, t) }}"
    )
    if start == -size - 1 or (stride < 0 and end == -size - 1):
        assume(stride > 0)  # before the beginning, counted backwards: each runtime clamps in its own way
    before, after, _ = converted(text, 11, 9)
    assert_same(before, after, evaluator, {"x": x_of(size, 2, edges=False)})
    again = copy_model(after)
    infer_shapes(again, forget=True)
    convert_opset(again, 13)
    assert_same(before, again, evaluator, {"x": x_of(size, 2, edges=False)})


@HYPOTHESIS
@given(data=st.data())
def test_any_scatter_with_a_reduction_survives(data: st.DataObject, evaluator: Evaluator) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    axis = data.draw(st.integers(0, len(shape) - 1))
    updates = [data.draw(st.integers(1, 5)) if place == axis else size for place, size in enumerate(shape)]
    kind = data.draw(st.sampled_from(["add", "mul", "max", "min"]))
    sizes, others = ",".join(map(str, shape)), ",".join(map(str, updates))
    text = (
        f"agraph (float[{sizes}] x, int64[{others}] i, float[{others}] u) => (float[{sizes}] y) "
        f'{{ y = ScatterElements<axis = {axis}, reduction = "{kind}">(x, i, u) }}'
    )
    random = np.random.default_rng(data.draw(st.integers(0, 9)))
    feeds = {
        "x": x_of(*shape, edges=kind == "add"),
        "i": random.integers(-shape[axis], shape[axis], updates),
        "u": random.standard_normal(updates).astype(np.float32),
    }
    before, after, _ = converted(text, 18, 11)
    assert_same(before, after, evaluator, feeds, written_out=True)


@HYPOTHESIS
@given(data=st.data())
def test_any_resize_of_known_sizes_survives(data: st.DataObject, evaluator: Evaluator) -> None:
    size, wanted = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 9))
    mode = data.draw(st.sampled_from(["linear", "cubic"]))
    place = data.draw(st.sampled_from(["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"]))
    text = (
        f"agraph (float[1,1,{size},4] x) => (float[1,1,{wanted},4] y) <int64[1] s = {{{wanted}}}> "
        f'{{ y = Resize<axes = [2], mode = "{mode}", coordinate_transformation_mode = "{place}">(x, , , s) }}'
    )
    assume(mode == "linear" or place != "align_corners" or wanted > 1)
    before, after, _ = converted(text, 18, 10)
    found = [evaluator.run(model, {"x": x_of(1, 1, size, 4, edges=False)})["y"] for model in (before, after)]
    # Weights are rounded to 32 bits once here and worked out in 32 bits there.
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=1e-5)


@HYPOTHESIS
@given(data=st.data())
def test_any_grid_is_sampled_as_before(data: st.DataObject, evaluator: Evaluator) -> None:
    rows, columns = data.draw(st.integers(2, 5)), data.draw(st.integers(2, 5))
    mode, padding = (
        data.draw(st.sampled_from(["linear", "cubic", "nearest"])),
        data.draw(st.sampled_from(["zeros", "border", "reflection"])),
    )
    assume((mode, padding) != ("cubic", "border"))  # refused
    text = (
        f"agraph (float[2,3,{rows},{columns}] x, float[2,4,5,2] g) => (float[2,3,4,5] y) "
        f'{{ y = GridSample<mode = "{mode}", padding_mode = "{padding}", align_corners = {data.draw(st.integers(0, 1))}>(x, g) }}'
    )
    places = (np.random.default_rng(data.draw(st.integers(0, 9))).standard_normal((2, 4, 5, 2)) * 1.5).astype(np.float32)
    before, after, _ = converted(text, 20, 11)
    feeds = {"x": x_of(2, 3, rows, columns, edges=False), "g": places}
    found = [evaluator.run(model, feeds)["y"] for model in (before, after)]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=2e-5)


def test_a_planted_error_is_seen(evaluator: Evaluator) -> None:
    """A reduction over another axis fails the comparison that the properties use."""
    text = "agraph (float[4,3] x) => (float[1,3] y) <int64[1] a = {0}> { y = ReduceSum(x, a) }"
    before, after, _ = converted(text, 13, 11)
    after.graph[0].attributes["axes"] = ir.AttrInt64s("axes", [1])
    after.graph.outputs[0].shape = None
    with pytest.raises(AssertionError):
        assert_same(before, after, evaluator, {"x": x_of(4, 3, edges=False)})
