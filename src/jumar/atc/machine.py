"""What this machine says of itself: CANN, driver, firmware, the NPU, and the Python that ATC's operator compiler uses."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..targets import socs

INSTALL_INFO = Path("/etc/ascend_install.info")
"""Where the driver's installer notes its place."""
DEFAULT_ROOT = Path("/usr/local/Ascend")
_LARGEST_INFO = 1 << 20
_QUERY_SECONDS = 20.0
_PYTHON = """
import importlib.metadata as m, json, platform, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = m.version(name)
    except m.PackageNotFoundError:
        found[name] = None
print(json.dumps({"version": platform.python_version(), "packages": found}))
"""


@dataclass(frozen=True)
class Npu:
    """One NPU as ``npu-smi info`` tells it. ``soc`` is the name for --soc, or None where it does not follow."""

    number: int
    name: str
    health: str
    soc: str | None


@dataclass(frozen=True)
class Interpreter:
    """A Python and the versions of some packages in it; None for one that is not there."""

    path: str
    version: str
    packages: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Machine:
    """All that was found."""

    atc: Path | None
    on_path: bool
    set_env: Path | None
    cann: Mapping[str, str]
    driver: Mapping[str, str]
    firmware: Mapping[str, str]
    python: Interpreter | None
    npus: tuple[Npu, ...] | None

    @property
    def driver_version(self) -> str:
        return self.driver.get("package_version") or self.driver.get("Version", "")

    @property
    def firmware_version(self) -> str:
        return self.firmware.get("Version", "")

    @property
    def socs(self) -> tuple[str, ...]:
        """Names for --soc of the NPUs that are there."""
        return tuple(dict.fromkeys(item.soc for item in self.npus or () if item.soc is not None))

    def to_dict(self) -> dict[str, Any]:
        python = self.python
        return {
            "atc": None if self.atc is None else str(self.atc),
            "set_env": None if self.set_env is None else str(self.set_env),
            "cann": self.cann.get("version"),
            "driver": self.driver_version or None,
            "firmware": self.firmware_version or None,
            "python": None if python is None else {"path": python.path, "version": python.version, "packages": dict(python.packages)},
            "npus": None if self.npus is None else [vars(item) for item in self.npus],
            "soc": list(self.socs),
        }


def read_info(path: Path) -> dict[str, str]:
    """``key=value`` lines of a version file; empty where it cannot be read."""
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST_INFO).decode("utf-8", "replace")
    except OSError:
        return {}
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip(): value.strip() for key, equals, value in pairs if equals and key.strip()}


def cann_info(program: Path) -> dict[str, str]:
    """Release (``version``) and inner version of the CANN a program belongs to; empty where it does not say."""
    for folder in list(program.resolve().parents)[:5]:
        for path in _install_files(folder):
            info = read_info(path)
            version = info.get("version") or info.get("Version")
            if version:
                inner = info.get("innerversion") or info.get("Innerversion") or ""
                return {"version": version, "inner": inner, "compatible": info.get("compatible_version", "")}
        for value in read_info(folder / "version.cfg").values():  # [7.6.0.1.220:8.1.RC1]
            match = re.search(r":([\w.]+)\]", value)
            if match is not None:
                return {"version": match[1], "inner": "", "compatible": ""}
    return {}


def _install_files(folder: Path) -> Iterator[Path]:
    yield folder / "ascend_toolkit_install.info"
    for machine in ("aarch64-linux", "x86_64-linux", "arm64-linux"):
        yield folder / machine / "ascend_toolkit_install.info"


def _root() -> Path:
    named = read_info(INSTALL_INFO).get("Driver_Install_Path_Param")
    return Path(named) if named else DEFAULT_ROOT


def driver_info() -> dict[str, str]:
    """The driver's version file."""
    return read_info(_root() / "driver" / "version.info")


def firmware_info() -> dict[str, str]:
    """The firmware's version file."""
    return read_info(_root() / "firmware" / "version.info")


