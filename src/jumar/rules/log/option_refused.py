"""LG802: option refused."""

from __future__ import annotations

from ..base import Rule


class OptionRefused(Rule):
    code = "LG802"
    name = "option-refused"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: ATC refused a flag, a value, a gear or a configuration item.

    Why on Ascend: these are checked before the model is parsed, so that nothing of the model was seen yet. Where the command stands in the log, the flag and the value are named.

    Fix: correct the flag that the finding names.

    Fix safety: advice only.

    Evidence: the line of the log, and the command in it.
    """
    DOC_ZH = """
    问题：ATC 拒绝了某个标志、取值、档位或配置项。

    在昇腾上的原因：这些检查在解析模型之前进行，因此与模型内容无关。如果日志中有命令行，结果会给出标志和取值。

    修复：修正结果中所指的标志。

    修复安全性：仅为建议。

    依据：日志行及其中的命令。
    """
