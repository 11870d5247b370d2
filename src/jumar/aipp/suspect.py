"""Numbers that are seldom meant: what can be said of a block without knowing how the model was trained."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..atc.options import Problem
from ..text import Text, say
from .arithmetic import channel_table
from .config import AippOp, Located
from .matrices import identify
from .schema import EIGHT_BIT, MATRIX, RGB, SOURCE_GE, YUV, VarType, channels

_IMAGENET = (123.675, 116.28, 103.53)


def check_numbers(op: AippOp, var: VarType = "float16") -> Iterator[Located]:
    """Slips that the numbers of one static block show (AI106), and matrices without a name (AI107)."""
    if op.mode != "static" or op.format not in EIGHT_BIT:
        return
    count = 1 if op.format == "YUV400_U8" else min(channels(op.format) or 3, 3)
    mean, low, var_reci = (op.per_channel(prefix)[:count] for prefix in ("mean_chn", "min_chn", "var_reci_chn"))
    if not all(math.isfinite(value) for value in (*mean, *low, *var_reci)):
        return  # reported with the ranges
    subtracted = [one + two for one, two in zip(mean, low, strict=True)]
    yield from _ranges(op, var, count)
    if all(value > 1 for value in var_reci) and any(value > 8 for value in var_reci):
        yield _std(op, var_reci)
    elif all(0 < value <= 1 for value in subtracted) and all(value > 0.1 for value in var_reci):
        yield _unit_mean(op, subtracted)
    elif all(one > 1 and abs(one - two) <= 1 for one, two in zip(mean, low, strict=True)):
        message = say("mean_chn and min_chn both hold the mean", "mean_chn 和 min_chn 都写了均值")
        why = say("both are subtracted: the mean goes off twice", "两者都会被减去，均值被减了两次")
        yield op.line_of("min_chn_0"), suspicious(message, why, say("keep one of them", "请只保留其一"))
    yield from _uneven(op, var_reci)
    yield from _order(op, subtracted)
    yield from _matrix(op)


def suspicious(message: Text, why: Text, remedy: Text, *, sure: bool = False) -> Problem:
    """Numbers that are probably not what is meant."""
    return Problem("AI106", "error" if sure else "warning", message, why, remedy, "insert_op_conf")


def _ranges(op: AippOp, var: VarType, count: int) -> Iterator[Located]:
    for index in range(count):
        values = channel_table(op, index, var)
        if not all(math.isfinite(float(value)) for value in (values[0], values[255])):
            message = say("channel {index} leaves float16 for some pixels", "通道 {index} 的部分像素超出 float16", index=index)
            why = say("the model gets infinity", "模型会得到无穷大")
            yield (
                op.line_of(f"var_reci_chn_{index}"),
                suspicious(message, why, say("correct var_reci_chn", "请修正 var_reci_chn"), sure=True),
            )
            return


def _std(op: AippOp, var_reci: tuple[float, ...]) -> Located:
    message = say(
        "var_reci_chn is {value:g}: it looks like a standard deviation", "var_reci_chn 为 {value:g}，像是标准差", value=var_reci[0]
    )
    least = op["mean_chn_0"] + op["min_chn_0"]
    top = max(abs(255 - least), abs(least)) * var_reci[0]
    why = say(
        "it is a factor: pixels become numbers of up to about {top:.0f}, which overflow float16 further on",
        "它是乘数，像素会变成约 {top:.0f} 的数，后续会超出 float16",
        top=top,
    )
    return op.line_of("var_reci_chn_0"), suspicious(
        message, why, say("write 1 / std: {value:.10g}", "请写 1 / 标准差：{value:.10g}", value=1 / var_reci[0]), sure=True
    )


def _unit_mean(op: AippOp, subtracted: list[float]) -> Located:
    name = "min_chn_0" if op["min_chn_0"] else "mean_chn_0"
    message = say(
        "{name} is {value:g}: it looks like a mean on the scale 0..1",
        "{name} 为 {value:g}，像是 0..1 尺度的均值",
        name=name,
        value=subtracted[0],
    )
    scale = op["var_reci_chn_0"]
    why = say(
        "it is taken off pixels of 0..255: the model gets {low:.4g} to {high:.4g}",
        "它从 0..255 的像素中减去，模型得到 {low:.4g} 到 {high:.4g}",
        low=-subtracted[0] * scale,
        high=(255 - subtracted[0]) * scale,
    )
    remedy = say(
        "write mean * 255 and 1 / (255 * std): {mean:.6g} and {var:.8g}",
        "请写 均值*255 和 1/(255*标准差)：{mean:.6g} 和 {var:.8g}",
        mean=subtracted[0] * 255,
        var=scale / 255,
    )
    return op.line_of(name), suspicious(message, why, remedy, sure=scale > 1)


def _uneven(op: AippOp, var_reci: tuple[float, ...]) -> Iterator[Located]:
    given = [index for index in range(len(var_reci)) if f"var_reci_chn_{index}" in op]
    left = [index for index in range(len(var_reci)) if index not in given]
    if given and left and any(abs(var_reci[index] - 1) > 0.5 for index in given):
        message = say("var_reci_chn is not given for channel {left}", "通道 {left} 没有给出 var_reci_chn", left=", ".join(map(str, left)))
        why = say(
            "it is 1 there, and {value:g} in channel {index}",
            "该通道取 1，而通道 {index} 为 {value:g}",
            value=var_reci[given[0]],
            index=given[0],
        )
        yield op.line_of(f"var_reci_chn_{given[0]}"), suspicious(message, why, say("give it for all channels", "请为所有通道给出"))


def _order(op: AippOp, subtracted: list[float]) -> Iterator[Located]:
    """ImageNet's means in the order of the other colours."""
    if len(subtracted) < 3 or op.format not in RGB or op["csc_switch"]:
        return
    backwards = all(abs(value - known) < 0.6 for value, known in zip(subtracted, _IMAGENET[::-1], strict=True))
    if backwards and not op["rbuv_swap_switch"]:
        message = say(
            "the means are those of ImageNet in the order B, G, R, and nothing swaps", "均值是 ImageNet 的 B、G、R 顺序，而没有交换通道"
        )
        why = say("right only if the images given are BGR, as OpenCV reads them", "仅当输入图像为 BGR（如 OpenCV 读取）时才正确")
        remedy = say(
            "for RGB images and a BGR model write rbuv_swap_switch: true", "若图像为 RGB 而模型为 BGR，请写 rbuv_swap_switch: true"
        )
        yield op.line_of("min_chn_0"), Problem("AI106", "info", message, why, remedy, "insert_op_conf")


