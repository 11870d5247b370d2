"""``jumar doctor --against``: a machine and the files of a bundle, compared with the manifest of the build."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..atc.machine import Machine
from ..case import Finding
from ..errors import UsageError
from ..graph.digest import file_sha256
from ..rules import find_rule
from ..targets.versions import version_key
from ..text import Text, say

_LARGEST_MANIFEST = 16 << 20


def read_manifest(path: Path) -> tuple[dict[str, Any], Path]:
    """The manifest and the folder that its files are in.

    Raises:
        UsageError: there is none, or it is not one of Jumar's.
    """
    file = path / "manifest.json" if path.is_dir() else path
    try:
        if file.stat().st_size > _LARGEST_MANIFEST:
            raise ValueError("larger than 16 MB")
        data = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(data, dict) or not isinstance(data.get("manifest"), int) or not isinstance(data.get("target"), dict):
            raise ValueError("not a manifest of Jumar's")
        if not all(isinstance(item, dict) and isinstance(item.get("path"), str) for item in data.get("files", [])):
            raise ValueError("its list of files is damaged")
    except (OSError, ValueError, RecursionError, TypeError) as error:
        raise UsageError(
            say(
                "manifest `{path}` cannot be read: {error}",
                "无法读取 manifest `{path}`：{error}",
                path=file,
                error=getattr(error, "strerror", None) or str(error)[:200],
            ),
            say("expected the manifest.json of jumar compile or migrate", "应为 jumar compile 或 migrate 写出的 manifest.json"),
            say("correct --against", "请修正 --against"),
        ) from error
    return data, file.parent


def differences(machine: Machine, manifest: Mapping[str, Any], folder: Path) -> list[Finding]:
    """How a machine and the files of a bundle differ from what the manifest says of the build (EV806, EV808)."""
    target, built = manifest["target"], manifest.get("machine") or {}
    found = []
    soc = str(target.get("soc", ""))
    if machine.socs and soc not in machine.socs:
        found.append(
            _differs(
                "error",
                say(
                    "it was built for {soc}; the NPU here is {here}",
                    "构建目标为 {soc}；本机 NPU 为 {here}",
                    soc=soc,
                    here=", ".join(machine.socs),
                ),
                say("the device refuses an .om of another SoC (507008)", "设备会拒绝加载其他 SoC 的 .om（507008）"),
                say("compile again with --soc {here}", "请用 --soc {here} 重新编译", here=machine.socs[0]),
            )
        )
    found += _release_difference(machine.cann.get("version", ""), str(built.get("cann", "")), str(target.get("cann", "")))
    driver = str(built.get("driver", ""))
    if driver and machine.driver_version and driver != machine.driver_version:
        found.append(
            _differs(
                "info",
                say(
                    "it was built with driver {built}; here is {here}",
                    "构建时驱动为 {built}；本机为 {here}",
                    built=driver,
                    here=machine.driver_version,
                ),
                say("results should not differ; speed may", "结果不应不同；速度可能不同"),
                say("measure again", "请重新测量"),
            )
        )
    found += _changed_files(manifest, folder)
    return found


def _release_difference(here: str, built: str, target: str) -> list[Finding]:
    if here and built and version_key(here) != version_key(built):
        older = version_key(here) < version_key(built)
        return [
            _differs(
                "error" if older else "warning",
                say("the .om was made by CANN {built}; here is {here}", ".om 由 CANN {built} 生成；本机为 {here}", built=built, here=here),
                say("an older run time may not load what a newer ATC made", "较旧的运行时可能无法加载较新 ATC 生成的文件")
                if older
                else say(
                    "a newer run time loads it as a rule, and may compute faster or differently",
                    "较新的运行时通常可以加载，但速度或数值可能不同",
                ),
                say("compile again here, or install CANN {built}", "请在本机重新编译，或安装 CANN {built}", built=built),
            )
        ]
    if here and not built and target and version_key(here) != version_key(target):
        return [
            _differs(
                "warning",
                say(
                    "the model was judged for CANN {target}; here is {here}",
                    "模型按 CANN {target} 检查；本机为 {here}",
                    target=target,
                    here=here,
                ),
                say("operators and their limits differ among releases", "不同版本支持的算子及限制不同"),
                say("check again with --cann {here}", "请用 --cann {here} 重新检查", here=here),
            )
        ]
    return []


def _changed_files(manifest: Mapping[str, Any], folder: Path) -> list[Finding]:
    changed = []
    for item in manifest.get("files", []):
        path = folder / item["path"]
        try:  # a manifest of strangers must not make this read devices, or files elsewhere
            inside = path.resolve().is_relative_to(folder.resolve()) and path.is_file()
            same = inside and (item.get("sha256") is None or file_sha256(path) == item["sha256"])
        except (OSError, ValueError):
            same = False
        if not same:
            changed.append(item["path"])
    if not changed:
        return []
    return [
        find_rule("EV808").finding(
            say(
                "{count} files are not those of the build: {names}",
                "{count} 个文件与构建时不同：{names}",
                count=len(changed),
                names=", ".join(changed[:5]),
            ),
            say("their SHA-256 differs from the manifest's, or they are missing", "其 SHA-256 与 manifest 不符，或文件缺失"),
            say("copy the bundle again", "请重新复制 bundle"),
        )
    ]


def _differs(severity: Any, message: Text, why: Text, remedy: Text) -> Finding:
    return find_rule("EV806").finding(message, why, remedy, severity=severity)
