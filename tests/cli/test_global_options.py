"""Exit status, --format, --lang, -q, -v and -vv, before and after the verb."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from jumar.verbs import check as check_module

Run = Callable[..., tuple[int, str, str]]
VERBS = ("migrate", "check", "fix", "verify", "compile", "explain", "targets", "targets list", "targets show")


@pytest.fixture
def hardswish(save_text: Callable[..., Path]) -> Path:
    """Blocked on BS9SX1AA: no HardSwish there, and opset 11 at most."""
    return save_text("agraph (float[2,3] x) => (float[2,3] y) { y = HardSwish(x) }", "hardswish.onnx", 14)


def test_status_is_0_when_nothing_blocks(jumar: Run, relu: Path) -> None:
    status, out, err = jumar("check", relu, "--soc", "Ascend310P3")
    assert (status, err) == (0, "")
    assert out.splitlines()[:2] == [
        f"{relu} (opset 13) -> Ascend310P3, CANN 8.1.RC1",
        "ready: nothing known stands in the way of ATC",
    ]


def test_status_is_0_when_only_warnings_stand(jumar: Run, save_text: Callable[..., Path]) -> None:
    path = save_text("agraph (int64[3] n) => (int64[3] m) { m = Add(n, n) }")
    status, out, err = jumar("check", path, "--soc", "Ascend310P3", "--format", "json")
    assert (status, err, json.loads(out)["verdict"]) == (0, "", "warnings")


@pytest.mark.parametrize("words", [(), ("-q",), ("--format", "json")])
def test_status_is_1_when_something_blocks_however_it_is_printed(jumar: Run, hardswish: Path, words: tuple[str, ...]) -> None:
    status, _, err = jumar("check", hardswish, "--target", "mdc510pro", *words)
    assert (status, err) == (1, "")


def test_json_is_one_object_and_nothing_else(jumar: Run, hardswish: Path) -> None:
    before = jumar("--format", "json", "check", hardswish, "--target", "mdc510pro")
    after = jumar("check", hardswish, "--target", "mdc510pro", "--format", "json")
    assert before == after
    assert after[2] == ""
    record = json.loads(after[1])
    assert (record["schema"], record["verb"], record["verdict"]) == (1, "check", "blocked")


def test_json_is_in_the_wanted_language(jumar: Run, hardswish: Path) -> None:
    _, out, _ = jumar("check", hardswish, "--target", "mdc510pro", "--format", "json", "--lang", "zh")
    found = {item["code"]: item["message"] for item in json.loads(out)["findings"]}
    assert found["OP202"].endswith("不支持 HardSwish")


@pytest.mark.parametrize("words", [("-q", "check"), ("--quiet", "check"), ("check", "-q")])
def test_quiet_prints_nothing(jumar: Run, relu: Path, words: tuple[str, ...]) -> None:
    assert jumar(*words, relu, "--soc", "Ascend310P3") == (0, "", "")


def test_quiet_still_prints_errors(jumar: Run) -> None:
    status, out, err = jumar("-q", "check", "no.onnx", "--soc", "Ascend310P3")
    assert (status, out) == (2, "")
    assert "`no.onnx` does not exist" in err


@pytest.mark.parametrize("words", [("-v", "check"), ("check", "-v"), ("check", "--verbose")])
def test_verbose_adds_the_evidence_uncut(jumar: Run, hardswish: Path, words: tuple[str, ...]) -> None:
    plain = jumar(words[-1] if words[0] == "-v" else "check", hardswish, "--target", "mdc510pro")[1]
    verbose = jumar(*words, hardswish, "--target", "mdc510pro")[1]
    fact = "        documented: CANN 8.0 .. 9.1 operator list: ONNX 1.12.0, opset per operator (8-18)"
    assert fact not in plain.splitlines()
    assert fact in verbose.splitlines()


def test_language_follows_the_option_then_the_locale(jumar: Run, relu: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = {"en": "ready: nothing known stands in the way of ATC", "zh": "就绪：没有已知问题妨碍 ATC"}
    words = ("check", relu, "--soc", "Ascend310P3")
    assert ready["zh"] in jumar("--lang", "zh", *words)[1]
    assert ready["zh"] in jumar("--lang=en", *words, "--lang=zh")[1]
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert ready["zh"] in jumar(*words)[1]
    assert ready["en"] in jumar(*words, "--lang", "en")[1]


@pytest.mark.parametrize("words", [("-vv",), ("-v", "-v"), ("--verbose", "--verbose"), ("-qvv",)])
def test_a_traceback_follows_the_line_only_with_two_v(jumar: Run, words: tuple[str, ...]) -> None:
    line = "jumar: `no.onnx` does not exist; expected an ONNX model (binary protobuf); check the path\n"
    assert jumar("check", "no.onnx", "--soc", "Ascend310P3", "-v") == (2, "", line)
    status, out, err = jumar("check", "no.onnx", "--soc", "Ascend310P3", *words)
    assert (status, out) == (2, "")
    assert err.startswith(line + "Traceback (most recent call last):\n")


def test_an_internal_error_is_one_line(jumar: Run, relu: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("two\nlines \x1b[31m")

    monkeypatch.setattr(check_module, "examine", broken)
    words = ("check", relu, "--soc", "Ascend310P3")
    english = "internal error: ZeroDivisionError: two lines \\x1b[31m; this is a fault of Jumar's; run again with -vv and report it"
    assert jumar(*words) == (2, "", f"jumar: {english}\n")
    assert jumar("--lang", "zh", *words)[2].startswith("jumar: 内部错误：ZeroDivisionError: ")


def test_an_interrupt_is_130_and_quiet(jumar: Run, relu: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(check_module, "examine", interrupted)
    assert jumar("check", relu, "--soc", "Ascend310P3") == (130, "", "")


def test_an_error_does_not_colour_the_terminal(jumar: Run) -> None:
    assert jumar("explain", "\x1b[2J")[2].startswith("jumar: `\\x1b[2J` is not a known code; ")


@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_opens(jumar: Run, name: str, flag: str) -> None:
    status, out, err = jumar(*name.split(), flag)
    assert (status, err) == (0, "")
    assert out.startswith(f"Usage: jumar {name} ")


def test_version(jumar: Run) -> None:
    from jumar import __version__

    assert jumar("--version") == (0, f"jumar {__version__}\n", "")


def test_shape_names_may_hold_colons(jumar: Run, save_text: Callable[..., Path]) -> None:
    path = save_text("agraph (float[N,3] a, float[M] b) => (float[N,3] y, float[M] z) { y = Relu(a) z = Relu(b) }")
    import onnx

    model = onnx.load(path)
    model.graph.input[0].name = model.graph.node[0].input[0] = "in:0"
    onnx.save(model, path)
    status, out, _ = jumar(
        "compile", path, "--soc", "Ascend310P3", "-o", path.parent / "o", "--shape", "in:0:1,3;b:7", "--dry-run", "--format=json"
    )
    record = json.loads(out)
    assert status == 1, "the command is written, and NM401 says that the name is a trap"
    assert "--input_shape=in:0:1,3;b:7" in record["steps"][0]["options"]["command"]
    status, _, err = jumar("check", path, "--soc", "Ascend310P3", "--shape", "in:0:1,4")
    assert (status, "shape [1, 4] does not fit input `in:0`; expected [N, 3]" in err) == (2, True)


def test_shape_may_be_given_twice(jumar: Run, save_text: Callable[..., Path]) -> None:
    path = save_text("agraph (float[N,3] a, float[M] b) => (float[N,3] y, float[M] z) { y = Relu(a) z = Relu(b) }")
    shapes = ("--shape", "a:1,3", "--shape", " b:7 ; ")
    _, out, _ = jumar("compile", path, "--soc", "Ascend310P3", "-o", path.parent / "o", *shapes, "--dry-run", "--format=json")
    assert "--input_shape=a:1,3;b:7" in json.loads(out)["steps"][0]["options"]["command"]
