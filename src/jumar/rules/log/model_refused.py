"""LG803: model refused."""

from __future__ import annotations

from ..base import Rule


class ModelRefused(Rule):
    code = "LG803"
    name = "model-refused"
    since = "0.1"
    severity = "error"
    DOC_EN = """
    What: the parser or the graph engine refused the model file as such: its domains, names, size or structure.

    Why on Ascend: ATC's parser takes a model with one operator domain, unique node names, and inputs and outputs it can find.

    Fix: with `--model` the findings of `jumar check` name the place; else the remedy of the code.

    Fix safety: advice only.

    Evidence: the line of the log.
    """
    DOC_ZH = """
    问题：解析器或图引擎拒绝了模型文件本身：算子域、名称、大小或结构。

    在昇腾上的原因：ATC 的解析器要求模型只有一个算子域、节点名唯一、输入输出可找到。

    修复：给出 `--model` 时，`jumar check` 的结果指明位置；否则按该错误码的处理建议。

    修复安全性：仅为建议。

    依据：日志行。
    """
