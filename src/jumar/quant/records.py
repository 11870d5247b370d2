"""AMCT's record files: scales and offsets of layers, as protobuf text (ScaleOffsetRecord)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import UsageError
from ..text import Text, say
from .layers import Layer, Survey
from .numbers import Scale, quantise_bias, rounded_weight
from .plan import Plan, Quantised

_TOKEN = re.compile(r'\s*(?:#[^\n]*\n\s*)*("(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[\w.+-]+|[{}:;,])')
_MOST_BYTES = 1 << 28
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\"}


@dataclass(frozen=True)
class LayerRecord:
    """Attributes:
    scale_d, offset_d: of the activation: one step, and the integer of zero.
    scale_w, offset_w: of the weight, one for each channel or one for all; offsets are 0.
    """

    scale_d: float
    offset_d: int
    scale_w: tuple[float, ...]
    offset_w: tuple[int, ...]


def records_of(plan: Plan) -> dict[str, LayerRecord]:
    """The records of a plan."""
    return {
        name: LayerRecord(
            item.activation.scale,
            item.activation.offset,
            tuple(float(scale) for scale in item.weight.scales.reshape(-1)),
            (0,) * item.weight.scales.size,
        )
        for name, item in plan.items.items()
    }


def recorded(layer: Layer, record: LayerRecord) -> Quantised | Text:
    """A layer with the scales of a record, or why they do not fit it."""
    count = len(record.scale_w)
    axis = layer.axis if count > 1 else None
    if count > 1 and (axis is None or layer.weight.shape[axis] != count):
        return say("its record has {count} scales of weights", "其记录中有 {count} 个权重 scale", count=count)
    weight = rounded_weight(layer.weight, axis, np.asarray(record.scale_w, np.float32))
    activation = Scale(record.scale_d, record.offset_d)
    try:
        bias = None if layer.bias is None else quantise_bias(layer.bias, weight, activation)
    except OverflowError:
        return say("its bias does not fit into int32", "其偏置超出 int32")
    return Quantised(layer, activation, weight, bias)


def plan_of_records(layers: Sequence[Layer], records: Mapping[str, LayerRecord], found: Survey) -> tuple[Plan, dict[str, Text]]:
    """The layers that records have, in their scales, and why the others stay in floats.

    Raises:
        UsageError: a record of a layer that the model has not.
    """
    known = {layer.name for layer in found.layers}
    for name in records:
        if name not in known:
            raise UsageError(
                say("the model has no layer `{name}` of the record", "模型没有记录中的层 `{name}`", name=name[:100]),
                say("expected one of: {names}", "应为其中之一：{names}", names=", ".join(sorted(known)[:20]) or "-"),
                say("records name the layers of the simplified model", "记录使用简化后模型的层名"),
            )
    items, unfit = {}, {}
    for layer in layers:
        made = recorded(layer, records[layer.name]) if layer.name in records else say("it is not in the record", "不在记录中")
        if isinstance(made, Quantised):
            items[layer.name] = made
        else:
            unfit[layer.name] = made
    return Plan(items), unfit


def load_records(path: str | Path) -> dict[str, LayerRecord]:
    """Read a file.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        if Path(path).stat().st_size > _MOST_BYTES:
            raise ValueError("it is too large")
        text = Path(path).read_bytes().decode("utf-8")
    except (OSError, ValueError) as error:
        raise _bad(str(path), say("{error}", "{error}", error=(getattr(error, "strerror", None) or str(error))[:80])) from None
    return read_records(text, str(path))


def write_records(records: Mapping[str, LayerRecord]) -> str:
    """The text of a record file. Numbers are written so that they are read back as the same float32."""
    lines = []
    for name, item in records.items():
        lines += ["record {", f"  key: {json.dumps(name, ensure_ascii=False)}", "  value {"]
        lines += [f"    scale_d: {_number(item.scale_d)}", f"    offset_d: {item.offset_d}"]
        lines += [f"    scale_w: {_number(value)}" for value in item.scale_w]
        lines += [f"    offset_w: {value}" for value in item.offset_w]
        lines += ["  }", "}"]
    return "\n".join([*lines, ""])


def _number(value: float) -> str:
    return str(np.float32(value))


