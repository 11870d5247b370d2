"""An AIPP file against the model it is inserted into and the options it is compiled with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..atc.grammar import parse_shapes
from ..atc.options import Options, Problem, symbolic, symbols
from ..case import TensorInfo
from ..text import Text, say
from .config import AippConfig, AippOp, Located
from .schema import FOUR, SOURCE_GE, SOURCE_TBE, channels

_GE = ("E10052",)


def contradicts(
    message: Text, why: Text, remedy: Text, atc: tuple[str, ...] = _GE, *, sure: bool = True, flag: str = "insert_op_conf"
) -> Problem:
    """The file does not fit the model or the command (AI104)."""
    return Problem(
        "AI104", "error" if sure else "warning", message, why, remedy, flag, atc, (SOURCE_TBE if atc == ("E81012",) else SOURCE_GE,)
    )


def image_size(tensor: TensorInfo, layout: str = "NCHW") -> tuple[int, int, int] | None:
    """Channels, height and width of an image input; None where it is no image or a size is open."""
    shape = tensor.shape
    if shape is None or len(shape) != 4:
        return None
    places = (1, 2, 3) if layout == "NCHW" else (3, 1, 2)
    sizes = [shape[place] for place in places]
    return (
        None
        if not all(isinstance(size, int) and size > 0 for size in sizes)
        else (int(sizes[0] or 0), int(sizes[1] or 0), int(sizes[2] or 0))
    )


def check_model(config: AippConfig, inputs: Sequence[TensorInfo], layout: str = "NCHW") -> Iterator[Located]:
    """Problems of the file with the inputs of a model, in their order."""
    for op in config.ops:
        rank = int(op["related_input_rank"])
        line = op.line_of("related_input_rank")
        if rank >= len(inputs):
            message = say(
                "related_input_rank is {rank}, and the model has {count} inputs",
                "related_input_rank 为 {rank}，而模型有 {count} 个输入",
                rank=rank,
                count=len(inputs),
            )
            why = say("ATC counts the inputs from 0", "ATC 从 0 起为输入编号")
            yield line, contradicts(message, why, _rank_remedy(inputs))
            continue
        yield from ((line if at is None else op.line_of(at), problem) for at, problem in _one(op, rank, inputs, layout))


def _rank_remedy(inputs: Sequence[TensorInfo]) -> Text:
    images = [index for index, tensor in enumerate(inputs) if tensor.shape is not None and len(tensor.shape) == 4]
    if len(images) == 1:
        return say(
            "write related_input_rank: {rank} (`{name}`)",
            "请写 related_input_rank: {rank}（`{name}`）",
            rank=images[0],
            name=inputs[images[0]].name,
        )
    return say("write the number of the image input", "请写图像输入的编号")


def _one(op: AippOp, rank: int, inputs: Sequence[TensorInfo], layout: str) -> Iterator[tuple[str | None, Problem]]:
    tensor = inputs[rank]
    shape = tensor.shape
    if shape is None:
        return
    if len(shape) != 4:
        message = say(
            "related_input_rank {rank} is `{name}` {shape} {dtype}, not an image",
            "related_input_rank {rank} 是 `{name}` {shape} {dtype}，不是图像",
            rank=rank,
            name=tensor.name,
            shape=_shape(tensor),
            dtype=tensor.dtype,
        )
        why = say("AIPP makes an image of four dimensions", "AIPP 产生四维的图像")
        yield None, contradicts(message, why, _rank_remedy(inputs), ("E10052", "E81012"))
        return
    if tensor.dtype not in ("float", "float16", "uint8", "int8"):
        message = say(
            "input {rank}, `{name}`, is {dtype}",
            "第 {rank} 个输入 `{name}` 的类型是 {dtype}",
            rank=rank,
            name=tensor.name,
            dtype=tensor.dtype,
        )
        yield (
            None,
            contradicts(
                message,
                say("AIPP gives float16 or 8-bit integers", "AIPP 输出 float16 或 8 位整数"),
                _rank_remedy(inputs),
                ("E81012",),
            ),
        )
    if tensor.dtype in ("uint8", "int8") and any(
        f"{name}_{index}" in op for name in ("mean_chn", "min_chn", "var_reci_chn") for index in range(4)
    ):
        message = say(
            "`{name}` is {dtype}: mean, min and var_reci have no effect",
            "`{name}` 的类型是 {dtype}：mean、min、var_reci 不起作用",
            name=tensor.name,
            dtype=tensor.dtype,
        )
        why = say("they are applied only where AIPP gives float16", "仅当 AIPP 输出 float16 时才生效")
        yield "min_chn_0", contradicts(message, why, say("give the model a float input", "请把模型输入改为浮点"), (), sure=False)
    count = shape[1 if layout == "NCHW" else 3]
    made = channels(op.format) if op.mode == "static" else None
    if made is None or not isinstance(count, int) or count == made:
        return
    message = say(
        "{format} gives {made} channels, `{name}` takes {count}",
        "{format} 得到 {made} 个通道，`{name}` 需要 {count} 个",
        format=op.format,
        made=made,
        name=tensor.name,
        count=count,
    )
    if op.format in FOUR and count == 3:
        why = say(
            "documents say that X is ignored after colour conversion; the compiler's code asks for 4 channels at the image, and no public source shows 3 at the model",
            "文档称色域转换后忽略 X；编译器代码要求图像为 4 通道，没有公开资料说明模型可为 3 通道",
        )
        yield (
            "input_format",
            contradicts(
                message, why, say("try it on the board, or drop X on the host", "请在板上验证，或在主机上去掉 X"), ("E81012",), sure=False
            ),
        )
    elif count == 1 and op["csc_switch"] and op.format not in FOUR:
        why = say("the matrix makes one channel of use, and the source tables ask for 3", "矩阵只产生一个有用的通道，而资料要求 3 个")
        yield (
            "input_format",
            contradicts(message, why, say("use YUV400_U8 for gray images", "灰度图请使用 YUV400_U8"), ("E81012",), sure=False),
        )
    else:
        why = say("the operator compiler refuses it", "算子编译器会拒绝")
        remedy = (
            say("use YUV400_U8 for gray images", "灰度图请使用 YUV400_U8")
            if count == 1
            else say("choose the format that fits", "请选择相符的格式")
        )
        if count not in (1, 3, 4):
            remedy = say("AIPP cannot feed this input; is the layout {layout}?", "AIPP 无法供给该输入；布局是 {layout} 吗？", layout=layout)
        yield "input_format", contradicts(message, why, remedy, ("E81012",))


def _shape(tensor: TensorInfo) -> str:
    return "[" + ",".join("?" if dim is None else str(dim) for dim in tensor.shape or ()) + "]"


def check_options(config: AippConfig, options: Options, inputs: Sequence[TensorInfo] = ()) -> Iterator[Located]:
    """Problems of the file with the other flags of a call: fp16 nodes and gears.

    Args:
        inputs: of the model, where it is known; else the shapes of the call stand in, whose order says nothing.
    """
    listed = options.get("input_fp16_nodes")
    nodes = [] if symbols(listed) else [name for name in listed.split(";") if name]
    images = [tensor.name for tensor in inputs if tensor.shape is not None and len(tensor.shape) == 4]
    if not inputs and not symbolic(options.get("input_shape")):
        images = [shape.name for shape in parse_shapes(options.get("input_shape")) if len(shape.dims) == 4]
    for op in config.ops:
        rank = int(op["related_input_rank"])
        fed = inputs[rank].name if rank < len(inputs) else ""
        if fed not in images and len(images) == 1:
            fed = images[0]  # AIPP feeds an image, and there is only this one
        if fed and fed in nodes:
            message = say(
                "`{name}` is fed by AIPP and listed in --input_fp16_nodes",
                "`{name}` 既由 AIPP 供给，又列在 --input_fp16_nodes 中",
                name=fed,
            )
            why = say("an input is one or the other", "一个输入只能取其一")
            remedy = say(
                "take it out of --input_fp16_nodes; AIPP gives float16 anyway", "请从 --input_fp16_nodes 中去掉；AIPP 本来就输出 float16"
            )
            yield op.line_of("related_input_rank"), contradicts(message, why, remedy, ("E10034",), flag="input_fp16_nodes")
        yield from _gears(op, options)


def _gears(op: AippOp, options: Options) -> Iterator[Located]:
    if options.get("dynamic_image_size") and op.mode == "static":
        wrong = [name for name in ("crop", "padding", "src_image_size_w", "src_image_size_h") if op[name]]
        if wrong:
            message = say("{names} with --dynamic_image_size", "{names} 与 --dynamic_image_size 同时使用", names=", ".join(wrong))
            why = say("each gear has a size of its own", "每个档位有各自的大小")
            yield op.line_of(wrong[0]), contradicts(message, why, say("leave them out", "请去掉"), flag="dynamic_image_size")
