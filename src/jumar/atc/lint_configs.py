"""The files that ATC reads beside its command line: which kind is it, and does each line say what it must?"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from ..text import Text, say
from .configs import COMPRESSION_KEYS, LISTS, OP_PRECISIONS
from .options import ModelFacts, Problem

ConfigKind = Literal["mixlist", "keep-dtype", "op-precision", "fusion-switch", "customize-dtypes", "compression", "aipp"]

FLAG_OF: Mapping[ConfigKind, str] = {
    "mixlist": "modify_mixlist",
    "keep-dtype": "keep_dtype",
    "op-precision": "op_precision_mode",
    "fusion-switch": "fusion_switch_file",
    "customize-dtypes": "customize_dtypes",
    "compression": "compression_optimize_conf",
    "aipp": "insert_op_conf",
}
KIND_OF: Mapping[str, ConfigKind] = {flag: kind for kind, flag in FLAG_OF.items()}

# Modes that operators of newer releases take beside those of the table.
_MORE_PRECISIONS = ("support_out_of_bound_index", "keep_fp16", "super_performance")
_GROUPS = ("GraphFusion", "UBFusion")
_MOVES = ("to-add", "to-remove")
_NO_EFFECT = say("what is in it has no effect", "其中的内容不起作用")
_SECTIONS = ("[ByOpType]", "[ByNodeName]")
Located = tuple[int, Problem]
"""A line of the file, counted from 1, and what is wrong there."""


def config_kind(text: str) -> ConfigKind | None:
    """What kind of file a text is, by its content; None where it shows nothing that only one kind has."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any(re.match(r"aipp_op\b", line) for line in lines):
        return "aipp"
    if any(line.lower() in ("[byoptype]", "[bynodename]") for line in lines):
        return "op-precision"
    if re.search(r"(Input|Output)Dtype\s*:", text):
        return "customize-dtypes"
    if re.search(r"^\s*(calibration|enable_first_layer_quantization)\b", text, re.MULTILINE):
        return "compression"
    if text.lstrip().startswith("{"):
        if re.search(r'"(black|white|gr[ae]y)[-_]?list"', text, re.IGNORECASE):
            return "mixlist"
        if re.search(r'"(Switch|GraphFusion|UBFusion)"', text):
            return "fusion-switch"
        return None
    if lines and all(re.fullmatch(r"\w+\s*:\s*(on|off)", line, re.IGNORECASE) for line in lines):
        return "fusion-switch"
    if any(line.startswith("OpType::") for line in lines):
        return "keep-dtype"
    return None


def check_config(kind: ConfigKind, text: str, facts: ModelFacts | None = None) -> list[Located]:
    """Problems of one configuration file; AIPP files are known by their kind only.

    Args:
        facts: of the model, to compare the nodes named with.
    """
    checks: dict[ConfigKind, Callable[[str, ModelFacts | None], Iterator[Located]]] = {
        "mixlist": _mixlist,
        "keep-dtype": _keep_dtype,
        "op-precision": _op_precision,
        "fusion-switch": _fusion,
        "customize-dtypes": _customize,
        "compression": _compression,
        "aipp": lambda _text, _facts: iter(()),
    }
    return sorted(checks[kind](text.removeprefix("\ufeff"), facts), key=lambda found: found[0])


def _wrong(kind: ConfigKind, message: Text, why: Text, remedy: Text, *, atc: tuple[str, ...] = (), sure: bool = True) -> Problem:
    return Problem("AT912", "error" if sure else "warning", message, why, remedy, FLAG_OF[kind], atc)


def _line_of(text: str, word: str) -> int:
    """The line where a word of a JSON file stands."""
    place = text.find(json.dumps(word, ensure_ascii=False))
    return 1 if place < 0 else text.count("\n", 0, place) + 1


def _instead(word: str, known: Sequence[str]) -> Text:
    plain = {re.sub(r"[^a-z0-9]", "", item.lower()): item for item in known}
    near = difflib.get_close_matches(re.sub(r"[^a-z0-9]", "", word.lower()), plain, n=1, cutoff=0.75)
    if near:
        return say("write `{near}`", "请写成 `{near}`", near=plain[near[0]])
    return say("write one of: {known}", "请写成其中之一：{known}", known=", ".join(known))


