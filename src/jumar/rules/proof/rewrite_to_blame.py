"""VF613: which rewrite makes a migrated model differ from the original on the user's inputs."""

from __future__ import annotations

from ..base import Rule


class RewriteToBlame(Rule):
    code = "VF613"
    name = "rewrite-to-blame"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: the migrated model differs from the original on these inputs, and this rewrite is the first after which it does (`verify --triage`).

    Why on Ascend: the rewrite was proven on other inputs, and something in these was not among them.

    Fix: migrate again with these inputs as --feeds, which then are what every rewrite is proven on, or without the rewrite (--select with the other codes). Report it: a rewrite that is called safe must hold for all inputs.

    Fix safety: advice only.

    Evidence: the rewrites were made again, more and more of them, and compared on these inputs.
    """
    DOC_ZH = """
    问题：迁移后的模型在这些输入上与原模型不同，而该改写是使其开始不同的第一个（`verify --triage`）。

    在昇腾上的原因：该改写是在其他输入上证明的，这些输入中有未覆盖的情况。

    修复：用这些输入作为 --feeds 重新迁移，使每个改写都在其上证明；或去掉该改写（用 --select 给出其他代码）。请反馈：标为安全的改写必须对所有输入成立。

    修复安全性：仅为建议。

    依据：重新逐步增加改写，并在这些输入上对比。
    """
