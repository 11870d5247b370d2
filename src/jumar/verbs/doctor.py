"""``jumar doctor``: what of this machine ATC and the NPU will stumble over, and how it differs from the machine of a build."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import __version__
from ..atc.machine import Machine, cann_info, driver_info, firmware_info, fits_ranges, inner_fits, interpreter, npus
from ..atc.toolchain import find_atc, find_set_env, find_tool, searched_places, tool_environment
from ..case import Finding, Record
from ..rules import find_rule
from ..targets.tables import table
from ..text import Text, say
from .doctor_build import differences, read_manifest


def doctor(*, against: str | Path | None = None) -> Record:
    """Report this machine: ATC, CANN's environment, driver and firmware, the NPU and its name, Python packages.

    Args:
        against: a ``manifest.json`` (or the folder that holds it): compare with the machine and the files of that build.

    Returns:
        A record with findings (EV801 to EV808), notes that say what was found, and the same as ``data["machine"]``.

    Raises:
        UsageError: the manifest cannot be read.
    """
    manifest = None if against is None else read_manifest(Path(against))
    machine = look()
    findings = [*_toolchain_findings(machine), *_python_findings(machine), *_version_findings(machine), *_npu_findings(machine)]
    if manifest is not None:
        findings += differences(machine, *manifest)
    rank = {"error": 0, "warning": 1, "info": 2}
    ordered = tuple(sorted(findings, key=lambda item: (rank[item.severity], item.code)))
    return Record(
        verb="doctor", findings=ordered, notes=tuple(_notes(machine)), data={"machine": {**machine.to_dict(), "jumar": __version__}}
    )


def look() -> Machine:
    """Find out about this machine."""
    atc = find_atc()
    environment = tool_environment(atc or Path("atc"))
    names = list(dict.fromkeys(item["name"] for item in table("environment.json")["packages"]))
    found = npus(environment)
    return Machine(
        atc,
        shutil.which("atc") is not None,
        find_set_env(),
        {} if atc is None else cann_info(atc),
        driver_info(),
        firmware_info(),
        interpreter(environment, names),
        None if found is None else tuple(found),
    )


def _notes(machine: Machine) -> list[Text]:
    unknown, absent = say("unknown", "未知"), say("none", "无")
    python = machine.python
    lines = [
        say("atc: {path}", "atc 路径：{path}", path=machine.atc or absent),
        say("CANN: {version}", "CANN 版本：{version}", version=machine.cann.get("version") or (absent if machine.atc is None else unknown)),
        say(
            "driver: {driver}; firmware: {firmware}",
            "驱动：{driver}；固件：{firmware}",
            driver=machine.driver_version or absent,
            firmware=machine.firmware_version or absent,
        ),
    ]
    if find_tool("aoe") is not None:
        lines.append(say("aoe: {path}", "aoe 路径：{path}", path=find_tool("aoe")))
    if python is not None:
        lines.append(
            say(
                "python of ATC's operator compiler: {path} ({version})",
                "ATC 算子编译器使用的 python：{path}（{version}）",
                path=python.path,
                version=python.version,
            )
        )
    lines += [say("the NPU here is compiled for with --soc {soc}", "本机 NPU 编译时使用 --soc {soc}", soc=soc) for soc in machine.socs]
    if machine.npus is None:
        lines.append(say("no npu-smi that answers: an NPU of this machine is not known", "npu-smi 不存在或没有应答：不知道本机的 NPU"))
    return lines


def _toolchain_findings(machine: Machine) -> list[Finding]:
    if machine.atc is None:
        places = ", ".join(searched_places())
        return [
            find_rule("EV803").finding(
                say("no atc in {places}", "在 {places} 中没有 atc", places=places),
                say("no .om can be made here", "本机无法生成 .om"),
                say(
                    "install the CANN toolkit, or run compile.sh of a bundle elsewhere",
                    "请安装 CANN 工具包，或在其他机器上运行 bundle 中的 compile.sh",
                ),
            )
        ]
    if machine.on_path:
        return []
    script = machine.set_env
    return [
        find_rule("EV804").finding(
            say("atc is at {path}, but not on PATH", "atc 位于 {path}，但不在 PATH 中", path=machine.atc),
            say("the environment of CANN is not set in this shell", "当前 shell 未设置 CANN 环境变量"),
            say("source {script}", "请执行 source {script}", script=script)
            if script is not None
            else say("source the set_env.sh of the installation", "请 source 安装目录中的 set_env.sh"),
        )
    ]


def _python_findings(machine: Machine) -> list[Finding]:
    python = machine.python
    if python is None:
        return []
    # Without a CANN here its demands concern nobody.
    severity: Any = "warning" if machine.atc is not None else "info"
    found = []
    missing = [name for name, version in python.packages.items() if version is None]
    if missing:
        found.append(
            find_rule("EV801").finding(
                say("{path} lacks {names}", "{path} 缺少 {names}", path=python.path, names=", ".join(missing)),
                say("CANN's operator compiler imports them", "CANN 的算子编译器会导入这些包"),
                say("run {path} -m pip install {names}", "请运行 {path} -m pip install {names}", path=python.path, names=" ".join(missing)),
                severity=severity,
            )
        )
    release = machine.cann.get("version", "")
    for item in table("environment.json")["packages"]:
        version = python.packages.get(item["name"])
        if version is not None and _breaks(item, version, python.version, release):
            wanted = f"<{item['below']}" if "below" in item else f">={item['least']}"
            why = Text(item["en"], item["zh"]) if "en" in item else say("CANN asks for {wanted}", "CANN 要求 {wanted}", wanted=wanted)
            found.append(
                find_rule("EV802").finding(
                    say(
                        "{name} {version} in {path}",
                        "{path} 中的 {name} 为 {version}",
                        name=item["name"],
                        version=version,
                        path=python.path,
                    ),
                    why,
                    say(
                        'run {path} -m pip install "{name}{wanted}"',
                        '请运行 {path} -m pip install "{name}{wanted}"',
                        path=python.path,
                        name=item["name"],
                        wanted=wanted,
                    ),
                    severity=severity,
                    evidence=(item["source"],),
                )
            )
    return found


def _breaks(item: Mapping[str, str], version: str, python: str, release: str) -> bool:
    """Whether a demand concerns this machine and is not met."""
    if "before" in item and release and _number(release) >= _number(item["before"]):
        return False
    if "python_below" in item and _number(python) >= _number(item["python_below"]):
        return False
    return ("below" in item and _number(version) >= _number(item["below"])) or (
        "least" in item and _number(version) < _number(item["least"])
    )


def _number(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, without zeros at the end (``8.1.RC1`` -> 8, 1)."""
    found = re.match(r"\d{1,9}(?:\.\d{1,9})*", version)
    parts = [] if found is None else [int(part) for part in found[0].split(".")]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def _version_findings(machine: Machine) -> list[Finding]:
    """What the version files of driver, firmware and CANN say of each other."""
    driver, cann = machine.driver, machine.cann
    pairs = [
        (
            say("driver {a} and firmware {b}", "驱动 {a} 与固件 {b}", a=machine.driver_version, b=machine.firmware_version),
            fits_ranges(machine.firmware_version, driver.get("compatible_version_fw", "")),
        ),
        (
            say("CANN {a} and driver {b}", "CANN {a} 与驱动 {b}", a=cann.get("version", ""), b=machine.driver_version),
            _either(
                inner_fits(cann.get("inner", ""), driver.get("compatible_version", "")),
                inner_fits(driver.get("Innerversion", ""), cann.get("compatible", "")),
            ),
        ),
    ]
    return [
        find_rule("EV805").finding(
            say("{what} do not name each other as compatible", "{what} 的兼容版本声明中没有对方", what=what),
            say("their own version files list which versions go together", "各自的版本文件列出了可配套的版本"),
            say("install versions of one release", "请安装同一版本配套的软件"),
        )
        for what, fits in pairs
        if fits is False
    ]


def _either(one: bool | None, other: bool | None) -> bool | None:
    return True if True in (one, other) else False if False in (one, other) else None


def _npu_findings(machine: Machine) -> list[Finding]:
    return [
        find_rule("EV807").finding(
            say(
                "NPU {number} ({name}) reports {health}",
                "NPU {number}（{name}）状态为 {health}",
                number=item.number,
                name=item.name,
                health=item.health,
            ),
            say("npu-smi calls a healthy one OK", "npu-smi 对正常设备显示 OK"),
            say("see npu-smi info -t health -i {number}", "请查看 npu-smi info -t health -i {number}", number=item.number),
        )
        for item in machine.npus or ()
        if item.health.upper() != "OK"
    ]


__all__ = ["doctor", "look"]
