"""AT911: call cut by shell."""

from __future__ import annotations

from ..base import Rule


class CallCutByShell(Rule):
    code = "AT911"
    name = "call-cut-by-shell"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: the shell does not hand over what is written: a `;` without quotes, a backslash that is missing or has a blank behind it, two flags without a blank between them, typographic quotes or dashes, a quote that is not closed, a word that belongs to no flag.

    Why on Ascend: the shell ends the call there and runs the rest as another program; ATC sees a part of the flags, and refuses words beside its flags.

    Fix: quote values with `;`, end continued lines in ` \\`, type plain quotes and hyphens. The rest of the call is judged as it was meant.

    Fix safety: advice only.

    Evidence: the grammar of the shell.
    """
    DOC_ZH = """
    问题：shell 传给 ATC 的与所写不符：`;` 没有加引号、缺少反斜杠或其后有空格、两个参数之间没有空格、使用了弯引号或长横线、引号没有闭合、有不属于任何参数的词。

    在昇腾上的原因：shell 会在此结束命令并把其余部分当作另一个程序执行；ATC 只看到部分参数，且不接受参数以外的词。

    修复：给含 `;` 的值加引号，续行以 ` \\` 结尾，使用普通引号和减号。其余部分按原意判断。

    修复安全性：仅为建议。

    依据：shell 的语法。
    """
