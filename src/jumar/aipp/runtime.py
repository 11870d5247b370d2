"""Dynamic AIPP when the model runs: the calls of pyACL, and the bytes that they put into the extra input.

Layout: hicann/ge:docs/zh/user_guides/atc_tools/AIPP (kAippDynamicPara, kAippDynamicBatchPara) and aipp_comm.py of CANN 8.1.RC1, whose
numbers of formats (RGB888_U8 is 5, YUV400_U8 is 10) differ from those of the calls.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from ..errors import UsageError
from ..text import say
from .config import AippOp, matrix_of
from .schema import default_matrix, formats, runtime_formats

INPUT = "ascend_dynamic_aipp_data"
"""Name of the extra input of the compiled model."""
HEADER_BYTES, BATCH_BYTES = 64, 96
LARGEST_BATCH = 127
_HEADER = struct.Struct("<B4b3x2i9h6x6B2x16x")
_BATCH = struct.Struct("<4b4x12i4h8H16x")
_NUMBERS = {"YUV420SP_U8": 1, "XRGB8888_U8": 2, "RGB888_U8": 5, "YUV400_U8": 10}
_MATRIX_FIELDS = tuple(default_matrix("YUV420SP_U8"))


def _check(ops: Sequence[AippOp]) -> None:
    """What the runtime refuses.

    Raises:
        UsageError: formats that cannot be set, no source size, resize, or images that differ in what they share.
    """
    if not 1 <= len(ops) <= LARGEST_BATCH:
        raise UsageError(
            say("there are {count} images", "有 {count} 幅图像", count=len(ops)),
            say("expected 1 to {most}", "应为 1 到 {most} 幅", most=LARGEST_BATCH),
        )
    first = ops[0]
    shared = ("input_format", "src_image_size_w", "src_image_size_h", "csc_switch", "rbuv_swap_switch", "ax_swap_switch", *_MATRIX_FIELDS)
    if first.format not in runtime_formats():
        raise UsageError(
            say("{format} cannot be set when the model runs", "{format} 不能在运行时设置", format=first.format),
            say("expected one of: {known}", "应为其中之一：{known}", known=", ".join(runtime_formats())),
            say("use static AIPP (EH0005)", "请使用静态 AIPP（EH0005）"),
        )
    if not first["src_image_size_w"] or not first["src_image_size_h"] or any(op["resize"] for op in ops):
        raise UsageError(
            say("the source size is missing, or resize is on", "缺少源图大小，或开启了 resize"),
            say("expected set_aipp_src_image_size, and no resize", "必须调用 set_aipp_src_image_size，且不能缩放"),
            say("write src_image_size_w and src_image_size_h (EH0005)", "请写出 src_image_size_w 和 src_image_size_h（EH0005）"),
        )
    if any(op["padding"] and op["padding_value"] for op in ops):
        raise UsageError(
            say("the padding is not zero", "补边的值不为零"),
            say("expected zero: the settings of a run have no value for it", "应为零：运行时参数中没有补边值"),
            say("use static AIPP, or pad on the host", "请使用静态 AIPP，或在主机上补边"),
        )
    if any(op[name] != first[name] for op in ops for name in shared):
        raise UsageError(
            say("the images of the batch differ in format, source size or colours", "批次中的图像在格式、源图大小或颜色上不同"),
            say("expected only crop, padding and numbers to differ", "只有裁剪、补边和数值可以不同"),
            say("run them one by one", "请逐幅运行"),
        )


def parameter_bytes(ops: Sequence[AippOp]) -> bytes:
    """The content of the extra input: a block an image, with the settings that a static file would have.

    Raises:
        UsageError: what the runtime refuses.
    """
    _check(ops)
    first = ops[0]
    matrix = matrix_of(first) if first["csc_switch"] else (0,) * 9
    bias = [int(first[f"{side}_bias_{index}"]) if first["csc_switch"] else 0 for side in ("output", "input") for index in range(3)]
    switches = [int(first[name]) for name in ("csc_switch", "rbuv_swap_switch", "ax_swap_switch")]
    size = (int(first["src_image_size_w"]), int(first["src_image_size_h"]))
    head = _HEADER.pack(_NUMBERS[first.format], *switches, len(ops), *size, *matrix, *bias)
    return head + b"".join(_image_bytes(op) for op in ops)


def _image_bytes(op: AippOp) -> bytes:
    crop = [int(op[name]) if op["crop"] else 0 for name in ("load_start_pos_w", "load_start_pos_h", "crop_size_w", "crop_size_h")]
    sides = ("top", "bottom", "left", "right")  # the file has left, right, top, bottom
    padding = [int(op[f"{side}_padding_size"]) if op["padding"] else 0 for side in sides]
    mean = [int(op[f"mean_chn_{index}"]) for index in range(4)]
    halves = np.array([*op.per_channel("min_chn"), *op.per_channel("var_reci_chn")], np.float64).astype(np.float16).view(np.uint16)
    return _BATCH.pack(int(op["crop"]), 0, int(op["padding"]), 0, *crop, 0, 0, 0, 0, *padding, *mean, *(int(value) for value in halves))


def read_parameters(data: bytes) -> list[AippOp]:
    """The settings that a buffer of the extra input holds, a block an image. Numbers of min and var_reci are those that float16 kept.

    Raises:
        UsageError: it is no such buffer.
    """
    count = data[4] if len(data) >= HEADER_BYTES + BATCH_BYTES else 0
    names = {number: name for name, number in _NUMBERS.items()}
    if not count or len(data) != HEADER_BYTES + count * BATCH_BYTES or data[0] not in names:
        raise UsageError(
            say("{count} bytes are no settings of AIPP", "{count} 字节不是 AIPP 参数", count=len(data)),
            say("expected 64 bytes, and 96 for each image", "应为 64 字节加每幅图像 96 字节"),
            say("give the whole buffer", "请给出整个缓冲区"),
        )
    number, csc, swap, ax, _, width, height, *rest = _HEADER.unpack_from(data)
    shared: dict[str, int | float | bool | str] = {
        "aipp_mode": "static",
        "input_format": names[number],
        "csc_switch": bool(csc),
        "rbuv_swap_switch": bool(swap),
        "ax_swap_switch": bool(ax),
        "src_image_size_w": width,
        "src_image_size_h": height,
    }
    if csc:
        shared |= dict(zip(_MATRIX_FIELDS, rest[:9], strict=True))
        shared |= {
            f"{side}_bias_{index}": rest[9 + 3 * place + index] for place, side in enumerate(("output", "input")) for index in range(3)
        }
    return [_image_of(data[HEADER_BYTES + index * BATCH_BYTES :], shared) for index in range(count)]


def _image_of(data: bytes, shared: dict[str, int | float | bool | str]) -> AippOp:
    crop, _, padding, _, *rest = _BATCH.unpack_from(data)
    values = dict(shared)
    if crop:
        values |= {"crop": True, **dict(zip(("load_start_pos_w", "load_start_pos_h", "crop_size_w", "crop_size_h"), rest[:4], strict=True))}
    if padding:
        values |= {
            "padding": True,
            **{f"{side}_padding_size": rest[8 + index] for index, side in enumerate(("top", "bottom", "left", "right"))},
        }
    halves = np.array(rest[16:], np.uint16).view(np.float16)
    for index in range(4):
        values[f"mean_chn_{index}"] = rest[12 + index]
        values[f"min_chn_{index}"] = float(halves[index])
        values[f"var_reci_chn_{index}"] = float(halves[4 + index])
    return AippOp(values)


def calls(op: AippOp, batch: int = 1) -> list[str]:
    """The pyACL calls that give a dynamic model these settings for every image of a batch.

    Raises:
        UsageError: what the runtime refuses.
    """
    _check([op] * batch)
    matrix, on = matrix_of(op), int(op["csc_switch"])
    bias = [int(op[f"{side}_bias_{index}"]) for side in ("output", "input") for index in range(3)]
    lines = [f"aipp = acl.mdl.create_aipp({batch})", f"acl.mdl.set_aipp_input_format(aipp, {formats()[op.format]})"]
    lines.append(f"acl.mdl.set_aipp_src_image_size(aipp, {op['src_image_size_w']}, {op['src_image_size_h']})")
    if on:
        lines.append(f"acl.mdl.set_aipp_csc_params(aipp, {on}, {', '.join(map(str, (*matrix, *bias)))})")
    lines.append(f"acl.mdl.set_aipp_rbuv_swap_switch(aipp, {int(op['rbuv_swap_switch'])})")
    lines.append(f"acl.mdl.set_aipp_ax_swap_switch(aipp, {int(op['ax_swap_switch'])})")
    for index in range(batch):
        if op["crop"]:
            place = ", ".join(str(op[name]) for name in ("load_start_pos_w", "load_start_pos_h", "crop_size_w", "crop_size_h"))
            lines.append(f"acl.mdl.set_aipp_crop_params(aipp, 1, {place}, {index})")
        if op["padding"]:
            sides = ", ".join(str(op[f"{side}_padding_size"]) for side in ("top", "bottom", "left", "right"))
            lines.append(f"acl.mdl.set_aipp_padding_params(aipp, 1, {sides}, {index})")
        for name, field, kind in (
            ("dtc_pixel_mean", "mean_chn", int),
            ("dtc_pixel_min", "min_chn", float),
            ("pixel_var_reci", "var_reci_chn", float),
        ):
            lines.append(f"acl.mdl.set_aipp_{name}(aipp, {', '.join(str(kind(value)) for value in op.per_channel(field))}, {index})")
    lines.append("acl.mdl.set_input_aipp(model_id, dataset, index_of_ascend_dynamic_aipp_data, aipp)")
    return lines
