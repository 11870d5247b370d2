"""The manifest: what a bundle holds, from what, with which versions. Deploy scripts verify it before they load anything."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from .. import __version__
from ..case import Artifact, ModelInfo
from ..targets import Target

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
) -> dict[str, Any]:
    """Everything needed to verify and to reproduce a compile.

    Args:
        source: the model as the user gave it; ``model``: the one that ATC compiles.
        interface: renamed inputs and outputs and changed dtypes.
        atc: path and outcome of the real ATC, or None when it was not run (then no .om exists).
    """
    return {
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
