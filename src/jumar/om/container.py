"""The container: header, partition tables, and images inside images."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from ..text import say
from .attributes import Keys
from .definition import read_definition
from .model import Header, OmFile, OmModel, Partition
from .names import BUNDLE, BUNDLE_MODEL_INFO, FLOW, FLOW_SUBMODEL, MODEL_DEF, MODEL_TYPES, partition_name
from .wire import BYTES, FIXED32, FIXED64, VARINT, Budget, Malformed, Wire, varint

HEADER = 256
MAGIC = b"IMOD"
_VERSIONS = {0x10000000: 1, 0x20000000: 2}
_MAX_PARTITIONS, _MAX_MODELS, _MAX_IMAGES, _DEPTH = 4096, 10_000, 4096, 4
_MAX_DEFINITION = 512 << 20
"""Bytes of one model definition; weights and kernels have partitions of their own."""


class Source:
    """A file, read where something is needed."""

    def __init__(self, descriptor: int, size: int) -> None:
        self.descriptor, self.size, self.images, self.budget = descriptor, size, 0, Budget()

    def read(self, start: int, count: int) -> bytes:
        """Exactly these bytes.

        Raises:
            Malformed: the file has become shorter meanwhile.
        """
        parts, done = [], 0
        while done < count:
            part = os.pread(self.descriptor, min(count - done, 1 << 26), start + done)
            if not part:
                raise Malformed(say("it ends at byte {place}", "文件在字节 {place} 处结束", place=start + done))
            parts.append(part)
            done += len(part)
        return b"".join(parts)


def read_image(source: Source, start: int, end: int, depth: int = 0) -> OmFile:
    """One image between two places of a file.

    Raises:
        Malformed: it is none.
    """
    source.images += 1
    if depth > _DEPTH or source.images > _MAX_IMAGES:
        raise Malformed(say("images are nested too deeply or too many", "镜像嵌套过深或过多"))
    if end - start < HEADER:
        raise Malformed(
            say("the header has {size} of {wanted} bytes", "文件头只有 {size} 字节，应为 {wanted} 字节", size=end - start, wanted=HEADER)
        )
    raw = source.read(start, HEADER)
    header = _header(raw, end - start)
    announced = header.length - HEADER if header.length == end - start and header.model_type == "bundle" else header.length
    missing = announced - (end - start - HEADER)
    if missing > 0:
        raise Malformed(
            say(
                "it is cut off: {missing} of {all} bytes are missing",
                "文件不完整：{all} 字节中缺少 {missing} 字节",
                missing=missing,
                all=announced + HEADER,
            )
        )
    if raw[80] == 1:
        raise Malformed(say("it is encrypted", "文件已加密"))
    tables, place = [], start + HEADER
    several = header.model_num if header.model_type not in ("flow", "bundle") else 1
    for _ in range(max(1, several)):
        table, place = _table(source, place, end, header.wide)
        tables.append(table)
    models: list[OmModel] = []
    root: Keys | None = None
    images, outside = [], 0
    for table in tables:
        definition = next((part for part in table if part.type == MODEL_DEF), None)
        if definition is not None:
            model, keys = read_definition(_definition(source, definition), table, root)
            root = root or keys
            models.append(model)
        for part in table:
            inside = _inside(source, part)
            images += [read_image(source, low, high, depth + 1) for low, high in inside]
            outside += not inside and part.type in (FLOW_SUBMODEL, BUNDLE_MODEL_INFO)
    if not models and not images:
        raise Malformed(say("it holds no model definition", "其中没有模型定义"))
    return OmFile(header, tuple(models), tuple(images), end - start, -missing, outside)


def _header(raw: bytes, size: int) -> Header:
    magic, head_size, number = struct.unpack_from("<4sII", raw, 0)
    kind = raw[82]
    (length,), (model_length,) = struct.unpack_from("<I", raw, 76), struct.unpack_from("<Q", raw, 184)
    # A bundle's own header is written without the magic and the sizes of others.
    bundle = kind == BUNDLE and magic == bytes(4) and model_length in (size, size - HEADER)
    if magic != MAGIC and not bundle:
        raise Malformed(say("it does not begin with IMOD", "文件开头不是 IMOD"))
    if head_size != HEADER and not bundle:
        raise Malformed(say("its header announces {size} bytes, not 256", "文件头声明为 {size} 字节，而不是 256", size=head_size))
    version = 2 if bundle else _VERSIONS.get(number)
    if version is None:
        raise Malformed(say("header version {number} is not known", "未知的文件头版本 {number}", number=hex(number)))
    place = 156 if version == 1 else 160
    count = struct.unpack_from("<I", raw, 156)[0] if version == 2 else 1
    if count > _MAX_MODELS:
        raise Malformed(say("its header announces {count} models", "文件头声明了 {count} 个模型", count=count))
    return Header(
        version=version,
        version_hex=hex(number),
        model_type=MODEL_TYPES.get(kind, f"type {kind}"),
        wide=kind == FLOW or model_length != 0,
        model_num=count,
        name=_text(raw[84:116]),
        om_ir_version=struct.unpack_from("<I", raw, 152)[0],
        platform_version=_text(raw[place : place + 20]),
        platform_type=raw[place + 20],
        length=model_length or length,
        checks_host=raw[192] == 1,
        dynamic_shape=raw[193] == 1 or (count > 1 and kind not in (FLOW, BUNDLE)),
    )


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode("utf-8", "replace")


def _table(source: Source, place: int, end: int, wide: bool) -> tuple[tuple[Partition, ...], int]:
    """A partition table at ``place``, and where its data ends. As the loader does, partitions are taken to follow each other: the stored
    offsets count from another place in a bundle than elsewhere."""
    head, entry, form = (8, 24, "<IxxxxQQ") if wide else (4, 12, "<III")
    if end - place < head:
        raise Malformed(say("a partition table is cut off", "分区表不完整"))
    count = struct.unpack("<I", source.read(place, 4))[0]
    if not 0 < count <= _MAX_PARTITIONS or place + head + count * entry > end:
        raise Malformed(
            say(
                "a partition table announces {count} entries in {left} bytes",
                "分区表在 {left} 字节中声明了 {count} 项",
                count=count,
                left=end - place,
            )
        )
    raw = source.read(place + head, count * entry)
    place += head + count * entry
    found = []
    for kind, _, size in struct.iter_unpack(form, raw):
        if size > end - place:
            raise Malformed(
                say(
                    "partition {name} announces {size} bytes, {left} are left",
                    "分区 {name} 声明了 {size} 字节，只剩 {left} 字节",
                    name=partition_name(kind),
                    size=size,
                    left=end - place,
                )
            )
        found.append(Partition(kind, partition_name(kind), place, size))
        place += size
    return tuple(found), place


def _definition(source: Source, part: Partition) -> Wire:
    if part.size > _MAX_DEFINITION:
        raise Malformed(say("its model definition has {size} bytes", "模型定义有 {size} 字节", size=part.size))
    return Wire(source.read(part.offset, part.size), source.budget)


def _inside(source: Source, part: Partition) -> list[tuple[int, int]]:
    """Where images lie in a partition: it is one, or a message of a flow model that holds one."""
    end = part.offset + part.size
    if part.type not in (FLOW_SUBMODEL, BUNDLE_MODEL_INFO):
        return []
    if part.type == BUNDLE_MODEL_INFO or source.read(part.offset, min(4, part.size)) == MAGIC:
        return [(part.offset, end)]
    fields = _outer_fields(source, part.offset, end)
    return [(low, high) for low, high in fields if high - low >= HEADER and source.read(low, 4) == MAGIC]


def _outer_fields(source: Source, place: int, end: int) -> Iterator[tuple[int, int]]:
    """The byte fields of a message, without reading what is in them (weights of gigabytes)."""
    while place < end:
        source.budget.take()
        window = source.read(place, min(20, end - place))
        key, used = varint(window, 0, len(window))
        kind = key & 7
        if kind == VARINT:
            used = varint(window, used, len(window))[1]
        elif kind in (FIXED32, FIXED64):
            used += 4 if kind == FIXED32 else 8
        elif kind == BYTES:
            length, used = varint(window, used, len(window))
            if length > end - place - used:
                raise Malformed(say("a part of the flow model is cut off", "流模型的一部分不完整"))
            yield place + used, place + used + length
            used += length
        else:
            raise Malformed(say("a part of the flow model is unreadable", "流模型的一部分无法读取"))
        place += used
