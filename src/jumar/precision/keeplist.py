"""The smallest set of nodes found that, kept in float32, makes the outputs good enough; and the files that tell ATC so."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from ..errors import UsageError
from ..graph import Evaluator, model_opset, node_place, static_shape
from ..targets import Target
from ..targets.floats import float_kernel
from ..text import say
from .emulator import emulated
from .localise import Localisation, loss_of
from .metrics import Arrays, Goal
from .modes import PrecisionMode
from .plan import Plan, keepable, make_plan
from .table import Row
from .units import rule_of

DEFAULT_TRIES = 60


@dataclass(frozen=True)
class KeepList:
    """What to keep.

    Attributes:
        nodes: names of nodes; empty where the search found nothing.
        types: ONNX operator types that do as well by themselves; empty where keeping whole types does not reach the goal.
        values: of the metric with ``nodes`` kept.
        share: of each node in the work of the model (multiplications for matrix products, else elements), 0 to 1.
        tries: emulations it took.
        reason: why there is none, in the words of a record; None where there is one.
    """

    nodes: tuple[str, ...]
    types: tuple[str, ...]
    values: Mapping[str, float]
    share: Mapping[str, float]
    tries: int
    enough: bool


@dataclass
class KeepSearch:
    """Search by the errors of the table, then by leaving out what is not needed. Each try is one run of the emulated model.

    Attributes:
        right: outputs of the model as it is, for each of ``feeds``.
        progress: told the number of tries so far.
    """

    model: ir.Model
    mode: PrecisionMode
    target: Target | None
    goal: Goal
    feeds: Sequence[Arrays]
    right: Sequence[Arrays]
    evaluator: Evaluator
    budget: int = DEFAULT_TRIES
    progress: Callable[[int], None] = lambda _tries: None
    tries: int = 0
    seen: dict[frozenset[str], dict[str, float]] = field(default_factory=dict)

    def search(self, plan: Plan, rows: Sequence[Row], found: Localisation) -> KeepList:
        """The set of nodes, and of types.

        Args:
            plan: of the mode without anything kept; ``rows``: its table; ``found``: where its errors are born.
        """
        ranked = self._ranked(plan, rows, found)
        if not self.reached(ranked):
            return KeepList((), (), self.values(ranked), {}, self.tries, False)
        nodes = self._shrunk(self._fewest(ranked))
        types = self._types(nodes)
        return KeepList(tuple(nodes), types, self.values(nodes), work_shares(self.model, nodes), self.tries, True)

    def values(self, keep: Sequence[str]) -> dict[str, float]:
        """The metric with these nodes kept."""
        key = frozenset(keep)
        if key not in self.seen:
            self.tries += 1
            self.progress(self.tries)
            plan = make_plan(self.model, self.mode, keep, self.target)
            with self.evaluator.session(emulated(self.model, plan)) as session:
                self.seen[key] = self.goal.values(self.right, [session.run(feed) for feed in self.feeds])
        return self.seen[key]

    def reached(self, keep: Sequence[str]) -> bool:
        return not self.goal.missed(self.values(keep))

    def _ranked(self, plan: Plan, rows: Sequence[Row], found: Localisation) -> list[str]:
        """Nodes that can be kept, the most suspect first: where errors are born, where they are large, then by their own error."""
        places = {node_place(node): node for node in plan.narrowed() if node.name}
        usable = {name for name, node in places.items() if keepable(node, self.model, self.target)}
        born = [node_place(item.node) for item in found.culprits]
        lossy = [row for row in rows if loss_of(row.entire) > 1e-3]
        alone = sorted((row for row in rows if row.single is not None), key=_single_loss, reverse=True)
        names = [*born, *(row.node for row in lossy), *(row.node for row in alone), *places]
        return [name for name in dict.fromkeys(names) if name in usable]

    def _fewest(self, ranked: list[str]) -> list[str]:
        """The shortest beginning of the ranking that reaches the goal, by doubling and halving."""
        low, high = 0, 1
        while high < len(ranked) and not self.reached(ranked[:high]):
            low, high = high, high * 2
        high = min(high, len(ranked))
        while high - low > 1 and self.tries < self.budget:
            middle = (low + high) // 2
            if self.reached(ranked[:middle]):
                high = middle
            else:
                low = middle
        return ranked[:high]

    def _shrunk(self, keep: list[str]) -> list[str]:
        """Leave out runs of nodes, halving their length, as long as the goal stays reached."""
        size = len(keep) // 2
        while size >= 1:
            start = 0
            while start < len(keep) and self.tries < self.budget:
                rest = keep[:start] + keep[start + size :]
                if self.reached(rest):
                    keep = rest
                else:
                    start += size
            size //= 2
        order = {node.name: index for index, node in enumerate(ir.traversal.RecursiveGraphIterator(self.model.graph))}
        return sorted(keep, key=lambda name: order.get(name, 0))

    def _types(self, nodes: Sequence[str]) -> tuple[str, ...]:
        by_name = {node.name: node for node in ir.traversal.RecursiveGraphIterator(self.model.graph)}
        types = list(dict.fromkeys(by_name[name].op_type for name in nodes))
        if not types or not self._reached_by_types(types):
            return ()
        for item in list(types):
            rest = [other for other in types if other != item]
            if rest and self.tries < self.budget and self._reached_by_types(rest):
                types = rest
        return tuple(types)

    def _reached_by_types(self, types: Sequence[str]) -> bool:
        try:
            return self.reached([f"OpType::{item}" for item in types])
        except UsageError:  # one of that type cannot be kept on the target
            return False


def _single_loss(row: Row) -> float:
    return 0.0 if row.single is None else row.single.euclid


def work_shares(model: ir.Model, names: Sequence[str]) -> dict[str, float]:
    """The share of each node in the model's work: an estimate of what keeping it costs.

    Work is multiplications for matrix products and elements made for the rest, counted 1 to 16, since the cube makes that many more.
    """
    work = {node.name or "": _work(node) for node in model.graph}
    total = sum(work.values()) or 1.0
    return {name: work.get(name, 0.0) / total for name in names}


def _work(node: ir.Node) -> float:
    made = sum(_count(output) for output in node.outputs)
    if rule_of(node).unit != "cube" or len(node.inputs) < 2:
        return 16.0 * made
    weight = static_shape(node.inputs[1])
    if weight is None or len(weight) < 2:
        return 16.0 * made
    if node.op_type == "ConvTranspose":
        return float(_count(node.inputs[0])) * _product(weight[1:])
    return float(made) * (_product(weight[1:]) if node.op_type == "Conv" else weight[-2])


def _product(sizes: Sequence[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


def _count(value: ir.Value | None) -> int:
    shape = static_shape(value)
    return 0 if shape is None else _product(shape)


def keep_files(keep: KeepList, model: ir.Model, mode: PrecisionMode, target: Target | None) -> dict[str, str]:
    """The files for ATC by name: ``keep_dtype.cfg``, ``customize_dtypes.cfg``, and ``mixlist.json`` for a mixed mode.

    Raises:
        UsageError: a node without a name, which no file can name.
    """
    from ..atc.configs import Configs

    lists = _black_list(keep, model, target) if mode.policy == "lists" else {}
    files = Configs(keep_dtype=keep.nodes, mixlist=lists).files(model, mode.v2 or mode.v1)
    found = dict(files.values())
    by_name = {node.name: node for node in ir.traversal.RecursiveGraphIterator(model.graph)}
    if any(re.search(r"[:\s]", name) for name in keep.nodes):  # a line ends a name at the first colon
        return found
    return found | {"customize_dtypes.cfg": "".join(_dtypes_line(by_name[name]) for name in keep.nodes)}


def _dtypes_line(node: ir.Node) -> str:
    """The dtypes of all inputs and outputs, as the model has them."""

    def words(values: Sequence[ir.Value | None]) -> str:
        names = ["" if value is None or value.dtype is None else value.dtype.name.lower() for value in values]
        return ",".join("float32" if name in ("float", "double", "") else name for name in names)

    return f"{node.name}::InputDtype:{words(node.inputs)},OutputDtype:{words(node.outputs)}\n"


def _black_list(keep: KeepList, model: ir.Model, target: Target | None) -> dict[str, list[str]]:
    if not keep.types or target is None:
        return {}
    types: dict[str, None] = {}
    for item in keep.types:
        kernel = float_kernel("", item, model_opset(model), target)
        types.update(dict.fromkeys(kernel.irs))
    return {"black": list(types)} if types else {}


def check_named(model: ir.Model) -> None:
    """Raises:
    UsageError: two nodes have one name, so that a file cannot tell them apart.
    """
    names: dict[str, Any] = {}
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        if node.name and names.setdefault(node.name, node) is not node:
            raise UsageError(
                say("two nodes are named `{name}`", "两个节点都名为 `{name}`", name=node.name),
                say("expected a name for each node: ATC's files name nodes", "每个节点应有唯一名称：ATC 的文件按名称指定节点"),
                say("run `jumar fix` first, which makes names unique", "请先运行 `jumar fix`，它会使名称唯一"),
            )
