"""Editing graphs: the builder that rules use, and cutting pieces out of a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from .walk import source_line

Array = npt.NDArray[np.generic]


def copy_model(model: ir.Model) -> ir.Model:
    """A copy that shares nothing but the weights. (``model.clone`` alone shares the type objects, which inference edits in place.)"""
    copy = model.clone()
    for graph in copy.graphs():
        for value in (*graph.inputs, *graph.initializers.values(), *(output for node in graph for output in node.outputs)):
            if isinstance(value.type, (ir.TensorType, ir.SparseTensorType)):
                value.type = type(value.type)(value.type.dtype, denotation=value.type.denotation)
            elif value.type is not None:
                value.type = deepcopy(value.type)
    return copy


def used_names(model: ir.Model) -> set[str]:
    """Every tensor name of the model, at any depth."""
    names: set[str] = set()
    for graph in model.graphs():
        names.update(value.name for value in graph.inputs if value.name)
        names.update(graph.initializers)
        for node in graph:
            names.update(value.name for value in node.outputs if value.name)
    return names


def rename_value(value: ir.Value, name: str) -> None:
    """Rename a tensor everywhere it is used (references are by object, so nothing else changes)."""
    if value.const_value is not None and value.name != name:
        # Copies of a model share their weights, and the name is written from the weight.
        value.const_value = renamed_tensor(value.const_value, name)
    value.name = name


def renamed_tensor(tensor: ir.TensorProtocol, name: str) -> ir.TensorProtocol:
    """The same data under another name."""
    if isinstance(tensor, ir.ExternalTensor):
        return ir.ExternalTensor(
            tensor.location,
            tensor.offset,
            tensor.length,
            tensor.dtype,
            shape=ir.Shape(tensor.shape.numpy()),
            name=name,
            doc_string=tensor.doc_string,
            metadata_props=dict(tensor.metadata_props),
            base_dir=tensor.base_dir,
        )
    metadata = dict(tensor.metadata_props)
    if tensor.dtype == ir.DataType.STRING:
        shape = ir.Shape(tensor.shape.numpy())
        return ir.StringTensor(tensor.numpy(), shape=shape, name=name, doc_string=tensor.doc_string, metadata_props=metadata)
    return ir.Tensor(tensor.numpy(), dtype=tensor.dtype, name=name, doc_string=tensor.doc_string, metadata_props=metadata)


def replace_value(old: ir.Value, new: ir.Value) -> None:
    """Let every user of ``old`` read ``new``. A graph output keeps its name: ``new`` takes it over.

    ``new`` must then be made by a node and not be a graph output itself (the callers check with :func:`can_take_over`).
    """
    if old.is_graph_output():
        name, shape, dtype = old.name, old.shape, old.type
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        old.name = f"{name}__replaced"
        new.name = name
        if new.shape is None:
            new.shape = shape
        if new.type is None:
            new.type = dtype
        return
    old.replace_all_uses_with(new)


def can_take_over(old: ir.Value, new: ir.Value) -> bool:
    """Whether :func:`replace_value` may give ``new`` the place of ``old``."""
    if not old.is_graph_output():
        return True
    return new.producer() is not None and not new.is_graph_output() and new.graph is old.graph


class Builder:
    """Inserts nodes before an anchor node; new names never collide, and metadata says which rule made a node.

    Attributes:
        made: the nodes inserted so far.
    """

    def __init__(self, model: ir.Model, anchor: ir.Node, rule: str, names: set[str] | None = None) -> None:
        """``names``: all tensor names of the model, kept up to date here (looked up when not given)."""
        graph = anchor.graph
        if not isinstance(graph, ir.Graph):
            raise ValueError("the anchor must belong to a graph")
        self._model, self._graph, self._anchor, self._rule = model, graph, anchor, rule
        self._names = used_names(model) if names is None else names
        self.made: list[ir.Node] = []

    def _fresh(self, stem: str) -> str:
        name, number = stem, 0
        while name in self._names:
            number += 1
            name = f"{stem}_{number}"
        self._names.add(name)
        return name

    def const(self, array: Any, dtype: Any = None, name: str = "constant") -> ir.Value:
        """A new initializer."""
        data = np.asarray(array, dtype=dtype)
        tensor = ir.tensor(data, name=self._fresh(f"{self._anchor.name or self._anchor.op_type}/{name}"))
        value = ir.Value(name=tensor.name, const_value=tensor, shape=ir.Shape(list(data.shape)), type=ir.TensorType(tensor.dtype))
        self._graph.register_initializer(value)
        return value

    def op(self, op_type: str, *inputs: ir.Value | None, outputs: int = 1, domain: str = "", **attributes: Any) -> ir.Value:
        """Insert a node and return its (first) output; ``self.made[-1].outputs`` has the others."""
        stem = self._fresh(f"{self._anchor.name or self._anchor.op_type}/{op_type}")
        values = [ir.Value(name=self._fresh(f"{stem}_output_{index}")) for index in range(outputs)]
        node = ir.node(
            op_type,
            list(inputs),
            attributes={key: value for key, value in attributes.items() if value is not None},
            domain=domain,
            outputs=values,
            name=stem,
        )
        node.metadata_props["jumar.rule"] = self._rule
        line = source_line(self._anchor)
        for key, value in self._anchor.metadata_props.items():
            node.metadata_props.setdefault(key, value)
        if line:
            node.metadata_props["jumar.source_line"] = line
        self._graph.insert_before(self._anchor, [node])
        self.made.append(node)
        return values[0]

    def replace(self, old: ir.Value, new: ir.Value) -> None:
        """Give every use of ``old`` to ``new``; see :func:`replace_value`. A tensor this builder made takes the old one's name.

        So names go on meaning the same tensor, and the two models can be compared by them.
        """
        if not can_take_over(old, new):
            new = self.op("Identity", new)
        name, fresh = old.name, new.producer() in self.made and not new.is_graph_output()
        replace_value(old, new)
        if fresh and new.name != name:
            old.name, new.name = self._fresh(f"{name}__replaced"), name

    def remove(self, *nodes: ir.Node) -> None:
        """Remove nodes whose outputs nobody uses any more."""
        self._graph.remove(nodes, safe=True)


def _wrap(model: ir.Model, graph: ir.Graph) -> ir.Model:
    graph.opset_imports.clear()
    graph.opset_imports.update(model.opset_imports)
    return ir.Model(graph, ir_version=model.ir_version, functions=[function.clone() for function in model.functions.values()])


def extract_model(model: ir.Model, inputs: Sequence[str], outputs: Sequence[str]) -> ir.Model:
    """The piece of a model between the named tensors, as a model of its own (weights shared, original untouched).

    Raises:
        ValueError: a name is unknown or ``inputs`` do not bound what ``outputs`` need.
    """
    return _wrap(model, ir.convenience.extract(model.graph, list(inputs), list(outputs)))


def capture_model(model: ir.Model, names: Iterable[str]) -> ir.Model:
    """A copy of the model that returns the named tensors of its main graph too (weights shared)."""
    copy = copy_model(model)
    values = ir.convenience.create_value_mapping(copy.graph)
    present = {value.name for value in copy.graph.outputs}
    for name in names:
        if name not in present:
            copy.graph.outputs.append(values[name])
            present.add(name)
    return copy
