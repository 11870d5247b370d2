"""ATC: its command line, the files that go with it, and running it where it is installed."""

from .command import AtcCommand, build_command, check_precision_mode, shell_script
from .gear_choice import GearChoice, GearRun, choose_gears
from .manifest import MANIFEST_SCHEMA, build_manifest
from .toolchain import AtcRun, find_atc, run_atc, searched_places

__all__ = [
    "MANIFEST_SCHEMA",
    "AtcCommand",
    "AtcRun",
    "GearChoice",
    "GearRun",
    "build_command",
    "build_manifest",
    "check_precision_mode",
    "choose_gears",
    "find_atc",
    "run_atc",
    "searched_places",
    "shell_script",
]
