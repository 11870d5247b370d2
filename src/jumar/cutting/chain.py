"""The parts of a cut model, run one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from ..errors import UsageError
from ..graph import Evaluator, load
from ..graph.digest import file_sha256
from ..graph.surgery.cut import extract
from ..proof.interface import Interface, Port
from ..text import say

PARTS = ("custom-before", "before", "device", "after", "custom-after")
"""Names of parts, in their order. The ``custom`` ones have operators that nothing here can run."""


@dataclass(frozen=True)
class Part:
    """One model of a chain.

    Attributes:
        name: one of :data:`PARTS`.
        interface: what its inputs and outputs became when the part was fixed on its own; the chain knows them by their old names.
    """

    name: str
    model: ir.Model
    interface: Interface


Execute = Callable[[Part, Mapping[str, Any]], Mapping[str, Any]]
"""Runs one part: arrays by the names and dtypes of its model in, and out."""


@dataclass(frozen=True)
class Chain:
    """The parts in order. Every part reads from the inputs of the whole and from what the parts before it made."""

    parts: tuple[Part, ...]
    outputs: tuple[str, ...]

    def run(self, evaluator: Evaluator, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Outputs of the whole by name, for inputs by name, with ONNX Runtime for all parts.

        Raises:
            EvaluationError: a part does not run.
        """
        return self.run_with(lambda part, arrays: evaluator.run(part.model, arrays), feeds)

    def run_with(self, execute: Execute, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """The same with something else that runs a part, so that the device part can be run by a device.

        Raises:
            UsageError: a value does not fit the narrower dtype of an input of the device part.
        """
        known = dict(feeds)
        for part in self.parts:
            wanted = {name: known[name] for name in part.interface.inputs if name in known}
            known |= part.interface.to_caller(execute(part, part.interface.to_model(wanted)))
        return {name: known[name] for name in self.outputs}


def outward(part: Part, interface: Interface) -> Part:
    """A part of a model that ``interface`` had changed before it was cut, by the names and dtypes from before the change."""

    def follow(ports: Mapping[str, Port], changed: Mapping[str, Port]) -> dict[str, Port]:
        back = {port.name: (original, port) for original, port in changed.items() if port.constant is None}
        found = {}
        for name, port in ports.items():
            original, outer = back.get(name, (name, port))
            found[original] = replace(port, outside=outer.outside, scalar=port.scalar or outer.scalar)
        return found

    # An output of the whole may be what a later part reads.
    inputs = follow(part.interface.inputs, {**interface.outputs, **interface.inputs})
    return replace(part, interface=Interface(inputs, follow(part.interface.outputs, interface.outputs)))


def runnable(chain: Chain, reference: ir.Model) -> tuple[Chain, ir.Model]:
    """What of a chain can be run here, and the piece of the original that it stands for: all but the ``custom`` parts.

    Raises:
        UsageError: the original does not have the tensors at the ends of these parts.
    """
    kept = tuple(part for part in chain.parts if not part.name.startswith("custom-"))
    if len(kept) == len(chain.parts):
        return chain, reference
    made = {name for part in kept for name in part.interface.outputs}
    given = {name for part in kept for name in part.interface.inputs} - made
    read = {name for part in chain.parts if part not in kept for name in part.interface.inputs}
    ends = tuple(name for part in kept for name in part.interface.outputs if name in read or name in chain.outputs)
    return Chain(kept, ends), extract(reference, sorted(given), ends)


def load_chain(path: Path, told: Sequence[Mapping[str, Any]]) -> Chain | None:
    """The chain that a model belongs to, by what the cut step recorded (``options["cut"]``); None if nothing was cut.

    Raises:
        UsageError: a part is gone or has changed.
        ModelError: it cannot be read.
    """
    if not told:
        return None
    try:
        files = [path.parent / Path(item["file"]).name for item in told]
        parts = [_load(path, file, item) for file, item in zip(files, told, strict=True)]
        outputs = tuple(str(name) for name in told[-1]["results"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            say("what is recorded of the cut is not understood: {error}", "无法理解切分的记录：{error}", error=str(error)[:80]),
            say("expected files, inputs and outputs of each part", "应有各部分的文件、输入和输出"),
            say("cut the model again with --cut and --output", "请用 --cut 和 --output 重新切分"),
        ) from error
    return Chain(tuple(parts), outputs)


def _load(path: Path, file: Path, item: Mapping[str, Any]) -> Part:
    if not file.is_file() or (item.get("sha256") and item["part"] != "device" and file_sha256(file) != item["sha256"]):
        raise UsageError(
            say("the part `{file}` of the cut model is gone or has changed", "被切分模型的部分 `{file}` 不存在或已改变", file=file),
            say("expected the file that was written beside `{path}`", "应为与 `{path}` 一同写出的文件", path=path.name),
            say("cut the model again with --cut", "请用 --cut 重新切分"),
        )
    # Inputs and outputs by the names the chain has for them.
    plain = Interface.named(item["inputs"], item["outputs"])
    return Part(item["part"], load(file), plain.changed(item.get("interface", {})))


def told_of(manifest: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """What the cut step said, as a manifest has it."""
    for item in manifest.get("cut_parts", ()):
        return list(item.get("cut", ()))
    return ()
