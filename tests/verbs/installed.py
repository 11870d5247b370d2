"""A small installation of CANN as it lies on a disk, for tests of the import."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ADD = {
    "attr": {"list": "mode"},
    "attr_mode": {"type": "str", "value": "all", "paramType": "optional", "defaultValue": "none"},
    "dynamicShapeSupport": {"flag": "true"},
    "dynamicCompileStatic": {"flag": "true"},
    "input0": {"name": "x1", "dtype": "float16,float,int32", "format": "ND,ND,ND", "paramType": "required", "shape": "all"},
    "input1": {"name": "x2", "dtype": "float16,float,int32", "format": "ND,ND,ND", "paramType": "required", "shape": "all"},
    "output0": {"name": "y", "dtype": "float16,float,int32", "format": "ND,ND,ND", "paramType": "required", "shape": "all"},
    "opFile": {"value": "add"},
    "slicePattern": {"value": "elemwiseBroadcast"},
}
RELU = {
    "dynamicShapeSupport": {"flag": "true"},
    "dynamicFormat": {"flag": "false"},
    "needCheckSupport": {"flag": "false"},
    "input0": {"name": "x", "dtype": "float16,float", "paramType": "required"},
    "op": {"pattern": "formatAgnostic"},
    "output0": {"name": "y", "dtype": "float16,float", "paramType": "required"},
}
ERF = {
    "input0": {"name": "x", "type": "DT_FLOAT,DT_FLOAT16"},
    "opInfo": {"engine": "DNN_VM_AICPU", "kernelSo": "libcpu_kernels.so", "opKernelLib": "AICPUKernel", "userDefined": "False"},
    "output0": {"name": "y", "type": "DT_FLOAT,DT_FLOAT16"},
}
CONCAT_TF = {
    "dynamic_input0": {"name": "x", "type": "DT_FLOAT"},
    "opInfo": {"engine": "DNN_VM_AICPU", "opKernelLib": "TFKernel"},
    "output0": {"name": "y", "type": "DT_FLOAT"},
}
AICORE = "built-in/op_impl/ai_core/tbe/config"
AICPU = "built-in/op_impl/aicpu"


def write(path: Path, content: Mapping[str, Any] | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=4), encoding="utf-8")
    return path


def aicore_file(opp: Path, soc: str, root: str = AICORE) -> Path:
    return opp / root / soc / f"aic-{soc}-ops-info.json"


def install(
    folder: Path,
    cann: str = "8.2.RC1",
    tables: Mapping[str, Mapping[str, Any]] | None = None,
    aicpu: Mapping[str, Any] | None = None,
) -> Path:
    """``ascend-toolkit`` in ``folder``, with a release and ``latest`` made of links; returns its ``opp``."""
    toolkit = folder / "ascend-toolkit"
    opp = toolkit / cann / "opp"
    for soc, ops in (tables or {"ascend310p": {"Add": ADD, "Relu": RELU}, "ascend910b": {"Add": ADD}}).items():
        write(aicore_file(opp, soc), ops)
    write(opp / AICPU / "aicpu_kernel/config/aicpu_kernel.json", {"Erf": ERF} if aicpu is None else aicpu)
    write(opp / AICPU / "tf_kernel/config/tf_kernel.json", {"ConcatV2": CONCAT_TF})
    write(opp / "version.info", f"Version=7.8.0.1.100\nversion_dir={cann}\ntimestamp=20250731_000000000\n")
    latest = toolkit / "latest"
    latest.mkdir(exist_ok=True)
    write(latest / "version.cfg", f"# version: 1.0\nopp_running_version=[7.8.0.1.100:{cann}]\n")
    (latest / "opp").symlink_to(Path("..") / cann / "opp")
    return opp
