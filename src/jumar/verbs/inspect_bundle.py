"""``jumar inspect`` of a bundle: its manifest, and whether the files are still those it names."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from ..case import Record
from ..errors import ModelError
from ..om import looks_like_om
from ..om import read as read_om
from ..om.read import digest
from ..reports.table import table_lines
from ..text import Text, say
from .inspect_om import om_notes, one_line

MANIFEST = "manifest.json"
_LARGEST = 64 << 20  # bytes of a manifest
_STATES = {
    "intact": say("intact", "完好"),
    "changed": say("changed", "已改变"),
    "missing": say("missing", "缺失"),
    "not hashed": say("there, not hashed", "存在，未记录摘要"),
    "outside": say("outside the bundle, not looked at", "在 bundle 之外，未检查"),
}


def inspect_bundle(folder: Path, operators: bool) -> Record:
    """The manifest of a bundle, the state of each file it names, and the .om in it if there is one.

    ``data`` has ``manifest`` as it is, ``files`` (``path``, ``state``: intact, changed, missing, not hashed, outside) and ``om``.

    Raises:
        ModelError: the directory has no manifest, or an unreadable one.
    """
    manifest = _manifest(folder)
    files = [_state(folder, item) for item in _items(manifest.get("files"))]
    notes: list[Text] = [say("{path}: a bundle", "{path}：bundle 目录", path=folder)]
    target = manifest.get("target")
    if isinstance(target, dict):
        notes.append(
            say(
                "target: {target}",
                "目标：{target}",
                target=", ".join(f"{key} {target[key]}" for key in ("soc", "cann", "opset_max") if key in target),
            )
        )
    notes.append(say("made by Jumar {version}", "由 Jumar {version} 生成", version=manifest.get("jumar", "-")))
    command = manifest.get("command")
    if isinstance(command, list):
        notes.append(say("command line: {command}", "命令行：{command}", command=shlex.join(map(str, command))))
    notes.append(say("Files", "文件"))
    notes += table_lines([(item["path"], _STATES[item["state"]]) for item in files] or [("-", "")])
    om = None
    for item in files:
        path = folder / item["path"]
        if item["state"] in ("intact", "changed", "not hashed") and path.suffix == ".om" and looks_like_om(path):
            om = read_om(path)
            notes += [say("{path}", "{path}", path=item["path"]), *om_notes(om, operators)]
            break
    data = {"kind": "bundle", "path": str(folder), "manifest": manifest, "files": files, "om": None if om is None else om.to_dict()}
    return Record(verb="inspect", notes=tuple(map(one_line, notes)), data=data)


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST

    def bad(found: Text) -> ModelError:
        return ModelError(
            found,
            say("expected a bundle of `jumar compile` or `jumar migrate`", "应为 `jumar compile` 或 `jumar migrate` 生成的 bundle"),
            say("name the bundle, or a file", "请指定 bundle 目录或文件"),
        )

    if not path.is_file():
        raise bad(say("the directory `{path}` has no {name}", "目录 `{path}` 中没有 {name}", path=folder, name=MANIFEST))
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError("too large")
        # Python's parser takes NaN, which the report could not write again.
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except (OSError, ValueError, RecursionError) as error:
        raise bad(say("`{path}` cannot be read: {error}", "无法读取 `{path}`：{error}", path=path, error=str(error)[:200])) from error
    if not isinstance(found, dict):
        raise bad(say("`{path}` holds no manifest", "`{path}` 中没有 manifest", path=path))
    return found


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _items(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict) and isinstance(item.get("path"), str)] if isinstance(value, list) else []


def _state(folder: Path, item: dict[str, Any]) -> dict[str, str]:
    """Whether a file is there and has its digest. A name that leads out of the bundle is not followed."""
    name, wanted = item["path"], item.get("sha256")
    try:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()):
            state = "outside"
        elif not path.is_file():
            state = "missing"
        elif not isinstance(wanted, str):
            state = "not hashed"
        else:
            state = "intact" if digest(path) == wanted else "changed"
    except (OSError, ValueError):
        state = "missing"
    return {"path": name, "state": state}
