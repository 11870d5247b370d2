"""torch is an extra: what is said where it is missing."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from ..errors import ToolError
from ..text import say


def need_torch() -> Any:
    """The torch module.

    Raises:
        ToolError: it is not installed, or cannot be imported.
    """
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise ToolError(
            say("PyTorch cannot be imported: {error}", "无法导入 PyTorch：{error}", error=" ".join(str(error).split())[:200]),
            say("expected it beside Jumar, which only `export` needs", "应与 Jumar 装在同一环境中；只有 `export` 需要它"),
            say('run: pip install "jumar[torch]"', '请运行：pip install "jumar[torch]"'),
        ) from error


def warm_up(dynamo: bool) -> None:
    """Import once what every child would import again."""
    names = ["torch.onnx", "torch.overrides"]
    if dynamo:
        names += ["onnxscript", "torch.export", "torch._dynamo", "torch.onnx._internal.exporter._core"]
    for name in names:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            try:
                importlib.import_module(name)
            except ImportError:  # a private module of another release; the child finds its way
                continue


def has_dynamo() -> bool:
    """Whether torch's newer exporter can run: it needs onnxscript."""
    return importlib.util.find_spec("onnxscript") is not None
