"""AIPP files as values: reading, writing, and the settings that are in force where the file is silent."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..atc.options import Problem
from ..errors import UsageError
from ..text import Text, say
from .schema import MATRIX, SOURCE_PROTO, FieldFacts, default_matrix, fields, formats
from .textproto import Field, SyntaxFault, Token, parse

Value = int | float | bool | str
Located = tuple[int, Problem]
"""A line of the file, counted from 1, and what is wrong there."""
LARGEST_TEXT = 1 << 20
"""Bytes of a file that are read; real ones have a few kilobytes."""
MODES = ("static", "dynamic")
_DOCUMENTED_ONLY = ("rotation_angle",)


@dataclass(frozen=True)
class AippOp:
    """One ``aipp_op`` block: the values it gives, and the line of each.

    ``op["crop"]`` is what is in force: the value given, else the default.
    """

    given: Mapping[str, Value] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    line: int = field(default=1, compare=False)

    def __getitem__(self, name: str) -> Any:
        if name in self.given:
            return self.given[name]
        return default_matrix(self.format)[name] if name in MATRIX else fields()[name].default

    def __contains__(self, name: str) -> bool:
        return name in self.given

    @property
    def mode(self) -> str:
        return str(self["aipp_mode"])

    @property
    def format(self) -> str:
        return str(self["input_format"])

    def per_channel(self, prefix: str) -> tuple[float, float, float, float]:
        """``mean_chn``, ``min_chn`` or ``var_reci_chn`` of the four channels."""
        first, second, third, fourth = (float(self[f"{prefix}_{index}"]) for index in range(4))
        return first, second, third, fourth

    def line_of(self, name: str) -> int:
        return self.lines.get(name, self.line)

    def with_values(self, **values: Value | None) -> AippOp:
        """A copy with these values; None takes one out."""
        given = {**self.given, **{name: value for name, value in values.items() if value is not None}}
        return replace(self, given={name: value for name, value in given.items() if name not in values or values[name] is not None})


@dataclass(frozen=True)
class AippConfig:
    """An AIPP file: its blocks in order. ``gears`` holds the blocks ``multi_shape_op``, which this package only carries along."""

    ops: tuple[AippOp, ...]
    gears: tuple[Mapping[str, tuple[Value, ...]], ...] = ()


def parse_config(text: str) -> tuple[AippConfig, list[Located]]:
    """Read a file as far as it can be read.

    Returns:
        What it says, and what ATC's reader would refuse (AI101), with lines.
    """
    found: list[Located] = []
    if len(text) > LARGEST_TEXT:
        message = say("the file is larger than {size} MB", "文件大于 {size} MB", size=LARGEST_TEXT >> 20)
        return AippConfig(()), [(1, _unreadable(message, say("an AIPP file has a few kilobytes", "AIPP 文件只有几千字节"), _CHECK))]
    try:
        tree = parse(text.removeprefix("\ufeff"))
    except SyntaxFault as fault:
        return AippConfig(()), [(fault.line, _syntax(fault))]
    ops: list[AippOp] = []
    gears: list[Mapping[str, tuple[Value, ...]]] = []
    for item in tree:
        if item.name == "aipp_op" and not isinstance(item.value, Token):
            ops.append(_block(item, found))
        elif item.name == "multi_shape_op" and not isinstance(item.value, Token):
            gears.append(_gears(item.value))
        else:
            found.append((item.line, _stray(item)))
    if not ops and not found:
        message = say("there is no block `aipp_op`", "没有 `aipp_op` 块")
        found.append(
            (
                1,
                _unreadable(
                    message, say("nothing is inserted", "不会插入任何预处理"), say("write a block `aipp_op`", "请写一个 `aipp_op` 块")
                ),
            )
        )
    return AippConfig(tuple(ops), tuple(gears)), found


def read_config(text: str, name: str = "AIPP") -> AippConfig:
    """Read a file that must be right in form.

    Raises:
        UsageError: ATC could not read it; the first line that is wrong is named.
    """
    config, found = parse_config(text)
    if found:
        line, problem = found[0]
        message = say("{name}:{line}: {message}", "{name}:{line}：{message}", name=name[-80:], line=line, message=problem.message)
        raise UsageError(message, problem.why, problem.remedy)
    return config


def write_config(config: AippConfig, comments: tuple[str, ...] = ()) -> str:
    """The file of a configuration; reading it gives the same values.

    Args:
        comments: lines that are written above the blocks.
    """
    lines = [f"# {comment}" for comment in comments]
    for op in config.ops:
        lines.append("aipp_op {")
        order = {name: index for index, name in enumerate(fields())}
        lines += [f"  {name}: {_written(fields()[name], op.given[name])}" for name in sorted(op.given, key=lambda name: order[name])]
        lines.append("}")
    for gear in config.gears:
        lines.append("multi_shape_op {")
        lines += [f"  {name}: {value}" for name, values in gear.items() for value in values]
        lines.append("}")
    return "\n".join(lines) + "\n"


def _written(facts: FieldFacts, value: Value) -> str:
    if facts.type == "bool":
        return "true" if value else "false"
    if facts.type == "string":
        return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if facts.type == "float":
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
    return str(value)


def _block(item: Field, found: list[Located]) -> AippOp:
    assert not isinstance(item.value, Token)
    given: dict[str, Value] = {}
    lines: dict[str, int] = {}
    for inner in item.value:
        facts = fields().get(inner.name)
        if facts is None or not isinstance(inner.value, Token):
            found.append((inner.line, _unknown(inner)))
            continue
        value = _value(facts, inner.value)
        if isinstance(value, Problem):
            found.append((inner.line, _exchanged(item, inner) or value))
        elif inner.name in given:
            found.append((inner.line, _twice(facts)))
        else:
            given[inner.name], lines[inner.name] = value, inner.line
    return AippOp(given, lines, item.line)


def _exchanged(block: Field, field: Field) -> Problem | None:
    """A fraction in mean_chn beside a whole number in min_chn: each stands where the other belongs."""
    assert not isinstance(block.value, Token) and isinstance(field.value, Token)
    if not field.name.startswith("mean_chn") or not re.fullmatch(r"0?\.\d+", field.value.text):
        return None
    partner = field.name.replace("mean", "min")
    other = next((item.value.text for item in block.value if item.name == partner and isinstance(item.value, Token)), "")
    if not re.fullmatch(r"\d+(\.0*)?", other) or float(other) < 1:
        return None
    return _unreadable(
        say(
            "`{mean}` is `{fraction}` and `{low}` is `{whole}`",
            "`{mean}` 的值是 `{fraction}`，`{low}` 的值是 `{whole}`",
            mean=field.name,
            fraction=field.value.text,
            low=partner,
            whole=other,
        ),
        say(
            "the two are exchanged: mean_chn takes the whole part, and ATC's reader refuses a fraction there",
            "两者写反了：mean_chn 写整数部分，ATC 的读取程序会拒绝其中的小数",
        ),
        say(
            "write {mean}: {whole} and {low}: {fraction}",
            "请写成 {mean}: {whole} 和 {low}: {fraction}",
            mean=field.name,
            fraction=field.value.text,
            low=partner,
            whole=other.split(".")[0],
        ),
    )


def _gears(items: tuple[Field, ...]) -> Mapping[str, tuple[Value, ...]]:
    values: dict[str, tuple[Value, ...]] = {}
    for item in items:
        if isinstance(item.value, Token):
            values[item.name] = (*values.get(item.name, ()), item.value.text)
    return values


def _value(facts: FieldFacts, token: Token) -> Value | Problem:
    text = token.text.replace(" ", "").replace("\t", "")
    if facts.type in ("int32", "uint32"):
        return _whole(facts, token, text)
    if facts.type == "float":
        number = _float(token, text)
        return _wrong_type(facts, token, say("a number", "一个数")) if number is None else number
    if facts.type == "bool":
        words = {"true": True, "True": True, "t": True, "1": True, "false": False, "False": False, "f": False, "0": False}
        return words[text] if text in words else _wrong_type(facts, token, say("true or false", "true 或 false"))
    if facts.type == "string":
        return _unescaped(token.text) if token.kind == "string" else _wrong_type(facts, token, say("a text in quotes", "带引号的文本"))
    names: Mapping[str, int] = formats() if facts.name == "input_format" else {"undefined": 0, "static": 1, "dynamic": 2}
    if text in names:
        return text
    numbers = {str(number): name for name, number in names.items()}
    if text in numbers:
        return numbers[text]
    near = difflib.get_close_matches(text.upper() if facts.name == "input_format" else text.lower(), names, n=1, cutoff=0.5)
    return _wrong_type(facts, token, say("{known}", "{known}", known=near[0] if near else ", ".join(list(names)[1:5])))


def _whole(facts: FieldFacts, token: Token, text: str) -> Value | Problem:
    low, high = (-(1 << 31), (1 << 31) - 1) if facts.type == "int32" else (0, (1 << 32) - 1)
    if token.kind != "number" or not re.fullmatch(r"[+-]?(0[xX][0-9a-fA-F]+|\d+)", text):
        return _wrong_type(facts, token, say("a whole number", "一个整数"))
    digits = text.lstrip("+-")
    octal = len(digits) > 1 and digits[0] == "0" and digits.isdecimal()
    if len(digits) > 40 or (octal and not re.fullmatch("[0-7]+", digits)):
        return _wrong_type(facts, token, say("a whole number", "一个整数"))
    number = (-1 if text.startswith("-") else 1) * (int(digits, 8) if octal else int(digits, 0))
    if not low <= number <= high:
        return _wrong_type(facts, token, say("a whole number from {low} to {high}", "{low} 到 {high} 的整数", low=low, high=high))
    return number


def _float(token: Token, text: str) -> float | None:
    plain = text.lower()
    if token.kind == "name":
        return {"inf": math.inf, "infinity": math.inf, "nan": math.nan}.get(plain)
    if token.kind != "number":
        return None
    if plain.startswith(("0x", "-0x", "+0x")):
        return None
    return float(plain.removesuffix("f")) if "inf" not in plain else float(plain)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), text[1:-1])


_CHECK = say("check the file", "请检查文件")


def _unreadable(message: Text, why: Text, remedy: Text) -> Problem:
    return Problem("AI101", "error", message, why, remedy, "insert_op_conf", ("E13018", "E19018"), (SOURCE_PROTO,))


def _syntax(fault: SyntaxFault) -> Problem:
    if not fault.found:
        return _unreadable(
            say("the file ends inside a block", "文件在块内结束"),
            say("`{expected}` is missing", "缺少 `{expected}`", expected=fault.expected),
            say("close the block with a brace", "请用花括号闭合该块"),
        )
    return _unreadable(
        say("`{found}` cannot be read", "无法读取 `{found}`", found=fault.found[:40]),
        say("ATC reads the file as protobuf text and stops here", "ATC 按 protobuf 文本格式读取文件，在此处停止"),
        say("write `{expected}`, with plain ASCII marks", "请写成 `{expected}`，并使用半角符号", expected=fault.expected[:60]),
    )


def _stray(item: Field) -> Problem:
    known = item.name in fields()
    return _unreadable(
        say("`{name}` stands outside of a block", "`{name}` 位于块之外", name=item.name[:40])
        if known
        else say("`{name}` is no block of an AIPP file", "`{name}` 不是 AIPP 文件中的块", name=item.name[:40]),
        say("ATC refuses the whole file", "ATC 会拒绝整个文件"),
        say("put all fields inside `aipp_op`", "请把所有字段写在 `aipp_op` 内"),
    )


def _unknown(item: Field) -> Problem:
    if item.name in fields():
        return _unreadable(
            say("`{name}` is no block", "`{name}` 不是块", name=item.name),
            say("it takes one value", "该字段只接受一个值"),
            say("write `{name}: value`", "请写成 `{name}: 值`", name=item.name),
        )
    if item.name in _DOCUMENTED_ONLY:
        remedy = say("take it out; documents reserve it, and the reader does not know it", "请删除；文档中为保留字段，读取程序不认识它")
    else:
        near = difflib.get_close_matches(item.name.lower(), fields(), n=1, cutoff=0.6)
        remedy = say("write `{near}`", "请写成 `{near}`", near=near[0]) if near else say("take it out", "请删除")
    return _unreadable(
        say("`{name}` is no field of AIPP", "`{name}` 不是 AIPP 的字段", name=item.name[:60]),
        say("ATC refuses a file with unknown fields", "ATC 会拒绝含有未知字段的文件"),
        remedy,
    )


def _twice(facts: FieldFacts) -> Problem:
    why = (
        say("it takes at most one value (E10052)", "该字段最多取一个值（E10052）")
        if facts.repeated
        else say("ATC's reader refuses a second value", "ATC 的读取程序会拒绝第二个值")
    )
    return _unreadable(say("`{name}` is given twice", "`{name}` 出现了两次", name=facts.name), why, say("keep one", "请只保留一个"))


def _wrong_type(facts: FieldFacts, token: Token, wanted: Text) -> Problem:
    message = say("`{name}` is `{value}`", "`{name}` 的值是 `{value}`", name=facts.name, value=token.text[:40])
    remedy = say("write {wanted}", "请写成 {wanted}", wanted=wanted)
    if facts.name.startswith("mean_chn") and token.kind == "number":
        why = say("mean_chn is a whole number, and ATC's reader refuses a fraction", "mean_chn 是整数，ATC 的读取程序会拒绝小数")
        number = _float(token, token.text.replace(" ", ""))
        index = facts.name[-1]
        if number is not None and 0 <= number <= 255:
            remedy = say(
                "put a mean with a fraction into `min_chn_{index}: {value}` and leave `mean_chn_{index}` out",
                "请把带小数的均值写入 `min_chn_{index}: {value}`，并去掉 `mean_chn_{index}`",
                index=index,
                value=token.text,
            )
        return _unreadable(message, why, remedy)
    return _unreadable(message, say("it takes {wanted}", "此处应为{wanted}", wanted=wanted), remedy)


def matrix_of(op: AippOp) -> tuple[int, ...]:
    """The nine elements in force, row by row."""
    return tuple(int(op[name]) for name in MATRIX)
