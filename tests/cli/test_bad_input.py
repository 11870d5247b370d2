"""Whatever is wrong with the input: status 2, one line on stderr in the wanted language, nothing on stdout, no file touched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from jumar.cli.main import VERBS

Make = Callable[[Path], list[str]]
SOC = ["--soc", "Ascend310P3"]
CHINESE = re.compile("[\u4e00-\u9fff]")


def relu(folder: Path, dims: str = "2,3") -> str:
    path = folder / "relu.onnx"
    ir.save(
        ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 13]> agraph (float[{dims}] x) => (float[{dims}] y) {{ y = Relu(x) }}'), path
    )
    return str(path)


def external(folder: Path, location: str, size: int = 24) -> str:
    """A model whose weight lies in ``location``."""
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, "offset": "0", "length": str(size)}.items():
        weight.external_data.add(key=key, value=value)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y], [weight])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    path = folder / "inside" / "external.onnx"
    path.parent.mkdir()
    path.write_bytes(model.SerializeToString())
    return str(path)


def file(name: str, data: bytes) -> Make:
    def make(folder: Path) -> list[str]:
        (folder / name).write_bytes(data)
        return ["check", str(folder / name), *SOC]

    return make


def truncated(folder: Path) -> list[str]:
    path = Path(relu(folder))
    path.write_bytes(path.read_bytes()[:-7])
    return ["check", str(path), *SOC]


def checker(folder: Path) -> list[str]:
    model = onnx.load(relu(folder))
    model.graph.node[0].op_type = "Bogus"
    (folder / "relu.onnx").write_bytes(model.SerializeToString())
    return ["check", str(folder / "relu.onnx"), *SOC]


def parent_folder(folder: Path) -> list[str]:
    (folder / "w.bin").write_bytes(bytes(24))
    return ["check", external(folder, "../w.bin"), *SOC]


def absolute(folder: Path) -> list[str]:
    return ["check", external(folder, "/etc/hostname", 1), *SOC]


def link(folder: Path) -> list[str]:
    (folder / "w.bin").write_bytes(bytes(24))
    path = external(folder, "w.bin")
    (folder / "inside" / "w.bin").symlink_to(folder / "w.bin")
    return ["check", path, *SOC]


def short(folder: Path) -> list[str]:
    path = external(folder, "w.bin")
    (folder / "inside" / "w.bin").write_bytes(bytes(23))
    return ["check", path, *SOC]


def with_model(verb: str, *words: str, dims: str = "2,3") -> Make:
    """``{folder}`` in the words is replaced."""
    return lambda folder: [verb, relu(folder, dims), *(word.replace("{folder}", str(folder)) for word in words)]


def fed(**arrays: object) -> Make:
    def make(folder: Path) -> list[str]:
        np.savez(folder / "feeds.npz", **arrays)  # type: ignore[arg-type]
        return ["fix", relu(folder), *SOC, "-o", str(folder / "o.onnx"), "--feeds", str(folder / "feeds.npz")]

    return make


def fed_text(verb: str) -> Make:
    def make(folder: Path) -> list[str]:
        (folder / "feeds.npz").write_text("x = 1")
        return [verb, relu(folder), *SOC, "-o", str(folder / "out"), "--feeds", str(folder / "feeds.npz")]

    return make


def below_a_file(verb: str, *words: str) -> Make:
    """The tests run as root, for whom every directory is writable; nobody can write below a regular file."""

    def make(folder: Path) -> list[str]:
        (folder / "plain").write_text("mine")
        return [verb, relu(folder), *words, str(folder / "plain" / "out.onnx")]

    return make


def there_already(*words: str) -> Make:
    def make(folder: Path) -> list[str]:
        (folder / "bundle").mkdir()
        (folder / "bundle" / "notes.txt").write_text("mine")
        return ["migrate", relu(folder), *SOC, "-o", str(folder / "bundle"), *words]

    return make


def log(data: bytes, *words: str) -> Make:
    def make(folder: Path) -> list[str]:
        (folder / "a.log").write_bytes(data)
        return ["diagnose", str(folder / "a.log"), *words]

    return make


def om_of(data: bytes) -> Make:
    def make(folder: Path) -> list[str]:
        (folder / "a.om").write_bytes(data)
        return ["inspect", str(folder / "a.om")]

    return make


BAD: dict[str, tuple[Make, str]] = {
    "missing file": (lambda folder: ["check", str(folder / "no.onnx"), *SOC], "no.onnx` does not exist; "),
    "empty file": (file("empty.onnx", b""), "empty.onnx` is empty; "),
    "text file": (file("text.onnx", b"hello\n"), "(it is a text file); "),
    "zip file": (file("zip.onnx", b"PK\x03\x04" + bytes(range(200))), "(it is a ZIP archive, perhaps a PyTorch checkpoint); "),
    "lfs pointer": (file("lfs.onnx", b"version https://git-lfs.github.com/spec/v1\n"), "run `git lfs pull`); "),
    "truncated": (truncated, "relu.onnx` is not an ONNX protobuf or is truncated; "),
    "directory": (lambda folder: ["check", str(folder), *SOC], "` is a directory; "),
    "checker": (checker, "relu.onnx` fails the ONNX checker: "),
    "weights missing": (lambda folder: ["check", external(folder, "w.bin"), *SOC], "weights of `w` are missing: `w.bin` is not next to"),
    "weights short": (short, "weights of `w` need bytes 0 to 24 of `w.bin`; the file has 23 bytes"),
    "weights above": (parent_folder, "weights of `w` point to `../w.bin`, outside the model's folder; "),
    "weights absolute": (absolute, "weights of `w` point to `/etc/hostname`, outside the model's folder; "),
    "weights by link": (link, "weights of `w` point through a link to a file outside the model's folder (`w.bin`); "),
    "no soc": (with_model("check"), "no target was named; expected --soc NAME or --target PROFILE; "),
    "unknown soc": (with_model("check", "--soc", "Ascend999"), "`Ascend999` is not a soc_version; "),
    "family": (
        with_model("check", "--soc", "Ascend310P"),
        "`Ascend310P` is a family of SoCs, not a soc_version; expected one of: Ascend310P1, Ascend310P3, Ascend310P5, Ascend310P7; ",
    ),
    "unknown profile": (with_model("check", "--target", "mdc1"), "`mdc1` is not a target profile; expected one of: mdc510pro; "),
    "two socs": (with_model("check", *SOC, "--target", "mdc510pro"), "--soc Ascend310P3 and --target mdc510pro name two SoCs; "),
    "unknown cann": (with_model("check", *SOC, "--cann", "1.0"), "no operator tables for CANN 1.0; expected one of: "),
    "opset too high": (with_model("check", *SOC, "--opset-max", "99"), "opset ceiling 99 is outside what CANN 8.1.RC1 parses; "),
    "opset negative": (with_model("check", *SOC, "--opset-max", "-1"), "opset ceiling -1 is outside what CANN 8.1.RC1 parses; "),
    "opset no number": (with_model("check", *SOC, "--opset-max", "x"), "Invalid value for '--opset-max'"),
    "shape of nothing": (
        with_model("check", *SOC, "--shape", "z:2,3"),
        "the model has no input `z`; expected one of: x; correct --shape",
    ),
    "shape rank": (with_model("check", *SOC, "--shape", "x:2,3,1"), "shape [2, 3, 1] does not fit input `x`; expected [2, 3]; "),
    "shape fixed": (with_model("check", *SOC, "--shape", "x:2,4"), "shape [2, 4] does not fit input `x`; expected [2, 3]; "),
    "shape malformed": (with_model("check", *SOC, "--shape", "x=2,3"), "`x=2,3` is not a shape; expected NAME:SIZE,SIZE,... "),
    "shape of no name": (with_model("check", *SOC, "--shape", ":2,3"), "`:2,3` is not a shape; "),
    "shape no number": (with_model("check", *SOC, "--shape", "x:a,b"), "`x:a,b` is not a shape; "),
    "shape zero": (with_model("check", *SOC, "--shape", "x:0,3", dims="N,3"), "`x:0,3` is not a shape; "),
    "shape huge": (with_model("check", *SOC, "--shape", f"x:{10**30},3", dims="N,3"), f"`x:{10**30},3` is not a shape; "),
    "select": (with_model("fix", *SOC, "-o", "{folder}/o.onnx", "--select", "XX999"), "`XX999` is not a known code; expected one of: "),
    "unsafe": (with_model("fix", *SOC, "-o", "{folder}/o.onnx", "--unsafe", "XX999"), "`XX999` is not a known code; "),
    "select in migrate": (with_model("migrate", *SOC, "-o", "{folder}/b", "--select", "XX999"), "`XX999` is not a known code; "),
    "explain": (lambda _folder: ["explain", "XX999"], "`XX999` is not a known code; "),
    "targets show": (lambda _folder: ["targets", "show", "Nothing"], "`Nothing` is not a soc_version; "),
    "feeds missing": (
        with_model("fix", *SOC, "-o", "{folder}/o.onnx", "--feeds", "{folder}/f.npz"),
        "f.npz` cannot be read: no such file; expected a .npz of plain arrays keyed by input name; ",
    ),
    "feeds missing in migrate": (with_model("migrate", *SOC, "-o", "{folder}/b", "--feeds", "{folder}/f.npz"), "f.npz` cannot be read: "),
    "feeds no npz": (fed_text("fix"), "feeds.npz` cannot be read: "),
    "feeds no npz in migrate": (fed_text("migrate"), "feeds.npz` cannot be read: "),
    "feeds pickled": (fed(x=np.array([{"a": 1}], dtype=object)), "feeds.npz` cannot be read: Object arrays cannot be loaded"),
    "feeds names": (fed(z=np.zeros((2, 3), "float32")), "the feeds lack ['x'] and have unknown ['z']; expected exactly: x; "),
    "feeds rank": (fed(x=np.zeros(3, "float32")), "feed `x` is float32(3,); expected float"),
    "feeds kind": (fed(x=np.full((2, 3), "a")), "feed `x` is <U1(2, 3); expected float"),
    "reduce, no failure": (
        with_model("reduce", "--check", "true", "-o", "{folder}/s.onnx"),
        "the check does not fail on the model as given; expected an exit status other than 0 (or one of --fail-code), in time; ",
    ),
    "reduce, no program": (with_model("reduce", "--check", "{folder}/none", "-o", "{folder}/s.onnx"), "none` cannot be started: "),
    "no reference": (with_model("verify"), "no reference was given; expected a second model to compare with; name it with --against"),
    "reference missing": (with_model("verify", "--against", "{folder}/no.onnx"), "no.onnx` does not exist; "),
    "bound": (with_model("verify", "--against", "{folder}/relu.onnx", "--bound", "nan"), "--bound nan makes no sense; "),
    "bound negative": (with_model("migrate", *SOC, "-o", "{folder}/b", "--bound", "-0.1"), "--bound -0.1 makes no sense; "),
    "timeout": (with_model("compile", *SOC, "-o", "{folder}/b", "--timeout", "0"), "--timeout 0 makes no sense; "),
    "unwritable fix": (below_a_file("fix", *SOC, "-o"), "plain/out.onnx` cannot be written: "),
    "unwritable migrate": (below_a_file("migrate", *SOC, "-o"), "plain/out.onnx` cannot be written: Not a directory; "),
    "unwritable compile": (below_a_file("compile", *SOC, "-o"), "cannot be written: Not a directory; "),
    "compile into a file": (with_model("compile", *SOC, "-o", "{folder}/relu.onnx"), "relu.onnx` is a file; "),
    "bundle exists": (there_already(), "bundle` exists already; expected a new place; "),
    "foreign directory": (there_already("--resume"), "bundle` exists and is no bundle of Jumar's; expected a new place; "),
    "fold limit": (with_model("fix", *SOC, "-o", "{folder}/o.onnx", "--fold-limit", "big"), "`big` is not a size; "),
    "fold limit negative": (with_model("fix", *SOC, "-o", "{folder}/o.onnx", "--fold-limit", "-1KB"), "`-1KB` is not a size; "),
    "fold limit empty": (with_model("fix", *SOC, "-o", "{folder}/o.onnx", "--fold-limit", ""), "`` is not a size; "),
    "precision": (
        with_model("compile", *SOC, "-o", "{folder}/o", "--precision-mode", "fp8"),
        "`fp8` is not a precision mode; expected one of: fp16, origin, ",
    ),
    "precision in migrate": (with_model("migrate", *SOC, "-o", "{folder}/b", "--precision-mode", "fp8"), "`fp8` is not a precision mode; "),
    "open shape": (with_model("compile", *SOC, "-o", "{folder}/o", dims="N,3"), "input `x` has no fixed shape; "),
    "quantize without samples": (with_model("quantize", *SOC, "-o", "{folder}/q"), "no samples to calibrate on were given; "),
    "quantize samples missing": (
        with_model("quantize", *SOC, "-o", "{folder}/q", "--calib", "{folder}/no.npz"),
        "no.npz` cannot be read: no such file or folder; expected an .npz with samples along the first axis, ",
    ),
    "quantize an empty folder": (
        lambda folder: ["quantize", relu(folder), *SOC, "-o", str(folder / "q"), "--calib", str(folder)],
        "there is no .npy, .npz or image in it; ",
    ),
    "quantize method": (
        with_model("quantize", *SOC, "-o", "{folder}/q", "--calib", "c", "--method", "best"),
        "`best` of --method is no calibration method; expected one of: auto, histogram, max, mse, entropy, percentile; ",
    ),
    "quantize metric": (
        with_model("quantize", *SOC, "-o", "{folder}/q", "--calib", "c", "--metric", "sqnr"),
        "`sqnr` is no metric of agreement; ",
    ),
    "quantize drop": (
        with_model("quantize", *SOC, "-o", "{folder}/q", "--calib", "c", "--max-drop", "nan"),
        "--max-drop nan makes no sense; ",
    ),
    "quantize configuration": (
        with_model("quantize", *SOC, "-o", "{folder}/q", "--calib", "c", "--config", "{folder}/relu.onnx"),
        "relu.onnx` is no quantisation configuration: ",
    ),
    "migrate in int8 without samples": (
        with_model("migrate", *SOC, "-o", "{folder}/b", "--quantize", "int8"),
        "--quantize int8 has no samples; ",
    ),
    "migrate with samples for nothing": (
        with_model("migrate", *SOC, "-o", "{folder}/b", "--calib", "c.npz"),
        "options of --quantize are given without it; ",
    ),
    "quantize for nothing": (with_model("quantize", "-o", "{folder}/q", "--calib", "{folder}/c.npz"), "no target was named; "),
    "om missing": (lambda folder: ["inspect", str(folder / "no.om")], "no.om` does not exist; "),
    "om truncated": (om_of(b"IMOD" + bytes(100)), "a.om` cannot be read as an .om: the header has 104 of 256 bytes; "),
    "om text": (om_of(b"hello\n"), "a.om` cannot be read as an .om: it is a text file; "),
    "no bundle": (lambda folder: ["inspect", str(folder)], "` has no manifest.json; "),
    "inspect onnx for a soc": (with_model("inspect", *SOC), "which is no .om; expected an .om file with --soc; "),
    "view missing": (lambda folder: ["view", str(folder / "no.onnx")], "no.onnx` is not a file; "),
    "view port": (with_model("view", "--port", "0"), "--port 0 makes no sense; "),
    "unknown option": (with_model("check", *SOC, "--bogus"), "there is no option `--bogus`; "),
    "missing argument": (lambda _folder: ["check"], "`MODEL` is missing; see `jumar check --help`"),
    "missing output": (with_model("fix", *SOC), "`-o` / `--output` is missing; see `jumar fix --help`"),
    "missing value": (with_model("check", "--soc"), "Option '--soc' requires an argument; see `jumar --help`"),
    "extra argument": (with_model("check", "more.onnx", *SOC), "Got unexpected extra argument"),
    "unknown verb": (lambda _folder: ["chek", "model.onnx"], "No such command 'chek'"),
    "unknown format": (with_model("check", *SOC, "--format", "xml"), "Invalid value for '--format'"),
    "diagnose nothing": (lambda _folder: ["diagnose", "no.log"], "`no.log` does not exist and is no error code; expected a log, "),
    "diagnose empty": (log(b""), "a.log` is empty; expected the text of a log; "),
    "diagnose binary": (log(bytes(range(256)) * 40), "a.log` holds no text; expected a log of ATC, "),
    "diagnose no gzip": (log(b"\x1f\x8b\x08\x00 damaged"), "a.log` cannot be read: "),
    "diagnose an empty folder": (lambda folder: ["diagnose", str(folder)], "` holds no log; expected files such as plog-"),
    "diagnose status": (log(b"x", "--status", "9999"), "--status 9999 makes no sense; "),
    "diagnose a code and a model": (
        lambda folder: ["diagnose", "E19010", "--model", relu(folder)],
        "a model does not bear on a code alone; expected a log beside --model; ",
    ),
    "diagnose with a model and no target": (
        lambda folder: [*log(b"E16005: x\n")(folder), "--model", relu(folder)],
        "no target was named; expected --soc NAME or --target PROFILE beside --model; ",
    ),
    "compile no gears": (with_model("compile", "-o", "out", *SOC, "--gears", "foo"), "`foo` states no gears; expected for example "),
    "compile one gear": (
        lambda folder: ["compile", relu(folder, "n,3"), "-o", str(folder / "out"), *SOC, "--gears", "batch 4"],
        "there is one gear; expected at least 2 (ATC: E10035); ",
    ),
    "compile a fixed dimension": (
        with_model("compile", "-o", "out", *SOC, "--gears", "batch 1,4"),
        "dimension 0 of `x` is fixed at 2 in the model; expected an open dimension: -; ",
    ),
    "compile no histogram": (with_model("compile", "-o", "out", *SOC, "--gears-from", "no.csv"), "`no.csv` is no histogram of shapes: "),
    "compile no pair": (with_model("compile", "-o", "out", *SOC, "--atc", "log"), "`log` of --atc is no NAME=VALUE"),
    "compile unknown flag": (
        with_model("compile", "-o", "out", *SOC, "--atc", "precision=fp16"),
        "ATC has no flag --precision; expected perhaps ",
    ),
    "compile memory": (with_model("compile", "-o", "out", *SOC, "--memory-limit", "x"), "`x` is not a size; "),
    "export without a target": (lambda _folder: ["export", "nets:make", "-o", "m.onnx"], "no target was named; "),
    "export without output": (lambda _folder: ["export", "nets:make", *SOC], "`-o` / `--output` is missing; see `jumar export --help`"),
    "export unknown exporter": (
        lambda _folder: ["export", "nets:make", "-o", "m.onnx", *SOC, "--exporter", "caffe"],
        "there is no exporter `caffe`; expected dynamo, torchscript; ",
    ),
    "export no open dimensions": (
        lambda _folder: ["export", "nets:make", "-o", "m.onnx", *SOC, "--dynamic", "x"],
        "`x` states no open dimensions; expected NAME:AXIS=LOW..HIGH,",
    ),
    "doctor no manifest": (
        lambda folder: ["doctor", "--against", str(folder)],
        "manifest.json` cannot be read: No such file or directory; ",
    ),
    "no verb": (
        lambda _folder: [],
        f"no command was given; expected one of: {', '.join((*VERBS, 'aipp', 'targets'))}; ",
    ),
    "no verb of targets": (
        lambda _folder: ["targets"],
        "no command was given; expected one of: list, show, diff, import; see `jumar targets --help`",
    ),
}


def contents(folder: Path) -> dict[str, bytes | None]:
    def files() -> Iterator[tuple[str, bytes | None]]:
        for path in sorted(folder.rglob("*")):
            yield str(path.relative_to(folder)), path.read_bytes() if path.is_file() else None

    return dict(files())


@pytest.mark.parametrize("name", BAD)
def test_one_line_says_it_and_nothing_is_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jumar: Callable[..., tuple[int, str, str]]
) -> None:
    make, expected = BAD[name]
    argv = make(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = contents(tmp_path)
    status, out, err = jumar(*argv)
    assert expected in err
    assert err.startswith("jumar: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert not CHINESE.search(err)
    assert "internal error" not in err
    assert (status, out) == (2, "")
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", BAD)
def test_the_line_is_chinese_when_asked_for(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jumar: Callable[..., tuple[int, str, str]]
) -> None:
    argv = BAD[name][0](tmp_path)
    monkeypatch.chdir(tmp_path)
    before_verb = jumar("--lang", "zh", *argv)
    if name not in ("no verb", "no verb of targets", "targets show"):  # there is no verb, or options come after its second word
        assert jumar(argv[0], "--lang=zh", "--format", "json", *argv[1:]) == before_verb
    status, out, err = before_verb
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert CHINESE.search(err)
    assert "内部错误" not in err
