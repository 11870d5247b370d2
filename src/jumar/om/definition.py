"""The model definition of a partition: graphs, operators, and what CANN's runtime tells of inputs, outputs, gears and AIPP.

Inputs and outputs follow the loader of CANN (its class ModelIntroduction), so that names, order and shapes are those that pyACL gives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..text import say
from .attributes import Keys, Value, key_table, read_attributes
from .model import Aipp, Dims, Gears, OmModel, Operator, Partition, Tensor
from .names import DTYPES, ENGINES, GEAR_KINDS, LIBRARIES, MODEL_ATTRIBUTES, OPERATOR_ATTRIBUTES, dtype_name
from .wire import BYTES, VARINT, Malformed, Span, Wire, signed

_INPUTS = ("Data", "AippData", "AnnData")
_MAX_OPERATORS = 500_000
_MAX_GEARS = 1024  # ATC takes 100
_GEAR = "_pred_value_"


@dataclass
class _Op:
    """An operator of the root graph that is an end of the model or knows its gears."""

    name: str
    type: str
    attributes: dict[str, Value]
    input_desc: list[Span] = field(default_factory=list)
    output_desc: list[Span] = field(default_factory=list)
    src_name: list[str] = field(default_factory=list)
    src_index: list[int] = field(default_factory=list)


def read_definition(wire: Wire, partitions: tuple[Partition, ...], root: Keys | None) -> tuple[OmModel, Keys]:
    """The model of one MODEL_DEF partition, and the tables of its attribute names.

    Args:
        root: tables of the first model of the file; None for that one.

    Raises:
        Malformed: this is no model definition.
    """
    name, graphs, entries = "", list[Span](), list[Span]()
    for number, kind, first, last in wire.fields(wire.span):
        if kind != BYTES:
            continue
        if number == 1:
            name = wire.text(first, last)
        elif number == 7:
            graphs.append((first, last))
        elif number == 11:
            entries.append((first, last))
    table = key_table(wire, entries)
    keys = Keys(() if table is None else (table,))
    if root is not None:
        keys = keys.with_root(root)
    attributes = read_attributes(wire, entries, keys, MODEL_ATTRIBUTES)
    operators: list[Operator] = []
    ends: list[_Op] = []
    aipp_ops: list[_Op] = []
    names = []
    for index, span in enumerate(graphs):
        names.append(_read_graph(wire, span, keys, operators, ends if index == 0 else None, aipp_ops, attributes))
    model = OmModel(
        name=name,
        attributes=attributes,
        partitions=partitions,
        inputs=tuple(_input(wire, op, keys) for op in _ordered([op for op in ends if op.type in _INPUTS])),
        outputs=_outputs(wire, [op for op in ends if op.type == "NetOutput"], keys, attributes.get("attr_model_out_nodes_name")),
        gears=_gears(ends),
        aipp=_aipp([op for op in ends if op.type in _INPUTS], aipp_ops),
        graphs=tuple(names),
        operators=tuple(operators),
    )
    return model, keys


def _read_graph(
    wire: Wire, span: Span, keys: Keys, operators: list[Operator], ends: list[_Op] | None, aipp: list[_Op], model: dict[str, Value]
) -> str:
    """Append the operators of a graph; returns its name."""
    name, ops, entries = "", list[Span](), list[Span]()
    for number, kind, first, last in wire.fields(span):
        if kind != BYTES:
            continue
        if number == 1:
            name = wire.text(first, last)
        elif number == 6:
            ops.append((first, last))
        elif number == 11:
            entries.append((first, last))
    if len(operators) + len(ops) > _MAX_OPERATORS:
        raise Malformed(say("it has more than {most} operators", "算子超过 {most} 个", most=_MAX_OPERATORS))
    if ends is not None:  # a dynamic model keeps the names of its outputs at the root graph
        for key, value in read_attributes(wire, entries, keys, ("attr_model_out_nodes_name",)).items():
            model.setdefault(key, value)
    for op_span in ops:
        op = _read_op(wire, op_span, keys)
        engine, engine_name = _engine(op.attributes)
        original = op.attributes.get("original_type") if op.type == "FrameworkOp" else None
        operators.append(Operator(op.name, op.type, engine, engine_name, name, original[:64] if isinstance(original, str) else ""))
        if ends is not None and (op.type in _INPUTS or op.type in ("NetOutput", "Case")):
            ends.append(op)
        if op.type == "Aipp":
            aipp.append(op)
    return name


def _read_op(wire: Wire, span: Span, keys: Keys) -> _Op:
    op, entries = _Op("", "", {}), list[Span]()
    for number, kind, first, last in wire.fields(span):
        if number == 25:
            op.src_index += wire.numbers(kind, first, last)
        elif kind != BYTES:
            continue
        elif number == 10:
            entries.append((first, last))
        elif number == 1:
            op.name = wire.text(first, last)
        elif number == 2:
            op.type = wire.text(first, last)
        elif number == 24:
            op.src_name.append(wire.text(first, last))
        elif number == 33:
            op.input_desc.append((first, last))
        elif number == 34:
            op.output_desc.append((first, last))
    op.attributes = read_attributes(wire, entries, keys, OPERATOR_ATTRIBUTES, _GEAR)
    return op


def _engine(attributes: dict[str, Value]) -> tuple[str, str]:
    """Where an operator runs, and the name the file has for it."""
    for key, table in (
        ("_lxfusion_engine_name", ENGINES),
        ("_ge_attr_op_kernel_lib_name", LIBRARIES),
        ("_lxfusion_op_kernel_lib_name", LIBRARIES),
    ):
        value = attributes.get(key)
        if isinstance(value, str) and value:
            return table.get(value, "unknown"), value[:64]
    magic = attributes.get("tvm_magic")  # a fused operator has only its kernel
    if isinstance(magic, str) and magic.startswith("RT_DEV_BINARY_MAGIC_ELF"):
        return ("aicpu" if "AICPU" in magic else "aicore"), ""
    return "unknown", ""


def _ordered(ops: Sequence[_Op]) -> list[_Op]:
    """Inputs by their index; where none is given, by place. Of two with one index the later counts, as in the loader."""
    places: dict[int, _Op] = {}
    for place, op in enumerate(ops):
        index = op.attributes.get("index")
        places[index if isinstance(index, int) and not isinstance(index, bool) else place] = op
    return [places[index] for index in sorted(places)]


@dataclass
class _Desc:
    dims: list[int] = field(default_factory=list)
    dtype: int = 0
    layout: str = ""
    size: int = 0
    attributes: dict[str, Value] = field(default_factory=dict)


def _desc(wire: Wire, span: Span | None, keys: Keys) -> _Desc:
    """A tensor descriptor."""
    desc, entries = _Desc(), list[Span]()
    for number, kind, first, last in wire.fields(span or (0, 0)):
        if number == 2 and kind == VARINT:
            desc.dtype = first
        elif number == 10 and kind == VARINT:
            desc.size = signed(first)
        elif number == 3 and kind == BYTES:
            desc.dims += [dim for part, how, low, high in wire.fields((first, last)) if part == 1 for dim in wire.numbers(how, low, high)]
        elif number == 4 and kind == BYTES:
            desc.layout = wire.text(first, last)
        elif number == 5 and kind == BYTES:
            entries.append((first, last))
    desc.attributes = read_attributes(wire, entries, keys, ("shape_range", "special_input_size"))
    return desc


def _shape(dims: Sequence[int]) -> Dims | None:
    return None if list(dims) == [-2] else tuple(None if dim < 0 else dim for dim in dims)


def _numbers(value: Value) -> list[int] | None:
    """The integers of an attribute that should be a list of them."""
    return value if isinstance(value, list) and all(isinstance(item, int) for item in value) else None


def _texts(value: Value) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _ranges(desc: _Desc) -> tuple[tuple[int, ...], ...]:
    value = desc.attributes.get("shape_range")
    if not isinstance(value, list) or min(desc.dims, default=0) >= 0:
        return ()
    return tuple(tuple(item) for item in value if isinstance(item, list))


def _input(wire: Wire, op: _Op, keys: Keys) -> Tensor:
    desc = _desc(wire, op.input_desc[0] if op.input_desc else None, keys)
    dims = _numbers(op.attributes.get("_mbatch_origin_input_dims"))
    dims = desc.dims if dims is None else dims
    shape = _shape(dims)
    fixed = shape is not None and None not in shape
    size = desc.size if desc.size > 0 else _bytes(desc.dims, desc.dtype)
    return Tensor(op.name, dtype_name(desc.dtype), shape, desc.layout, size if fixed else None, _ranges(desc))


def _outputs(wire: Wire, ops: Sequence[_Op], keys: Keys, given: Value) -> tuple[Tensor, ...]:
    names = _texts(given)
    found = []
    for op in ops:
        for place, span in enumerate(op.input_desc):
            desc = _desc(wire, span, keys)
            source = op.src_name[place] if place < len(op.src_name) else "?"
            index = op.src_index[place] if place < len(op.src_index) else 0
            if len(names) == len(op.input_desc):
                name = names[place] if ":" in names[place] else f"{names[place]}:{index}"
            else:
                name = f"output_{place}_{source}_{index}"
            dims = desc.dims
            if desc.layout == "FRACTAL_Z" and len(dims) == 4:  # the loader shows it as HWCN
                dims = [dims[2], dims[3], dims[1], dims[0]]
            special = desc.attributes.get("special_input_size")
            size = special if isinstance(special, int) and special > 0 else _bytes(dims, desc.dtype)
            found.append(Tensor(name, dtype_name(desc.dtype), _shape(dims), desc.layout, size, _ranges(desc)))
    return tuple(found)


def _bytes(dims: Sequence[int], dtype: int) -> int | None:
    """Memory of a dense tensor; None where a size or the element is open."""
    bits = DTYPES.get(dtype, ("", 0))[1]
    if not bits or any(dim < 0 for dim in dims) or len(dims) > 64:
        return None
    return (math.prod(dims) * bits + 7) // 8


def _gears(ends: Sequence[_Op]) -> Gears | None:
    """The gears, which the Case operator of the root graph holds."""
    case = next((op for op in reversed(ends) if op.type == "Case"), None)
    count = None if case is None else case.attributes.get("_batch_num")
    if case is None or not isinstance(count, int):
        return None
    if not 0 <= count <= _MAX_GEARS:
        raise Malformed(say("it announces {count} gears", "声明了 {count} 个档位", count=count))
    values = []
    for index in range(count):
        value = _numbers(case.attributes.get(f"{_GEAR}{index}"))
        if value is None:
            raise Malformed(
                say("gear {index} of {count} has no sizes", "{count} 个档位中的第 {index} 个没有大小", index=index, count=count)
            )
        values.append(tuple(value))
    kind = case.attributes.get("mbatch_dynamic_type")
    outputs = [text for op in ends if op.type == "NetOutput" for text in _texts(op.attributes.get("_dynamic_output_dims"))]
    return Gears(
        GEAR_KINDS.get(kind, "unknown") if isinstance(kind, int) else "unknown",
        _texts(case.attributes.get("user_designate_shape_order")),
        tuple(values),
        tuple(outputs),
    )


def _aipp(inputs: Sequence[_Op], ops: Sequence[_Op]) -> tuple[Aipp, ...]:
    """AIPP of each input: what the input says of it, and the configuration text of the operators."""
    found = []
    for op in inputs:
        config, mode = op.attributes.get("aipp"), op.attributes.get("_data_related_aipp_mode")
        dynamic = op.type == "AippData" or op.name.startswith("ascend_dynamic_aipp_data")
        if config is None and mode is None and not dynamic:
            continue
        found.append(
            Aipp(
                op.name,
                mode if isinstance(mode, str) else "dynamic_aipp" if dynamic else "static_aipp",
                config if isinstance(config, dict) else {},
                _texts(op.attributes.get("_aipp_inputs")),
                _texts(op.attributes.get("_aipp_outputs")),
            )
        )

    for op in ops:
        text = op.attributes.get("aipp_config_path")
        if isinstance(text, str):
            found.append(Aipp(op.name, "operator", {"aipp_config_path": text}))
    return tuple(found)
