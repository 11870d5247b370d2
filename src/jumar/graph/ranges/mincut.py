"""Minimum cut: the cheapest way to part a network in two."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

Node = Hashable
SOURCE, SINK = "source", "sink"
UNLIMITED = 1 << 60


class Network:
    """Edges with capacities between named nodes, ``SOURCE`` and ``SINK`` among them."""

    def __init__(self) -> None:
        self._index: dict[Node, int] = {SOURCE: 0, SINK: 1}
        self._edges: list[list[int]] = [[], []]
        self._to: list[int] = []
        self._room: list[int] = []

    def _number(self, node: Node) -> int:
        number = self._index.setdefault(node, len(self._edges))
        if number == len(self._edges):
            self._edges.append([])
        return number

    def connect(self, start: Node, end: Node, capacity: int) -> None:
        """Cutting ``start`` (source's side) from ``end`` (sink's side) costs ``capacity``."""
        first, second = self._number(start), self._number(end)
        for origin, goal, room in ((first, second, capacity), (second, first, 0)):
            self._edges[origin].append(len(self._to))
            self._to.append(goal)
            self._room.append(room)

    def source_side(self) -> set[Node]:
        """The nodes on the source's side of a minimum cut, the smallest such set (Dinic's algorithm)."""
        while True:
            levels = self._levels()
            if levels[1] < 0:
                return {node for node, number in self._index.items() if levels[number] >= 0} - {SOURCE}
            upcoming = [0] * len(self._edges)
            while self._augment(levels, upcoming):
                pass

    def _levels(self) -> list[int]:
        levels = [-1] * len(self._edges)
        levels[0] = 0
        waiting = deque([0])
        while waiting:
            node = waiting.popleft()
            for edge in self._edges[node]:
                goal = self._to[edge]
                if self._room[edge] > 0 and levels[goal] < 0:
                    levels[goal] = levels[node] + 1
                    waiting.append(goal)
        return levels

    def _augment(self, levels: list[int], upcoming: list[int]) -> bool:
        """Send as much as one path bears; no recursion, because a path may be as long as a graph."""
        path: list[int] = []
        node = 0
        while node != 1:
            while upcoming[node] < len(self._edges[node]):
                edge = self._edges[node][upcoming[node]]
                if self._room[edge] > 0 and levels[self._to[edge]] == levels[node] + 1:
                    break
                upcoming[node] += 1
            else:
                if not path:
                    return False
                node = self._to[path.pop() ^ 1]
                upcoming[node] += 1
                continue
            path.append(edge)
            node = self._to[edge]
        amount = min(self._room[edge] for edge in path)
        for edge in path:
            self._room[edge] -= amount
            self._room[edge ^ 1] += amount
        return True
