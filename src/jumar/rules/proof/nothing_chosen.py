"""VF604: a rewrite was proven on inputs of which nothing is chosen."""

from __future__ import annotations

from ..base import Rule


class NothingChosen(Rule):
    code = "VF604"
    name = "nothing-chosen"
    since = "0.1"
    severity = "warning"
    DOC_EN = """
    What: a tensor of data-dependent length (NonZero, Compress, Unique, NonMaxSuppression) was rewritten to keep all places with a mask, and in every case of the proof its length was 0.

    Why on Ascend: the rewrite was compared only where there was nothing to compare; how chosen places fare was not run. Generated inputs often pass no threshold of a trained detector.

    Fix: give inputs of which something is chosen, with --feeds. The step of the record holds the number of elements in each case (`chosen_elements`).

    Fix safety: advice only.

    Evidence: the lengths in the runs of the proof.
    """
    DOC_ZH = """
    问题：某个长度依赖数据的张量（NonZero、Compress、Unique、NonMaxSuppression）已改写为保留全部位置并使用掩码，而在证明所用的每组输入中其长度都为 0。

    在昇腾上的原因：改写只在没有内容可比较时做了对比，选中位置的处理没有运行过。对训练好的检测模型，生成的输入常常达不到任何阈值。

    修复：用 --feeds 提供能选中一些位置的输入。记录中的步骤给出每组输入的元素个数（`chosen_elements`）。

    修复安全性：仅为建议。

    依据：证明运行中的实际长度。
    """
