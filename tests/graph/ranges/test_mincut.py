"""The cut is minimal: compared with every way to part small networks."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.graph.ranges.mincut import SINK, SOURCE, Network

NAMES = "abcde"
EDGES = st.lists(st.tuples(st.sampled_from([*NAMES, SOURCE]), st.sampled_from([*NAMES, SINK]), st.integers(0, 9)), max_size=14)


def cost(edges: list[tuple[str, str, int]], side: set[object]) -> int:
    inside = side | {SOURCE}
    return sum(capacity for start, end, capacity in edges if start in inside and end not in inside)


def cuts(edges: list[tuple[str, str, int]]) -> dict[frozenset[str], int]:
    sides = [frozenset(chosen) for count in range(len(NAMES) + 1) for chosen in combinations(NAMES, count)]
    return {side: cost(edges, set(side)) for side in sides}


@settings(max_examples=150, deadline=None, derandomize=True)
@given(edges=EDGES)
def test_no_cut_is_cheaper_and_no_smaller_side_costs_the_same(edges: list[tuple[str, str, int]]) -> None:
    network = Network()
    for edge in edges:
        network.connect(*edge)
    side = network.source_side()
    known = cuts(edges)
    cheapest = min(known.values())
    assert cost(edges, side) == cheapest
    assert all(side <= other for other, price in known.items() if price == cheapest)


def test_a_long_path_needs_no_recursion() -> None:
    network = Network()
    for number in range(5000):
        network.connect(number, number + 1, 3)
    network.connect(SOURCE, 0, 2)
    network.connect(5000, SINK, 1)
    assert len(network.source_side()) == 5001
