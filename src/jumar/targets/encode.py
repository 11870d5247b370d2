"""The compact form of a kernel table, written by ``tools/compile_facts.py`` and by ``jumar targets import``."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from typing import Any

_ENGINES = {"AICore": "A", "DSA": "A", "AICPU": "C", "AICPU_TF": "T"}
_VALUE_NEEDED = {"required": "r", "optional": "o"}
_FLAGS = (("d", "dynamic_shape"), ("c", "dtype_chosen_at_compile_time"), ("k", "extra_runtime_check"))


def encode_kernels(table: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> tuple[list[str], dict[str, Any]]:
    """One SoC's kernels: the dtypes that occur, and per IR operator and engine the dtypes of each input (a bit mask) and flags.

    Flags of an operator: ``d`` dynamic shapes, ``c`` dtypes chosen at compile time, ``k`` an extra check when the operator is compiled.
    Flags of an input: ``r``/``o`` its value is needed (required/optional), ``?`` it may be absent.
    """
    vocabulary = sorted(
        {dtype for op in table.values() for kernel in op.values() for item in kernel.get("inputs", []) for dtype in item["dtypes"]}
    )
    bit = {dtype: 1 << index for index, dtype in enumerate(vocabulary)}
    ops: dict[str, Any] = {}
    for name, engines in table.items():
        for engine, kernel in engines.items():
            letter = _ENGINES.get(engine)
            if letter is None or letter in ops.get(name, {}):
                continue
            inputs = [
                [
                    item["name"],
                    sum({bit[dtype] for dtype in item["dtypes"]}),
                    _VALUE_NEEDED.get(item.get("value_depend"), "") + ("?" if item["param"] == "optional" else ""),
                ]
                for item in kernel["inputs"]
            ]
            flags = "".join(letter for letter, key in _FLAGS if kernel.get(key))
            ops.setdefault(name, {})[letter] = [inputs, flags]
    return vocabulary, ops


def dump(value: Any) -> str:
    """JSON with sorted keys and no blanks: the same value gives the same text."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def pack(value: Any) -> bytes:
    """The value as it is stored; nothing depends on the clock."""
    return gzip.compress(dump(value).encode(), 9, mtime=0)
