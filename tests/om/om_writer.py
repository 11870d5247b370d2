"""Writes .om files of every form that the reader knows, for tests: what the two real samples do not show.

Built after the public layout of GE's files, not after the reader: offsets are struct formats of their own, messages are put together from
field numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

V1, V2 = 0x10000000, 0x20000000


def varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def chunk(field: int, data: bytes | str) -> bytes:
    raw = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def ints(field: int, values: Sequence[int]) -> bytes:
    return chunk(field, b"".join(map(varint, values)))


def value_of(value: Any) -> bytes:
    """An AttrDef."""
    if isinstance(value, bool):
        return number(5, value)
    if isinstance(value, int):
        return number(3, value)
    if isinstance(value, float):
        return varint(4 << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, str):
        return chunk(2, value)
    if isinstance(value, bytes):
        return chunk(7, value)
    if isinstance(value, Mapping):
        return chunk(10, chunk(1, "named") + b"".join(attribute(key, item, 2) for key, item in value.items()))
    if value and isinstance(value[0], list):
        return chunk(14, b"".join(chunk(1, ints(1, row)) for row in value))
    if value and isinstance(value[0], bool):
        return chunk(1, ints(5, value) + number(20, 4))
    if value and isinstance(value[0], float):
        return chunk(1, chunk(4, struct.pack(f"<{len(value)}f", *value)) + number(20, 3))
    if value and isinstance(value[0], int):
        return chunk(1, ints(3, value) + number(20, 2))
    return chunk(1, b"".join(chunk(2, item) for item in value) + number(20, 1))


def attribute(key: str | bytes, value: Any, field: int) -> bytes:
    return chunk(field, chunk(1, key) + chunk(2, value_of(value)))


class Coder:
    """Attribute names and texts as numbers, as ``--enable_attr_compression`` writes them."""

    def __init__(self) -> None:
        self.names: list[bytes] = []
        self.flags: list[bool] = []
        self.texts: list[str] = []

    def key(self, name: str | bytes, is_text: bool) -> bytes:
        raw = name.encode() if isinstance(name, str) else name
        if raw not in self.names:
            self.names.append(raw)
            self.flags.append(is_text)
        place, digits = self.names.index(raw), [0]
        digits[0] = place % 127
        while place := place // 127:
            digits.append(place % 127)
        return b"\0" + bytes(digit + 1 for digit in digits)

    def text(self, text: str) -> int:
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text)

    def code(self, attributes: Mapping[str | bytes, Any]) -> dict[str | bytes, Any]:
        coded: dict[str | bytes, Any] = {}
        for name, value in attributes.items():
            texts = isinstance(value, str) or (isinstance(value, list) and bool(value) and isinstance(value[0], str))
            new = value
            if texts:
                new = self.text(value) if isinstance(value, str) else [self.text(item) for item in value]
            coded[self.key(name, texts)] = new
        return coded

    def attributes(self) -> dict[str | bytes, Any]:
        return {
            "om_compress_version": 1,
            "attr_name_enum": Names(self.names),
            "attr_value_enum": self.texts,
            "attrs_use_string_value": self.flags,
        }


class Names(list[Any]):
    """A list of byte strings that is written as a list of texts."""


def desc(dtype: int, dims: Sequence[int], layout: str = "ND", size: int = 0, **attributes: Any) -> bytes:
    found = number(2, dtype) + chunk(3, ints(1, dims)) + chunk(4, layout)
    return found + b"".join(attribute(key, item, 5) for key, item in attributes.items()) + (number(10, size) if size else b"")


def op(
    name: str,
    kind: str,
    attributes: Mapping[Any, Any] | None = None,
    inputs: Sequence[bytes] = (),
    outputs: Sequence[bytes] = (),
    sources: Sequence[tuple[str, int]] = (),
) -> bytes:
    found = chunk(1, name) + chunk(2, kind)
    found += b"".join(attribute(key, item, 10) for key, item in (attributes or {}).items())
    found += b"".join(chunk(24, source) for source, _ in sources)
    if sources:
        found += ints(25, [index for _, index in sources])
    return found + b"".join(chunk(33, item) for item in inputs) + b"".join(chunk(34, item) for item in outputs)


def graph(name: str, ops: Sequence[bytes], attributes: Mapping[Any, Any] | None = None) -> bytes:
    return (
        chunk(1, name)
        + b"".join(chunk(6, item) for item in ops)
        + b"".join(attribute(key, item, 11) for key, item in (attributes or {}).items())
    )


def definition(name: str, graphs: Sequence[bytes], attributes: Mapping[Any, Any] | None = None) -> bytes:
    found = chunk(1, name) + number(2, 2) + b"".join(chunk(7, item) for item in graphs)
    return found + b"".join(attribute(key, item, 11) for key, item in (attributes or {}).items())


def table(parts: Sequence[tuple[int, bytes]], wide: bool, base: int = 0) -> bytes:
    """A partition table and its data. ``base`` is what stored offsets count from (a bundle's include the table)."""
    found = struct.pack("<Ixxxx" if wide else "<I", len(parts))
    offset = base
    for kind, data in parts:
        found += struct.pack("<IxxxxQQ" if wide else "<III", kind, offset, len(data))
        offset += len(data)
    return found + b"".join(data for _, data in parts)


def header(
    length: int,
    version: int = V2,
    kind: int = 0,
    wide: bool = False,
    models: int = 1,
    name: str = "net",
    encrypted: bool = False,
    platform: str = "1.11.z.0",
    magic: bytes = b"IMOD",
    **flags: int,
) -> bytes:
    raw = bytearray(256)
    struct.pack_into("<4sII", raw, 0, magic, 256, version)
    struct.pack_into("<I", raw, 76, length if not wide else 0)
    raw[80], raw[82] = encrypted, kind
    raw[84 : 84 + len(name)] = name.encode()
    struct.pack_into("<I", raw, 152, 2)
    place = 156
    if version != V1:
        struct.pack_into("<I", raw, 156, models)
        place = 160
    raw[place : place + len(platform)] = platform.encode()
    raw[place + 20] = 1
    if wide:
        struct.pack_into("<Q", raw, 184, length)
    raw[192], raw[193] = flags.get("checks_host", 0), flags.get("dynamic", 0)
    return bytes(raw)


def image(tables: Sequence[Sequence[tuple[int, bytes]]], **options: Any) -> bytes:
    """A whole file: the header, then each model's table and data."""
    wide = bool(options.get("wide")) or options.get("kind") == 3
    body = b"".join(table(parts, wide) for parts in tables)
    return header(len(body), models=len(tables), **options) + body


def bundle(images: Sequence[bytes]) -> bytes:
    """As GE writes it in memory: no magic, no version, and offsets that count from the end of the header."""
    parts = [(25, bytes(8)), *((24, item) for item in images)]
    body = table(parts, True, base=8 + 24 * len(parts))
    raw = bytearray(256)
    raw[82] = 5
    struct.pack_into("<I", raw, 156, len(images))
    struct.pack_into("<Q", raw, 184, 256 + len(body))
    return bytes(raw) + body


AICORE, LOCAL, RUNTIME = ({"_lxfusion_engine_name": name} for name in ("AIcoreEngine", "DNN_VM_GE_LOCAL", "DNN_VM_RTS"))
BUILT = {
    "soc_version": "Ascend310P3",
    "atc_version": "7.6.0.1.220",
    "opp_version": "7.6.0.1.220",
    "atc_cmdline": "/usr/local/Ascend/ascend-toolkit/8.1.RC1/aarch64-linux/bin/atc.bin --model=net.onnx --soc_version=Ascend310P3",
    "attr_model_out_nodes_name": ["add:0:y"],
    "memory_size": 4096,
}


def simple_graph(name: str = "net_0", code: Coder | None = None) -> bytes:
    """x -> Add -> y, float16 [2, 3]."""
    coded = (lambda attributes: attributes) if code is None else code.code
    end = desc(2, [2, 3], size=12)
    return graph(
        name,
        [
            op("x", "Data", coded({"index": 0, **LOCAL}), [end], [end]),
            op("add", "Add", coded(AICORE), [end], [end]),
            op("Node_Output", "NetOutput", coded(RUNTIME), [end], sources=[("add", 0)]),
        ],
    )


def simple(attributes: Mapping[str, Any] | None = None) -> list[tuple[int, bytes]]:
    """Partitions of a small model: definition, weights, kernels, tasks."""
    return [
        (0, definition("net", [simple_graph()], BUILT if attributes is None else attributes)),
        (1, bytes(64)),
        (3, b"kernels"),
        (2, b"tasks"),
    ]


def geared() -> list[tuple[int, bytes]]:
    """Two dynamic image sizes, each with a graph of its own."""
    full, small = desc(4, [1, 3, 640, 640], "NCHW"), desc(4, [1, 3, 320, 320], "NCHW")
    case = {
        "_batch_num": 2,
        "_pred_value_0": [320, 320],
        "_pred_value_1": [640, 640],
        "mbatch_dynamic_type": 2,
        "user_designate_shape_order": ["image"],
        **RUNTIME,
    }
    root = graph(
        "net_0",
        [
            op("ascend_mbatch_shape_data", "Data", {"index": 1, **LOCAL}, [desc(7, [2])]),
            op("image", "Data", {"index": 0, "_mbatch_origin_input_dims": [1, 3, -1, -1], **LOCAL}, [full]),
            op("ascend_mbatch_shape_case", "Case", case),
            op(
                "Node_Output",
                "NetOutput",
                {"_dynamic_output_dims": ["0,0,1,10", "1,0,1,10"], **RUNTIME},
                [desc(1, [1, 10])],
                sources=[("case", 0)],
            ),
        ],
    )
    branches = [
        graph(
            f"batch_{index}",
            [op(f"image_ascend_mbatch_batch_{index}", "Data", LOCAL, [end]), op(f"conv_ascend_mbatch_batch_{index}", "Conv2D", AICORE)],
        )
        for index, end in enumerate((small, full))
    ]
    return [(0, definition("net", [root, *branches], {**BUILT, "attr_model_out_nodes_name": ["conv"]})), (1, bytes(8))]


def with_aipp() -> list[tuple[int, bytes]]:
    config = {
        "aipp_mode": 1,
        "input_format": 1,
        "csc_switch": True,
        "mean_chn_0": 0.5,
        "matrix": [1, 2, -3],
        "inner": {"var_reci_chn_0": float("nan")},
    }
    data = {
        "aipp": config,
        "_data_related_aipp_mode": "static_aipp",
        "_aipp_inputs": ["NHWC:DT_UINT8:image:150528:4:1,224,224,3"],
        "_aipp_outputs": ["NCHW:DT_FLOAT16:image:301056:4:1,3,224,224"],
        **LOCAL,
    }
    root = graph(
        "net_0",
        [
            op("image", "Data", data, [desc(4, [1, 224, 224, 3], "NHWC", 75264)]),
            op("aipp_node", "Aipp", {"aipp_config_path": '{"aipp_mode": "static"}', **AICORE}),
            op("Node_Output", "NetOutput", RUNTIME, [desc(1, [1, 10])], sources=[("fc", 1)]),
        ],
    )
    return [(0, definition("net", [root], {key: item for key, item in BUILT.items() if key != "attr_model_out_nodes_name"}))]


def compressed() -> list[list[tuple[int, bytes]]]:
    """A root model and a sub-model, whose attributes are coded twice: by its own table, then by the root's."""
    root, own = Coder(), Coder()
    for place in range(200):  # names of two digits
        root.key(f"filler_{place}", False)

    class Twice(Coder):
        def code(self, attributes: Mapping[str | bytes, Any]) -> dict[str | bytes, Any]:
            return own.code(root.code(attributes))

    first = simple_graph("root", root)
    second = simple_graph("sub", Twice())
    return [
        [(0, definition("root", [first], {**BUILT, **root.attributes()})), (1, bytes(8))],
        [(0, definition("sub", [second], {"memory_size": 1, **own.attributes()})), (1, bytes(16))],
    ]


def flow() -> bytes:
    """A flow model: its graph, the relation of its parts, a part in a message, a part that is the image itself, and one elsewhere."""
    inner = image([simple()], wide=True)
    inside = chunk(1, "part") + chunk(2, "NPU") + number(9, 1) + chunk(3, inner) + varint(12 << 3 | 5) + bytes(4)
    elsewhere = chunk(1, "user function") + chunk(2, "UDF") + chunk(5, "graph/file.om")
    parts = [(0, definition("flow", [simple_graph("flow")], {})), (6, chunk(1, "flow")), (7, inside), (7, inner), (7, elsewhere)]
    return image([parts], kind=3, wide=True)


def forms() -> dict[str, bytes]:
    """One file of every form."""
    return {
        "v1": image([simple()], version=V1),
        "v2": image([simple()]),
        "v1 wide": image([simple()], version=V1, wide=True),
        "v2 wide": image([simple()], wide=True),
        "several": image([simple(), simple({})], wide=True, dynamic=1),
        "several short": image([simple(), simple({})]),
        "compressed": image(compressed(), wide=True, dynamic=1),
        "gears": image([geared()], wide=True),
        "aipp": image([with_aipp()], wide=True),
        "flow": flow(),
        "bundle": bundle([image([simple()], wide=True), image([geared()], wide=True)]),
    }
