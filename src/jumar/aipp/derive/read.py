"""Which kind of description a file holds, and reading it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...text import say
from ..transform import Transform
from .configs import from_huggingface, from_opencv, from_paddle, from_timm, from_ultralytics
from .numbers import from_preprocess
from .steps import refuse

LARGEST = 4 << 20


def read_transform(path: str | Path) -> Transform:
    """The transform that a JSON file describes.

    Raises:
        UsageError: absent, no JSON, or a description that cannot be used.
    """
    path = Path(path)
    try:
        if path.stat().st_size > LARGEST:
            raise UsageError(
                say("`{path}` is larger than {size} MB", "`{path}` 大于 {size} MB", path=path, size=LARGEST >> 20),
                say("expected a description of a transform", "应为预处理的描述"),
                say("check the path", "请检查路径"),
            )
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            say("`{path}` cannot be read: {reason}", "无法读取 `{path}`：{reason}", path=str(path)[-80:], reason=reason[:80]),
            say("expected a JSON file that describes a transform", "应为描述预处理的 JSON 文件"),
            say("see the page on AIPP for its keys", "各键请查看 AIPP 一页"),
        ) from error
    return from_description(data)


def from_description(data: Any) -> Transform:
    """The transform of a description: ours, or that of timm, Hugging Face, OpenCV, Ultralytics or PaddleOCR, known by its keys.

    Raises:
        UsageError: it is none of these.
    """
    if isinstance(data, list):
        return from_paddle(data)
    if not isinstance(data, Mapping):
        raise refuse(say("the description is a {kind}", "描述是 {kind}", kind=type(data).__name__), say("expected an object", "应为对象"))
    data = {str(key): value for key, value in data.items()}
    inside = data.get("PreProcess")
    operations = data.get("transform_ops", inside.get("transform_ops") if isinstance(inside, Mapping) else None)
    if isinstance(operations, list):
        return from_paddle(operations)
    inner = data.get("pretrained_cfg")
    if isinstance(inner, Mapping):
        return from_timm(inner)
    if "input_size" in data:
        return from_timm(data)
    if any(key.startswith("do_") or key in ("image_processor_type", "image_mean") for key in data):
        return from_huggingface(data)
    if "imgsz" in data:
        return from_ultralytics(data)
    if "swapRB" in data or "scalefactor" in data:
        return from_opencv(data)
    return from_preprocess(data)
