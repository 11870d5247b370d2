"""What an installed CANN says of itself: its release, and the operator tables of each SoC, vendors' packages included.

Only what lies below the given folder is read. One exception: ``latest`` of a real installation is made of links into the folder of a
release beside it, so that its ``opp`` may lead to a sibling.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..text import say
from .confined import ConfinedFolder, bad_file
from .encode import encode_kernels
from .opsinfo import BadInfoError, Kernels, Kind, read_ops_info
from .versions import is_version

# The layout since CANN 5.1, and the one before.
_ROOTS = ("built-in/op_impl", "op_impl/built-in")
_AICORE_FILE = re.compile(r"aic-[\w.-]+-ops-info[\w.-]*\.json", re.ASCII)
_DSA_FILE = re.compile(r"dsa-[\w.-]+-ops-info[\w.-]*\.json", re.ASCII)
_AICPU_FILE = re.compile(r"aicpu[\w.-]*\.json", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9_][\w.-]{0,99}", re.ASCII)
_AICPU: tuple[tuple[str, Kind], ...] = (
    ("aicpu/aicpu_kernel/config/aicpu_kernel.json", "AICPU"),
    ("aicpu/tf_kernel/config/tf_kernel.json", "AICPU_TF"),
)


@dataclass(frozen=True)
class ImportedTable:
    """The kernels of one kernel folder (``ascend310p``): ``data`` is what is kept, ``counts`` the operators by engine."""

    kernels: str
    data: dict[str, Any]
    counts: dict[str, int]
    vendors: tuple[str, ...]


@dataclass(frozen=True)
class Installation:
    """A CANN that was found: ``opp`` is its operator package; ``inactive`` are vendors that CANN does not load."""

    opp: Path
    cann: str
    folders: tuple[str, ...]
    vendors: tuple[str, ...]
    inactive: tuple[str, ...]
    _files: ConfinedFolder = field(repr=False)

    def tables(self, folders: Iterable[str]) -> Iterator[ImportedTable]:
        """The table of each kernel folder.

        Raises:
            UsageError: a file is not what CANN ships.
        """
        shared = list(self._aicpu())
        for folder in folders:
            yield self._table(folder, shared)

    def _table(self, folder: str, shared: list[tuple[str, Kind, Kernels]]) -> ImportedTable:
        parts = [*self._aicore(folder), *shared]
        table: dict[str, dict[str, Any]] = {}
        for _, kind, kernels in parts:  # vendors first, in their order of priority: the first one wins
            for name, kernel in kernels.items():
                table.setdefault(name, {}).setdefault(kind, kernel)
        vendors = tuple(vendor for vendor in self.vendors if any(vendor == owner and kernels for owner, _, kernels in parts))
        dtypes, ops = encode_kernels(table)
        source = f"from your installation: {self.opp}" + (f", with the operator packages {', '.join(vendors)}" if vendors else "")
        data = {"cann": self.cann, "soc": folder, "source": source, "confidence": "observed", "dtypes": dtypes, "ops": ops}
        counts = {name: sum(letter in engines for engines in ops.values()) for name, letter in _COUNTED}
        return ImportedTable(folder, data, counts, vendors)

    def _aicore(self, folder: str) -> Iterator[tuple[str, Kind, Kernels]]:
        for vendor in self.vendors:
            for root in (f"vendors/{vendor}/op_impl", f"op_impl/{vendor}"):
                for name in self._matching(_AICORE_FILE, f"{root}/ai_core/tbe/config/{folder}"):
                    yield vendor, "AICore", self._read("AICore", name)
        found = False
        for root in _ROOTS:
            for name in self._matching(_AICORE_FILE, f"{root}/ai_core/tbe/config/{folder}"):
                kernels = self._read("AICore", name)
                found = found or bool(kernels)
                yield "", "AICore", kernels
            for name in self._matching(_DSA_FILE, f"{root}/dsa_core/config/{folder}"):
                yield "", "DSA", self._read("DSA", name)
        if not found:
            bad_file(self.opp, say("its tables of {soc} hold no operators", "{soc} 的算子表为空", soc=folder))

    def _aicpu(self) -> Iterator[tuple[str, Kind, Kernels]]:
        for vendor in self.vendors:
            yield vendor, "AICPU", self._read("AICPU", f"vendors/{vendor}/op_impl/cpu/config/cust_aicpu_kernel.json")
        for root in _ROOTS:
            for name, kind in _AICPU:
                yield "", kind, self._read(kind, f"{root}/{name}")
            for name in self._matching(_AICPU_FILE, f"{root}/aicpu/config"):
                yield "", "AICPU", self._read("AICPU", name)

    def _matching(self, pattern: re.Pattern[str], folder: str) -> list[str]:
        return [f"{folder}/{name}" for name in self._files.names(folder) if pattern.fullmatch(name)]

    def _read(self, kind: Kind, name: str) -> Kernels:
        raw = self._files.read(name)
        if raw is None:
            return {}
        try:
            return read_ops_info(raw, kind)
        except BadInfoError as error:
            bad_file(self.opp / name, say("{error}", "{error}", error=str(error)))


_COUNTED = (("aicore", "A"), ("aicpu", "C"), ("aicpu_tf", "T"))


def find_installation(path: str | Path, cann: str | None = None) -> Installation:
    """Look for an installed CANN: ``path`` is its toolkit folder, ``latest``, the folder around them, or ``opp`` itself.

    Args:
        cann: the release, where the installation does not say or says it wrong.

    Raises:
        UsageError: there is none, or it is not one that can be read.
    """
    root = Path(path)
    try:
        is_folder = root.is_dir()
        root = root.resolve()
    except (OSError, RuntimeError, ValueError):
        is_folder = False
    if not is_folder:
        bad_file(root, say("there is no such folder", "没有这个目录"))
    opp = _find_opp(root)
    files = ConfinedFolder(opp)
    names = {name for base in _ROOTS for name in files.names(f"{base}/ai_core/tbe/config")}
    folders = tuple(sorted(name for name in names if _WORD.fullmatch(name) and _has_tables(files, name)))
    if not folders:
        bad_file(opp, say("no aic-*-ops-info.json below it", "其下没有 aic-*-ops-info.json"))
    vendors, inactive = _vendors(files)
    return Installation(opp, _release(root, files, cann), folders, vendors, inactive, files)


def _find_opp(root: Path) -> Path:
    for part in (".", "opp", "latest/opp", "cann/opp", "ascend-toolkit/latest/opp"):
        try:
            found = (root / part).resolve(strict=True)
        except (OSError, RuntimeError):
            continue
        beside = part == "opp" and found.name == "opp" and found.parent.parent == root.parent
        if not beside and not found.is_relative_to(root):
            bad_file(root / part, say("it leads out of the folder, to `{found}`", "它指向目录之外：`{found}`", found=found))
        if any((found / base).is_dir() for base in _ROOTS):
            return found
    return bad_file(root, say("no operator package (`opp/built-in/op_impl`) in it", "其中没有算子包（`opp/built-in/op_impl`）"))


def _has_tables(files: ConfinedFolder, folder: str) -> bool:
    return any(_AICORE_FILE.fullmatch(name) for base in _ROOTS for name in files.names(f"{base}/ai_core/tbe/config/{folder}"))


def _vendors(files: ConfinedFolder) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Operator packages that CANN loads (the first line of ``vendors/config.ini``), by priority, and those it does not."""
    there = [name for name in files.names("vendors") if _WORD.fullmatch(name) and files.names(f"vendors/{name}")]
    raw = files.read("vendors/config.ini")
    line = "" if raw is None else raw.decode("utf-8", "replace").strip().split("\n")[0]
    key, _, value = line.partition("=")
    listed = [word for part in value.split(",") if (word := part.strip())]
    if raw is not None and (key.strip() != "load_priority" or not all(_WORD.fullmatch(word) for word in listed)):
        bad_file(
            files.base / "vendors" / "config.ini", say("its first line is not load_priority=NAME,...", "首行不是 load_priority=名称,...")
        )
    active = [name for name in dict.fromkeys(listed) if name in there]
    # Before vendors/ there was one folder for all custom operators.
    old = ["custom"] if files.names("op_impl/custom") else []
    return (*active, *old), tuple(name for name in there if name not in active)


def _release(root: Path, files: ConfinedFolder, given: str | None) -> str:
    """The release: as given, ``version_dir`` of the operator package, ``version.cfg`` of ``latest``, or the name of the folder."""
    if given is not None:
        words: list[str] = [given]
    else:
        info = (files.read("version.info") or b"").decode("utf-8", "replace")
        words = re.findall(r"^version_dir=\s*(?:cann-)?(\S+)", info, re.MULTILINE)
        for name in ("version.cfg", "latest/version.cfg"):
            config = (ConfinedFolder(root).read(name) or b"").decode("utf-8", "replace")
            words += re.findall(r"^opp_(?:running|installed)_version=\[[^:\]]*:([^\]]+)\]", config, re.MULTILINE)
        words.append(files.base.parent.name.removeprefix("cann-"))
    found = next((word for word in words if is_version(word)), None)
    if found is None:
        raise UsageError(
            say("the CANN release of `{path}` is not known", "无法得知 `{path}` 的 CANN 版本", path=root)
            if given is None
            else say("`{given}` is not a CANN release", "`{given}` 不是 CANN 版本", given=given),
            say("expected one such as 8.1.RC1", "应形如 8.1.RC1"),
            say("give it with --cann", "请用 --cann 给出"),
        )
    return found
