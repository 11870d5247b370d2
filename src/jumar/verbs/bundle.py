"""A bundle directory under construction: staged work that survives a kill, and one move into place at the end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from .. import __version__
from ..case import Artifact, Record
from ..errors import OutputError, UsageError
from ..graph import write_atomic
from ..graph.digest import file_sha256
from ..reports import html_report, json_report
from ..text import Lang, Text, say

MODEL_FILE = "model.onnx"
_STATE = ".jumar"


@dataclass
class Bundle:
    """A bundle under construction: ``partial`` beside ``final``, with the state of each finished stage."""

    final: Path
    partial: Path

    @classmethod
    def open(cls, final: Path, resume: bool) -> Bundle:
        final = final.resolve()
        partial = final.parent / f".{final.name}.partial"
        is_bundle = (final / _STATE).is_dir()
        if final.exists() and not (resume and is_bundle) and not (final.is_dir() and not any(final.iterdir())):
            what: Text = say("`{path}` exists already", "`{path}` 已存在", path=final)
            if resume and not is_bundle:
                what = say("`{path}` exists and is no bundle of Jumar's", "`{path}` 已存在且不是 Jumar 的 bundle", path=final)
            raise UsageError(
                what,
                say("expected a new place", "应为新的位置"),
                say(
                    "choose another -o, or pass --resume to redo what changed in a bundle",
                    "请更换 -o，或用 --resume 只重做 bundle 中有变化的部分",
                ),
            )
        try:
            if partial.exists() and not resume:
                shutil.rmtree(partial)
            (partial / _STATE).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(
                say("`{path}` cannot be written: {error}", "无法写入 `{path}`：{error}", path=final, error=error.strerror),
                say("expected a writable place", "应为可写的位置"),
                say("choose another -o", "请更换 -o"),
            ) from error
        return cls(final, partial)

    def discard(self) -> None:
        """Leave nothing behind of a run that could not even begin; finished stages stay for ``--resume``."""
        if not any((self.partial / _STATE).glob("*.json")):
            shutil.rmtree(self.partial, ignore_errors=True)

    def path(self, name: str) -> Path:
        return self.partial / name

    def stage(self, name: str, inputs: Any, work: Callable[[], Record]) -> Record:
        """The record of a stage: taken from an earlier run if its inputs are the same and its files are intact, else made.

        A failure of ATC is not kept: memory, time limit or licence may be better next time.
        """
        key = sha256(json.dumps([__version__, name, inputs], sort_keys=True, default=str).encode()).hexdigest()
        for folder in (self.partial, self.final):
            record = _finished(folder, name, key)
            if record is not None:
                for item in record.artifacts:
                    if folder != self.partial:
                        shutil.copy2(folder / item.path, self.partial / item.path)
                self._keep(name, key, record)
                return record
        record = work()
        if not any(finding.code == "CP701" for finding in record.findings):
            self._keep(name, key, record)
        return record

    def _keep(self, name: str, key: str, record: Record) -> None:
        write_atomic(
            self.partial / _STATE / f"{name}.json", json.dumps({"key": key, "record": record.to_dict(lang=None)}, ensure_ascii=False)
        )

    def finish(self, record: Record, lang: Lang) -> Record:
        """Write the reports and move the bundle to its place."""
        wanted = {_STATE, *(item.path for item in record.artifacts)}
        for entry in self.partial.iterdir():
            if entry.name not in wanted:  # left by an earlier run that ended otherwise
                _remove(entry)
        write_atomic(self.path("report.html"), html_report(record, lang))
        record = record.extend(artifacts=(Artifact("report.html", file_sha256(self.path("report.html")), "report"),))
        write_atomic(self.path("report.json"), json_report(record, lang))
        old = self.final.parent / f".{self.final.name}.old"
        try:
            if self.final.exists():
                # Whatever else the user keeps in the bundle stays there, also what an earlier run was killed before it carried over.
                if old.exists():
                    _carry_over(old, self.final)
                    shutil.rmtree(old)
                self.final.rename(old)
            self.partial.rename(self.final)
            if old.exists():
                _carry_over(old, self.final)
                shutil.rmtree(old, ignore_errors=True)
        except OSError as error:
            raise OutputError(
                say("`{path}` cannot be written: {error}", "无法写入 `{path}`：{error}", path=self.final, error=error.strerror)
            ) from error
        return record


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry, ignore_errors=True)
    else:
        entry.unlink()


def _finished(folder: Path, name: str, key: str) -> Record | None:
    """A stage's record in ``folder`` if it has this key and every file it made has the digest it had."""
    try:
        state = json.loads((folder / _STATE / f"{name}.json").read_text(encoding="utf-8"))
        if state["key"] != key:
            return None
        record = Record.from_dict(state["record"])
        intact = all(file_sha256(folder / item.path) == item.sha256 for item in record.artifacts)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return record if intact else None


def _carry_over(old: Path, new: Path) -> None:
    """Move files of the user's from the old bundle; Jumar's own are named by the old report."""
    try:
        report = json.loads((old / "report.json").read_text(encoding="utf-8"))
        ours = {item["path"] for item in report["artifacts"]}
    except (OSError, ValueError, KeyError, TypeError):
        ours = set()
    ours |= {_STATE, "report.json", "report.html", MODEL_FILE, f"{MODEL_FILE}.data", "compile.sh", "manifest.json", "atc.log", "model.om"}
    for entry in old.iterdir():
        if entry.name not in ours and not (new / entry.name).exists():
            shutil.move(str(entry), str(new / entry.name))
