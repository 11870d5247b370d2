"""Whether a compiled model fits a target, judged before anything loads it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..errors import TargetError
from ..targets import Target, soc_info
from ..text import say
from .model import OmFile

if TYPE_CHECKING:
    from ..case import Finding

_RELEASE = re.compile(r"(?:ascend-toolkit/|/cann-|/CANN-|/cann/)(\d+\.\d+(?:\.\d+)*(?:[.-]?(?:RC|alpha|beta)\.?\d+)*)", re.IGNORECASE)
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
_TAG = re.compile(r"[.-]?(rc|alpha|beta)\.?(\d+)")
_RANK = {"alpha": 0, "beta": 1, "rc": 2}
_FINAL = (3, 0)

Order = tuple[tuple[int, int, int], tuple[tuple[int, int], ...]]


def check_fits(om: OmFile, target: Target) -> list[Finding]:
    """Findings on the SoC and the CANN release that a file was compiled for; none means that both fit as far as the file says.

    An error (CP710, CP712) means: do not load it. What the file does not state is a finding too (CP711, CP713). Only ``target.soc`` and
    ``target.cann`` count.
    """
    return [*_soc(om, target), *_release(om, target)]


def release_of(om: OmFile) -> str | None:
    """The CANN release that compiled it, where the path of ``atc`` in its command line names one (``8.1.RC1``)."""
    found = _RELEASE.search(om.command_line or "")
    return None if found is None else found[1]


def _soc(om: OmFile, target: Target) -> list[Finding]:
    from ..rules import find_rule

    names = om.soc_versions()
    wanted = target.soc
    if not names:
        kind = om.target_type
        return [
            find_rule("CP711").finding(
                say(
                    "the file does not name its SoC{kind}", "文件没有写明 SoC{kind}", kind="" if kind is None else f" (target_type {kind})"
                ),
                say("whether its kernels run on {soc} cannot be told", "无法判断其算子能否在 {soc} 上运行", soc=wanted.name),
                say("find the --soc_version it was compiled with, or compile it again", "请查明编译时的 --soc_version，或重新编译"),
            )
        ]
    findings = []
    for name in names:
        if name.lower() == wanted.name.lower():
            continue
        short = _short(name)
        if short is None:
            why = say(
                "{name} is no SoC that Jumar knows, so it may be another name of the same chip",
                "Jumar 不认识 {name}，它可能是同一芯片的另一个名称",
                name=name,
            )
        elif short == wanted.short:
            why = say(
                "both are {short}, but they differ in cores or memory, and no public document says that the file is taken",
                "两者同属 {short}，但核数或内存不同，没有公开文档说明该文件可用",
                short=short,
            )
        else:
            why = say(
                "{name} is another chip ({short}) with other kernels", "{name} 是另一种芯片（{short}），算子不同", name=name, short=short
            )
        findings.append(
            find_rule("CP710").finding(
                say(
                    "the file was compiled for {name}, the target is {soc}", "文件为 {name} 编译，目标是 {soc}", name=name, soc=wanted.name
                ),
                why,
                say("compile the model again with --soc_version={soc}", "请用 --soc_version={soc} 重新编译模型", soc=wanted.name),
                severity="error" if short is not None and short != wanted.short else "warning",
            )
        )
    return findings


def _short(name: str) -> str | None:
    """The chip of a soc_version; None where Jumar does not know the name."""
    try:
        return soc_info(name).short
    except TargetError:
        return None


def _release(om: OmFile, target: Target) -> list[Finding]:
    from ..rules import find_rule

    release = release_of(om)
    made, there = _order(release or ""), _order(target.cann)
    if made is None or there is None:
        version = release or om.atc_version or "-"
        return [
            find_rule("CP713").finding(
                say(
                    "compiled by ATC {version}; the target has CANN {cann}",
                    "由 ATC {version} 编译；目标为 CANN {cann}",
                    version=version,
                    cann=target.cann,
                ),
                say("no public table orders these two versions", "没有公开的表说明这两个版本的先后"),
                say("compile with the CANN that the device has", "请用设备上的 CANN 版本编译"),
            )
        ]
    if made <= there:
        return []
    return [
        find_rule("CP712").finding(
            say(
                "compiled by CANN {made}; the target has CANN {cann}",
                "由 CANN {made} 编译；目标为 CANN {cann}",
                made=release,
                cann=target.cann,
            ),
            say("an older runtime need not know what a newer ATC writes", "旧的运行时不一定认识新 ATC 写出的内容"),
            say(
                "compile the model again with CANN {cann}, or update the device",
                "请用 CANN {cann} 重新编译模型，或升级设备",
                cann=target.cann,
            ),
            evidence=(f"atc_cmdline: {(om.command_line or '').split(' ')[0]}",),
        )
    ]


def _order(version: str) -> Order | None:
    """A key by which releases can be compared: ``8.1.RC1.alpha001`` < ``8.1.RC1`` < ``8.1.0``; None for a name without numbers first."""
    numbers = _NUMBERS.match(version)
    if numbers is None:
        return None
    parts = [int(part) for part in numbers[0].split(".")]
    tags = [(_RANK[tag], int(number)) for tag, number in _TAG.findall(version[numbers.end() :].lower())]
    major, minor, patch = (*parts, 0, 0)[:3]
    return (major, minor, patch), (*tags, _FINAL)
