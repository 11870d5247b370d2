"""The parts of a cut model, run one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx_ir as ir

from ..errors import UsageError
from ..graph import Evaluator, load
from ..graph.digest import file_sha256
from ..proof.interface import Interface
from ..text import say

PARTS = ("before", "device", "after")


@dataclass(frozen=True)
class Part:
    """One model of a chain.

    Attributes:
        name: ``before``, ``device`` or ``after``.
        interface: what its inputs and outputs became when the part was fixed on its own; the chain knows them by their old names.
    """

    name: str
    model: ir.Model
    interface: Interface


@dataclass(frozen=True)
class Chain:
    """The parts in order. Every part reads from the inputs of the whole and from what the parts before it made."""

    parts: tuple[Part, ...]
    outputs: tuple[str, ...]

    def run(self, evaluator: Evaluator, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Outputs of the whole by name, for inputs by name.

        Raises:
            EvaluationError: a part does not run.
        """
        known = dict(feeds)
        for part in self.parts:
            wanted = {name: known[name] for name in part.interface.inputs if name in known}
            made = evaluator.run(part.model, part.interface.to_model(wanted))
            known |= part.interface.to_caller(made)
        return {name: known[name] for name in self.outputs}


def load_chain(path: Path, told: Sequence[Mapping[str, Any]]) -> Chain | None:
    """The chain that a model belongs to, by what the cut step recorded (``options["cut"]``); None if nothing was cut.

    Raises:
        UsageError: a part is gone or has changed.
        ModelError: it cannot be read.
    """
    if not told:
        return None
    parts, outputs = [], list[str]()
    for item in told:
        file = path.parent / Path(item["file"]).name
        if not file.is_file() or (item.get("sha256") and item["part"] != "device" and file_sha256(file) != item["sha256"]):
            raise UsageError(
                say("the part `{file}` of the cut model is gone or has changed", "被切分模型的部分 `{file}` 不存在或已改变", file=file),
                say("expected the file that was written beside `{path}`", "应为与 `{path}` 一同写出的文件", path=path.name),
                say("cut the model again with --cut", "请用 --cut 重新切分"),
            )
        model = load(file)
        # Inputs and outputs by the names the chain has for them.
        plain = Interface.named(item["inputs"], item["outputs"])
        parts.append(Part(item["part"], model, plain.changed(item.get("interface", {}))))
        outputs = list(item.get("results", outputs))
    return Chain(tuple(parts), tuple(outputs))


def told_of(manifest: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """What the cut step said, as a manifest has it."""
    for item in manifest.get("cut_parts", ()):
        return list(item.get("cut", ()))
    return ()
