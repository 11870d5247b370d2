"""EV801: a Python package that CANN imports is not there."""

from __future__ import annotations

from ..base import Rule


class PythonPackageMissing(Rule):
    code = "EV801"
    name = "python-package-missing"
    since = "0.2"
    severity = "warning"
    DOC_EN = """
    What: the `python3` that ATC's operator compiler is started with lacks packages that CANN documents as run-time dependencies.

    Why on Ascend: ATC compiles many operators in Python; a missing package ends it with an ImportError deep in its log, after minutes.

    Fix: install them into that very interpreter with pip; the finding has the command.

    Fix safety: advice only.

    Evidence: the table of dependencies in CANN's installation guides, and the packages of that interpreter. Where there is no CANN on the machine it is only an info.
    """
    DOC_ZH = """
    问题：启动 ATC 算子编译器所用的 `python3` 缺少 CANN 文档列出的运行依赖包。

    在昇腾上的原因：ATC 用 Python 编译许多算子；缺少的包会在数分钟后以日志深处的 ImportError 结束编译。

    修复：用 pip 安装到该解释器中；检查结果给出了命令。

    修复安全性：仅为建议。

    依据：CANN 安装指南中的依赖表，以及该解释器中的包。本机没有 CANN 时仅为提示。
    """
