"""Calls of ATC are found in shell text and read as a shell hands them over."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.atc.calls import find_calls

Found = list[tuple[int, list[str]]]


def found(text: str) -> Found:
    return [(call.line, list(call.words)) for call in find_calls(text)]


def mistakes(text: str) -> list[str]:
    return [str(problem.message) for call in find_calls(text) for problem in call.problems]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("atc --a=1 --b 2", ["--a=1", "--b", "2"]),
        ("/usr/local/Ascend/bin/atc --a=1", ["--a=1"]),
        ('${install_path}/atc/bin/atc --a="b c"', ["--a=b c"]),
        ("sudo -E env X=1 atc --a=1", ["--a=1"]),
        ("docker exec -it box atc --a=1", ["--a=1"]),
        ("cd x && atc --a=1 || exit 1", ["--a=1"]),
        ("if true; then atc --a=1; fi", ["--a=1"]),
        ("( atc --a=1 )", ["--a=1"]),
        ("{ atc --a=1; }", ["--a=1"]),
        ("X=2 atc --a=1", ["--a=1"]),
        ("atc --a=1 > log 2>&1 &", ["--a=1"]),
        ("atc --a=$1>log.txt", ["--a=${1}"]),
        ("atc --a=1 2>/dev/null | tee log", ["--a=1"]),
        ("atc --a=1 # --b=2", ["--a=1"]),
        ("atc --a=x#y", ["--a=x#y"]),
        ("atc --a=1 \\\n  --b=2", ["--a=1", "--b=2"]),
        ('atc --a="1;2;\\\n3;4" --b', ["--a=1;2;3;4", "--b"]),
        ("atc --a='1;2' --b=\"3;4\"", ["--a=1;2", "--b=3;4"]),
        ("atc --a=1\\;2", ["--a=1;2"]),
        ("atc '--a=${x}'", ["--a=${x}"]),
        ("x=1; atc --a=$x,${x}", ["--a=1,1"]),
        ("x='1 2'; atc --a=$x", ["--a=1", "2"]),
        ("x='1 2'; atc --a=\"$x\"", ["--a=1 2"]),
        ("x='1;2'; atc --a=$x", ["--a=1;2"]),  # a `;` in a variable splits nothing
        ("x=1\nx+=2\natc --a=$x", ["--a=12"]),
        ("atc --a=${1:-Ascend310P3}", ["--a=Ascend310P3"]),
        ("atc --a=${x:-7} --b=${y:-$HOME}", ["--a=7", "--b=${HOME}"]),
        ("x=3; atc --a=${x:-7}", ["--a=3"]),
        ("atc --a=$(date +%s) --b=`pwd` --c=${x%.*}", ["--a=${command}", "--b=${command}", "--c=${x}"]),
        ("for i in 1 2; do\n atc --a=$i; done", ["--a=${i}"]),
        ("i=1\nfor i in 1 2; do atc --a=$i; done", ["--a=${i}"]),
        ("read x; atc --a=$x", ["--a=${x}"]),
        ("if c; then x=1; else x=2; fi; atc --a=$x", ["--a=${x}"]),
        ("x=1; if c; then atc --a=$x; fi", ["--a=1"]),
        ("d=''; for i in 1 2; do d=$d$i; done; atc --a=$d", ["--a=${d}"]),
        ('A=(--a=1 "--b=2 3")\natc "${A[@]}" --c', ["--a=1", "--b=2", "3", "--c"]),
        ("C='atc --a=1'; $C --b=2", ["--a=1", "--b=2"]),
        ("$ATC --model=a --framework=5", ["--model=a", "--framework=5"]),
        ("eval \"atc --a=1 --b='2;3'\"", ["--a=1", "--b=2;3"]),
        ("bash -c 'atc --a=1'", ["--a=1"]),
        ("cat > run.sh <<EOF\natc --a=$HOME\nEOF", ["--a=${HOME}"]),
        ("cat <<-'EOF'\n\tatc --a=$x\n\tEOF", ["--a=${x}"]),
        ("atc --a=image:{batch size},3", ["--a=image:{batch_size},3"]),
        ("atc --a=<soc version>", ["--a={soc_version}"]),
        ("don't stop\natc --a=1", ["--a=1"]),
    ],
)
def test_one_call(text: str, words: list[str]) -> None:
    ((_, got),) = found(text)
    assert got == words
    assert mistakes(text) == []


@pytest.mark.parametrize("text", ["", "echo atc --a=1", "which atc", "# atc --a=1", "source atc.sh", "man atc", "matcher --a", "atc"])
def test_no_call(text: str) -> None:
    assert found(text) == []


def test_lines_are_counted() -> None:
    text = "#!/bin/sh\natc --a=1 \\\n --b=2\ncat <<EOF\natc --c=3\nEOF\n\natc --d=4\n"
    assert [line for line, _ in found(text)] == [2, 5, 8]


@pytest.mark.parametrize(
    ("text", "words", "mistake"),
    [
        ("atc --a=x:1,2;y:3 --b=1", ["--a=x:1,2;y:3", "--b=1"], "`;` in the value of --a is not quoted"),
        ("atc --a=1,2;3,4;5,6", ["--a=1,2;3,4;5,6"], "`;` in the value of --a is not quoted"),
        ("atc --a=1\\\n--b=2", ["--a=1--b=2"], ""),
        ("atc --output=1\\\n--model=2", ["--output=1", "--model=2"], "`--model` is glued to the value before it"),
        ('atc --output="1"--model=2', ["--output=1", "--model=2"], "`--model` is glued to the value before it"),
        ("atc --a=1 \\ \n --model=2", ["--a=1", "--model=2"], "the call ends before `--model`"),
        ("atc --a=1\n --model=2\n", ["--a=1", "--model=2"], "the call ends before `--model`"),
        ("atc –model=2", ["--model=2"], "`–model=2` begins with a typographic dash"),
        ("atc --a=“1”", ["--a=1"], "the value of --a is in typographic quotes"),
        ('atc --a="1;2', ["--a=1;2"], "the quote of --a is never closed"),
    ],
)
def test_a_call_that_is_cut(text: str, words: list[str], mistake: str) -> None:
    ((_, got),) = found(text)
    assert got == words
    assert mistakes(text) == ([mistake] if mistake else [])


def test_windows_line_ends() -> None:
    (call,) = find_calls("atc --a=1 \\\r\n --b=2\r\n")
    assert call.words == ("--a=1", "--b=2")
    assert [problem.severity for problem in call.problems] == ["warning"]


def test_what_is_behind_a_semicolon_on_purpose_is_left_alone() -> None:
    assert found("atc --a=1;echo done;atc --b=2") == [(1, ["--a=1"]), (1, ["--b=2"])]
    assert mistakes("atc --a=1;echo done") == []


WORDS = st.text(alphabet="abc123,:;~-=./_'\"\\$ {}", min_size=1, max_size=14)


@pytest.mark.skipif(shutil.which("sh") is None, reason="no shell")
@settings(max_examples=40, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=5), st.sampled_from([" ", " \\\n   ", "\t"]))
def test_words_are_those_of_the_shell(values: list[str], blank: str) -> None:
    """The same text through a real shell, with a function in place of the program."""
    text = "atc " + blank.join(shlex.quote(f"--a{value}") for value in values)
    script = "atc() { for word; do printf '%s\\0' \"$word\"; done; }\n" + text
    real = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.split("\0")[:-1]
    assert [list(call.words) for call in find_calls(text)] == [real]


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="atc -=;'\"\\$`(){}<>&|#\n\tx1@[]!", max_size=80))
def test_no_text_crashes_or_hangs_it(text: str) -> None:
    start = time.perf_counter()
    find_calls(text)
    assert time.perf_counter() - start < 2  # seconds


def test_growing_scripts_stay_harmless() -> None:
    double = "x=ab\n" + "x=$x$x\n" * 60 + "A=(1 2)\n" + 'A+=("${A[@]}")\n' * 60 + "atc --a=$x\n"
    start = time.perf_counter()
    assert len(find_calls(double)) == 1
    assert len(find_calls("eval " * 50 + "'atc --a=1'")) <= 1
    deep = "atc --a=1"
    for _ in range(30):
        deep = f"eval {shlex.quote(deep)}" if len(deep) < 100_000 else deep
    find_calls(deep)
    find_calls("'" * 20_001 + "\natc --a=" + "`" * 20_001)
    assert time.perf_counter() - start < 5  # seconds
