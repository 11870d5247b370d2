"""The documentation is true: its commands and Python blocks run, its links lead somewhere, its two languages match.

In a ``console`` block, lines that start with ``$ `` are commands; they must end with status 0, or with N where a line ``# exit N``
follows. Other lines show output and are not compared. ``python`` blocks are executed. All blocks of a page run in their order, in one
folder that holds ``model.onnx`` (below); ``text`` and ``sh`` blocks are not run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx_ir as ir
import pytest

ROOT = Path(__file__).resolve().parents[2]
READMES = [ROOT / "README.md", ROOT / "README.zh.md"]
PAGES = [*READMES, *sorted((ROOT / "docs").glob("*/*.md"))]
MARKDOWN = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
GENERATED = {"coverage.md", "export-coverage.md", "hand-made-fixes.md", "node-tests.md", "opsets.md"}
"""Pages of numbers that a tool writes; they have no examples."""
TIMEOUT = 120
"""Seconds one command may take."""

# A dynamic batch, a HardSwish (which some targets lack) and a Reshape whose target is computed from the input's shape.
MODEL = """
<ir_version: 8, opset_import: ["" : 16]>
classifier (float["n",3,8,8] image) => (float["n",4] scores)
<float[3,4] weight = {0.5, -0.25, 0.125, 1.0, -1.0, 0.75, 0.25, -0.5, 0.375, 0.625, -0.75, 0.875},
 int64 first = {0}, int64[1] axis = {0}, int64[1] channels = {3}> {
    active = HardSwish(image)
    pooled = GlobalAveragePool(active)
    shape = Shape(pooled)
    batch = Gather(shape, first)
    row = Unsqueeze(batch, axis)
    target = Concat<axis = 0>(row, channels)
    flat = Reshape(pooled, target)
    scores = MatMul(flat, weight)
}
"""

FENCE = re.compile(r"^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#+) ", re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
PATH_IN_CODE = re.compile(r"`((?:src|tests|docs|tools|scripts)/[\w./-]+)`")


@dataclass(frozen=True)
class Block:
    kind: str
    body: str
    line: int


@dataclass(frozen=True)
class Command:
    text: str
    status: int


def blocks_of(text: str) -> list[Block]:
    return [Block(match["kind"], match["body"], text[: match.start()].count("\n") + 2) for match in FENCE.finditer(text)]


def commands_of(body: str) -> list[Command]:
    """The commands of a console block with the status each must end with."""
    found: list[Command] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:], 0))
        elif line.startswith("# exit "):
            found[-1] = Command(found[-1].text, int(line.removeprefix("# exit ")))
    return found


def run_command(command: Command, folder: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["bash", "-c", command.text], cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == command.status, f"`{command.text}` ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr


def run_page(text: str, name: str, folder: Path) -> int:
    """Run all blocks of a page in ``folder`` (which is the current directory); returns how many commands and blocks ran."""
    names: dict[str, Any] = {"__name__": "__example__"}
    count = 0
    for block in blocks_of(text):
        if block.kind == "console":
            for command in commands_of(block.body):
                run_command(command, folder)
                count += 1
        elif block.kind == "python":
            exec(compile("\n" * (block.line - 1) + block.body, name, "exec"), names)
            count += 1
    return count


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    ir.save(ir.from_onnx_text(MODEL), tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_run(page: Path, folder: Path) -> None:
    assert (run_page(page.read_text(encoding="utf-8"), name_of(page), folder) > 0) is (page.name not in GENERATED)


def test_a_wrong_status_and_a_failing_block_are_noticed(folder: Path) -> None:
    with pytest.raises(AssertionError, match="ended with 1"):
        run_page("```console\n$ jumar check model.onnx --soc Ascend310P3 -q\n```\n", "planted", folder)
    with pytest.raises(AssertionError, match="ended with 0"):
        run_page("```console\n$ true\nsome output\n# exit 1\n```\n", "planted", folder)
    with pytest.raises(ZeroDivisionError):
        run_page("```python\n1 / 0\n```\n", "planted", folder)


def test_every_block_says_what_it_is() -> None:
    known = {"console", "python", "text", "sh", "json"}
    for page in MARKDOWN:
        text = page.read_text(encoding="utf-8")
        assert text.count("\n```") % 2 == 0, f"{name_of(page)}: a fence is not closed"
        for block in blocks_of(text):
            assert block.kind in known, f"{name_of(page)}:{block.line}: `{block.kind}`"


def links(page: Path) -> Iterator[str]:
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    for match in LINK.finditer(prose):
        target = match["target"].partition("#")[0]
        if target and "://" not in target and not target.startswith("mailto:"):
            yield target


@pytest.mark.parametrize("page", MARKDOWN, ids=name_of)
def test_relative_links_lead_to_files(page: Path) -> None:
    missing = [target for target in links(page) if not (page.parent / target).exists()]
    assert not missing


@pytest.mark.parametrize("page", MARKDOWN, ids=name_of)
def test_paths_named_in_prose_exist(page: Path) -> None:
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    missing = [path for path in PATH_IN_CODE.findall(prose) if not (ROOT / path).exists() and "castlike" not in path]
    assert not missing


def outline(page: Path) -> tuple[list[int], list[str], list[Command]]:
    """Heading levels, kinds of the code blocks, and the commands run (their text without the language option)."""
    text = page.read_text(encoding="utf-8")
    blocks = blocks_of(text)
    commands = [command for block in blocks if block.kind == "console" for command in commands_of(block.body)]
    plain = [Command(command.text.replace("--lang zh ", "").replace(" --lang zh", ""), command.status) for command in commands]
    return [len(level) for level in HEADING.findall(FENCE.sub("", text))], [block.kind for block in blocks], plain


PAIRS = [(READMES[0], READMES[1]), *((page, ROOT / "docs" / "zh" / page.name) for page in sorted((ROOT / "docs" / "en").glob("*.md")))]


@pytest.mark.parametrize(("english", "chinese"), PAIRS, ids=lambda page: name_of(page))
def test_both_languages_have_the_same_sections_blocks_and_commands(english: Path, chinese: Path) -> None:
    assert outline(english) == outline(chinese)


def test_no_page_exists_in_one_language_only() -> None:
    names = {lang: {page.name for page in (ROOT / "docs" / lang).glob("*.md")} for lang in ("en", "zh")}
    assert names["en"] == names["zh"]
