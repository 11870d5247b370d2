"""Whether a compiled model fits a target."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jumar.om import OmFile, OmModel, check_fits, release_of
from jumar.om.model import Header
from jumar.targets import Target, find_target

HEADER = Header(2, "0x20000000", "IR", True, 1, "net", 2, "", 1, 0, False, False)
ATC = "/usr/local/Ascend/ascend-toolkit/{}/bin/atc --model=a.onnx"


def om(soc: str | None = "Ascend310P3", release: str | None = "8.1.RC1", atc: str = "7.6.0.1.220") -> OmFile:
    attributes = {"atc_version": atc, "target_type": "MINI"}
    attributes |= {} if soc is None else {"soc_version": soc}
    attributes |= {} if release is None else {"atc_cmdline": ATC.format(release)}
    return OmFile(HEADER, (OmModel("net", attributes, (), (), (), None, (), (), ()),))


@pytest.fixture
def target() -> Target:
    return find_target("Ascend310P3", cann="8.1.RC1")


def codes(file: OmFile, target: Target) -> list[tuple[str, str]]:
    return [(finding.code, finding.severity) for finding in check_fits(file, target)]


def test_a_fitting_file_has_no_finding(target: Target) -> None:
    assert codes(om(), target) == []
    assert codes(om(soc="ascend310p3", release="7.0.0"), target) == []


@pytest.mark.parametrize(
    ("soc", "severity"), [("Ascend310", "error"), ("Ascend910B1", "error"), ("Ascend310P1", "warning"), ("Ascend710", "warning")]
)
def test_another_soc(soc: str, severity: str, target: Target) -> None:
    """Another chip is refused; a member of the same family and a name that nobody knows are not passed in silence."""
    assert codes(om(soc=soc), target) == [("CP710", severity)]
    [finding] = check_fits(om(soc=soc), target)
    assert soc in finding.message.render("zh") and "--soc_version=Ascend310P3" in str(finding.remedy)


def test_no_soc(target: Target) -> None:
    assert codes(om(soc=None), target) == [("CP711", "warning")]
    assert "MINI" in str(check_fits(om(soc=None), target)[0].message)


def test_every_image_counts(target: Target) -> None:
    both = replace(om(), images=(om(soc="Ascend310"),))
    assert codes(both, target) == [("CP710", "error")]


@pytest.mark.parametrize(
    ("release", "cann", "found"),
    [
        ("8.1.RC1", "8.0.0", [("CP712", "error")]),
        ("8.1.RC1", "8.1.RC1", []),
        ("8.1.RC1.alpha001", "8.1.RC1", []),
        ("8.1.RC2", "8.1.RC1", [("CP712", "error")]),
        ("8.1.0", "8.1.RC1", [("CP712", "error")]),
        ("5.0.4.alpha002", "8.1.RC1", []),
        ("9.2.0-beta.1", "9.2.0-beta.2", []),
        ("9.2.0", "9.2.0-beta.2", [("CP712", "error")]),
        ("10.0.0", "9.1.0", [("CP712", "error")]),
        ("latest", "8.1.RC1", [("CP713", "info")]),
        ("8.1.RC1", "master", [("CP713", "info")]),
        (None, "8.1.RC1", [("CP713", "info")]),
    ],
)
def test_releases(release: str | None, cann: str, found: list[tuple[str, str]], target: Target) -> None:
    assert codes(om(release=release), replace(target, cann=cann)) == found


@pytest.mark.parametrize(
    ("path", "release"),
    [
        ("/usr/local/Ascend/ascend-toolkit/8.0.RC2.alpha003/x86_64-linux/bin/atc.bin", "8.0.RC2.alpha003"),
        ("/usr/local/Ascend/cann-8.5.0/x86_64-linux/bin/atc", "8.5.0"),
        ("/home/a/Ascend/CANN-7.0.0/bin/atc", "7.0.0"),
        ("/usr/local/Ascend/ascend-toolkit/latest/bin/atc", None),
        ("atc", None),
    ],
)
def test_the_release_in_the_path_of_atc(path: str, release: str | None) -> None:
    file = om()
    file = replace(file, models=(replace(file.models[0], attributes={"atc_cmdline": f"{path} --framework=5"}),))
    assert release_of(file) == release
