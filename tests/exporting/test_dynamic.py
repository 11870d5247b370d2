"""Open dimensions as they are typed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.errors import ShapeError
from jumar.exporting.dynamic import Dynamic, Sizes, parse_dynamic


def test_ranges_choices_and_bare_axes() -> None:
    found = parse_dynamic(["x:0=1..8,2=320|640; a:b:1"])
    assert found.axes == {"x": {0: Sizes(1, 8), 2: Sizes(320, 640, (320, 640))}, "a:b": {1: Sizes(1, 1024)}}
    assert found.to_dict() == {"x": {"0": "1..8", "2": "320|640"}, "a:b": {"1": "1..1024"}}
    assert parse_dynamic(["x:0=1~8"]) == parse_dynamic(["x:0=1..8"])


@pytest.mark.parametrize(
    "text", ["x", "x:", ":0", "x:a", "x:0=", "x:0=8..1", "x:0=0..4", "x:0=1|0", "x:0=1,0=2", "x:0=1..99999999999", "x:0=1|"]
)
def test_what_is_not_of_this_form_is_refused(text: str) -> None:
    with pytest.raises(ShapeError, match="states no open dimensions"):
        parse_dynamic([text])


@given(st.text("x:0123456789=.|~,; ", max_size=24))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse_dynamic([text])
    except ShapeError:
        return
    assert all(1 <= sizes.low <= sizes.high for axes in found.axes.values() for sizes in axes.values())
    again = parse_dynamic(
        [f"{name}:{','.join(f'{axis}={sizes}' for axis, sizes in axes.items())}" for name, axes in found.to_dict().items()]
    )
    assert again == found


@given(st.integers(1, 60), st.integers(0, 60))
def test_sizes_to_try_lie_within(low: int, more: int) -> None:
    tried = Sizes(low, low + more).tried()
    assert tried and all(low <= size <= low + more for size in tried) and len(set(tried)) == len(tried)


def test_shapes_to_compare_at_differ_from_the_given_one_and_go_together() -> None:
    dynamic = parse_dynamic(["x:0=1..8;y:0=1..8"])
    shapes = dynamic.shapes({"x": (2, 3), "y": (2, 5)})
    assert {"x": (1, 3), "y": (1, 5)} in shapes and {"x": (8, 3), "y": (8, 5)} in shapes
    assert all(shape["x"][0] == shape["y"][0] for shape in shapes)
    assert Dynamic().shapes({"x": (2, 3)}) == []


@pytest.mark.parametrize(("text", "message"), [("z:0", "no input `z`"), ("x:2", "dimension 2"), ("x:1=4..8", "dimension 1")])
def test_dimensions_that_the_inputs_do_not_have(text: str, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        parse_dynamic([text]).check({"x": (2, 3)})
