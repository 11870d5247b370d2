"""EX109: write lost."""

from __future__ import annotations

from ..base import Rule


class WriteLost(Rule):
    code = "EX109"
    name = "write-lost"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: a write in place (`y[0] = 3` through a view, `copy_`, `index_put_`) is not in the graph.

    Why on Ascend: the graph goes on with the old values, without any error.

    Fix: write the result to a new tensor: `torch.where`, `torch.cat`, `scatter` without underscore.

    Fix safety: advice only.

    Evidence: the comparison with the module, and a write for which no node was made.
    """
    DOC_ZH = """
    问题：某个原地写入（通过视图的 `y[0] = 3`、`copy_`、`index_put_`）不在计算图中。

    在昇腾上的原因：计算图会继续使用旧的数值，而且不报任何错误。

    修复：请把结果写入新的张量：`torch.where`、`torch.cat`、不带下划线的 `scatter`。

    修复安全性：仅为建议。

    依据：与模块的对比，以及没有对应节点的写入。
    """
