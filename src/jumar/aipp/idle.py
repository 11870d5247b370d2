"""Fields that an AIPP block gives and that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator

from ..atc.options import Problem
from ..text import Text, say
from .config import AippOp, Located
from .schema import CROPS, EIGHT_BIT, FOUR, MATRIX, PADDINGS, RESIZES, SOURCE_TBE, YUV, fields


def idle(message: Text, why: Text, remedy: Text) -> Problem:
    """Something that has no effect (AI105)."""
    return Problem("AI105", "warning", message, why, remedy, "insert_op_conf", (), (SOURCE_TBE,))


_GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("crop", CROPS),
    ("resize", RESIZES),
    ("padding", (*PADDINGS, "padding_value")),
    ("csc_switch", (*MATRIX, *(f"{side}_bias_{index}" for side in ("input", "output") for index in range(3)))),
)
_RESERVED = ("support_rotation", "cpadding_value", "single_line_mode")


def check_idle(op: AippOp) -> Iterator[Located]:
    """Fields that are given, say something, and are not read."""
    remedy = say("leave it out", "请去掉")
    if op.mode == "dynamic":
        names = [
            name
            for name in op.given
            if name not in ("aipp_mode", "related_input_rank", "related_input_name", "max_src_image_size", "input_edge_idx")
        ]
        if names:
            message = say("dynamic mode does not read {names}", "动态模式不读取 {names}", names=_few(names))
            why = say("these are set when the model runs", "这些参数在模型运行时设置")
            yield op.line_of(names[0]), idle(message, why, say("set them with acl.mdl.set_aipp_*", "请用 acl.mdl.set_aipp_* 设置"))
        return
    if op["max_src_image_size"]:
        message = say("static mode does not read max_src_image_size", "静态模式不读取 max_src_image_size")
        yield op.line_of("max_src_image_size"), idle(message, say("it belongs to dynamic mode", "它属于动态模式"), remedy)
    for switch, members in _GROUPS:
        changed = [name for name in members if name in op and op[name] != fields()[name].default]
        if changed and not op[switch]:
            message = say(
                "{names} have no effect: {switch} is off", "{switch} 关闭时，{names} 不起作用", names=_few(changed), switch=switch
            )
            turn = say("turn {switch} on, or leave them out", "请开启 {switch}，或去掉它们", switch=switch)
            yield op.line_of(changed[0]), idle(message, say("the switch decides", "由开关决定"), turn)
    yield from _idle_for_format(op)
    for name in _RESERVED:
        if op[name]:
            message = say("{name} has no effect", "{name} 不起作用", name=name)
            yield op.line_of(name), idle(message, say("documents reserve it for later", "文档中为保留字段"), remedy)


def _idle_for_format(op: AippOp) -> Iterator[Located]:
    unused = []
    if op.format in EIGHT_BIT and op.format not in FOUR and op["ax_swap_switch"]:
        unused.append("ax_swap_switch")
    if op.format == "YUV400_U8" and op["rbuv_swap_switch"]:
        unused.append("rbuv_swap_switch")
    if op["csc_switch"] and op.format in EIGHT_BIT:
        side = "output" if op.format in YUV else "input"
        unused += [name for name in (f"{side}_bias_{index}" for index in range(3)) if op[name] not in (0, fields()[name].default)]
    if unused:
        message = say("{names} have no effect for {format}", "{names} 对 {format} 不起作用", names=_few(unused), format=op.format)
        yield (
            op.line_of(unused[0]),
            idle(message, say("the format has nothing of the kind", "该格式没有对应内容"), say("leave it out", "请去掉")),
        )


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
