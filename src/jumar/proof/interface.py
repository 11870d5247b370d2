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
    """One input or output: its present name, and the dtype outside and inside."""

    name: str
    outside: str
    inside: str


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

    def then(self, inputs: Mapping[str, Port], outputs: Mapping[str, Port]) -> Interface:
        """Follow one more rewrite: ``inputs`` and ``outputs`` map present names to what they became."""

        def follow(ports: Mapping[str, Port], changes: Mapping[str, Port]) -> dict[str, Port]:
            followed = {}
            for original, port in ports.items():
                change = changes.get(port.name)
                followed[original] = port if change is None else replace(port, name=change.name, inside=change.inside)
            return followed

        return Interface(follow(self.inputs, inputs), follow(self.outputs, outputs))

    def to_model(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """The caller's arrays as the rewritten model wants them.

        Raises:
            UsageError: an integer does not fit the narrower dtype.
        """
        return {port.name: _cast(feeds[original], port.inside, original) for original, port in self.inputs.items() if original in feeds}

    def to_caller(self, outputs: Mapping[str, Any]) -> dict[str, Any]:
        """The rewritten model's outputs as the caller knows them."""
        return {
            original: _cast(outputs[port.name], port.outside, original) for original, port in self.outputs.items() if port.name in outputs
        }

    def changed(self, record: Mapping[str, Any]) -> Interface:
        """This identity with the changes that :meth:`to_dict` recorded.

        ``self`` must be the interface of the original model.
        """
        inputs, outputs = (
            {item["original"]: Port(item["name"], item["original_dtype"], item["dtype"]) for item in record.get(key, ())}
            for key in ("inputs", "outputs")
        )
        return Interface({**self.inputs, **inputs}, {**self.outputs, **outputs})

    def to_dict(self) -> dict[str, Any]:
        """Only what changed, for the manifest."""

        def changed(ports: Mapping[str, Port]) -> list[dict[str, str]]:
            return [
                {"original": original, "name": port.name, "original_dtype": port.outside, "dtype": port.inside}
                for original, port in ports.items()
                if original != port.name or port.outside != port.inside
            ]

        return {"inputs": changed(self.inputs), "outputs": changed(self.outputs)}


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
