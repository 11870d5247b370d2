"""A stand-in for Huawei's ``atc``: it refuses what ATC refuses (by its table of flags) and ends as it is told to.

Run as a program. ``STANDIN_ATC`` says how a call that is right shall end: ``success`` (default), ``no-parser``, ``segmentation-fault``,
``hang``, ``memory`` (takes 400 MB and waits), ``killed`` (as the kernel ends what takes all memory), ``nothing`` (success without a file).
The logs have the form of ATC's.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from jumar.atc.options import Options, check, parse_argv


def say(text: str, end: str = "\n", flush: bool = False) -> None:
    sys.stdout.write(text + end)
    if flush:
        sys.stdout.flush()


NO_PARSER = """\
ATC start working now, please wait for a moment.
E19010: No parser is registered for Op [/blk0/attn/FindMax, optype [ai.onnx::11::FindMax]].
        Solution: Check the version of the installation package and reinstall the package. For details, see the operator specifications.
        TraceBack (most recent call last):
        ATC model parse ret fail.[FUNC:ParseGraphs]
"""


def refused(options: Options, problems: list[tuple[str, str]]) -> int:
    say("ATC start working now, please wait for a moment.")
    say("...")
    say("ATC run failed, Please check the detail log, Try 'atc --help' for more information")
    for code, message in problems:
        say(f"{code}: {message}")
    return 255


def main(words: list[str]) -> int:
    options, problems = parse_argv(words)
    found = [*problems, *check(options)]
    errors = [((item.atc or ("E10001",))[0], str(item.message)) for item in found if item.severity == "error"]
    if not Path(options.get("model")).is_file():
        errors.append(("E10041", f"Failed to load the model from [{options.get('model')}]"))
    if errors:
        return refused(options, errors)
    folder = os.environ.get("ASCEND_PROCESS_LOG_PATH")
    if folder:
        log = Path(folder) / "debug" / "plog" / f"plog-{os.getpid()}.log"
        log.parent.mkdir(parents=True)
        log.write_text(f"[INFO] GE(1,atc):2026-01-01 level {os.environ['ASCEND_GLOBAL_LOG_LEVEL']}\n")
    return end(os.environ.get("STANDIN_ATC", "success"), Path(options.get("output") + ".om"))


def end(how: str, om: Path) -> int:
    say("ATC start working now, please wait for a moment.", flush=True)
    if how == "no-parser":
        say(NO_PARSER, end="")
        return 1
    if how == "segmentation-fault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "memory":
        held = bytearray(400 << 20)
        held[::4096] = b"x" * len(held[::4096])
        time.sleep(60)
    if how == "hang":
        time.sleep(60)
    if how != "nothing":
        om.write_bytes(b"om")
    say("ATC run success, welcome to the next use.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
