"""One block against the rules that ATC and the operator compiler enforce, and against what the chip takes."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..atc.options import Problem
from ..text import Text, say
from .config import AippConfig, AippOp, Located
from .geometry import geometry
from .idle import check_idle
from .schema import (
    CROPS,
    EIGHT_BIT,
    LARGEST_PADDING,
    LARGEST_SIDE,
    PADDINGS,
    RESIZES,
    SOURCE_GE,
    SOURCE_TBE,
    Chip,
    fields,
)

SIZES = ("src_image_size_h", "src_image_size_w", *CROPS)
_TBE, _GE = ("E81012",), ("E10052",)
_COMPILER = say("the operator compiler refuses it", "算子编译器会拒绝")


def refused(message: Text, why: Text, remedy: Text, atc: tuple[str, ...] = _TBE, *, sure: bool = True) -> Problem:
    """A rule of ATC or the operator compiler that is broken (AI102)."""
    source = SOURCE_GE if atc == _GE else SOURCE_TBE
    return Problem("AI102", "error" if sure else "warning", message, why, remedy, "insert_op_conf", atc, (source,))


def elsewhere(message: Text, why: Text, remedy: Text, *, sure: bool = True) -> Problem:
    """Something that this chip does not take, or that no source says it takes (AI103)."""
    return Problem("AI103", "error" if sure else "warning", message, why, remedy, "insert_op_conf", _TBE if sure else (), (SOURCE_TBE,))


def check_config(config: AippConfig, chip: Chip | None = None, network: dict[int, tuple[int, int]] | None = None) -> list[Located]:
    """All that is wrong in a file that could be read.

    Args:
        chip: the target; None judges by what holds everywhere.
        network: height and width of the model's inputs, by number.
    """
    found = list(_addresses(config))
    for op in config.ops:
        size = (network or {}).get(int(op["related_input_rank"]))
        found += check_op(op, chip, size)
    return sorted(found, key=lambda item: item[0])


def _addresses(config: AippConfig) -> Iterator[Located]:
    named = [op for op in config.ops if op["related_input_name"]]
    for op in named:
        message = say("related_input_name addresses an input by its name", "related_input_name 按名称指定输入")
        why = say("only Caffe models take it", "仅 Caffe 模型支持")
        yield op.line_of("related_input_name"), refused(message, why, say("write related_input_rank", "请改用 related_input_rank"), _GE)
    seen: set[tuple[object, object]] = set()
    for op in config.ops:
        place = (op["related_input_name"], op["related_input_rank"])
        if place in seen:
            message = say("two blocks are for input {rank}", "有两个块都指向第 {rank} 个输入", rank=op["related_input_rank"])
            why = say("each input has one block", "每个输入只能有一个块")
            yield op.line_of("related_input_rank"), refused(message, why, say("number the blocks from 0", "请从 0 起为各块编号"), _GE)
        seen.add(place)


def check_op(op: AippOp, chip: Chip | None = None, network: tuple[int, int] | None = None) -> Iterator[Located]:
    """Problems of one block."""
    if op.mode not in ("static", "dynamic"):
        message = say("aipp_mode is not given", "没有给出 aipp_mode")
        yield (
            op.line,
            refused(
                message, say("ATC does not guess it", "ATC 不会猜测"), say("write `static` or `dynamic`", "请写 `static` 或 `dynamic`"), _GE
            ),
        )
        return
    for name in (*SIZES, *RESIZES, *PADDINGS):
        if op[name] < 0:
            message = say("{name} is negative", "{name} 为负数", name=name)
            yield (
                op.line_of(name),
                refused(
                    message, say("sizes and places are 0 or more", "大小和位置不小于 0"), say("write 0 or more", "请写不小于 0 的数"), _GE
                ),
            )
    yield from _dynamic(op, chip) if op.mode == "dynamic" else _static(op, chip, network)
    yield from check_idle(op)


def _dynamic(op: AippOp, chip: Chip | None) -> Iterator[Located]:
    if op["max_src_image_size"] <= 0:
        message = say("max_src_image_size is not given", "没有给出 max_src_image_size")
        why = say("it is the size of the input's buffer", "它是输入缓冲区的大小")
        remedy = say("write the bytes of the largest image, times the batch", "请写最大图像的字节数乘以 batch")
        yield op.line, refused(message, why, remedy, _GE)
    if chip is not None and not chip.dynamic:
        message = say("{soc} has no dynamic AIPP", "{soc} 没有动态 AIPP", soc=chip.short)
        why = say(
            "the operator compiler of 8.1 builds it for 310, 310P, 610, 910, BS9SX1A and vision chips",
            "8.1 的算子编译器仅为 310、310P、610、910、BS9SX1A 和视觉芯片提供",
        )
        yield op.line_of("aipp_mode"), elsewhere(message, why, say("use static AIPP", "请使用静态 AIPP"))


def _static(op: AippOp, chip: Chip | None, network: tuple[int, int] | None) -> Iterator[Located]:
    if op.format == "UNDEFINED":
        message = say("input_format is not given", "没有给出 input_format")
        yield (
            op.line,
            refused(
                message,
                say("static mode needs it", "静态模式需要它"),
                say("write RGB888_U8, YUV420SP_U8, ...", "请写 RGB888_U8、YUV420SP_U8 等"),
                _GE,
            ),
        )
        return
    if chip is not None and op.format not in chip.formats:
        message = say("{soc} does not take {format}", "{soc} 不支持 {format}", soc=chip.short, format=op.format)
        why = say("its formats: {known}", "其支持的格式：{known}", known=", ".join(chip.formats))
        yield op.line_of("input_format"), elsewhere(message, why, say("convert on the host to one of them", "请在主机上转换为其中之一"))
    yield from _ranges(op)
    yield from _source(op, chip)
    yield from _crop(op, chip)
    yield from _resize(op, chip)
    yield from _padding(op, chip, network)
    yield from _colour(op)
    size = geometry(op, network)
    if size is not None and network is not None and size.output != network:
        message = say(
            "AIPP gives {width} x {height} (width x height), the model takes {net_width} x {net_height}",
            "AIPP 输出 {width} x {height}（宽 x 高），模型需要 {net_width} x {net_height}",
            width=size.output[1],
            height=size.output[0],
            net_width=network[1],
            net_height=network[0],
        )
        remedy = say("crop or pad to the size of the model, or resize on the host", "请裁剪或补边到模型的大小，或在主机上缩放")
        yield op.line_of("crop_size_h" if op["crop"] else "src_image_size_h"), refused(message, _COMPILER, remedy)


def _ranges(op: AippOp) -> Iterator[Located]:
    raw = op.format not in EIGHT_BIT
    for name, value in op.given.items():
        facts = fields()[name]
        limits = facts.limits
        if isinstance(value, float) and not math.isfinite(value):
            message = say("{name} is {value}", "{name} 为 {value}", name=name, value=value)
            yield (
                op.line_of(name),
                refused(message, say("no number comes out of it", "得不到有效数值"), say("write a finite number", "请写有限的数")),
            )
        elif limits is None or isinstance(value, (str, bool)) or _unused(op, name) or (raw and name.startswith("mean_chn")):
            continue
        elif name in (*PADDINGS, "src_image_size_w", "src_image_size_h") or (value < 0 <= limits[0] and name in SIZES):
            continue  # judged with their groups
        elif not limits[0] <= value <= limits[1]:
            message = say("{name} is {value}", "{name} 为 {value}", name=name, value=value)
            why = say("it takes {low:g} to {high:g}", "取值范围为 {low:g} 到 {high:g}", low=limits[0], high=limits[1])
            remedy = say("correct the value", "请修正取值")
            if name.startswith("min_chn") and value < 0:
                remedy = say(
                    "a subtrahend is not negative; what shall be added afterwards stays in the network",
                    "减数不能为负；需要加上的偏置请留在网络中",
                )
            yield op.line_of(name), refused(message, why, remedy)


def _unused(op: AippOp, name: str) -> bool:
    """Whether the switch that a field belongs to is off."""
    if name.startswith(("load_start_pos", "crop_size")):
        return not op["crop"]
    if name in RESIZES:
        return not op["resize"]
    if name.startswith(("matrix_", "input_bias", "output_bias")):
        return not op["csc_switch"]
    return name == "padding_value" and not op["padding"]


def _source(op: AippOp, chip: Chip | None) -> Iterator[Located]:
    changes = [name for name in ("crop", "padding", "resize") if op[name]]
    for axis, least in (("w", 2), ("h", 1)):
        name = f"src_image_size_{axis}"
        value = op[name]
        if value == 0 and changes:
            message = say(
                "{name} is not given, and {switch} is on", "没有给出 {name}，却开启了 {switch}", name=name, switch=" + ".join(changes)
            )
            why = say("the size of the image is needed for it", "该操作需要图像的大小")
            yield op.line_of(name), refused(message, why, say("write the size of the source image", "请写源图像的大小"))
        elif value and not least <= value <= LARGEST_SIDE:
            message = say("{name} is {value}", "{name} 为 {value}", name=name, value=value)
            why = say(
                "it takes {least} to 4096, or 0 for the size of the model", "取值为 {least} 到 4096，或 0 表示采用模型的大小", least=least
            )
            yield op.line_of(name), refused(message, why, say("shrink the image on the host", "请在主机上缩小图像"))
        even = op.format == "YUV420SP_U8" or (op.format in ("YUV422SP_U8", "YUYV_U8") and axis == "w")
        if even and value % 2:
            message = say("{name} is odd", "{name} 是奇数", name=name)
            why = say("{format} shares colour between two pixels", "{format} 每两个像素共用色度", format=op.format)
            yield op.line_of(name), refused(message, why, say("write an even size", "请写偶数"))
    if chip is not None and chip.vision and (row := _row_bytes(op)) % 16:
        message = say("a row has {bytes} bytes", "每行有 {bytes} 字节", bytes=row)
        why = say("{soc} wants rows of a multiple of 16 bytes", "{soc} 要求每行字节数为 16 的倍数", soc=chip.short)
        yield op.line_of("src_image_size_w"), elsewhere(message, why, say("widen the image on the host", "请在主机上加宽图像"))


def _row_bytes(op: AippOp) -> int:
    per_pixel = {"RGB888_U8": 3, "XRGB8888_U8": 4, "ARGB8888_U8": 4, "AYUV444_U8": 4, "YUYV_U8": 2}.get(op.format, 1)
    return int(op["src_image_size_w"]) * per_pixel


def _crop(op: AippOp, chip: Chip | None) -> Iterator[Located]:
    if not op["crop"]:
        return
    for axis in ("w", "h"):
        start, size, whole = (op[f"{name}_{axis}"] for name in ("load_start_pos", "crop_size", "src_image_size"))
        if size == 0 and (op["padding"] or op["resize"]):
            message = say("crop_size_{axis} is not given", "没有给出 crop_size_{axis}", axis=axis)
            why = say("with padding or resize it is not taken from the model", "开启补边或缩放时不会取自模型")
            yield op.line_of(f"crop_size_{axis}"), refused(message, why, say("write it", "请写出该值"))
        elif whole and start + size > whole:
            message = say(
                "the crop reaches to {end} of {whole} pixels ({axis})",
                "裁剪到第 {end} 个像素，而图像只有 {whole} 个（{axis}）",
                end=start + size,
                whole=whole,
                axis=axis,
            )
            yield op.line_of(f"crop_size_{axis}"), refused(message, _COMPILER, say("move or shrink the crop", "请移动或缩小裁剪区域"))
        for name, sure in ((f"load_start_pos_{axis}", True), (f"crop_size_{axis}", chip is not None and chip.vision)):
            if op[name] % 2 == 0 or not _shares_colour(op.format, axis) or (chip is not None and chip.odd_crop):
                continue
            message = say("{name} is odd", "{name} 是奇数", name=name)
            why = say(
                "{format} is cropped at even places, except on 910B, 310B and the newer vehicle chips",
                "{format} 只能在偶数位置裁剪，910B、310B 及较新的车载芯片除外",
                format=op.format,
            )
            if not sure and name.startswith("crop_size"):
                why = say(
                    "documents want an even size; the compiler's code asks it of vision chips only",
                    "文档要求偶数；编译器代码只对视觉芯片有此要求",
                )
            sure = sure and chip is not None
            yield (
                op.line_of(name),
                refused(message, why, say("crop at an even place, the rest on the host", "请在偶数位置裁剪，其余在主机上完成"), sure=sure),
            )


def _shares_colour(name: str, axis: str) -> bool:
    return name == "YUV420SP_U8" or (name in ("YUV422SP_U8", "YUYV_U8") and axis == "w")


def _resize(op: AippOp, chip: Chip | None) -> Iterator[Located]:
    if not op["resize"]:
        return
    if chip is None or not chip.vision:
        message = say("resize is on", "开启了 resize")
        why = say("only Hi3796CV300ES, Hi3796CV300CS and SD3403 scale in AIPP", "仅 Hi3796CV300ES、Hi3796CV300CS 和 SD3403 的 AIPP 能缩放")
        problem = refused if chip is None else elsewhere
        yield (
            op.line_of("resize"),
            problem(message, why, say("resize on the host, or with DVPP", "请在主机上或用 DVPP 缩放"), sure=chip is not None),
        )
        return
    size = geometry(op)
    for index, (axis, largest) in enumerate((("h", 4096), ("w", 1920))):
        out = op[f"resize_output_{axis}"]
        if out == 0 and op["padding"]:
            message = say("resize_output_{axis} is not given", "没有给出 resize_output_{axis}", axis=axis)
            yield (
                op.line_of("resize"),
                refused(
                    message, say("with padding it is not taken from the model", "开启补边时不会取自模型"), say("write it", "请写出该值")
                ),
            )
        elif out and not 16 <= out <= largest:
            message = say("resize_output_{axis} is {out}", "resize_output_{axis} 为 {out}", axis=axis, out=out)
            yield (
                op.line_of(f"resize_output_{axis}"),
                refused(
                    message, say("it takes 16 to {most}", "取值为 16 到 {most}", most=largest), say("resize on the host", "请在主机上缩放")
                ),
            )
        elif size is not None and not (16 <= size.crop[2 + index] <= 4096 and 1 / 16 <= out / size.crop[2 + index] <= 16):
            message = say("{before} pixels become {out}", "{before} 个像素缩放为 {out} 个", before=size.crop[2 + index], out=out)
            why = say("it takes 16 to 4096 pixels and factors of 1/16 to 16", "支持 16 到 4096 个像素、1/16 到 16 倍")
            yield op.line_of("resize"), refused(message, why, say("resize on the host", "请在主机上缩放"))


def _padding(op: AippOp, chip: Chip | None, network: tuple[int, int] | None) -> Iterator[Located]:
    if not op["padding"]:
        return
    for name in PADDINGS:
        if op[name] > LARGEST_PADDING:
            message = say("{name} is {value}", "{name} 为 {value}", name=name, value=op[name])
            yield (
                op.line_of(name),
                refused(message, say("AIPP pads by at most 32", "AIPP 每边最多补 32 个像素"), say("pad on the host", "请在主机上补边")),
            )
    size = geometry(op, network)
    if size is None or chip is None or chip.padded_width is None or size.output[1] <= chip.padded_width[0]:
        return
    width, (code, documents) = size.output[1], chip.padded_width
    message = say("after padding the image is {width} wide", "补边后图像宽 {width}", width=width)
    sure = width > documents
    why = say("{soc} takes {most} at most", "{soc} 最多支持 {most}", soc=chip.short, most=documents if sure else code)
    if not sure:
        why = say(
            "the code of CANN 8.1 takes {code} at most, documents of 9.2 say {most}",
            "CANN 8.1 的代码最多支持 {code}，9.2 的文档为 {most}",
            code=code,
            most=documents,
        )
    yield op.line_of("padding"), elsewhere(message, why, say("pad on the host", "请在主机上补边"), sure=sure)


def _colour(op: AippOp) -> Iterator[Located]:
    if op.format == "YUV400_U8" and op["csc_switch"]:
        message = say("csc_switch is on for YUV400_U8", "YUV400_U8 开启了 csc_switch")
        yield (
            op.line_of("csc_switch"),
            refused(message, say("a gray image has no colour to convert", "灰度图没有可转换的颜色"), say("turn it off", "请关闭")),
        )
    elif op.format not in EIGHT_BIT and (op["csc_switch"] or op["padding"] or op["resize"]):
        message = say("{format} has colour conversion, padding or resize", "{format} 开启了色域转换、补边或缩放", format=op.format)
        yield op.line_of("input_format"), refused(message, _COMPILER, say("turn them off", "请关闭"))
