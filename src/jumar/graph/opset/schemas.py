"""What the schemas of the installed ONNX say of an operator version: looked up once each."""

from __future__ import annotations

from functools import cache
from typing import Any

import onnx
import onnx_ir as ir

DOMAINS = ("", "ai.onnx")
Schema = onnx.defs.OpSchema


@cache
def find_schema(op_type: str, version: int) -> Schema | None:
    """The schema in force at an opset, also one that is deprecated there."""
    try:
        return onnx.defs.get_schema(op_type, version, "")
    except onnx.defs.SchemaError:
        return None


@cache
def changed_at(op_type: str, version: int) -> bool:
    """Whether the operator has a form of its own from just this opset on (or ends there)."""
    schema = find_schema(op_type, version)
    return schema is not None and schema.since_version == version


@cache
def default_value(schema: Schema, name: str) -> Any:
    """An attribute's default as a plain value; None when it has none."""
    proto = schema.attributes[name].default_value
    return plain(onnx.helper.get_attribute_value(proto)) if proto.name else None


def attribute_value(attribute: ir.Attr) -> Any:
    """A node's attribute as a plain value, to be compared with :func:`default_value`."""
    return plain(attribute.value)


def plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    return tuple(value) if isinstance(value, (list, tuple)) else value


def newest_opset() -> int:
    """The newest version of the standard operator set that the installed ONNX has schemas for."""
    return int(onnx.defs.onnx_opset_version())


@cache
def type_names(schema: Schema, type_str: str) -> frozenset[str]:
    """The types a type variable of the schema may take (``tensor(float)``), or the one type that the name itself is."""
    for constraint in schema.type_constraints:
        if constraint.type_param_str == type_str:
            return frozenset(constraint.allowed_type_strs)
    return frozenset((type_str,))


@cache
def minimum_ir_version(version: int) -> int:
    """The first IR version that may import an opset (0 where the installed ONNX does not list it)."""
    return int(onnx.helper.OP_SET_ID_VERSION_MAP.get(("ai.onnx", version), 0))