def _matrix(op: AippOp) -> Iterator[Located]:
    if not op["csc_switch"] or op.format == "YUV400_U8":
        return
    found = identify(op)
    given = [name for name in MATRIX if name in op]
    line = op.line_of(given[0] if given else "csc_switch")
    if not given:
        message = say("csc_switch is on without a matrix", "开启了 csc_switch 却没有给出矩阵")
        why = say("ATC puts in: {text}", "ATC 会填入：{text}", text=found.text)
        remedy = say("write the matrix of your images and the order of your model", "请写出与图像标准和模型通道顺序相符的矩阵")
        yield line, Problem("AI107", "warning", message, why, remedy, "insert_op_conf", (), (SOURCE_GE,))
    elif found.matrix is None and not found.gray:
        message = say("the colour matrix is none of the known ones", "色域转换矩阵不是已知的矩阵")
        why = say("it is no matrix of BT.601, BT.709 or BT.2020, narrow or full", "它不属于 BT.601、BT.709、BT.2020 的窄范围或全范围矩阵")
        remedy = say("`jumar aipp derive --matrix` writes them by name", "`jumar aipp derive --matrix` 可按名称生成")
        yield line, Problem("AI107", "warning", message, why, remedy, "insert_op_conf", (), (SOURCE_GE,))
    if found.gray and op["output_bias_0"]:
        message = say("gray is made with an offset of {bias}", "灰度转换带有偏移 {bias}", bias=op["output_bias_0"])
        why = say("output_bias_0 is {bias} where the file is silent", "文件未写 output_bias_0 时取 {bias}", bias=op["output_bias_0"])
        yield (
            line,
            Problem(
                "AI107", "warning", message, why, say("write output_bias_0: 0", "请写 output_bias_0: 0"), "insert_op_conf", (), (SOURCE_GE,)
            ),
        )
    if op.format in YUV and op.format != "YUV420SP_U8" and not given:
        message = say("the matrix that is put in goes from RGB to YUV", "填入的矩阵是从 RGB 到 YUV")
        why = say("ATC's default knows YUV420SP_U8 only", "ATC 的默认值只考虑 YUV420SP_U8")
        yield line, suspicious(message, why, say("write the matrix", "请写出矩阵"), sure=True)
