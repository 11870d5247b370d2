"""Calls in makefiles, Python programs and documents."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.atc.calls import AtcCall
from jumar.atc.lint import lint_text, script_kind
from jumar.atc.scripts import calls_in_make, calls_in_markdown, calls_in_python


def words(calls: list[AtcCall]) -> list[tuple[int, list[str]]]:
    return [(call.line, list(call.words)) for call in calls]


MAKE = """\
SOC ?= Ascend310P3
SOC ?= Ascend310
SHAPE = x:1,3;y:1
FLAGS := --framework=5 \\
         --log=$(LEVEL)
FLAGS += --output_type=FP16

%.om: %.onnx
\t@atc --model=$< --output=$(basename $@) --soc_version=$(SOC) \\
\t  $(FLAGS)
\tfor n in 1 2; do atc --output=$$n --input_shape="$(SHAPE)"; done
lost:
\tatc --input_shape=$(SHAPE)
"""


def test_make() -> None:
    first, second, third = calls_in_make(MAKE)
    assert words([first]) == [
        (
            9,
            [
                "--model=${target}",
                "--output=${command}",
                "--soc_version=Ascend310P3",
                "--framework=5",
                "--log=${LEVEL}",
                "--output_type=FP16",
            ],
        )
    ]
    assert words([second]) == [(11, ["--output=${n}", "--input_shape=x:1,3;y:1"])]
    assert not first.problems and not second.problems
    # Make puts the text in before the shell sees it, so that the `;` of a variable splits the line.
    assert words([third]) == [(13, ["--input_shape=x:1,3;y:1"])]
    assert [problem.code for problem in third.problems] == ["AT911"]


def test_make_variables_that_name_themselves_end() -> None:
    assert words(calls_in_make("A = $(B)\nB = $(A)\nx:\n\tatc --a=$(A)\n"))[0][0] == 4


PYTHON = """
import os, subprocess
SOC = "Ascend310P3"
os.system("atc --model=%s --soc_version=%s" % (model, SOC))
subprocess.run(["/usr/bin/atc", "--model=" + model, f"--output={out}", "--framework", str(5), *rest])
subprocess.run(f"atc --model={model} "
               f"--output={a.b[0]}", shell=True)
os.system("atc --model={} --output={}".format(model, out))
os.system('cd x; atc --model=' + str(model) + ' --log=error')
print("how to use atc")
"""


def test_python() -> None:
    assert words(calls_in_python(PYTHON)) == [
        (4, ["--model=%s", "--soc_version=%s"]),
        (5, ["--model=${model}", "--output=${out}", "--framework", "${value}", "${value}"]),
        (6, ["--model=${model}", "--output=${value}"]),
        (8, ["--model={}", "--output={}"]),
        (9, ["--model=${model}", "--log=error"]),
    ]


@pytest.mark.parametrize("text", ["def f(:", "\0", "(" * 500, "x = '\\d'\n"])
def test_python_that_cannot_be_read_has_no_calls(text: str) -> None:
    assert calls_in_python(text) == []


MARKDOWN = """\
It isn't a call: run `atc --help`.

```bash
$ atc --model=a.onnx \\
    --output=o
# atc --model=comment
```

~~~python
os.system("atc --model=b.onnx")
~~~

```console
# atc --model=f.onnx
```

```json
{"atc": "--model=c"}
```

   atc --model=d.onnx \\
     --output=p

```make
x:
\tatc --model=e.onnx
"""


def test_markdown() -> None:
    assert words(calls_in_markdown(MARKDOWN)) == [
        (4, ["--model=a.onnx", "--output=o"]),
        (10, ["--model=b.onnx"]),
        (14, ["--model=f.onnx"]),
        (21, ["--model=d.onnx", "--output=p"]),
        (26, ["--model=e.onnx"]),
    ]


def test_the_kind_of_a_text() -> None:
    assert [script_kind(name) for name in ("a.sh", "Makefile", "x/GNUmakefile", "b.mk", "c.PY", "README.md", "cmd.txt", "d")] == [
        *("shell", "make", "make", "make", "python", "markdown"),
        *(None, None),
    ]
    assert lint_text("atc --a=1", "cmd.txt").kind == "shell"
    assert lint_text("[ByOpType]\nGelu=high_precision", "a.ini").kind == "op-precision"
    assert lint_text("hello", "a.txt").kind is None
    assert lint_text('{"a": 1}', "a.json").kind is None


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="atc -=\n\t$(){}`~'\"#:[]", max_size=60))
def test_no_text_crashes_it(text: str) -> None:
    for read in (calls_in_make, calls_in_python, calls_in_markdown):
        read(text)
