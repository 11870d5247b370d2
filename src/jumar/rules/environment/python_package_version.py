"""EV802: a Python package has a version that CANN does not take."""

from __future__ import annotations

from ..base import Rule


class PythonPackageVersion(Rule):
    code = "EV802"
    name = "python-package-version"
    since = "0.2"
    severity = "warning"
    DOC_EN = """
    What: a package that CANN imports is older than it asks for, or numpy is 2 or newer with a CANN before 9.0.

    Why on Ascend: numpy 2 removed names that the operator compiler of these releases uses, such as `np.float_`; ATC then fails with an AttributeError.

    Fix: install a version within the limits; the finding has the command.

    Fix safety: advice only.

    Evidence: CANN's installation guides: numpy below 2.0 for CANN 8.x with Python below 3.13, no upper limit from 9.0 on.
    """
    DOC_ZH = """
    问题：CANN 导入的某个包低于其要求的版本，或在 9.0 之前的 CANN 上安装了 numpy 2 及以上版本。

    在昇腾上的原因：numpy 2 移除了这些版本的算子编译器所用的名称，例如 `np.float_`；ATC 会因 AttributeError 失败。

    修复：安装范围内的版本；检查结果给出了命令。

    修复安全性：仅为建议。

    依据：CANN 安装指南：CANN 8.x 在 Python 低于 3.13 时要求 numpy 低于 2.0，自 9.0 起没有上限。
    """
