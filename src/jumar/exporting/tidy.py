"""What an exporter wrote, made readable: the names of the interface, and of each node the module and the Python line that made it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

import onnx_ir as ir

from ..errors import ModelError
from ..graph import all_nodes, used_names
from ..graph.edit import rename_value
from ..graph.walk import MODULE, SOURCE
from ..text import say
from .dynamic import Dynamic
from .lines import any_line, line_of_doc, line_of_stack

IN, OUT = "jumar_in_", "jumar_out_"
_WRAPPED = "module"
"""The name of the exported module in our wrapper."""


def tidy(model: ir.Model, inputs: Sequence[str], outputs: Sequence[str], dynamic: Dynamic) -> tuple[str, ...]:
    """Give the ports their names and the nodes their origin, in place.

    Returns:
        Inputs that are not there any more, or that nothing reads.

    Raises:
        ModelError: the graph has other outputs than the module.
    """
    for node in all_nodes(model):
        _origin(node)
    if len(model.graph.outputs) != len(outputs):
        raise ModelError(
            say(
                "the graph has {found} outputs instead of {count}",
                "计算图有 {found} 个输出，应为 {count} 个",
                found=len(model.graph.outputs),
                count=len(outputs),
            )
        )
    wanted = {f"{IN}{index}": name for index, name in enumerate(inputs)}
    ports = {value.name: value for value in model.graph.inputs if value.name not in model.graph.initializers}
    vanished = tuple(
        name for port, name in wanted.items() if port not in ports or not (ports[port].uses() or ports[port].is_graph_output())
    )
    _separate(model)
    _free(model, {*inputs, *outputs})
    for port, name in wanted.items():
        if port in ports:
            rename_value(ports[port], name)
    for value, name in zip(list(model.graph.outputs), outputs, strict=True):
        rename_value(value, name)
    _shorten(model)
    for value in model.graph.inputs:
        axes, name = dynamic.axes.get(value.name or "", {}), value.name or ""
        if axes and value.shape is not None:
            named = [
                dynamic.symbol(name, axis) if axis in axes and not isinstance(size, int) else size for axis, size in enumerate(value.shape)
            ]
            value.shape = ir.Shape(named)
    return vanished


def _origin(node: ir.Node) -> None:
    """Two short entries instead of the exporters' long ones."""
    kept = node.metadata_props
    stack, doc = kept.get("pkg.torch.onnx.stack_trace", ""), node.doc_string or ""
    line = line_of_stack(stack) or line_of_doc(doc) or any_line(stack) or any_line(doc)
    module = _of_scopes(kept.get("pkg.torch.onnx.name_scopes", "")) or _of_name(node.name or "")
    node.doc_string = None
    for key in [key for key in kept if key.startswith("pkg.") or key == "namespace"]:
        del kept[key]
    if line:
        kept[SOURCE] = line
    if module:
        kept[MODULE] = module


def _of_scopes(text: str) -> str:
    """``"['', 'module', 'module.l', 'linear']"`` -> ``l``; the last is the call itself."""
    try:
        scopes = [scope for scope in ast.literal_eval(text) if scope] if text else []
    except (SyntaxError, ValueError):
        return ""
    return _bare(scopes[-2]) if len(scopes) > 1 else ""


def _of_name(name: str) -> str:
    """``/module/layer1/layer1.0/conv/Conv`` -> ``layer1.0.conv``: an entry of a list names the list again."""
    parts: list[str] = []
    for part in name.strip("/").split("/")[:-1]:
        if parts and part.startswith(f"{parts[-1]}."):
            parts[-1] = part
        else:
            parts.append(part)
    return _bare(".".join(parts))


def _bare(path: str) -> str:
    return "" if path == _WRAPPED else path.removeprefix(f"{_WRAPPED}.")


def _separate(model: ir.Model) -> None:
    """An output that is an input, a weight or another output gets a node of its own, since it could not have a name of its own."""
    seen: set[ir.Value] = set()
    for index, value in enumerate(model.graph.outputs):
        if value.producer() is not None and value not in seen:
            seen.add(value)
            continue
        node = ir.node("Identity", [value], outputs=[ir.Value(name=f"{OUT}copy_{index}", type=value.type, shape=value.shape)])
        model.graph.append(node)
        model.graph.outputs[index] = node.outputs[0]


def _free(model: ir.Model, wanted: set[str]) -> None:
    """Tensors inside that have a name of the interface get another."""
    used = used_names(model) | wanted
    for graph in model.graphs():
        for value in [*graph.initializers.values(), *graph.inputs, *(value for node in graph for value in node.outputs)]:
            if value.name in wanted:
                number = 0
                while f"{value.name}__{number}" in used:
                    number += 1
                used.add(f"{value.name}__{number}")
                rename_value(value, f"{value.name}__{number}")


def _shorten(model: ir.Model) -> None:
    """Names of weights and nodes as the module itself has them."""
    used = used_names(model)
    for value in list(model.graph.initializers.values()):
        name = (value.name or "").removeprefix(f"{_WRAPPED}.")
        if name != value.name and name not in used:
            used.add(name)
            rename_value(value, name)
    for node in all_nodes(model):
        if node.name and node.name.startswith(f"/{_WRAPPED}/"):
            node.name = node.name.removeprefix(f"/{_WRAPPED}")
