"""Nested arguments and results come back as they were, and every tensor has a clean name of its own."""

from __future__ import annotations

import re
from collections import OrderedDict, namedtuple
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.errors import UsageError
from jumar.exporting.structure import Path, clean, input_names, output_names, path_text, take_apart, unique

Pair = namedtuple("Pair", "left right")


@dataclass
class Agent:
    position: Any
    kind: str


class Store(Mapping[str, Any]):
    """A mapping that is no dict, and takes new values."""

    def __init__(self, items: dict[str, Any]) -> None:
        self.items_ = dict(items)

    def __copy__(self) -> Store:
        return Store(self.items_)

    def __getitem__(self, key: str) -> Any:
        return self.items_[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.items_[key] = value

    def __iter__(self) -> Iterator[str]:
        return iter(self.items_)

    def __len__(self) -> int:
        return len(self.items_)


class Graph:
    """Like the graphs of PyTorch Geometric: typed stores, put together from a dict."""

    def __init__(self, stores: dict[str, Any]) -> None:
        self.stores = stores

    def to_dict(self) -> dict[str, Any]:
        return self.stores

    @classmethod
    def from_dict(cls, stores: dict[str, Any]) -> Graph:
        return cls(stores)


def is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def same(one: Any, other: Any) -> bool:
    if is_array(one) or is_array(other):
        return one is other
    if isinstance(one, Mapping):
        return type(one) is type(other) and list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Agent):
        return isinstance(other, Agent) and same(one.position, other.position) and one.kind == other.kind
    if isinstance(one, Graph):
        return isinstance(other, Graph) and same(one.stores, other.stores)
    return bool(one == other)


keys = st.sampled_from(["a", "b", "c", "a.b", "0", "x:y"])
leaves = st.one_of(st.builds(lambda: np.zeros(2)), st.none(), st.integers(0, 9), st.just("word"), st.booleans())
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=3),
        st.dictionaries(keys, inner, max_size=3).map(OrderedDict),
        st.dictionaries(keys, inner, max_size=3).map(Store),
        st.dictionaries(keys, inner, max_size=3).map(Graph),
        st.builds(Pair, inner, inner),
        st.builds(Agent, inner, st.just("car")),
    ),
    max_leaves=12,
)


@given(trees)
def test_what_is_taken_apart_comes_back(tree: Any) -> None:
    flat = take_apart(tree, is_array)
    assert len(flat.tensors) == len(flat.paths) == len(set(flat.paths))
    assert same(flat.rebuild(flat.tensors), tree)


@given(trees)
def test_other_tensors_take_the_places(tree: Any) -> None:
    flat = take_apart(tree, is_array)
    others = [np.ones(3) for _ in flat.tensors]
    again = take_apart(flat.rebuild(others), is_array)
    assert all(one is other for one, other in zip(again.tensors, others, strict=True))
    assert again.paths == flat.paths and again.bound == flat.bound


def test_the_given_containers_are_not_changed() -> None:
    first = np.zeros(2)
    agent, store = Agent(first, "car"), Store({"a": first})
    take_apart([agent, store], is_array).rebuild([np.ones(2), np.ones(2)])
    assert agent.position is first and store["a"] is first


def test_a_structure_that_holds_itself_is_refused() -> None:
    knot: list[Any] = []
    knot.append(knot)
    with pytest.raises(UsageError, match="nested more than 32 deep"):
        take_apart(knot, is_array)


paths = st.lists(
    st.lists(st.one_of(st.text(max_size=4), st.integers(0, 9)), min_size=1, max_size=3).map(tuple), min_size=1, max_size=6, unique=True
)


@given(paths, paths)
def test_names_are_clean_and_never_shared(first: list[Path], second: list[Path]) -> None:
    inputs = input_names(first)
    outputs = output_names(second, inputs)
    assert len({*inputs, *outputs}) == len(first) + len(second)
    assert all(re.fullmatch(r"[A-Za-z_][0-9A-Za-z_]*", name) for name in (*inputs, *outputs))


def test_names_follow_the_structure() -> None:
    assert input_names([("batch", "a"), ("batch", "b", 0)]) == ["a", "b_0"]
    assert input_names([("x",), ("state", "h")]) == ["x", "state_h"]
    assert output_names([()], ["x"]) == ["output"]
    assert output_names([(0,), (1,)], ["x"]) == ["output_0", "output_1"]
    assert output_names([("pred",), ("aux", 0)], ["pred"]) == ["pred_out", "aux_0"]
    assert unique(["a", "a"], ["a"]) == ["a_out", "a_out_1"]
    assert clean("layer.0:x") == "layer_0_x"
    assert path_text(("batch", "b", 0)) == "batch.b.0"
