"""Rules whose rewrite is a group of simplifications."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

import onnx_ir as ir

from ..case import Finding
from ..graph.simplify import Journal, applicable, simplify_graph
from ..text import Text, say
from .base import Change, Context, ModelRule


class SimplificationRule(ModelRule):
    """Finds and makes the simplifications of some kinds (:data:`jumar.graph.simplify.KINDS`)."""

    also: ClassVar[frozenset[str]] = frozenset()
    """Kinds that the rewrite makes too because they follow from the others; alone they are no finding."""

    kinds: ClassVar[frozenset[str]]
    """The kinds this rule is about."""

    @property
    @abstractmethod
    def words(self) -> tuple[Text, Text]:
        """Why it matters, and the remedy."""

    def wanted(self, ctx: Context) -> frozenset[str]:
        """The kinds that suit the target."""
        return self.kinds

    def check(self, ctx: Context) -> Iterator[Finding]:
        found = applicable(ctx.model, self.wanted(ctx))
        if not found:
            return
        why, remedy = self.words
        counts = Counter(kind for kind, _ in found)
        places = list(dict.fromkeys(place for _, place in found))
        yield self.finding(
            say(
                "{count} nodes: {kinds} ({places}{more})",
                "{count} 个节点：{kinds}（{places}{more}）",
                count=len(places),
                kinds=", ".join(f"{kind} x {number}" for kind, number in sorted(counts.items())),
                places=", ".join(f"`{place}`" for place in places[:3]),
                more=", ..." if len(places) > 3 else "",
            ),
            why,
            remedy,
        )

    def rewrite(self, model: ir.Model, ctx: Context) -> Change | None:
        kinds = self.wanted(ctx)
        journal = Journal(ctx.budget, ctx.refused, kinds | self.also)
        simplify_graph(model, ctx.evaluator, journal=journal, fold_limit=ctx.fold_limit)
        if not journal.rewrites:
            return None
        places = tuple(dict.fromkeys(rewrite.place for rewrite in journal.rewrites if rewrite.place))
        counts = Counter(rewrite.kind for rewrite in journal.rewrites)
        return Change(places, constants=tuple(journal.constants), options=dict(counts), rewrites=tuple(journal.rewrites))
