"""What ``jumar diagnose CODE`` says of a code."""

from __future__ import annotations

from typing import Any

from ..case import Record
from ..logs.codes import Code, find_code
from ..text import say


def code_record(code: Code) -> Record:
    other = find_code(code.also) if code.also else None
    codes = [code] if other is None else [code, other]
    lines = [
        say("{code} {name}", "{code} {name}", code=code.code, name=code.name)
        if code.name and code.name != code.code
        else say("{code}", "{code}", code=code.code),
        say("module: {family}", "模块：{family}", family=code.family),
        say("cause: {cause}", "原因：{cause}", cause=code.cause),
        say("remedy: {remedy}", "处理：{remedy}", remedy=code.remedy),
    ]
    if other is not None:
        older, newer = sorted((code.code, other.code), reverse=True)
        lines.append(
            say("numbers: {older} in CANN 8.x, {newer} in 9.x", "编号：CANN 8.x 为 {older}，9.x 为 {newer}", older=older, newer=newer)
        )
    if code.args:
        lines.append(say("arguments of its message: {args}", "报错参数：{args}", args=", ".join(code.args)))
    if code.states:
        lines.append(say("listed in: CANN {states}", "收录于：CANN {states}", states=", ".join(code.states)))
    if not code.known:
        lines.append(say("not in the public tables: Jumar knows no more of it", "不在公开的码表中：Jumar 没有更多信息"))
    elif not code.specific:
        lines.append(say("no text of its own is public: the words follow from its title", "没有公开的专门说明：以上由其标题得出"))
    if code.checks:
        lines.append(
            say("`jumar check` finds it before ATC does: {codes}", "`jumar check` 可在 ATC 之前发现：{codes}", codes=", ".join(code.checks))
        )
    return Record(verb="diagnose", data={"codes": [code_data(item) for item in codes]}, notes=tuple(lines))


def code_data(code: Code) -> dict[str, Any]:
    return {
        "code": code.code,
        "name": code.name,
        "kind": code.kind,
        "known": code.known,
        "module": code.family.to_dict(),
        "cause": code.cause.to_dict(),
        "remedy": code.remedy.to_dict(),
        "also": code.also,
        "listed_in": list(code.states),
        "checks": list(code.checks),
    }
