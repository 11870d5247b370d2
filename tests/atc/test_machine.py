"""What a machine says of itself, read from the texts of real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumar.atc import machine
from jumar.atc.machine import cann_info, fits_ranges, inner_fits, interpreter, npus, parse_npu_smi, read_info, soc_of, soc_of_board

SMI = """\
+--------------------------------------------------------------------------------------------------------+
| npu-smi 24.1.rc2                                 Version: 24.1.rc2                                     |
+-------------------------------+-----------------+------------------------------------------------------+
| NPU     Name                  | Health          | Power(W)     Temp(C)           Hugepages-Usage(page) |
| Chip    Device                | Bus-Id          | AICore(%)    Memory-Usage(MB)                        |
+===============================+=================+======================================================+
| 2       310P3                 | OK              | NA           45                0     / 0             |
| 0       0                     | 0000:01:00.0    | 0            1851 / 21527                            |
+===============================+=================+======================================================+
| 5       310P3                 | Warning         | NA           99                0     / 0             |
| 0       1                     | 0000:02:00.0    | 0            1851 / 21527                            |
+===============================+=================+======================================================+
"""


def test_the_table_of_npu_smi_is_read() -> None:
    assert parse_npu_smi(SMI) == [(2, "310P3", "OK"), (5, "310P3", "Warning")]
    assert parse_npu_smi("dcmi model initialized failed") == []


@pytest.mark.parametrize(
    ("name", "soc"),
    [("310P3", "Ascend310P3"), ("910B3", "Ascend910B3"), ("Ascend310", "Ascend310"), ("310B4", "Ascend310B4"), ("910", None), ("x", None)],
)
def test_a_chip_name_gives_the_soc_version(name: str, soc: str | None) -> None:
    assert soc_of(name) == soc


def test_newer_chips_are_named_by_two_names() -> None:
    board = "\tNPU ID                         : 0\n\tChip Name                      : Ascend910\n\tNPU Name                       : 9382\n"
    assert soc_of_board(board) == "Ascend910_9382"
    assert soc_of_board("Chip Name : 310P3\n") == "Ascend310P3"
    assert soc_of_board("") is None


def test_npus_are_asked_of_the_program(tmp_path: Path) -> None:
    program = tmp_path / "npu-smi"
    program.write_text(f"#!/bin/bash\ncat <<'E'\n{SMI}E\n")
    program.chmod(0o755)
    found = npus({"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert found is not None
    assert [(item.soc, item.health) for item in found] == [("Ascend310P3", "OK"), ("Ascend310P3", "Warning")]
    program.write_text("#!/bin/bash\nexit 1\n")
    assert npus({"PATH": f"{tmp_path}:/usr/bin:/bin"}) is None
    assert npus({"PATH": "/nowhere"}) is None


def test_the_release_of_a_cann_is_read_near_its_program(tmp_path: Path) -> None:
    program = tmp_path / "latest" / "bin" / "atc"
    program.parent.mkdir(parents=True)
    program.touch()
    assert cann_info(program) == {}
    (tmp_path / "latest" / "version.cfg").write_text("# version\nruntime_running_version=[7.7.0.1.231:8.1.RC1]\n")
    assert cann_info(program)["version"] == "8.1.RC1"
    info = tmp_path / "latest" / "aarch64-linux" / "ascend_toolkit_install.info"
    info.parent.mkdir()
    info.write_text("package_name=Ascend-cann-toolkit\nversion=8.0.RC1\ninnerversion=V100R001C17SPC001B248\n")
    assert cann_info(program) == {"version": "8.0.RC1", "inner": "V100R001C17SPC001B248", "compatible": ""}


@pytest.mark.parametrize(
    ("version", "ranges", "fits"),
    [
        ("7.5.0.1.129", "[7.0.0,7.5.99]", True),
        ("7.7.0.1.231", "[7.0.0,7.5.99]", False),
        ("7.7.0.6.236", "[6.4.0,6.4.99],[7.0.0,8.9.9]", True),
        ("24.1.rc3", "[23.0.0,23.0.0.],[24.0,24.0.],[24.1,24.1.]", None),
        ("", "[7.0.0,7.5.99]", None),
        ("7.5.0", "", None),
    ],
)
def test_firmware_ranges(version: str, ranges: str, fits: bool | None) -> None:
    if fits is not None or not version or not ranges:
        assert fits_ranges(version, ranges) is fits


def test_inner_versions() -> None:
    listed = "[V100R001C13],[V100R001C15],[V100R001C19]"
    assert inner_fits("V100R001C19SPC001B124", listed) is True
    assert inner_fits("V100R001C21SPC002B220", listed) is False
    assert inner_fits("", listed) is None
    assert inner_fits("V100R001C19", "") is None


def test_the_driver_is_where_its_installer_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = tmp_path / "install.info"
    note.write_text(f"Driver_Install_Path_Param={tmp_path}\n")
    monkeypatch.setattr(machine, "INSTALL_INFO", note)
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver" / "version.info").write_text("Version=24.1.0\npackage_version=24.1.0\n")
    assert machine.driver_info()["package_version"] == "24.1.0"
    assert machine.firmware_info() == {}
    assert read_info(tmp_path) == {}


def test_the_python_of_the_path_is_asked(tmp_path: Path) -> None:
    (tmp_path / "python3").write_text('#!/bin/bash\necho \'{"version": "3.9.1", "packages": {"numpy": "2.1.0"}}\'\n')
    (tmp_path / "python3").chmod(0o755)
    found = interpreter({"PATH": f"{tmp_path}:/usr/bin:/bin"}, ["numpy"])
    assert found is not None
    assert (found.version, dict(found.packages)) == ("3.9.1", {"numpy": "2.1.0"})
    (tmp_path / "python3").write_text("#!/bin/bash\necho no\n")
    assert interpreter({"PATH": f"{tmp_path}:/usr/bin:/bin"}, ["numpy"]) is None
