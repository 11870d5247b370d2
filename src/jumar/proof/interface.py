"""The contract with the caller: which input of the original became which input of the rewritten model, and back.

Rewrites may rename inputs and outputs or change their dtype (int64 -> int32). The change is recorded in the manifest, applied by
every comparison and by the runners, so that the caller keeps passing what he always passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from ..errors import UsageError
from ..graph.load import tensor_info
from ..text import say


@dataclass(frozen=True)
class Port:
    """One input or output: its present name, and the dtype outside and inside.

    Attributes:
        scalar: True where it is a scalar outside and has the shape [1] inside.
        constant: the elements of an input that became a weight, and is no input any more.
        counted: of an output that holds more inside than outside: the axis along which, and the output that says how many of its first
            places the caller gets.
    """

    name: str
    outside: str
    inside: str
    scalar: bool = False
    constant: tuple[int | float | bool, ...] | None = None
    counted: tuple[int, str] | None = None


@dataclass(frozen=True)
class Interface:
    """Ports by original name."""

    inputs: Mapping[str, Port] = field(default_factory=dict)
    outputs: Mapping[str, Port] = field(default_factory=dict)

    @classmethod
    def of(cls, model: ir.Model) -> Interface:
        """The identity: every name and dtype as it is."""

        def ports(values: Any) -> dict[str, Port]:
            infos = [tensor_info(value) for value in values if value.name not in model.graph.initializers or value.is_graph_output()]
            return {info.name: Port(info.name, info.dtype, info.dtype) for info in infos}

        return cls(ports(model.graph.inputs), ports(model.graph.outputs))

    @classmethod
    def named(cls, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> Interface:
        """The identity for ports given as dtypes by name."""
        return cls(
            {name: Port(name, dtype, dtype) for name, dtype in inputs.items()},
            {name: Port(name, dtype, dtype) for name, dtype in outputs.items()},
        )

    def then(self, inputs: Mapping[str, Port], outputs: Mapping[str, Port]) -> Interface:
        """Follow one more rewrite: ``inputs`` and ``outputs`` map present names to what they became."""

        def follow(ports: Mapping[str, Port], changes: Mapping[str, Port]) -> dict[str, Port]:
            followed = {}
            for original, port in ports.items():
                change = changes.get(port.name)
                if change is not None and port.constant is None:
                    counted = change.counted or port.counted
                    port = replace(change, outside=port.outside, scalar=port.scalar or change.scalar, counted=counted)
                followed[original] = port
            return followed

        return Interface(follow(self.inputs, inputs), follow(self.outputs, outputs))

    def to_model(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """The caller's arrays as the rewritten model wants them.

        Raises:
            UsageError: an integer does not fit the narrower dtype, or an input that became a weight is given another value.
        """
        wanted = {}
        for original, port in self.inputs.items():
            if original not in feeds:
                continue
            if port.constant is not None:
                _check_constant(feeds[original], port.constant, original)
                continue
            array = _cast(feeds[original], port.inside, original)
            wanted[port.name] = np.reshape(array, (1,)) if port.scalar else array
        return wanted

    def to_caller(self, outputs: Mapping[str, Any]) -> dict[str, Any]:
        """The rewritten model's outputs as the caller knows them."""
        found = {}
        for original, port in self.outputs.items():
            if port.name in outputs:
                array = _cast(outputs[port.name], port.outside, original)
                if port.counted is not None:
                    axis, count = port.counted
                    array = np.take(array, range(int(np.reshape(outputs[count], ()))), axis=axis)
                found[original] = np.reshape(array, ()) if port.scalar and np.size(array) == 1 else array
        return found

    def changed(self, record: Mapping[str, Any]) -> Interface:
        """This identity with the changes that :meth:`to_dict` recorded.

        ``self`` must be the interface of the original model.
        """
        inputs, outputs = ({item["original"]: _port(item) for item in record.get(key, ())} for key in ("inputs", "outputs"))
        return Interface({**self.inputs, **inputs}, {**self.outputs, **outputs})

    def to_dict(self) -> dict[str, Any]:
        """Only what changed, for the manifest."""

        def changed(ports: Mapping[str, Port]) -> list[dict[str, Any]]:
            return [
                {"original": original, "name": port.name, "original_dtype": port.outside, "dtype": port.inside}
                | ({"original_shape": [], "shape": [1]} if port.scalar else {})
                | ({} if port.constant is None else {"constant": list(port.constant)})
                | ({} if port.counted is None else {"count_axis": port.counted[0], "count": port.counted[1]})
                for original, port in ports.items()
                if original != port.name
                or port.outside != port.inside
                or port.scalar
                or port.constant is not None
                or port.counted is not None
            ]

        return {"inputs": changed(self.inputs), "outputs": changed(self.outputs)}


def _port(item: Mapping[str, Any]) -> Port:
    constant = item.get("constant")
    scalar = item.get("original_shape") == [] and item.get("shape") == [1]
    counted = (int(item["count_axis"]), str(item["count"])) if "count" in item else None
    return Port(item["name"], item["original_dtype"], item["dtype"], scalar, None if constant is None else tuple(constant), counted)


def _check_constant(array: Any, constant: tuple[int | float | bool, ...], name: str) -> None:
    if not np.array_equal(np.asarray(array).reshape(-1), np.asarray(constant), equal_nan=np.asarray(constant).dtype.kind == "f"):
        raise UsageError(
            say("`{name}` is {found}", "`{name}` 为 {found}", name=name, found=str(np.asarray(array).tolist())[:80]),
            say(
                "expected {constant}, the value the model was fixed to",
                "应为模型所固定的取值 {constant}",
                constant=str(list(constant))[:80],
            ),
            say("leave it out, or fix the model for the other value", "请省略该输入，或按另一取值重新修复模型"),
        )


def _cast(array: Any, dtype: str, name: str) -> Any:
    if not isinstance(array, np.ndarray) or array.dtype.kind == "O":
        return array
    wanted = ir.DataType[dtype.upper()].numpy() if dtype.upper() in ir.DataType.__members__ else array.dtype
    if array.dtype == wanted:
        return array
    if wanted.kind in "iu" and array.dtype.kind in "iu" and array.size:
        limits = np.iinfo(wanted)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise UsageError(
                say(
                    "`{name}` holds values from {low} to {high}",
                    "`{name}` 的取值范围为 {low} 到 {high}",
                    name=name,
                    low=array.min(),
                    high=array.max(),
                ),
                say("expected values that fit {dtype}", "应能用 {dtype} 表示", dtype=dtype),
                say("keep the wider dtype (do not allow this rewrite)", "请保留较宽的类型（不要启用该改写）"),
            )
    with np.errstate(over="ignore"):
        narrow = array.astype(wanted)
    if wanted.kind == array.dtype.kind == "f" and np.any(np.isinf(narrow) & np.isfinite(array)):
        raise UsageError(
            say("`{name}` holds values that {dtype} cannot hold", "`{name}` 含有 {dtype} 无法表示的取值", name=name, dtype=dtype),
            say("expected values that fit {dtype}", "应能用 {dtype} 表示", dtype=dtype),
            say("keep the wider dtype (do not allow this rewrite)", "请保留较宽的类型（不要启用该改写）"),
        )
    return narrow
