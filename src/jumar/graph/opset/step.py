"""One operator expressed at the neighbouring opset: what an adapter reads of its node, and how it makes the new nodes.

Constants are computed while the nodes are made: a node whose operands are known becomes a weight, so that what an expansion derives
from static shapes is a constant in the model (ATC reads axes, shapes and pads as constants only).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import onnx
import onnx_ir as ir

from ...text import Text, say
from ..edit import Builder, can_take_over
from ..ranges import Interval, whole
from ..shapes import constant_of, known_shape, static_shape
from ..walk import node_place
from .known import compute
from .schemas import DOMAINS, attribute_value, default_value, find_schema

Array = npt.NDArray[Any]
RULE = "OP110"
WEIGHT_LIMIT = 1 << 16
"""Bytes up to which a constant is computed here; a larger result stays computed by the model."""
_DEPTH = 24


class Unconvertible(Exception):  # noqa: N818 - a refusal with its reason
    """A node that cannot be expressed at the wanted opset."""

    def __init__(self, node: ir.Node, reason: Text, place: str = "") -> None:
        self.node, self.bare = node, reason
        place = place or node_place(node)
        self.reason = say("`{node}` ({op}): {reason}", "`{node}`（{op}）：{reason}", node=place, op=node.op_type, reason=reason)
        super().__init__(str(self.reason))


class NotThisForm(Unconvertible):
    """The node is of a form that this way of expressing it is not for; why another way does not serve says more."""


def unknown_range(value: ir.Value) -> Interval:
    """All that a tensor of its dtype can hold."""
    return whole(value.dtype or ir.DataType.FLOAT)


class Step(Builder):
    """A node that is about to change.

    Attributes:
        node: the node; ``finish`` replaces it.
        version: the opset that the nodes made belong to.
        range_of: between which numbers the values of a tensor lie, where somebody knows.
    """

    def __init__(self, model: ir.Model, node: ir.Node, names: set[str], version: int, in_function: bool = False, rule: str = RULE) -> None:
        super().__init__(model, node, rule, names)
        self.node, self.version, self.in_function = node, version, in_function
        self.range_of: Callable[[ir.Value], Interval] = unknown_range
        self._loose: set[ir.Value] = set()

    # What the node says

    def refuse(self, reason: Text) -> NoReturn:
        raise Unconvertible(self.node, reason)

    def input(self, index: int) -> ir.Value | None:
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def needed(self, index: int) -> ir.Value:
        value = self.input(index)
        if value is None:
            self.refuse(say("input {index} is missing", "缺少输入 {index}", index=index))
        return value

    def attr(self, name: str, default: Any = None) -> Any:
        """The attribute's value (text decoded, lists as tuples), or the default given."""
        attribute = self.node.attributes.get(name)
        if attribute is None:
            return default
        if attribute.is_ref():
            self.refuse(say("attribute {name} is given by the caller of a function", "属性 {name} 由函数的调用者给出", name=name))
        return attribute_value(attribute)

    def given(self, name: str) -> Any:
        """The attribute's value, or the default that the schema of the node's own version has."""
        return self.attr(name, default_value(self.source, name) if name in self.source.attributes else None)

    source: onnx.defs.OpSchema

    def constant(self, index: int, name: str) -> Array | None:
        """The constant that an input holds (None if absent).

        Raises:
            Unconvertible: it is computed, and the other version has it as an attribute.
        """
        value = self.input(index)
        if value is None:
            return None
        found = self.value_of(value)
        if found is None:
            self.refuse(
                say(
                    "{name} is computed, and must be a constant to be expressed there", "{name} 是计算得到的，而转换需要它是常量", name=name
                )
            )
        return found

    def value_of(self, value: ir.Value | None) -> Array | None:
        """A constant, also one that the model computes from constants and known shapes (None: it depends on the inputs)."""
        if value is None:
            return None
        found = value.const_value.numpy() if value in self._loose and value.const_value is not None else constant_of(value)
        return found if found is not None else _derived(value, 0)

    def shape(self, index: int = 0) -> tuple[int | str | None, ...] | None:
        return known_shape(self.input(index))

    def rank(self, index: int = 0) -> int:
        shape = self.shape(index)
        if shape is None:
            self.refuse(say("the rank of input {index} is not known", "输入 {index} 的秩未知", index=index))
        return len(shape)

    def static(self, index: int = 0) -> tuple[int, ...]:
        shape = static_shape(self.input(index))
        if shape is None:
            self.refuse(say("the shape of input {index} is not static", "输入 {index} 的形状不是静态的", index=index))
        return shape

    def dim(self, axis: int, index: int = 0) -> int:
        shape = self.shape(index)
        size = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
        if not isinstance(size, int):
            self.refuse(say("dimension {axis} of input {index} is not known", "输入 {index} 的第 {axis} 维未知", axis=axis, index=index))
        return size

    def dtype(self, index: int = 0) -> ir.DataType:
        value = self.input(index)
        if value is None or value.dtype is None:
            self.refuse(say("the dtype of input {index} is not known", "输入 {index} 的数据类型未知", index=index))
        return value.dtype

    def used(self, index: int) -> bool:
        """Whether anybody reads an output."""
        return index < len(self.node.outputs) and _read(self.node.outputs[index])

    def is_model_output(self, value: ir.Value) -> bool:
        """Whether a tensor belongs to what the caller of the model sees."""
        return value.is_graph_output() and self._graph is self._model.graph

    # Making nodes

    def const(self, array: Any, dtype: Any = None, name: str = "constant") -> ir.Value:
        """A constant; it enters the graph when a node reads it."""
        data = np.asarray(array, dtype=dtype)
        tensor = ir.tensor(data)
        value = ir.Value(const_value=tensor, shape=ir.Shape(list(data.shape)), type=ir.TensorType(tensor.dtype), name=name)
        self._loose.add(value)
        return value

    def ints(self, values: Any, name: str = "constant") -> ir.Value:
        return self.const(values, np.int64, name)

    def like(self, number: Any, index: int = 0, name: str = "constant") -> ir.Value:
        """A scalar constant of the dtype of an input."""
        return self.const(number, self.dtype(index).numpy(), name)

    def op(self, op_type: str, *inputs: ir.Value | None, outputs: int = 1, domain: str = "", **attributes: Any) -> ir.Value:
        """A node, or the constant it computes."""
        attributes = {key: value for key, value in attributes.items() if value is not None}
        if op_type == "CastLike":
            data, like = inputs
            if data is not None and like is not None and like.dtype is not None:
                return self.cast(data, like.dtype)
        if domain == "" and outputs == 1:
            known = self._computed(op_type, inputs, attributes)
            known = self._unchanged(op_type, inputs, attributes) if known is None else known
            if known is not None:
                return known
        result = super().op(op_type, *[self._placed(value) for value in inputs], outputs=outputs, domain=domain, **attributes)
        self._infer(self.made[-1])
        return result

    def cast(self, value: ir.Value, dtype: ir.DataType) -> ir.Value:
        if value.dtype == dtype:
            return value
        # An exact way back from float16 must bring infinities back too.
        exact = 0 if "FLOAT8" in dtype.name and self.version >= 19 else None
        return self.op("Cast", value, to=int(dtype), saturate=exact)

    def finish(self, *results: ir.Value | None) -> None:
        """The results take the place of the node's outputs, in order (None: nobody may read that output)."""
        outputs = list(self.node.outputs)
        for index, old in enumerate(outputs):
            new = results[index] if index < len(results) else None
            if new is None:
                if _read(old):
                    self.refuse(say("output {index} has no counterpart", "输出 {index} 没有对应", index=index))
                continue
            new = self._placed(new)
            if not can_take_over(old, new):
                new = Builder.op(self, "Identity", new)
            # What is known of the old output holds for the new one: the next node's adapter may need the rank.
            if old.shape is not None and (new.shape is None or len(new.shape) == len(old.shape)) and new.producer() in self.made:
                new.shape = old.shape
            if new.type is None:
                new.type = old.type
            if old is not new:
                self.replace(old, new)
        self.remove(self.node)
        self.sweep()

    def op_like(self, inputs: Sequence[ir.Value | None], without: Sequence[str] = (), **attributes: ir.Attr) -> list[ir.Value]:
        """The node once more with other inputs; all its outputs."""
        kept: dict[str, Any] = {name: value for name, value in self.node.attributes.items() if name not in without} | attributes
        result = self.op(self.node.op_type, *inputs, outputs=len(self.node.outputs), **kept)
        return [result] if len(self.node.outputs) == 1 else list(self.made[-1].outputs)

    def sweep(self) -> None:
        """Remove nodes made here that nobody reads."""
        for node in reversed(self.made):
            if node.graph is not None and not any(_read(value) for value in node.outputs):
                self.remove(node)
        self.made = [node for node in self.made if node.graph is not None]

    def settle(self) -> None:
        """Put constants into the graph that an adapter gave to the node itself."""
        for value in self.node.inputs:
            self._placed(value)

    def fresh(self, stem: str) -> str:
        """A tensor name that the model does not have."""
        return self._fresh(stem)

    def place(self, value: ir.Value) -> ir.Value:
        """The value, which is in the graph afterwards also if it is a constant made here."""
        placed: ir.Value = self._placed(value)
        return placed

    def _placed(self, value: Any) -> Any:
        if value in self._loose:
            self._loose.discard(value)
            value.name = self._fresh(f"{self._anchor.name or self._anchor.op_type}/{value.name}")
            tensor = value.const_value
            tensor.name = value.name
            if self.in_function:  # a function has no weights
                node = ir.Node(
                    "", "Constant", [], [ir.AttrTensor("value", tensor)], outputs=[value], name=self._fresh(f"{value.name}_node")
                )
                node.metadata_props["jumar.rule"] = RULE
                self._graph.insert_before(self._anchor, [node])
                self.made.append(node)
            else:
                self._graph.register_initializer(value)
        return value

    def _computed(self, op_type: str, inputs: Sequence[ir.Value | None], given: dict[str, Any]) -> ir.Value | None:
        attributes = {name: attribute_value(value) if isinstance(value, ir.Attr) else value for name, value in given.items()}
        if op_type in ("Shape", "Size") and inputs[0] is not None:
            shape = known_shape(inputs[0])
            dims = shape[slice(attributes.get("start"), attributes.get("end"))] if shape is not None else (None,)
            if not all(isinstance(dim, int) for dim in dims):
                return None
            return self.ints(np.prod(dims, dtype=np.int64) if op_type == "Size" else dims)  # type: ignore[arg-type]
        arrays = [None if value is None else self._known(value) for value in inputs]
        if not all(value is None or array is not None for value, array in zip(inputs, arrays, strict=True)):
            return None
        result = compute(op_type, arrays, attributes, WEIGHT_LIMIT)
        return None if result is None else self.const(result)

    def _unchanged(self, op_type: str, inputs: Sequence[ir.Value | None], given: dict[str, Any]) -> ir.Value | None:
        """The operand that the node would only pass on; bodies of schemas are full of such nodes."""
        data = inputs[0] if inputs else None
        if data is None:
            return None
        if op_type == "Identity":
            return data
        if op_type == "Cast":
            wanted = given["to"].value if isinstance(given["to"], ir.Attr) else given["to"]
            return data if data.dtype is not None and int(data.dtype) == wanted else None
        shape = static_shape(data)
        if op_type in ("Expand", "Reshape") and shape is not None and inputs[1] is not None:
            wanted = self._known(inputs[1])
            same = wanted is not None and 0 not in shape and tuple(wanted.tolist()) == shape
            return data if same else None
        if op_type == "Where":
            return self._chosen(inputs)
        return None

    def _chosen(self, inputs: Sequence[ir.Value | None]) -> ir.Value | None:
        """What a Where of a constant condition chooses, if it has the shape of the result."""
        condition, shapes = self._known(inputs[0]) if inputs[0] is not None else None, [static_shape(value) for value in inputs]
        if condition is None or not condition.size or condition.min() != condition.max() or None in shapes:
            return None
        chosen = 1 if condition.flat[0] else 2
        whole = np.broadcast_shapes(*[shape for shape in shapes if shape is not None])
        return inputs[chosen] if shapes[chosen] == whole else None

    def _known(self, value: ir.Value) -> Array | None:
        if value in self._loose and value.const_value is not None:
            return value.const_value.numpy()
        found = constant_of(value)
        return found if found is not None and found.nbytes <= WEIGHT_LIMIT else None

    def _infer(self, node: ir.Node) -> None:
        """Dtype and shape of what the new node makes, where its operands' are known."""
        schema = find_schema(node.op_type, self.version) if node.domain == "" else None
        if schema is None or any(attribute.is_ref() for attribute in node.attributes.values()):
            return
        types: dict[str, onnx.TypeProto] = {}
        data: dict[str, onnx.TensorProto] = {}
        for value in node.inputs:
            if value is None:
                continue
            if not isinstance(value.type, ir.TensorType):
                return
            shape = known_shape(value)
            types[value.name or ""] = onnx.helper.make_tensor_type_proto(int(value.type.dtype), None if shape is None else list(shape))
            known = self._known(value)
            if known is not None and known.nbytes <= 1000:
                data[value.name or ""] = (
                    onnx.numpy_helper.from_array(known, value.name) if known.dtype.kind in "iufb" else onnx.TensorProto()
                )
        try:
            found = onnx.shape_inference.infer_node_outputs(
                schema,
                ir.to_proto(node),
                types,
                {name: tensor for name, tensor in data.items() if tensor.name},
                opset_imports=[onnx.helper.make_opsetid("", self.version)],
            )
        except Exception:  # what is not known here is inferred later with the whole model, or refused
            return
        for value in node.outputs:
            kind = found.get(value.name or "")
            if kind is not None:
                value.type = ir.serde.deserialize_type_proto_for_type(kind)
                shape_found = ir.serde.deserialize_type_proto_for_shape(kind)
                if shape_found is not None:
                    value.shape = shape_found