def machine_facts(program: Path) -> dict[str, str]:
    """CANN, driver and firmware as a manifest names them."""
    driver, firmware = driver_info(), firmware_info()
    found = {
        "cann": cann_info(program).get("version", ""),
        "driver": driver.get("package_version") or driver.get("Version", ""),
        "firmware": firmware.get("Version", ""),
    }
    return {name: value for name, value in found.items() if value}


def run_query(command: list[str], environment: Mapping[str, str] | None = None) -> str | None:
    """What a short command prints, or None if it cannot be run or fails."""
    try:
        done = subprocess.run(
            command,
            env=None if environment is None else dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_QUERY_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def npus(environment: Mapping[str, str]) -> list[Npu] | None:
    """The NPUs of this machine; None where there is no ``npu-smi`` or it fails."""
    program = shutil.which("npu-smi", path=environment.get("PATH"))
    text = None if program is None else run_query([program, "info"], environment)
    if program is None or text is None:
        return None
    found = []
    for number, name, health in parse_npu_smi(text):
        soc = soc_of(name)
        if soc is None:
            board = run_query([program, "info", "-t", "board", "-i", str(number), "-c", "0"], environment) or ""
            soc = soc_of_board(board)
        found.append(Npu(number, name, health, soc))
    return found


_ROW = re.compile(r"^\|\s*(\d+)\s+([A-Za-z]?[\w.-]*\w)\s*\|\s*([A-Za-z]+)\s*\|", re.MULTILINE)


def parse_npu_smi(text: str) -> list[tuple[int, str, str]]:
    """Number, name and health of each NPU in the table of ``npu-smi info``."""
    return [(int(number), name, health) for number, name, health in _ROW.findall(text)]


def soc_of(name: str) -> str | None:
    """The soc_version of a chip name: the name itself, or with ``Ascend`` before it (``310P3`` -> ``Ascend310P3``)."""
    known = {item.lower(): item for item in socs()}
    return known.get(name.lower()) or known.get(f"ascend{name}".lower())


def soc_of_board(text: str) -> str | None:
    """The soc_version from ``npu-smi info -t board``: newer chips are named by their chip name and their NPU name."""
    pairs = {key.strip().lower(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}
    chip, npu = pairs.get("chip name", ""), pairs.get("npu name", "")
    joined = soc_of(f"{chip}_{npu}") if npu else None
    return joined or (soc_of(chip) if chip else None)


def interpreter(environment: Mapping[str, str], names: list[str]) -> Interpreter | None:
    """The ``python3`` of an environment, which is the one that ATC's operator compiler is started with."""
    path = shutil.which("python3", path=environment.get("PATH", os.defpath))
    text = None if path is None else run_query([path, "-c", _PYTHON, *names], environment)
    if path is None or text is None:
        return None
    try:
        data: dict[str, Any] = json.loads(text)
        return Interpreter(path, str(data["version"]), dict(data["packages"]))
    except (ValueError, KeyError, TypeError):
        return None


def fits_ranges(version: str, ranges: str) -> bool | None:
    """Whether a version lies in one of ``[7.0.0,7.5.99],[...]``; None where there is nothing to compare."""
    found = re.findall(r"\[([\w.]+),([\w.]+)\]", ranges)
    if not version or not found:
        return None
    return any(_key(low) <= _key(version) and _below(version, high) for low, high in found)


def _below(version: str, high: str) -> bool:
    """``24.1.`` means every 24.1; other ends are compared at their own length."""
    end = _key(high)
    return _key(version)[: len(end)] <= end


def _key(version: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part), "") if part.isdecimal() else (-1, part.lower()) for part in version.strip(".").split("."))


def inner_fits(inner: str, ranges: str) -> bool | None:
    """Whether an inner version (``V100R001C19SPC001B124``) is among ``[V100R001C13],[...]``; None where either says nothing."""
    match = re.match(r"V\d+R\d+C\d+", inner)
    listed = re.findall(r"\[(V\d+R\d+C\d+)\]", ranges)
    return None if match is None or not listed else match[0] in listed