def _json(kind: ConfigKind, text: str) -> tuple[Any, list[Located]]:
    """The value of a JSON file, with a key given twice as a problem; or the problem that it is none."""
    found: list[Located] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        for index, (key, _) in enumerate(items):
            if key in [other for other, _ in items[:index]]:
                message = say("`{key}` is there twice", "`{key}` 出现了两次", key=key[:60])
                remedy = say("put both together", "请合并两处")
                found.append((_line_of(text, key), _wrong(kind, message, say("only one of them counts", "只有其中一处生效"), remedy)))
        return dict(items)

    try:
        return json.loads(text, object_pairs_hook=pairs), found
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        message = say("the file is no JSON", "该文件不是 JSON")
        why = say("reading stops here: {error}", "在此处无法继续读取（{error}）", error=str(error)[:80])
        remedy = say("mend it; JSON has no comments and no comma before a closing bracket", "请修正；JSON 没有注释，右括号前也没有逗号")
        return None, [(line, _wrong(kind, message, why, remedy, atc=("E10032",)))]


def _mixlist(text: str, _facts: ModelFacts | None) -> Iterator[Located]:
    data, found = _json("mixlist", text)
    yield from found
    if data is None:
        return
    lists = [f"{name}-list" for name in LISTS]
    if not isinstance(data, dict):
        yield (
            1,
            _wrong(
                "mixlist",
                say("the file holds no lists", "文件中没有名单"),
                _OBJECT,
                say("see the lists: {known}", "名单有：{known}", known=", ".join(lists)),
            ),
        )
        return
    added: dict[str, str] = {}
    for name, moves in data.items():
        if name not in lists:
            message = say("`{name}` is no list", "`{name}` 不是名单名", name=name[:60])
            yield _line_of(text, name), _wrong("mixlist", message, _NO_EFFECT, _instead(name, lists))
        elif not isinstance(moves, dict):
            message = say("`{name}` holds no moves", "`{name}` 中没有增删项", name=name)
            yield _line_of(text, name), _wrong("mixlist", message, _OBJECT, _instead("", _MOVES))
        else:
            yield from _moves(text, name, moves, added)


def _moves(text: str, name: str, moves: Mapping[str, Any], added: dict[str, str]) -> Iterator[Located]:
    for move, types in moves.items():
        if move not in _MOVES:
            message = say("`{move}` of `{name}` is no move", "`{name}` 中的 `{move}` 不是增删项", move=move[:60], name=name)
            yield _line_of(text, move), _wrong("mixlist", message, _NO_EFFECT, _instead(move, _MOVES))
        elif not isinstance(types, list) or not all(isinstance(item, str) and re.fullmatch(r"\w+", item) for item in types):
            message = say(
                "`{move}` of `{name}` is no list of operator types", "`{name}` 的 `{move}` 不是算子类型列表", move=move, name=name
            )
            why = say("it takes IR types such as SoftmaxV2", "此处应为 SoftmaxV2 之类的 IR 类型")
            yield _line_of(text, move), _wrong("mixlist", message, why, say('write ["Type", "Type"]', '请写成 ["Type", "Type"]'))
        elif move == "to-add":
            for item in types:
                if added.setdefault(item, name) != name:
                    message = say("`{item}` is added to two lists", "`{item}` 被加入两个名单", item=item)
                    why = say("an operator is in one list", "一个算子只能在一个名单中")
                    yield _line_of(text, item), _wrong("mixlist", message, why, say("keep one", "请只保留一个"))


_OBJECT = say("an object in braces is wanted", "此处应为花括号中的对象")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith(("#", ";")):
            yield number, line.strip()


