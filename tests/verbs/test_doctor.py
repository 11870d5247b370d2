"""doctor: machines made of a few files, each with its own fault."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jumar import Record, UsageError, compile, doctor
from jumar.atc import machine, toolchain

GOOD = {
    **dict.fromkeys(["protobuf", "attrs", "cython", "pyyaml", "pathlib2", "scipy", "requests", "psutil", "absl-py"], "9.0"),
    "numpy": "1.26.4",
    "decorator": "5.1.1",
    "sympy": "1.13",
    "cffi": "1.17.1",
}
DRIVER = "Innerversion=V100R001C19SPC001B124\ncompatible_version=[V100R001C17],[V100R001C19]\ncompatible_version_fw=[7.0.0,7.5.99]\npackage_version=24.1.rc3\n"
ROW = "| 0       {name}                 | {health}              | NA           45                0     / 0             |\n"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A machine with CANN 8.0.RC3 and its driver, unless said otherwise."""

    def program(name: str, body: str) -> None:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def make(
        *,
        packages: dict[str, str | None] | None = None,
        python: str = "3.10.12",
        release: str = "8.0.RC3",
        firmware: str = "7.5.0.1.129",
        driver: str = DRIVER,
        inner: str = "V100R001C19SPC001B1",
        name: str = "310P3",
        health: str = "OK",
        on_path: bool = True,
    ) -> None:
        cann = tmp_path / "cann"
        (cann / "bin").mkdir(parents=True, exist_ok=True)
        (cann / "ascend_toolkit_install.info").write_text(f"version={release}\ninnerversion={inner}\n")
        (cann / "set_env.sh").write_text(f'export PATH="{cann}/bin:$PATH"\n')
        (cann / "bin" / "atc").write_text("#!/bin/bash\n")
        (cann / "bin" / "atc").chmod(0o755)
        for folder, text in (("driver", driver), ("firmware", f"Version={firmware}\n")):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / "version.info").write_text(text)
        answer = json.dumps({"version": python, "packages": {**GOOD, **(packages or {})}})
        program("python3", f"cat <<'E'\n{answer}\nE")
        program("npu-smi", f"cat <<'E'\n{ROW.format(name=name, health=health)}E")
        monkeypatch.setattr(machine, "INSTALL_INFO", tmp_path / "none")
        monkeypatch.setattr(machine, "DEFAULT_ROOT", tmp_path)
        monkeypatch.setattr(toolchain, "_DEFAULT_HOME", str(cann))
        first = f"{cann}/bin:" if on_path else ""
        monkeypatch.setenv("PATH", f"{first}{tmp_path}/bin:/usr/bin:/bin")

    return make


def found(record: Record) -> list[tuple[str, str]]:
    return [(item.code, item.severity) for item in record.findings]


def test_a_machine_that_fits_has_no_findings(made: Callable[..., None]) -> None:
    made()
    record = doctor()
    assert found(record) == []
    assert record.verdict == "ready"
    assert record.data["machine"]["cann"] == "8.0.RC3"
    assert record.data["machine"]["soc"] == ["Ascend310P3"]
    assert "the NPU here is compiled for with --soc Ascend310P3" in [str(note) for note in record.notes]


@pytest.mark.parametrize(
    ("fault", "code", "severity", "words"),
    [
        ({"packages": {"sympy": None, "cython": None}}, "EV801", "warning", "lacks cython, sympy"),
        ({"packages": {"numpy": "2.1.3"}}, "EV802", "warning", "numpy 2.1.3"),
        ({"packages": {"numpy": "1.18.5"}}, "EV802", "warning", "numpy 1.18.5"),
        ({"packages": {"decorator": "4.0.2"}}, "EV802", "warning", "decorator 4.0.2"),
        ({"on_path": False}, "EV804", "warning", "but not on PATH"),
        ({"firmware": "7.7.0.1.231"}, "EV805", "error", "driver 24.1.rc3 and firmware 7.7.0.1.231"),
        ({"inner": "V100R001C23SPC001"}, "EV805", "error", "CANN 8.0.RC3 and driver 24.1.rc3"),
        ({"health": "Alarm"}, "EV807", "warning", "NPU 0 (310P3) reports Alarm"),
    ],
)
def test_each_fault_is_told(fault: dict[str, Any], code: str, severity: str, words: str, made: Callable[..., None]) -> None:
    made(**fault)
    record = doctor()
    assert found(record) == [(code, severity)]
    assert words in str(record.findings[0].message)


