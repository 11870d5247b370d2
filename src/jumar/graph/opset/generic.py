"""What two schemas of an operator say of each other: attributes, inputs and dtypes that one of them lacks."""

from __future__ import annotations

import onnx_ir as ir

from ...text import say
from .dtypes import fit_types
from .schemas import Schema, default_value
from .step import Step

# Values an attribute of both versions takes only from this version on; the schemas do not list values.
NEW_VALUES: dict[tuple[str, int, str], tuple[str, ...]] = {
    ("Pad", 19, "mode"): ("wrap",),
    ("Resize", 19, "coordinate_transformation_mode"): ("half_pixel_symmetric",),
    ("ScatterElements", 18, "reduction"): ("max", "min"),
    ("ScatterND", 18, "reduction"): ("max", "min"),
}
# What the operator did before it had the attribute, where that is not the attribute's default.
FORMER: dict[tuple[str, int, str], str] = {("RoiAlign", 16, "coordinate_transformation_mode"): "output_half_pixel"}
# Attributes that speak of dtypes the lower version has not got, and so mean nothing there.
MEANINGLESS: frozenset[tuple[str, int, str]] = frozenset(
    {
        ("Cast", 19, "saturate"),
        ("CastLike", 19, "saturate"),
        ("QuantizeLinear", 19, "saturate"),
        ("Cast", 24, "round_mode"),
        ("CastLike", 24, "round_mode"),
        ("TopK", 11, "sorted"),  # an order of any kind was allowed
        ("Dropout", 12, "seed"),
    }
)


def lower_generic(step: Step, higher: Schema, lower: Schema) -> bool:
    """Drop what the lower version lacks where it says what happens anyway; write out defaults that changed; fit the dtypes.

    Raises:
        Unconvertible: a value, an input or a dtype has no counterpart.
    """
    changed = _drop_attributes(step, higher, lower)
    changed |= _write_defaults(step, higher, lower)
    for name in set(lower.attributes) - set(higher.attributes):
        if lower.attributes[name].required and name not in step.node.attributes:
            step.refuse(
                say(
                    "attribute {name} is mandatory at opset {version}",
                    "属性 {name} 在 opset {version} 中为必填",
                    name=name,
                    version=lower.since_version,
                )
            )
    _check_inputs(step, higher, lower)
    return fit_types(step, lower) or changed


def _drop_attributes(step: Step, higher: Schema, lower: Schema) -> bool:
    node, changed = step.node, False
    for name in sorted(set(higher.attributes) - set(lower.attributes)):
        key = (node.op_type, higher.since_version, name)
        if name in node.attributes and key not in MEANINGLESS and step.attr(name) != FORMER.get(key, default_value(higher, name)):
            changed_default = None
        elif name not in node.attributes and key in FORMER and FORMER[key] != default_value(higher, name):
            changed_default = default_value(higher, name)
        else:
            changed |= node.attributes.pop(name, None) is not None
            continue
        step.refuse(
            say(
                "attribute {name} = {value} has no counterpart at opset {version}",
                "属性 {name} = {value} 在 opset {version} 中没有对应",
                name=name,
                value=step.attr(name, changed_default),
                version=higher.since_version - 1,
            )
        )
    return changed


def _write_defaults(step: Step, higher: Schema, lower: Schema) -> bool:
    node, changed = step.node, False
    for name in sorted(set(higher.attributes) & set(lower.attributes)):
        newer = NEW_VALUES.get((node.op_type, higher.since_version, name), ())
        if newer and name in node.attributes and step.attr(name) in newer:
            step.refuse(
                say(
                    "{name} = {value} exists only from opset {version} on",
                    "{name} = {value} 自 opset {version} 起才存在",
                    name=name,
                    value=step.attr(name),
                    version=higher.since_version,
                )
            )
        changed |= write_default(step, name, default_value(higher, name), default_value(lower, name))
    return changed


def write_default(step: Step, name: str, before: object, after: object) -> bool:
    """A node that relied on a default says it, where the default is another one now."""
    if before == after or name in step.node.attributes:
        return False
    if before is None:
        step.refuse(say("attribute {name} became mandatory or its default changed", "属性 {name} 变为必填或默认值改变", name=name))
    step.node.attributes[name] = ir.convenience.convert_attribute(name, before)  # type: ignore[arg-type]
    return True


def _check_inputs(step: Step, higher: Schema, lower: Schema) -> None:
    """The inputs used must be the same ones at the lower version, and enough for it."""
    node = step.node
    drop_unread(step)
    used = len(node.inputs)
    while used and node.inputs[used - 1] is None:
        used -= 1
    if used < len(node.inputs) and len(node.inputs) > lower.max_input:
        node.resize_inputs(used)
    read = max((index for index in range(len(node.outputs)) if step.used(index)), default=-1) + 1
    names = [[item.name for item in schema.inputs][:used] for schema in (higher, lower)]
    # With as many inputs as before only their names changed (BatchNormalization).
    moved = len(higher.inputs) != len(lower.inputs) and names[0] != names[1]
    if moved or not lower.min_input <= used <= lower.max_input or read > lower.max_output:
        step.refuse(say("opset {version} takes other inputs or outputs", "opset {version} 的输入或输出不同", version=lower.since_version))
    if len(node.outputs) > lower.max_output:
        node.resize_outputs(lower.max_output)


def drop_unread(step: Step) -> None:
    """Optional outputs that nobody reads: a mask whose dtype changed, indices that an older version has not got."""
    while step.node.op_type in ("Dropout", "MaxPool") and len(step.node.outputs) > 1 and not step.used(len(step.node.outputs) - 1):
        step.node.resize_outputs(len(step.node.outputs) - 1)


def raise_generic(step: Step, lower: Schema, higher: Schema, adapted: bool) -> bool:
    """``adapted``: the inputs are the higher version's already. Keep the form where the higher version means the same by it; write out defaults that changed.

    Raises:
        Unconvertible: an attribute or an input was moved and no adapter knows where.
    """
    node, changed = step.node, False
    drop_unread(step)
    for name in sorted(set(higher.attributes) - set(lower.attributes)):
        former = FORMER.get((node.op_type, higher.since_version, name))
        if former is not None and name not in node.attributes:
            node.attributes[name] = ir.convenience.convert_attribute(name, former)
            changed = True
    for name in [name for name in node.attributes if name not in higher.attributes]:
        if name in lower.attributes and step.attr(name) == default_value(lower, name):
            del node.attributes[name]
            changed = True
            continue
        step.refuse(
            say(
                "attribute {name} = {value} has no counterpart at opset {version}",
                "属性 {name} = {value} 在 opset {version} 中没有对应",
                name=name,
                value=step.attr(name),
                version=higher.since_version,
            )
        )
    for name in sorted(set(higher.attributes) & set(lower.attributes)):
        changed |= write_default(step, name, default_value(lower, name), default_value(higher, name))
    used = [item.name for item in lower.inputs][: len(node.inputs)]
    moved = not adapted and len(higher.inputs) != len(lower.inputs) and used != [item.name for item in higher.inputs][: len(used)]
    if moved or len(node.inputs) < higher.min_input or len(node.outputs) > higher.max_output:
        step.refuse(say("opset {version} takes other inputs or outputs", "opset {version} 的输入或输出不同", version=higher.since_version))
    return fit_types(step, higher) or changed