def _keep_dtype(text: str, facts: ModelFacts | None) -> Iterator[Located]:
    one = say("write one node name, or OpType::TYPE, a line", "请每行写一个节点名或 OpType::类型")
    for number, line in _lines(text):
        kind = re.match(r"(op\s*type)\s*(:+)\s*", line, re.IGNORECASE)
        if kind and not line.startswith("OpType::"):
            message = say("`{line}` does not name a type", "`{line}` 没有正确写出类型", line=line[:60])
            why = say("it is read as the name of a node", "它会被当作节点名")
            yield (
                number,
                _wrong("keep-dtype", message, why, say("write OpType::{name}", "请写成 OpType::{name}", name=line[kind.end() :][:40])),
            )
        elif re.search(r"[\s,;\"']", line) or (kind and not re.fullmatch(r"OpType::\w+", line)):
            message = say("`{line}` is no single name", "`{line}` 不是单个名称", line=line[:60])
            yield number, _wrong("keep-dtype", message, say("the whole line is read as one name", "整行会被当作一个名称"), one)
        else:
            yield from _node("keep-dtype", number, "" if kind else line, facts)


def _node(kind: ConfigKind, number: int, name: str, facts: ModelFacts | None) -> Iterator[Located]:
    if not name or facts is None or not facts.nodes or name in facts.nodes:
        return
    near = difflib.get_close_matches(name, facts.nodes, n=1, cutoff=0.6)
    message = say("the model has no node `{name}`", "模型没有节点 `{name}`", name=name[:60])
    remedy = (
        say("perhaps `{near}`", "也许应为 `{near}`", near=near[0]) if near else say("copy the name from the model", "请从模型中复制名称")
    )
    yield number, _wrong(kind, message, say("the line has no effect", "该行不起作用"), remedy, sure=False)


def _op_precision(text: str, facts: ModelFacts | None) -> Iterator[Located]:
    section = ""
    for number, line in _lines(text):
        if not line.startswith("["):
            yield from _mode(number, line, section, facts)
            continue
        section = line
        if line not in _SECTIONS:
            message = say("`{line}` is no section", "`{line}` 不是有效的节", line=line[:60])
            why = say("what follows has no effect", "其后的内容不起作用")
            yield number, _wrong("op-precision", message, why, _instead(line, _SECTIONS))


def _mode(number: int, line: str, section: str, facts: ModelFacts | None) -> Iterator[Located]:
    name, equals, mode = (part.strip() for part in line.partition("="))
    if not equals or not name:
        message = say("`{line}` is not NAME=MODE", "`{line}` 不是 名称=模式 的形式", line=line[:60])
        why = say("each line sets one mode", "每行设置一个模式")
        yield number, _wrong("op-precision", message, why, say("write NAME=high_precision", "请写成 名称=high_precision"))
    elif mode not in OP_PRECISIONS and mode not in _MORE_PRECISIONS:
        near = bool(difflib.get_close_matches(mode, OP_PRECISIONS, n=1, cutoff=0.75))
        message = say("`{mode}` of `{name}` is no mode", "`{name}` 的 `{mode}` 不是有效模式", name=name[:60], mode=mode[:60])
        why = say("public sources name no such mode", "公开资料中没有该模式")
        yield number, _wrong("op-precision", message, why, _instead(mode, OP_PRECISIONS), sure=near)
    elif not section:
        message = say("`{line}` stands before any section", "`{line}` 位于所有节之前", line=line[:60])
        why = say("it is not said whether the name is a type or a node", "没有说明该名称是类型还是节点")
        remedy = say("put [ByOpType] or [ByNodeName] before it", "请在其前面写 [ByOpType] 或 [ByNodeName]")
        yield number, _wrong("op-precision", message, why, remedy, sure=False)
    elif section == "[ByNodeName]":
        yield from _node("op-precision", number, name, facts)