@pytest.mark.parametrize("fits", [{"release": "9.0.0"}, {"python": "3.13.1"}])
def test_numpy_2_is_right_where_it_is_taken(fits: dict[str, Any], made: Callable[..., None]) -> None:
    made(packages={"numpy": "2.1.3"}, **fits)
    assert found(doctor()) == []


def test_without_cann_nothing_is_asked_of_python(made: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made(packages={"numpy": "2.1.3"}, on_path=False)
    monkeypatch.setattr(toolchain, "_DEFAULT_HOME", str(tmp_path / "nowhere"))
    record = doctor()
    assert found(record) == [("EV802", "info"), ("EV803", "info")]
    assert record.verdict == "ready"


def test_an_unknown_chip_names_no_soc(made: Callable[..., None]) -> None:
    made(name="X123")
    record = doctor()
    assert record.data["machine"]["soc"] == []
    assert found(record) == []


@pytest.fixture
def build(made: Callable[..., None], relu: Path, tmp_path: Path) -> Path:
    """A bundle that was built on the machine."""
    made()
    atc = tmp_path / "cann" / "bin" / "atc"
    atc.write_text('#!/bin/bash\nfor word in "$@"; do case $word in --output=*) printf om > "${word#--output=}.om";; esac; done\n')
    compile(relu, output=tmp_path / "out", soc="Ascend310P3", cann="8.1.RC1")
    return tmp_path / "out"


def test_the_machine_of_the_build_fits_it(build: Path) -> None:
    manifest = json.loads((build / "manifest.json").read_text())
    assert manifest["machine"] == {"cann": "8.0.RC3", "driver": "24.1.rc3", "firmware": "7.5.0.1.129"}
    assert found(doctor(against=build / "manifest.json")) == []
    assert found(doctor(against=build)) == []


@pytest.mark.parametrize(
    ("change", "code", "severity", "words"),
    [
        ({"name": "310B4"}, "EV806", "error", "built for Ascend310P3; the NPU here is Ascend310B4"),
        ({"release": "7.0.0"}, "EV806", "error", "made by CANN 8.0.RC3; here is 7.0.0"),
        ({"release": "8.0.0"}, "EV806", "warning", "made by CANN 8.0.RC3; here is 8.0.0"),
        ({"driver": DRIVER.replace("24.1.rc3", "25.0")}, "EV806", "info", "driver 24.1.rc3; here is 25.0"),
    ],
)
def test_another_machine_differs(
    change: dict[str, Any], code: str, severity: str, words: str, build: Path, made: Callable[..., None]
) -> None:
    made(**change)
    record = doctor(against=build)
    assert found(record) == [(code, severity)]
    assert words in str(record.findings[0].message)


def test_a_changed_and_a_lost_file_are_noticed(build: Path) -> None:
    (build / "relu.om").write_bytes(b"other")
    (build / "compile.sh").unlink()
    record = doctor(against=build)
    assert found(record) == [("EV808", "error")]
    assert "2 files are not those of the build: compile.sh, relu.om" in str(record.findings[0].message)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"manifest": 1, "target": 3}', '{"manifest": 1, "target": {}, "files": [3]}', "[" * 100000]
)
def test_what_is_no_manifest_is_refused(text: str, tmp_path: Path, made: Callable[..., None]) -> None:
    made()
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(UsageError, match="cannot be read: "):
        doctor(against=tmp_path / "m.json")
    with pytest.raises(UsageError, match="No such file"):
        doctor(against=tmp_path / "none.json")
