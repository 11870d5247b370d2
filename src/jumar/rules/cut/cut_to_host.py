"""CU850: parts of the model that run on the host."""

from __future__ import annotations

from ..base import Rule


class CutToHost(Rule):
    code = "CU850"
    name = "cut-to-host"
    since = "0.1"
    severity = "info"
    DOC_EN = """
    What: with `--cut`, operators that the device cannot take were moved to models of their own, which run on the host before and after the device part.

    Why on Ascend: an operator without parser or kernel, a size that depends on the data, or strings end the compilation of the whole model.

    Fix: run the parts in order; each reads from the model's inputs and from what the parts before it made. The step `cut` of the record, and `cut_parts` of the manifest, name the files, their inputs and outputs.

    Fix safety: the chain is proven against the original on the inputs at hand, within 1e-4 (max_rel).

    Evidence: proven on the user's model.
    """
    DOC_ZH = """
    问题：使用 `--cut` 时，设备不支持的算子被移入单独的模型，在设备部分之前和之后由主机执行。

    在昇腾上的原因：没有解析器或算子实现的算子、依赖数据的大小或字符串都会使整个模型无法编译。

    修复：依次运行各部分；每一部分读取模型输入以及前面各部分的输出。记录中的 `cut` 步骤与 manifest 中的 `cut_parts` 列出各文件及其输入输出。

    修复安全性：整条链在现有输入上与原模型对比证明，误差在 1e-4（max_rel）以内。

    依据：在用户的模型上证明。
    """