def _derived(value: ir.Value, depth: int) -> Array | None:
    """What a short chain of nodes computes from constants and known shapes."""
    node = value.producer()
    if node is None or depth > _DEPTH or node.domain not in DOMAINS or len(node.outputs) != 1:
        return None
    if any(attribute.is_ref() for attribute in node.attributes.values()):
        return None
    attributes = {name: attribute_value(attribute) for name, attribute in node.attributes.items()}
    if node.op_type in ("Shape", "Size"):
        shape = static_shape(node.inputs[0])
        part = None if shape is None else shape[slice(attributes.get("start"), attributes.get("end"))]
        return None if part is None else np.asarray(np.prod(part, dtype=np.int64) if node.op_type == "Size" else part, np.int64)
    arrays: list[Array | None] = []
    for operand in node.inputs:
        found = None if operand is None else constant_of(operand)
        if operand is not None and found is None:
            found = _derived(operand, depth + 1)
        if operand is not None and (found is None or found.nbytes > WEIGHT_LIMIT):
            return None
        arrays.append(found)
    return compute(node.op_type, arrays, attributes, WEIGHT_LIMIT)


def _read(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


Adapter = Callable[[Step], bool]
"""Expresses the step's node at the neighbouring version; says whether its form changed."""
LOWER: dict[tuple[str, int], Adapter] = {}
"""How an operator at an opset is expressed at the one below."""
RAISE: dict[tuple[str, int], Adapter] = {}
"""How an operator below an opset is expressed at it."""


def lowers(version: int, *ops: str) -> Callable[[Adapter], Adapter]:
    def register(adapter: Adapter) -> Adapter:
        LOWER.update({(op, version): adapter for op in ops})
        return adapter

    return register


def raises(version: int, *ops: str) -> Callable[[Adapter], Adapter]:
    def register(adapter: Adapter) -> Adapter:
        RAISE.update({(op, version): adapter for op in ops})
        return adapter

    return register
