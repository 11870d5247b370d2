"""AT912: config file malformed."""

from __future__ import annotations

from ..base import Rule


class ConfigFileMalformed(Rule):
    code = "AT912"
    name = "config-file-malformed"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: a file that ATC reads beside its command line has a line that it cannot use: --modify_mixlist, --keep_dtype, --op_precision_mode, --fusion_switch_file, --customize_dtypes, --compression_optimize_conf.

    Why on Ascend: most of these mistakes are silent: the line has no effect, and the model is compiled otherwise than it was meant.

    Fix: write the line as the finding says.

    Fix safety: advice only.

    Evidence: the formats in ATC's guide and sources.
    """
    DOC_ZH = """
    问题：ATC 随命令行读取的文件中有无法使用的行：--modify_mixlist、--keep_dtype、--op_precision_mode、--fusion_switch_file、--customize_dtypes、--compression_optimize_conf。

    在昇腾上的原因：这类错误大多没有提示：该行不起作用，模型并未按预期编译。

    修复：按结果给出的写法修改该行。

    修复安全性：仅为建议。

    依据：ATC 指南与源码中的格式。
    """
