"""EV804: CANN is installed, but its environment is not set."""

from __future__ import annotations

from ..base import Rule


class EnvironmentNotSet(Rule):
    code = "EV804"
    name = "environment-not-set"
    since = "0.2"
    severity = "warning"
    DOC_EN = """
    What: `atc` was found in an installation, but PATH does not lead to it.

    Why on Ascend: set_env.sh also sets the paths of libraries, Python modules and operators; without them ATC or pyACL fail with messages that do not say so. Jumar itself sources the script before it runs ATC.

    Fix: source the set_env.sh that the finding names, in the shell or its profile.

    Fix safety: advice only.

    Evidence: PATH, and the folders that were searched.
    """
    DOC_ZH = """
    问题：在安装目录中找到了 `atc`，但 PATH 中没有。

    在昇腾上的原因：set_env.sh 还会设置库、Python 模块和算子的路径；缺少它们时 ATC 或 pyACL 会报出不相干的错误。Jumar 自己运行 ATC 前会先 source 该脚本。

    修复：在 shell 或其配置文件中 source 检查结果给出的 set_env.sh。

    修复安全性：仅为建议。

    依据：PATH 以及搜索过的目录。
    """
