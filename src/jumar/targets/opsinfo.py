"""Operator information files of CANN (``aic-*-ops-info.json``, ``aicpu_kernel.json``) in the form the encoder takes.

What is read was written by someone else: everything that is kept is checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

_NAME = re.compile(r"[A-Za-z_][\w.:/-]{0,199}", re.ASCII)
_INPUT = re.compile(r"[!-~]{0,200}", re.ASCII)
_DTYPE = re.compile(r"[A-Za-z0-9_]{1,32}", re.ASCII)
_AICORE_INPUT = re.compile(r"input([0-9]{1,4})", re.ASCII)
_AICPU_INPUT = re.compile(r"(?:dynamic_)?input([0-9]{1,4})", re.ASCII)
# Names that differ from those of the kernel tables.
_RENAMED = {"float": "float32", "float64": "double", "bf16": "bfloat16"}
_MOST_DTYPES = 128

Kind = Literal["AICore", "DSA", "AICPU", "AICPU_TF"]
Kernels = dict[str, dict[str, Any]]


class BadInfoError(ValueError):
    """The file is not what CANN ships; the message says where."""


def read_ops_info(raw: bytes, kind: Kind) -> Kernels:
    """The kernels of one file by IR operator.

    Raises:
        BadInfoError: broken JSON, or something where a name or a type should be.
    """
    try:
        data = json.loads(raw)
    except RecursionError:
        raise BadInfoError("it is nested too deeply") from None
    except ValueError as error:
        raise BadInfoError(f"broken JSON: {str(error)[:100]}") from None
    if not isinstance(data, dict):
        raise BadInfoError("not an object of operators")
    kernels = {}
    seen: set[str] = set()
    for name, info in data.items():
        if not _NAME.fullmatch(name):
            raise BadInfoError(f"{ascii(name)[:60]} is not the name of an operator")
        if not isinstance(info, dict):
            raise BadInfoError(f"{name} is not an object")
        kernels[name] = _aicpu(name, info) if kind in ("AICPU", "AICPU_TF") else _aicore(name, info)
        seen.update(dtype for item in kernels[name]["inputs"] for dtype in item["dtypes"])
    if len(seen) > _MOST_DTYPES:
        raise BadInfoError(f"{len(seen)} different dtypes")
    return kernels


def _aicore(name: str, info: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "inputs": [
            {
                "name": _text(name, item, "name", _INPUT),
                "param": _text(name, item, "paramType", _INPUT),
                "dtypes": _dtypes(name, item, "dtype"),
                "value_depend": _text(name, item, "valueDepend", _INPUT),
            }
            for item in _inputs(name, info, _AICORE_INPUT)
        ],
        "dynamic_shape": _flag(name, info, "dynamicShapeSupport"),
        "dtype_chosen_at_compile_time": _flag(name, info, "dynamicFormat"),
        "extra_runtime_check": _flag(name, info, "needCheckSupport"),
    }


def _aicpu(name: str, info: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "inputs": [
            {"name": _text(name, item, "name", _INPUT), "param": None, "dtypes": _dtypes(name, item, "type")}
            for item in _inputs(name, info, _AICPU_INPUT)
        ]
    }


def _inputs(name: str, info: Mapping[str, Any], pattern: re.Pattern[str]) -> list[Mapping[str, Any]]:
    """The entries of the inputs in the order of their numbers."""
    numbered = sorted((int(match[1]), key) for key in info if (match := pattern.fullmatch(key)))
    items = [info[key] for _, key in numbered]
    for (_, key), item in zip(numbered, items, strict=True):
        if not isinstance(item, dict):
            raise BadInfoError(f"{name}.{key} is not an object")
    return items


def _text(name: str, item: Mapping[str, Any], key: str, pattern: re.Pattern[str]) -> str:
    value = item.get(key, "")
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise BadInfoError(f"{name}: `{key}` is {_kind(value)}")
    return value


def _dtypes(name: str, item: Mapping[str, Any], key: str) -> list[str]:
    value = item.get(key, "")
    if not isinstance(value, str):
        raise BadInfoError(f"{name}: `{key}` is {_kind(value)}")
    words = [word for part in value.split(",") if (word := part.strip())]
    for word in words:
        if not _DTYPE.fullmatch(word):
            raise BadInfoError(f"{name}: {ascii(word)[:60]} is not a dtype")
    plain = [word[3:].lower() if word.startswith("DT_") else word for word in words]
    return list(dict.fromkeys(_RENAMED.get(word, word) for word in plain))


def _flag(name: str, info: Mapping[str, Any], key: str) -> bool:
    value = info.get(key, {})
    flag = value.get("flag", "") if isinstance(value, dict) else None
    if not isinstance(flag, (str, bool)):
        raise BadInfoError(f"{name}: `{key}` is {_kind(value)}")
    return str(flag).lower() == "true"


def _kind(value: object) -> str:
    return ascii(value)[:60] if isinstance(value, str) else f"a {type(value).__name__}"
