"""Public bug reports about ATC's arguments: no command of ours makes the mistake, and what cannot be right is refused with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jumar import Case, JumarError, compile


@pytest.fixture
def made(shared: Path, tmp_path: Path) -> Any:
    def make(case: str, model: str, soc: str | None = "Ascend310P3", **options: Any) -> Case:
        return compile(shared / "cases" / case / model, output=tmp_path / "out", soc=soc, dry_run=True, **options)

    return make


def command(case: Case) -> list[str]:
    words: list[str] = case.record.steps[0].options["command"]
    return words


@pytest.mark.parametrize(
    ("case", "model", "options", "message"),
    [
        ("atc-310-unbounded-dynamic", "img.onnx", {"soc": "Ascend310", "gears": "images:1,3,-1,-1"}, "Ascend310 cannot run open shapes"),
        ("atc-dims-count-vs-minus1", "three.onnx", {"gears": "20,20,1;40,40,2"}, r"expected 4, in this order: data\[3\].*E10037"),
        (
            "atc-dims-ragged-profile",
            "seq.onnx",
            {"gears": "1,2;3,4;5"},
            r"gear 3 gives 1 of.* expected 2, in this order: data\[1\].*data\[2\].*5,\?",
        ),
        ("atc-dims-single-profile", "seq.onnx", {"gears": "1,2"}, r'E10035\); give the one shape with --shape "data:1,1,2"'),
        (
            "atc-dims-too-many",
            "seq.onnx",
            {"gears": ";".join(f"{n},8" for n in range(1, 102))},
            r"E10036\); these 8 hold them all and pad ",
        ),
        ("atc-dims-with-aipp", "seq.onnx", {"gears": "1,2;3,4", "aipp": __file__}, r"AIPP is inserted too.*height and width"),
        ("atc-missing-required", "img.onnx", {"soc": None}, "no target"),
        ("shape-name-collisions", "dup_mean.onnx", {}, "'mean' has been used as output names multiple times"),
    ],
)
def test_what_is_wrong_is_refused(case: str, model: str, options: dict[str, Any], message: str, made: Any) -> None:
    with pytest.raises(JumarError, match=message):
        made(case, model, **options)


def test_the_remedies_are_right(made: Any) -> None:
    sizes = ";".join(f"{n},8" for n in range(1, 102))
    with pytest.raises(JumarError) as caught:
        made("atc-dims-too-many", "seq.onnx", gears=sizes)
    proposed = str(caught.value.remedy).partition('--gears "')[2].partition('"')[0]
    word = next(word for word in command(made("atc-dims-too-many", "seq.onnx", gears=proposed)) if word.startswith("--dynamic_"))
    assert word.startswith("--dynamic_dims=13;26;39;"), "the second dimension is always 8"
    assert "--input_shape=data:1,1,2" in command(made("atc-dims-single-profile", "seq.onnx", shapes={"data": (1, 1, 2)}))


def test_framework_and_soc_are_never_guessed(made: Any) -> None:
    words = command(made("atc-missing-required", "img.onnx", shapes={"images": (1, 3, 640, 640)}))
    assert {"--framework=5", "--soc_version=Ascend310P3"} <= set(words)
    old = made("atc-soc-family-name", "img.onnx", soc="Ascend910B", shapes={"images": (1, 3, 640, 640)})
    assert any("old 910" in str(note) for note in old.record.notes)


def test_names_and_shapes_are_those_of_the_model(made: Any) -> None:
    weights = command(made("shape-initializer-as-input", "ir3.onnx"))
    assert next(word for word in weights if word.startswith("--input_shape=")).count(":") == 1
    scalar = next(word for word in command(made("shape-scalar-io", "scalar.onnx")) if word.startswith("--input_shape="))
    assert "s:" not in scalar.replace("--input_shape=", ";").replace("x:", "")
    colon = made("shape-colon-in-name", "colon.onnx")
    assert ("NM401", "error") in {(item.code, item.severity) for item in colon.record.findings}
