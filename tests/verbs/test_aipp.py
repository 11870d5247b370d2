"""derive, emulate, check and move: what they return, write, and say."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jumar
from jumar.aipp.config import read_config
from jumar.errors import ToolError, UsageError

IMAGENET = {"order": "RGB", "scale": "x/255", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
NET = "agraph (float[1,3,8,8] x) => (float[1,3,8,8] y) { y = Relu(x) }"
NORMALISED = """agraph (float[1,3,8,8] x) => (float[1,3,1,1] y)
<float[1,3,1,1] m = {123.675, 116.28, 103.53}, float[1,3,1,1] s = {58.395, 57.12, 57.375}> { a = Sub(x, m) b = Div(a, s) y = GlobalAveragePool(b) }"""


def codes(record: Any) -> list[str]:
    return [finding.code for finding in record.findings]


@pytest.fixture
def net(save_text: Callable[..., Path]) -> Path:
    return save_text(NET, "net.onnx")


@pytest.fixture
def right(tmp_path: Path) -> Path:
    jumar.derive_aipp(IMAGENET, size=(8, 8), output=tmp_path / "right.cfg")
    return tmp_path / "right.cfg"


def test_derive_in_every_way(tmp_path: Path) -> None:
    record = jumar.derive_aipp(IMAGENET, size=(224, 224), source=(256, 256), soc="Ascend310P3", output=tmp_path / "a.cfg")
    assert (
        record.verdict == "ready"
        and record.data["blocks"][0]["bytes"] == 256 * 256 * 3
        and record.data["blocks"][0]["output"] == [224, 224]
    )
    assert (tmp_path / "a.cfg").read_text() == record.data["config"] and record.artifacts[0].kind == "aipp"
    plain = jumar.derive_aipp(mean="0.485,0.456,0.406", std="0.229,0.224,0.225", scale="1/255", size=(224, 224), source=(256, 256))
    assert read_config(plain.data["config"]) == read_config(record.data["config"])
    assert "aipp_op {" in str(plain.notes[-1]), "printed where no file is named"
    yolo = jumar.derive_aipp(ultralytics=640, image="nv12", matrix="601-full")
    assert codes(yolo) == ["AI110"] and "BT.601 full" in yolo.data["blocks"][0]["matrix"]
    assert "letterbox" in yolo.data["host"][0] and yolo.data["config"].count("# before:") == 1


def test_derive_dynamic() -> None:
    record = jumar.derive_aipp(IMAGENET, size=(8, 8), dynamic=True, batch=2, soc="Ascend310P3")
    assert read_config(record.data["config"]).ops[0].given == {"aipp_mode": "dynamic", "related_input_rank": 0, "max_src_image_size": 384}
    assert record.data["calls"][0] == "aipp = acl.mdl.create_aipp(2)"
    assert codes(jumar.derive_aipp(IMAGENET, size=(8, 8), dynamic=True, soc="Ascend310B4")) == ["AI103"]


def test_derive_from_an_object_of_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_training.py").write_text(
        "class ToTensor:\n    def __call__(self, image): raise AssertionError\n"
        "class Normalize:\n    def __init__(self): self.mean, self.std = [0.5], [0.5]\n"
        "class Box: transform = [ToTensor(), Normalize()]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    record = jumar.derive_aipp(torchvision="my_training:Box.transform", image="bgr")
    assert record.data["transform"]["subtract"] == [127.5] * 3 and "my_training" in str(record.notes[0])
    for wrong in ("my_training:Box.nothing", "no_such_module:x", "my_training", ":x"):
        with pytest.raises(UsageError):
            jumar.derive_aipp(torchvision=wrong)
    sys.modules.pop("my_training")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "no transform was given"),
    ({"preprocess": IMAGENET, "mean": "1"}, "describe two transforms"),
    ({"mean": "1,x"}, "holds no numbers"),
    ({"preprocess": IMAGENET, "spelling": "max"}, "`max` is no spelling"),
    ({"preprocess": IMAGENET, "batch": 0}, "a batch of 0"),
    ({"preprocess": IMAGENET, "size": (0, 1)}, "is no size"),
    ({"preprocess": IMAGENET, "matrix": "470"}, "no colour standard"),
    ({"preprocess": IMAGENET, "soc": "Ascend910_95"}, "no public source describes AIPP"),
    ({"preprocess": 3}, "what `int` does"),
]


@pytest.mark.parametrize(("options", "message"), WRONG, ids=[message for _, message in WRONG])
def test_derive_refuses(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        jumar.derive_aipp(**options)


def test_emulate_pictures_arrays_and_bytes(tmp_path: Path, right: Path, net: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    np.save(tmp_path / "a.npy", pixels)
    (tmp_path / "a.ppm").write_bytes(b"P6\n# made here\n8 8\n255\n" + pixels.tobytes())
    (tmp_path / "a.rgb").write_bytes(pixels.tobytes())
    expected = ((pixels / 255 - IMAGENET["mean"]) / IMAGENET["std"]).transpose(2, 0, 1)[None]
    for name in ("a.npy", "a.ppm", "a.rgb"):
        record = jumar.emulate_aipp(right, tmp_path / name, output=tmp_path / "o.npz", model=net, soc="Ascend310P3")
        with np.load(tmp_path / "o.npz") as made:
            assert made.files == ["x"] and made["x"].dtype == np.float16
            assert np.abs(made["x"] - expected).max() < 0.002
        assert record.data["shape"] == [1, 3, 8, 8] and len(record.measurements) == 9
    both = jumar.emulate_aipp(right, np.stack([pixels, pixels]))
    assert both.data["array"].shape == (2, 3, 8, 8) and "no chip was named" in str(both.notes[-4:])
    bgr = jumar.emulate_aipp(right, pixels, kind="bgr").data["array"]
    assert np.abs(bgr - both.data["array"][0]).max() > 0.1


def test_emulate_yuv_and_open_sizes(tmp_path: Path) -> None:
    jumar.derive_aipp(IMAGENET, image="nv12", output=tmp_path / "y.cfg")
    pixels = np.full((4, 6, 3), (200, 100, 50), np.uint8)
    made = jumar.emulate_aipp(tmp_path / "y.cfg", pixels).data["array"]
    assert made.shape == (1, 3, 4, 6)
    assert np.abs(made[0, :, 0, 0] - (np.array([200, 100, 50]) / 255 - IMAGENET["mean"]) / IMAGENET["std"]).max() < 0.06, "three levels"
    with pytest.raises(UsageError, match="leaves the size of the image open"):
        jumar.emulate_aipp(tmp_path / "y.cfg", bytes(36))


def test_emulate_refuses(tmp_path: Path, right: Path, save_text: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = np.zeros((8, 9, 3), np.uint8)
    with pytest.raises(UsageError, match=r"the picture is 9 x 8 .* expected 8 x 8"):
        jumar.emulate_aipp(right, pixels)
    with pytest.raises(UsageError, match="`nv12` images do not go into RGB888_U8"):
        jumar.emulate_aipp(right, pixels[:, :8], kind="nv12")
    for name, data in (
        ("a.npy", b"\x93NUMPY"),
        ("b.ppm", b"P6 8 8 255 "),
        ("c.npz", b"PK"),
        ("d.ppm", b"P3\n1 1 255\n1 2 3"),
        ("e.ppm", b"#"),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(UsageError, match="cannot be read"):
            jumar.emulate_aipp(right, tmp_path / name)
    np.save(tmp_path / "f.npy", pixels.astype(np.float32))
    with pytest.raises(UsageError, match="dtype float32"):
        jumar.emulate_aipp(right, tmp_path / "f.npy")
    with pytest.raises(UsageError, match="input 0 of the model is no image"):
        jumar.emulate_aipp(right, bytes(192), model=save_text("agraph (float[2,3] x) => (float[2,3] y) { y = Relu(x) }"))
    (tmp_path / "two.cfg").write_text(right.read_text() * 2)
    with pytest.raises(UsageError, match="has blocks for the inputs 0, 0"):
        jumar.emulate_aipp(tmp_path / "two.cfg", bytes(192))
    monkeypatch.setitem(sys.modules, "PIL", None)
    (tmp_path / "a.png").write_bytes(b"x")
    with pytest.raises(ToolError, match="Pillow is not installed"):
        jumar.emulate_aipp(right, tmp_path / "a.png")


def test_check_proves_and_corrects(tmp_path: Path, right: Path, net: Path) -> None:
    record = jumar.check_aipp(right, soc="Ascend310P3", model=net, preprocess=IMAGENET)
    assert record.verdict == "ready" and record.data["blocks"][0]["equal"] and record.data["blocks"][0]["slips"] == []
    assert max(record.data["blocks"][0]["largest"]) < 0.002 and len(record.measurements) == 6
    wrong = tmp_path / "wrong.cfg"
    wrong.write_text(right.read_text().replace("rbuv_swap_switch: false", "rbuv_swap_switch: true"))
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    np.save(tmp_path / "a.npy", pixels)
    found = jumar.check_aipp(
        wrong, soc="Ascend310P3", model=net, preprocess=IMAGENET, images=[tmp_path / "a.npy"], output=tmp_path / "fixed.cfg"
    )
    assert codes(found) == ["AI108"] and found.findings[0].severity == "error" and found.data["blocks"][0]["slips"] == ["colours-swapped"]
    assert read_config((tmp_path / "fixed.cfg").read_text()) == read_config(right.read_text())
    assert jumar.check_aipp(wrong, preprocess=IMAGENET, kind="bgr").verdict == "ready", "right for images that are BGR"
    rounded = tmp_path / "rounded.cfg"
    rounded.write_text("aipp_op { aipp_mode: static input_format: RGB888_U8 mean_chn_0: 124 mean_chn_1: 116 mean_chn_2: 104 " + " ".join(f"var_reci_chn_{i}: {1 / (255 * s)}" for i, s in enumerate((0.229, 0.224, 0.225))) + " }")  # fmt: skip
    mild = jumar.check_aipp(rounded, preprocess=IMAGENET)
    assert codes(mild) == ["AI108"] and mild.findings[0].severity == "warning", "less than a grey level"


def test_check_without_a_transform(tmp_path: Path, net: Path, save_text: Callable[..., Path]) -> None:
    wrong = tmp_path / "wrong.cfg"
    wrong.write_text("aipp_op { aipp_mode: static input_format: RGB888_U8 related_input_rank: 3 }")
    assert codes(jumar.check_aipp(wrong, model=net)) == ["AI104"]
    normalised = save_text(NORMALISED, "normalised.onnx")
    jumar.derive_aipp(IMAGENET, output=wrong)
    twice = jumar.check_aipp(wrong, model=normalised)
    assert codes(twice) == ["AI109"] and twice.verdict == "blocked"
    wrong.write_text("aipp_op { aipp_mode: static input_format: RGB888_U8 }")
    once = jumar.check_aipp(wrong, model=normalised)
    assert codes(once) == ["AI109"] and once.findings[0].severity == "info"
    wrong.write_text("aipp_op { aipp_mode: dynamic max_src_image_size: 192 }")
    assert "block 0 is not compared" in str(jumar.check_aipp(wrong, preprocess=IMAGENET).notes[0])
    wrong.write_text("aipp_op { aipp_mode: static input_format: RGB888_U8 crop: true }")
    assert "cannot be compared" in " ".join(map(str, jumar.check_aipp(wrong, preprocess=IMAGENET).notes))
    wrong.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="it is no text"):
        jumar.check_aipp(wrong)


def test_guesses_give_way_to_the_proof(tmp_path: Path) -> None:
    """Numbers that look like a slip are right where the transform says so."""
    odd = tmp_path / "odd.cfg"
    odd.write_text("aipp_op { aipp_mode: static input_format: RGB888_U8 " + " ".join(f"var_reci_chn_{i}: 58.395" for i in range(3)) + " }")
    assert codes(jumar.check_aipp(odd)) == ["AI106"]
    assert codes(jumar.check_aipp(odd, preprocess={"std": 1 / 58.395, "scale": "none"})) == []


def test_move_there_and_back(tmp_path: Path, save_text: Callable[..., Path]) -> None:
    original = save_text(NORMALISED, "normalised.onnx")
    case = jumar.move_aipp(original, to="aipp", output=tmp_path / "bare.onnx", config=tmp_path / "a.cfg", soc="Ascend310P3")
    (step,) = case.record.steps
    assert step.proof is not None and step.proof.passed and step.proof.max_scaled < 1e-5 and step.status == "applied"
    assert {artifact.kind for artifact in case.record.artifacts} == {"model", "aipp"}
    assert [node.op_type for node in case.model.graph] == ["GlobalAveragePool"]
    assert case.record.measurements[0].value < 0.01 and case.record.measurements[0].origin == "simulator"
    assert jumar.check_aipp(tmp_path / "a.cfg", preprocess=IMAGENET, model=tmp_path / "bare.onnx").verdict == "ready"
    back = jumar.move_aipp(
        tmp_path / "bare.onnx", to="network", preprocess=IMAGENET, output=tmp_path / "again.onnx", config=tmp_path / "b.cfg"
    )
    assert read_config((tmp_path / "b.cfg").read_text()).ops[0]["var_reci_chn_0"] == 1
    assert back.record.steps[0].proof is not None and back.record.steps[0].proof.passed
    assert jumar.verify(tmp_path / "again.onnx", original).record.verdict == "ready"


def test_move_combines_scaling_and_network(save_text: Callable[..., Path]) -> None:
    """Training divides by 255, the network does the rest: AIPP gets both."""
    unit = NORMALISED.replace("123.675, 116.28, 103.53", "0.485, 0.456, 0.406").replace("58.395, 57.12, 57.375", "0.229, 0.224, 0.225")
    case = jumar.move_aipp(save_text(unit), to="aipp", preprocess={"scale": "x/255"})
    op = read_config(case.record.data["config"]).ops[0]
    assert (op["mean_chn_0"], op["min_chn_0"]) == (123, pytest.approx(0.675, abs=1e-4))


def test_move_refuses(net: Path, save_text: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match="is not normalised by the network"):
        jumar.move_aipp(net, to="aipp")
    with pytest.raises(UsageError, match="the transform has 1 channels"):
        jumar.move_aipp(net, to="network", preprocess={"order": "GRAY"})
    with pytest.raises(UsageError, match="no image input"):
        jumar.move_aipp(save_text("agraph (float[2,3] x) => (float[2,3] y) { y = Relu(x) }"), to="network")


def test_compile_judges_the_file_and_tells_what_it_takes(tmp_path: Path, right: Path, net: Path) -> None:
    case = jumar.compile(net, output=tmp_path / "out", soc="Ascend310P3", aipp=right, dry_run=True)
    assert not [code for code in codes(case.record) if code.startswith("AI")]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["aipp"]["path"] == "right.cfg"
    (block,) = manifest["aipp"]["blocks"]
    assert (block["name"], block["format"], block["bytes"], block["output"]) == ("x", "RGB888_U8", 192, [8, 8])
    wrong = tmp_path / "wrong.cfg"
    wrong.write_text(right.read_text().replace("src_image_size_w: 8", "src_image_size_w: 16"))
    found = jumar.compile(net, output=tmp_path / "out2", soc="Ascend310P3", aipp=wrong, dry_run=True, options={"input_fp16_nodes": "x"})
    assert {"AI102", "AI104"} <= set(codes(found.record)) and found.record.verdict == "blocked"


def test_migrate_takes_a_file_along(tmp_path: Path, right: Path, net: Path) -> None:
    case = jumar.migrate(net, output=tmp_path / "bundle", soc="Ascend310P3", aipp=right, dry_run=True)
    assert case.record.verdict == "ready"
    manifest = json.loads((tmp_path / "bundle" / "manifest.json").read_text())
    assert manifest["aipp"]["blocks"][0]["bytes"] == 192 and "--insert_op_conf=right.cfg" in manifest["command"]
    with pytest.raises(UsageError, match="is not there"):
        jumar.migrate(net, output=tmp_path / "other", soc="Ascend310P3", aipp="nowhere.cfg")
    assert not (tmp_path / "other").exists()


def test_the_model_is_run_behind_both(tmp_path: Path, right: Path, net: Path) -> None:
    record = jumar.check_aipp(right, preprocess=IMAGENET, model=net, run=True)
    assert "largest element is the same for 1 of 1 images" in str(record.notes[-1])
    assert record.measurements[-2].name == "y max_scaled behind AIPP" and record.measurements[-2].value < 1e-3
    wrong = tmp_path / "wrong.cfg"
    wrong.write_text(right.read_text().replace("rbuv_swap_switch: false", "rbuv_swap_switch: true"))
    spoiled = jumar.check_aipp(wrong, preprocess=IMAGENET, model=net, run=True)
    assert next(item.value for item in spoiled.measurements if "max_scaled" in item.name) > 0.1
    with pytest.raises(UsageError, match="there is nothing to run"):
        jumar.check_aipp(right, model=net, run=True)
