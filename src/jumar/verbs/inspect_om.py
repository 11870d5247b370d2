"""The text of ``jumar inspect`` for an .om file: what it is, its ends, gears, AIPP, where its operators run, and the command that made it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..om import OmFile, OmModel, Tensor, release_of
from ..reports.table import Cell, table_lines
from ..text import Text, say, visible

_NOT_STATED = say("not stated", "未写明")
_KINDS = {
    "batch": say("batch size", "batch 大小"),
    "image": say("height, width", "高、宽"),
    "dims": say("open dimensions, in the order of the inputs", "按输入顺序的可变维度"),
    "unknown": say("the file does not say of what", "文件未说明含义"),
}
_MODES = {
    "static_aipp": say("static", "静态"),
    "dynamic_aipp": say("dynamic (set at each run)", "动态（每次运行时设置）"),
    "operator": say("operator", "算子"),
}
_SHOWN = 40  # gears, inputs or outputs printed; JSON has all


def om_notes(om: OmFile, operators: bool) -> tuple[Text, ...]:
    """The lines of the report.

    Args:
        operators: list every operator instead of their counts alone.
    """
    return tuple(map(one_line, _image(om, operators, "")))


def one_line(text: Text) -> Text:
    """A line in which a name from the file cannot begin another one, or move the cursor."""
    return Text(visible(text.render("en")), visible(text.render("zh")))


def _image(om: OmFile, operators: bool, place: str) -> Iterator[Text]:
    yield from table_lines(_head(om), indent="")
    for number, model in enumerate(om.models):
        if len(om.models) > 1:
            yield say(
                "Model {number} of {count}: {name}",
                "模型 {number}（共 {count} 个）：{name}",
                number=number + 1,
                count=len(om.models),
                name=model.name or "-",
            )
        yield from _model(model, operators)
    for number, image in enumerate(om.images):
        inner = f"{place}{number + 1}"
        yield say("Image {number} inside ({size} bytes)", "内部镜像 {number}（{size} 字节）", number=inner, size=image.size)
        yield from _image(image, operators, f"{inner}.")


def _head(om: OmFile) -> list[tuple[Cell, Cell]]:
    header, bits = om.header, 64 if om.header.wide else 32
    rows: list[tuple[Cell, Cell]] = [
        ("soc_version", _stated(om.soc_version)),
        ("ATC", _atc(om)),
        (
            say("header", "文件头"),
            say(
                "v{version}, {kind}, {bits}-bit partition table, {size} bytes, IR version {ir}, platform {platform}",
                "v{version}，{kind}，{bits} 位分区表，{size} 字节，IR 版本 {ir}，平台 {platform}",
                version=header.version,
                kind=header.model_type,
                bits=bits,
                size=om.size,
                ir=header.om_ir_version,
                platform=header.platform_version or "-",
            ),
        ),
        (
            say("models", "模型"),
            str(len(om.models))
            if not om.images
            else say("{own}, and {inner} images inside", "{own} 个，另有 {inner} 个内部镜像", own=len(om.models), inner=len(om.images)),
        ),
        (say("weights", "权重"), say("{size} bytes", "{size} 字节", size=om.weights_bytes)),
        (say("command line", "命令行"), _stated(om.command_line)),
    ]
    if om.soc_version is None and om.target_type is not None:
        rows.insert(1, ("target_type", om.target_type))
    if om.header.dynamic_shape and not header.checks_host and om.opp_version:
        rows.append(
            (
                say("dynamic shape", "动态形状"),
                say(
                    "CANN's loader wants an ops package of exactly version {version}",
                    "CANN 加载时要求算子包版本恰为 {version}",
                    version=om.opp_version,
                ),
            )
        )
    if om.trailing:
        rows.append(
            (
                say("trailing", "多余数据"),
                say(
                    "{size} bytes follow the end that the header announces; CANN's loader takes no such file",
                    "文件头声明的结尾之后还有 {size} 字节；CANN 不会加载这样的文件",
                    size=om.trailing,
                ),
            )
        )
    if om.outside:
        rows.append(
            (
                say("elsewhere", "不在文件内"),
                say(
                    "{count} parts of the flow model are files of their own or user functions",
                    "流模型有 {count} 个部分是单独的文件或用户函数",
                    count=om.outside,
                ),
            )
        )
    return rows


def _stated(value: str | None) -> Cell:
    return _NOT_STATED if value is None else value


def _atc(om: OmFile) -> Cell:
    release = release_of(om)
    if release is None or om.atc_version is None:
        return _stated(om.atc_version)
    return say(
        "{version} (CANN {release}, from the path of atc)",
        "{version}（CANN {release}，取自 atc 的路径）",
        version=om.atc_version,
        release=release,
    )


def _model(model: OmModel, operators: bool) -> Iterator[Text]:
    yield say("Inputs", "输入")
    yield from _tensors(model.inputs)
    yield say("Outputs", "输出")
    yield from _tensors(model.outputs)
    yield from _gears(model)
    yield from _aipp(model)
    yield say("Partitions", "分区")
    yield from table_lines([(part.name, say("{size} bytes", "{size} 字节", size=part.size)) for part in model.partitions])
    memory = [
        f"{key} {model.attributes[key]}"
        for key in ("memory_size", "weight_size", "zero_copy_memory_size", "stream_num", "event_num")
        if key in model.attributes
    ]
    if memory:
        yield say("Memory (bytes) and streams: {items}", "内存（字节）与流：{items}", items=", ".join(memory))
    yield from _operators(model, operators)


def _tensors(tensors: Sequence[Tensor]) -> Iterator[Text]:
    if not tensors:
        yield say("  none", "  无")
        return
    rows = [
        (
            tensor.name,
            tensor.dtype,
            _shape(tensor),
            tensor.layout,
            "" if tensor.bytes is None else say("{size} bytes", "{size} 字节", size=tensor.bytes),
        )
        for tensor in tensors
    ]
    yield from table_lines(rows[:_SHOWN])
    yield from _more(len(rows))


def _more(count: int) -> Iterator[Text]:
    if count > _SHOWN:
        yield say("  and {count} more (--format json shows all)", "  另有 {count} 项（--format json 显示全部）", count=count - _SHOWN)


def _shape(tensor: Tensor) -> str:
    if tensor.shape is None:
        return "[...]"
    sizes = []
    for place, dim in enumerate(tensor.shape):
        low_high = tensor.ranges[place] if place < len(tensor.ranges) else ()
        if dim is not None:
            sizes.append(str(dim))
        elif len(low_high) == 2:
            sizes.append(f"{low_high[0]}~{'' if low_high[1] < 0 else low_high[1]}")
        else:
            sizes.append("?")
    return f"[{', '.join(sizes)}]"


def _gears(model: OmModel) -> Iterator[Text]:
    gears = model.gears
    if gears is None:
        yield say("Gears: none", "档位：无")
        return
    yield say(
        "Gears: {count}, {kind}: {what}{inputs}",
        "档位：{count} 个，{kind}：{what}{inputs}",
        count=len(gears.values),
        kind=gears.kind,
        what=_KINDS[gears.kind],
        inputs=f" ({', '.join(gears.inputs)})" if gears.inputs else "",
    )
    for values in gears.values[:_SHOWN]:
        yield say("  {values}", "  {values}", values=", ".join(map(str, values)))
    yield from _more(len(gears.values))


def _aipp(model: OmModel) -> Iterator[Text]:
    if not model.aipp:
        yield say("AIPP: none", "AIPP：无")
        return
    yield say("AIPP of the inputs", "输入的 AIPP")
    for item in model.aipp[:_SHOWN]:
        fields = ", ".join(f"{key} {value}" for key, value in sorted(item.config.items()))
        mode = _MODES.get(item.mode, say("{mode}", "{mode}", mode=item.mode))
        yield say(
            "  {input}: {mode}{fields}", "  {input}：{mode}{fields}", input=item.input, mode=mode, fields=f": {fields}" if fields else ""
        )
    yield from _more(len(model.aipp))


def _operators(model: OmModel, every: bool) -> Iterator[Text]:
    engines = ", ".join(f"{engine} {count}" for engine, count in model.engines().items())
    yield say("Operators: {count} ({engines})", "算子：{count} 个（{engines}）", count=len(model.operators), engines=engines or "-")
    if every:
        rows = [(operator.engine, operator.kind, operator.name) for operator in model.operators]
    else:
        counts: dict[str, Counter[str]] = {}
        for operator in model.operators:
            counts.setdefault(operator.engine, Counter())[operator.kind] += 1
        rows = [(engine, ", ".join(f"{kind} {count}" for kind, count in counts[engine].most_common()), "") for engine in model.engines()]
    if rows:
        yield from table_lines(rows)
