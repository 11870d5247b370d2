"""Random valid calls pass; each single corruption of them is caught with the right code."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from jumar.atc.lint import lint_text
from jumar.atc.options import Options, atc_flags, check, parse_argv, render
from jumar.targets import socs

SETTINGS = settings(max_examples=150, deadline=None)
# Chips that take open shapes and every precision mode below; the others have tests of their own.
SOCS = [name for name in socs() if name.startswith(("Ascend310P", "Ascend910_93", "Ascend910B1", "Ascend910B2", "Ascend910B3"))]
NAMES = st.from_regex(r"[a-z][a-z0-9_./]{0,8}", fullmatch=True)
SIZES = st.integers(1, 4096)
# Values that any call may have, without a bearing on other flags.
FREE = {
    "log": ("debug", "info", "warning", "error", "null"),
    "input_format": ("NCHW", "ND", "NCDHW"),
    "disable_reuse_memory": ("0", "1"),
    "external_weight": ("0", "1", "2"),
    "buffer_optimize": ("l1_optimize", "l2_optimize", "off_optimize"),
    "op_debug_level": ("0", "1", "2", "3", "4"),
    "op_compiler_cache_mode": ("enable", "disable", "force"),
    "status_check": ("0", "1"),
    "jit_compile": ("0", "1", "2"),
    "host_env_cpu": ("x86_64", "aarch64", "arm64", "arm"),
    "host_env_os": ("linux", "minios"),
    "output_type": ("FP32", "FP16", "UINT8", "INT8"),
    "enable_single_stream": ("true", "false"),
    "is_input_adjust_hw_layout": ("true", "true,false"),
    "keep_dtype": ("keep.cfg",),
    "op_precision_mode": ("precision.ini",),
    "fusion_switch_file": ("switch.cfg",),
    "out_nodes": ("a:0", "a:0;b:1", "scores"),
}
PRECISION = st.sampled_from(
    [
        {},
        {"precision_mode": "force_fp16"},
        {"precision_mode": "allow_mix_precision", "modify_mixlist": "mix.json"},
        {"precision_mode_v2": "fp16"},
        {"precision_mode_v2": "mixed_float16", "modify_mixlist": "mix.json"},
    ]
)


@dataclass(frozen=True)
class Shapes:
    """Inputs, and the gears that fill their open places."""

    values: dict[str, str]
    kind: str


@st.composite
def shapes(draw: st.DrawFn, kind: str | None = None) -> Shapes:
    kind = kind or draw(st.sampled_from(["static", "range", "dynamic_batch_size", "dynamic_image_size", "dynamic_dims"]))
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    sizes = {name: [str(draw(SIZES)) for _ in range(4)] for name in names}
    places: list[tuple[str, int]] = []
    if kind == "dynamic_batch_size":
        places = [(name, 0) for name in names[: draw(st.integers(1, len(names)))]]
    elif kind == "dynamic_image_size":
        places = [(names[0], 2), (names[0], 3)]
    elif kind == "dynamic_dims":
        every = [(name, index) for name in names for index in range(4)]
        places = draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True))
    for name, index in places:
        sizes[name][index] = "-1"
    if kind == "range":
        low = draw(st.integers(1, 64))
        sizes[names[0]][draw(st.integers(0, 3))] = draw(st.sampled_from([f"{low}~{low + draw(st.integers(0, 64))}", f"{low}~-1", "-1"]))
    values = {"input_shape": ";".join(f"{name}:{','.join(dims)}" for name, dims in sizes.items())}
    if places:
        width = 1 if kind == "dynamic_batch_size" else len(places)
        gears = draw(st.lists(st.tuples(*[SIZES] * width), min_size=2, max_size=8, unique=True))
        texts = [",".join(map(str, gear)) for gear in gears]
        values[kind] = ("," if kind == "dynamic_batch_size" else ";").join(texts)
    return Shapes(values, kind)


@st.composite
def calls(draw: st.DrawFn, kind: str | None = None) -> Options:
    found = draw(shapes(kind))
    free = draw(st.lists(st.sampled_from(sorted(FREE)), max_size=6, unique=True))
    values = {
        "model": draw(NAMES) + ".onnx",
        "framework": "5",
        "output": draw(NAMES),
        "soc_version": draw(st.sampled_from(SOCS)),
        **found.values,
        **draw(PRECISION),
        **{name: draw(st.sampled_from(FREE[name])) for name in free},
    }
    if found.kind == "dynamic_image_size":
        values["input_format"] = "NCHW"
    if values["output"].endswith("/"):
        values["output"] += "m"
    items = draw(st.permutations(list(values.items())))
    return Options(dict(items))


def errors(options: Options) -> set[tuple[str, str]]:
    found = [problem for problem in check(options) if problem.severity == "error"]
    return {(problem.code, atc) for problem in found for atc in problem.atc or ("",)}


@SETTINGS
@given(calls())
def test_a_valid_call_passes(options: Options) -> None:
    assert [str(problem.message) for problem in check(options) if problem.severity != "info"] == []


@SETTINGS
@given(calls(), st.booleans(), st.booleans())
def test_a_valid_call_passes_as_it_is_typed(options: Options, spaced: bool, lines: bool) -> None:
    """Through the shell: quoted, with `--name value` or `--name=value`, on one line or several."""
    words = [shlex.quote(word) for word in render(options)]
    if spaced:
        words = [f"--{name} {shlex.quote(value)}" for name, value in options.values.items()]
    linted = lint_text("atc " + (" \\\n    " if lines else " ").join(words), kind="shell")
    (call,) = linted.calls
    assert dict(call.options.values) == dict(options.values)
    assert not [problem for problem in call.problems if problem.severity != "info"]


# A corruption: what it does to a valid call, which kind of call it needs, and the codes it must be caught with.
Corruption = tuple[str | None, Callable[[Options], Options], tuple[str, str]]


def changed(**changes: str | None) -> Callable[[Options], Options]:
    return lambda options: options.with_(**changes)


def edited(name: str, edit: Callable[[str], str]) -> Callable[[Options], Options]:
    return lambda options: options.with_(**{name: edit(options.get(name))})


def opened(shape: str) -> str:
    """The last -1 becomes a number: one place fewer than the gears fill."""
    head, _, tail = shape.rpartition("-1")
    return f"{head}7{tail}"


CORRUPTIONS: list[Corruption] = [
    (None, changed(soc_version=None), ("AT903", "E10054")),
    (None, changed(model=None), ("AT903", "E10054")),
    (None, changed(output=""), ("AT903", "E10054")),
    (None, changed(framework=None), ("AT903", "E10007")),
    (None, changed(framework="2"), ("AT902", "E10007")),
    (None, changed(framework="1"), ("AT908", "E10041")),
    (None, changed(soc_version="Ascend310P"), ("AT905", "")),
    (None, edited("soc_version", str.lower), ("AT905", "")),
    (None, changed(log="Error"), ("AT902", "E10010")),
    (None, changed(precision_mode="fp16", precision_mode_v2=None, modify_mixlist=None), ("AT902", "E10001")),
    (None, changed(precision_mode="force_fp16", precision_mode_v2="fp16"), ("AT904", "E10056")),
    (None, changed(modify_mixlist="mix.json", precision_mode="force_fp32", precision_mode_v2=None), ("AT904", "E10001")),
    (None, changed(auto_tune_mode="RL"), ("AT910", "E10001")),
    (None, changed(optypelist_for_implmode="Gelu"), ("AT903", "E10001")),
    (None, changed(om="a.om"), ("AT904", "E10057")),
    (None, edited("output", lambda output: output + "/"), ("AT902", "E10022")),
    ("static", edited("input_shape", lambda shape: shape.rpartition(":")[2]), ("AT906", "E10002")),
    ("static", edited("input_shape", lambda shape: shape + ",0"), ("AT906", "E10011")),
    ("static", edited("input_shape", lambda shape: shape + ",a"), ("AT906", "E10002")),
    ("static", edited("input_shape", lambda shape: shape + ",9~8"), ("AT906", "E10002")),
    ("static", lambda options: options.with_(input_shape_range=options.get("input_shape")), ("AT906", "E10048")),
    ("static", changed(dynamic_dims="1;2"), ("AT907", "E10001")),
    ("static", changed(dynamic_batch_size="1,2"), ("AT907", "E10031")),
    ("range", changed(dynamic_batch_size="1,2", input_shape="x:1~2,3"), ("AT904", "E10040")),
    ("range", changed(soc_version="Ascend310B1"), ("AT909", "")),
    ("range", changed(soc_version="Ascend310"), ("AT909", "")),
    ("dynamic_dims", changed(insert_op_conf="aipp.cfg"), ("AT904", "E10001")),
    ("dynamic_dims", changed(input_shape=None), ("AT903", "E10004")),
    ("dynamic_dims", changed(input_shape_range="x:[1~2]"), ("AT904", "E10009")),
    ("dynamic_dims", changed(input_hint_shape="0:[1]"), ("AT904", "E10001")),
    ("dynamic_dims", edited("dynamic_dims", lambda gears: gears.split(";")[0]), ("AT907", "E10035")),
    ("dynamic_dims", edited("dynamic_dims", lambda gears: f"{gears};{gears.split(';')[0]}"), ("AT907", "E10039")),
    ("dynamic_dims", edited("dynamic_dims", lambda gears: f"{gears},3"), ("AT907", "E10037")),
    ("dynamic_dims", edited("dynamic_dims", lambda gears: f"{gears}x"), ("AT907", "E10001")),
    ("dynamic_dims", edited("dynamic_dims", lambda gears: gears.replace(";", "; ")), ("AT907", "E10001")),
    (
        "dynamic_dims",
        edited("dynamic_dims", lambda gears: f"{gears};{','.join('0' for _ in gears.split(';')[0].split(','))}"),
        ("AT907", "E10038"),
    ),
    ("dynamic_batch_size", edited("dynamic_batch_size", lambda gears: f"{gears},-1"), ("AT907", "E10003")),
    ("dynamic_batch_size", edited("dynamic_batch_size", lambda gears: gears.replace(",", ";")), ("AT907", "E10003")),
    ("dynamic_batch_size", edited("input_shape", lambda shape: shape.rpartition(",")[0] + ",-1"), ("AT907", "E10018")),
    ("dynamic_batch_size", changed(dynamic_batch_size=",".join(map(str, range(1, 102)))), ("AT907", "E10036")),
    ("dynamic_batch_size", edited("input_shape", lambda shape: shape.replace("-1", "1")), ("AT907", "E10031")),
    ("dynamic_image_size", changed(input_format="ND"), ("AT907", "E10003")),
    ("dynamic_image_size", edited("dynamic_image_size", lambda gears: f"{gears},3"), ("AT907", "E10020")),
    ("dynamic_image_size", edited("input_shape", opened), ("AT907", "E10019")),
]


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_each_corruption_is_caught(data: st.DataObject) -> None:
    kind, corrupt, code = data.draw(st.sampled_from(CORRUPTIONS))
    options = data.draw(calls(kind))
    assert errors(options) == set()
    assert code in errors(corrupt(options))


@SETTINGS
@given(calls(), st.data())
def test_a_misspelt_flag_is_caught_and_named(options: Options, data: st.DataObject) -> None:
    words = render(options)
    place = data.draw(st.integers(0, len(words) - 1))
    name, _, value = words[place].removeprefix("--").partition("=")
    cut = data.draw(st.integers(1, len(name) - 1))
    slip = name[:cut] + "q" + name[cut:]
    words[place] = f"--{slip}={value}"
    assert slip not in atc_flags()
    found = [problem for problem in parse_argv(words)[1] if problem.code == "AT901"]
    assert [problem.severity for problem in found] == ["error"]
    if len(name) > 6:
        assert found[0].flag == name


@SETTINGS
@given(calls("dynamic_dims"))
def test_lost_quotes_are_caught(options: Options) -> None:
    """The shell would run what is behind the first `;` as a program; what is reported is that, and the call is judged as it was meant."""
    linted = lint_text("atc " + " ".join(render(options)).replace("scores", "a:0"), kind="shell")
    (call,) = linted.calls
    found = {problem.code for problem in call.problems if problem.severity == "error"}
    assert found == {"AT911"}


@SETTINGS
@given(calls(), st.data())
def test_glued_flags_are_caught(options: Options, data: st.DataObject) -> None:
    words = [shlex.quote(word) for word in render(options)]
    place = data.draw(st.integers(1, len(words) - 1))
    text = " ".join(words[:place]) + " ".join(words[place:])
    (call,) = lint_text(f"atc {text}", kind="shell").calls
    assert [problem.code for problem in call.problems if problem.severity == "error"] == ["AT911"]
    assert dict(call.options.values) == dict(options.values)