def _bad(name: str, reason: Text) -> UsageError:
    return UsageError(
        say("`{path}` is no record file: {reason}", "`{path}` 不是记录文件：{reason}", path=name[-200:], reason=reason),
        say("expected AMCT's `record {{ key: ... value {{ ... }} }}`", "应为 AMCT 的 `record {{ key: ... value {{ ... }} }}`"),
        say("write one with `jumar quantize`", "可由 `jumar quantize` 生成"),
    )


def read_records(text: str, name: str = "record.txt") -> dict[str, LayerRecord]:
    """Read a record file. Fields that are not of the post-training int8 path are skipped.

    Raises:
        UsageError: another form, a missing scale, a number that is none, an offset of weights, another type than INT8.
    """
    parser = _Parser(text, name)
    found: dict[str, LayerRecord] = {}
    for field, value in parser.message(top=True):
        if field != "record" or not isinstance(value, list):
            continue
        entry = dict(value)
        key, layer = entry.get("key"), entry.get("value")
        if not isinstance(key, str) or not isinstance(layer, list):
            continue
        found[key] = _layer(layer, key, name)
    return found


def _layer(fields: list[tuple[str, object]], key: str, name: str) -> LayerRecord:
    def numbers(field: str) -> list[float]:
        try:
            values = [float(str(value)) for found, value in fields if found == field]
        except ValueError:
            values = [math.nan]
        if not all(map(math.isfinite, values)):
            raise _bad(name, say("{field} of `{key}` is no number", "`{key}` 的 {field} 不是数值", field=field, key=key))
        return values

    kinds = {str(value) for field, value in fields if field in ("dst_type", "act_type", "wts_type")} - {"INT8", "UNSET"}
    if kinds:
        raise _bad(name, say("`{key}` is of type {kind}", "`{key}` 的类型为 {kind}", key=key, kind=sorted(kinds)[0]))
    scale_d, scale_w = numbers("scale_d"), numbers("scale_w")
    offset_d, offset_w = numbers("offset_d") or [0.0], numbers("offset_w")
    if len(scale_d) != 1 or not scale_w or min(scale_d + scale_w) <= 0:
        raise _bad(name, say("`{key}` lacks a positive scale", "`{key}` 缺少正的 scale", key=key))
    if any(offset_w):
        raise _bad(name, say("`{key}` has an offset of weights; ATC wants 0", "`{key}` 的权重有 offset；ATC 要求为 0", key=key))
    if len(offset_d) != 1 or not -128 <= offset_d[0] <= 127 or offset_d[0] != int(offset_d[0]):
        raise _bad(name, say("offset_d of `{key}` is no int8", "`{key}` 的 offset_d 不是 int8", key=key))
    return LayerRecord(
        float(np.float32(scale_d[0])), int(offset_d[0]), tuple(float(np.float32(value)) for value in scale_w), (0,) * len(scale_w)
    )


class _Parser:
    """Protobuf text: ``name: value`` and ``name { ... }``."""

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name, self._place = text, name, 0
        self._depth = 0

    def _next(self) -> str | None:
        match = _TOKEN.match(self._text, self._place)
        if match is None:
            rest = re.sub(r"#[^\n]*", "", self._text[self._place :]).strip()
            if rest:
                raise _bad(self._name, say("`{text}` is unexpected", "`{text}` 不符合格式", text=rest[:20]))
            return None
        self._place = match.end()
        return match.group(1)

    def message(self, top: bool = False) -> list[tuple[str, object]]:
        """Fields up to the closing brace, or to the end."""
        self._depth += 1
        if self._depth > 20:
            raise _bad(self._name, say("it is nested too deeply", "嵌套过深"))
        fields: list[tuple[str, object]] = []
        while (token := self._next()) is not None:
            if token == "}" and not top:
                self._depth -= 1
                return fields
            if token in (";", ","):
                continue
            if not token[0].isalpha():
                raise _bad(self._name, say("`{text}` is unexpected", "`{text}` 不符合格式", text=token[:20]))
            fields.append((token, self._value()))
        if not top:
            raise _bad(self._name, say("it ends within a block", "在块内结束"))
        return fields

    def _value(self) -> object:
        token = self._next()
        if token == ":":
            token = self._next()
        if token == "{":
            return self.message()
        if token is None or token in ("}", ":", ";", ","):
            raise _bad(self._name, say("a value is missing", "缺少值"))
        if token[0] in "\"'":
            return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match.group(1), match.group(1)), token[1:-1])
        return token