def _fusion(text: str, _facts: ModelFacts | None) -> Iterator[Located]:
    if not text.lstrip().startswith("{"):
        for number, line in _lines(text):
            name, _, value = (part.strip() for part in line.partition(":"))
            yield from _switch(number, name, value)
        return
    data, found = _json("fusion-switch", text)
    yield from found
    if data is None:
        return
    groups = data.get("Switch") if isinstance(data, dict) else None
    if not isinstance(groups, dict):
        message = say("there is no `Switch`", "没有 `Switch`")
        remedy = say("write the groups inside `Switch`: {known}", "请把各组写在 `Switch` 中：{known}", known=", ".join(_GROUPS))
        yield 1, _wrong("fusion-switch", message, say("nothing is switched", "没有任何开关生效"), remedy)
        return
    for group, passes in groups.items():
        if group not in _GROUPS or not isinstance(passes, dict):
            message = say("`{group}` is no group of passes", "`{group}` 不是融合规则组", group=group[:60])
            yield (
                _line_of(text, group),
                _wrong("fusion-switch", message, say("nothing in it is switched", "其中的开关不起作用"), _instead(group, _GROUPS)),
            )
            continue
        for name, value in passes.items():
            yield from _switch(_line_of(text, name), name, value)


def _switch(number: int, name: str, value: object) -> Iterator[Located]:
    if value not in ("on", "off"):
        message = say("`{name}` is `{value}`", "`{name}` 的值是 `{value}`", name=name[:60], value=str(value)[:40])
        yield (
            number,
            _wrong(
                "fusion-switch",
                message,
                say("a pass is on or off", "融合规则只能为 on 或 off"),
                say('write "on" or "off"', '请写成 "on" 或 "off"'),
            ),
        )


def _customize(text: str, facts: ModelFacts | None) -> Iterator[Located]:
    remedy = say(
        "write NODE::InputDtype:float16,float16,OutputDtype:float32, or OpType::TYPE:InputDtype:...",
        "请写成 NODE::InputDtype:float16,float16,OutputDtype:float32，或 OpType::TYPE:InputDtype:...",
    )
    for number, line in _lines(text):
        match = re.fullmatch(
            r"(?:OpType::(?P<type>\w+):|(?P<node>[^:\s]+)::)InputDtype:(?P<inputs>[^:]*),OutputDtype:(?P<outputs>[^:]*)", line
        )
        if match is None:
            message = say("`{line}` cannot be read", "无法读取 `{line}`", line=line[:60])
            yield (
                number,
                _wrong(
                    "customize-dtypes",
                    message,
                    say("a line gives the dtypes of all inputs and outputs of one name", "每行给出一个名称的全部输入和输出类型"),
                    remedy,
                ),
            )
            continue
        yield from _node("customize-dtypes", number, match["node"] or "", facts)


def _compression(text: str, _facts: ModelFacts | None) -> Iterator[Located]:
    depth = 0
    for number, line in _lines(text):
        # The first setting of a line, also behind the brace that opens its block.
        first = re.match(r"[{\s]*(\w+)\s*:?\s*([^{}\s]*)", line)
        if first:
            yield from _setting(number, first[1], first[2].strip("\"'"))
        depth += line.count("{") - line.count("}")
    if depth:
        message = say("the braces do not match", "花括号不匹配")
        yield (
            max(1, text.count("\n")),
            _wrong("compression", message, say("a block is not closed", "有一个块没有闭合"), say("close it", "请闭合")),
        )


def _setting(number: int, key: str, value: str) -> Iterator[Located]:
    kind = "block" if key == "calibration" else COMPRESSION_KEYS.get(key)
    if kind is None:
        message = say("`{key}` is no setting", "`{key}` 不是有效的设置项", key=key[:60])
        yield (
            number,
            _wrong(
                "compression",
                message,
                say("public sources name no such key", "公开资料中没有该键"),
                _instead(key, ["calibration", *COMPRESSION_KEYS]),
            ),
        )
    elif (kind == "bool" and value not in ("true", "false")) or (kind == "number" and not value.isdecimal()):
        message = say("`{key}` is `{value}`", "`{key}` 的值是 `{value}`", key=key, value=value[:40])
        wanted = say("write true or false", "请写 true 或 false") if kind == "bool" else say("write a number", "请写一个数字")
        yield number, _wrong("compression", message, say("it takes another kind of value", "此处应为另一种值"), wanted)
