"""The manifest: what a bundle holds, from what, with which versions. Deploy scripts verify it before they load anything."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from .. import __version__
from ..case import Artifact, ModelInfo, Step
from ..graph.digest import file_sha256
from ..targets import Target
from .machine import machine_facts

MANIFEST_SCHEMA = 1
_PACKAGES = ("numpy", "onnx", "onnx-ir", "onnxruntime")


def build_manifest(
    target: Target,
    command: Sequence[str],
    files: Sequence[Artifact],
    *,
    source: ModelInfo | None,
    model: ModelInfo,
    interface: Mapping[str, Any],
    atc: Mapping[str, Any] | None,
    builds: Sequence[Mapping[str, Any]] = (),
    steps: Sequence[Step] = (),
    aipp: Path | None = None,
    aipp_blocks: Sequence[Mapping[str, Any]] = (),
    program: Path | None = None,
) -> dict[str, Any]:
    """Everything needed to verify and to reproduce a compile.

    Args:
        source: the model as the user gave it; ``model``: the one that ATC compiles.
        interface: renamed inputs and outputs and changed dtypes; what the host must cast follows from it.
        atc: path and outcome of the real ATC, or None when it was not run (then no .om exists).
        builds: for each .om its flags and gears, where there is more to tell than ``command``.
        steps: what was done to the model before; their assumptions, what they give up, and cuts are told.
        aipp: the preprocessing that is inserted; ``aipp_blocks``: what each of its blocks takes and gives.
        program: the ATC that was run, whose CANN, driver and firmware are told.
    """
    data: dict[str, Any] = {
        "manifest": MANIFEST_SCHEMA,
        "jumar": __version__,
        "target": target.to_dict(),
        "source": None if source is None else source.to_dict(),
        "model": model.to_dict(),
        "interface": dict(interface),
        "command": list(command),
        "atc": None if atc is None else dict(atc),
        "versions": {"python": platform.python_version(), **{name: metadata.version(name) for name in _PACKAGES}},
        "files": [item.to_dict() for item in files],
    }
    optional: dict[str, Any] = {
        "builds": [dict(item) for item in builds],
        "aipp": None
        if aipp is None
        else {"path": aipp.name, "sha256": file_sha256(aipp), **({"blocks": list(aipp_blocks)} if aipp_blocks else {})},
        "host_casts": host_casts(interface),
        "assumptions": told_of_steps(steps, "assumptions"),
        "accepted": told_of_steps(steps, "accepted"),
        "one_step": told_of_steps(steps, "one_step"),
        "cut_parts": told_of_steps(steps, "cut"),
        "quantization": told_of_steps(steps, "quantization"),
        "machine": None if program is None or atc is None else machine_facts(program),
    }
    # What is not there is left out: the smallest manifest stays readable.
    return {**data, **{name: value for name, value in optional.items() if value}}


def host_casts(interface: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """What the host must convert: inputs before a run, outputs after it."""
    found: dict[str, list[dict[str, Any]]] = {}
    for side in ("inputs", "outputs"):
        for port in interface.get(side, ()):
            if port.get("original_dtype") != port.get("dtype"):
                pair = (port["original_dtype"], port["dtype"])
                start, end = pair if side == "inputs" else pair[::-1]
                found.setdefault(side, []).append({"name": port["name"], "from": start, "to": end})
    return found


def told_of_steps(steps: Sequence[Step], key: str) -> list[dict[str, Any]]:
    """What the steps that changed the model rest on, give up, or cut away."""
    return [
        {"code": step.code, "step": step.name, key: step.options[key]}
        for step in steps
        if step.status != "rolled-back" and step.options.get(key)
    ]
