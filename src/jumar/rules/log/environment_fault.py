"""LG805: environment fault."""

from __future__ import annotations

from ..base import Rule


class EnvironmentFault(Rule):
    code = "LG805"
    name = "environment-fault"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: the machine is not as CANN needs it: Python packages, libraries, variables, kernels package, driver or device files.

    Why on Ascend: such faults end in the same "Inner Error" as faults of the model, though the model is not concerned.

    Fix: the finding names what is missing or too new.

    Fix safety: advice only.

    Evidence: the line of the log.
    """
    DOC_ZH = """
    问题：机器环境不满足 CANN 的要求：Python 包、库、环境变量、算子核软件包、驱动或设备文件。

    在昇腾上的原因：这类故障与模型无关，却和模型问题一样以 "Inner Error" 结束。

    修复：结果指明缺少什么或什么过新。

    修复安全性：仅为建议。

    依据：日志行。
    """
