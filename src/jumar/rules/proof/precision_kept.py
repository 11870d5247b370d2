"""VF606: with --keep-list: nodes that, kept in float32, make the outputs good enough."""

from __future__ import annotations

from ..base import Rule


class PrecisionKept(Rule):
    code = "VF606"
    name = "precision-kept"
    since = "0.1"
    severity = "info"
    DOC_EN = """
    What: a set of nodes was found with which the outputs reach the bound in the emulation; no node of it can be left out (within the tries).

    Why on Ascend: a node kept in float32 takes twice the memory and, on the vector unit, about twice the time; matrix products take more.

    Fix: give ATC the file keep_dtype.cfg (--keep_dtype), or customize_dtypes.cfg, or mixlist.json with a mixed mode (--modify_mixlist).

    Fix safety: advice only.

    Evidence: the emulation run again with the set. The share of work is an estimate from multiplications and elements.
    """
    DOC_ZH = """
    问题：找到一组节点，保持 float32 后输出在模拟中达到界限；其中任何一个都不能省去（在尝试次数内）。

    在昇腾上的原因：保持 float32 的节点占用两倍内存，在向量单元上约耗时两倍；矩阵乘更多。

    修复：为 ATC 指定 keep_dtype.cfg（--keep_dtype）或 customize_dtypes.cfg；混合模式下可用 mixlist.json（--modify_mixlist）。

    修复安全性：仅为建议。

    依据：带该名单重新运行模拟。计算量占比由乘法次数和元素数估计。
    """
