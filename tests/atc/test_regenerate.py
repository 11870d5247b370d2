"""Real commands are made again from what they say of the model, the SoC, the shapes and the options."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import onnx_ir as ir
import pytest

from jumar.atc.command import OWN_FLAGS, build_command, check_options
from jumar.atc.gear_words import Stated, read_gears
from jumar.atc.gears import Kind, make_gears
from jumar.atc.options import atc_flags, parse_argv
from jumar.errors import JumarError
from jumar.targets import Target, find_target, socs

KINDS: dict[str, Kind] = {"dynamic_batch_size": "batch", "dynamic_image_size": "image", "dynamic_dims": "dims"}
VARIABLE = re.compile(r"\$\{?\w+\}?|\{[^{}]*\}|\$\d")

# What is not made again of 529 commands, and how often. 4-D inputs apart, a command without --input_format says NCHW by default, and
# Jumar ND, which claims nothing; the other differences are slips of those who wrote the commands.
EXCEPTIONS = {
    "differs: input_format": 8,
    # "image:" with its sizes lost
    "differs: input_shape": 1,
    # full-width braces around a variable, and the letter n for a number
    "UsageError: `image:$｛bs｝,3,1024,2048` states no gears": 1,
    "UsageError: `images:n,3,416,416` states no gears": 1,
    # two variables, which are one number here
    "UsageError: gears 1 and 2 are the same": 1,
}


def shapes_of(text: str) -> dict[str, list[str]]:
    """``x:1,3,-1`` -> the dimensions as written; ``[...]`` of the deprecated form is the same."""
    found: dict[str, list[str]] = {}
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        name, colon, dims = part.rpartition(":")
        if not colon:
            raise ValueError(part)
        found[name.strip()] = [dim.strip() for dim in dims.strip().strip("[]").split(",")] if dims.strip() else []
    return found


def model_of(shapes: dict[str, list[str]]) -> ir.Model:
    """A model with these inputs; what is -1 or a range is open."""
    inputs = []
    for number, (name, dims) in enumerate(shapes.items()):
        shape = ir.Shape([int(dim) if dim.isdecimal() else f"d{number}_{axis}" for axis, dim in enumerate(dims)])
        inputs.append(ir.Value(name=name, shape=shape, type=ir.TensorType(ir.DataType.FLOAT)))
    node = ir.node("Identity", [inputs[0]])
    return ir.Model(ir.Graph(inputs, [node.outputs[0]], nodes=[node], opset_imports={"": 13}), ir_version=8)


def normal(flags: dict[str, str]) -> dict[str, str]:
    """Without defaults and spaces, the order of nothing but gears kept, deprecated names as their successors."""
    flags = {name.replace("-", "_"): "".join(value.split()).rstrip(";") for name, value in flags.items()}
    if "input_shape_range" in flags:
        flags["input_shape"] = flags.pop("input_shape_range")
    if "input_shape" in flags:
        flags["input_shape"] = flags["input_shape"].replace("[", "").replace("]", "")
    flags.setdefault("input_format", "NCHW")
    return {name: value for name, value in flags.items() if value != atc_flags()[name].default}


def target_of(soc: str) -> Target:
    return find_target(soc if soc in socs() else "Ascend310P3")


def regenerate(row: dict[str, Any], format: bool) -> tuple[dict[str, str], dict[str, str]]:
    """The flags of a row and those made again. ``format``: the layout is told, too.

    Raises:
        JumarError, ValueError: it is not made, with the reason.
    """
    flags = {name.replace("-", "_"): VARIABLE.sub("7", value) for name, value in row["resolved"].items()}
    parsed, _ = parse_argv([f"--{name}={value}" for name, value in flags.items()])
    flags = dict(parsed.values)
    written = shapes_of(flags.get("input_shape_range") or flags.get("input_shape") or "x:1,3,224,224")
    gear_flag = next((name for name in KINDS if flags.get(name)), None)
    model = model_of(written)
    gears = None
    target = target_of(flags["soc_version"]) if "soc_version" in flags else target_of("")
    if gear_flag is not None:
        stated = stated_gears(written, KINDS[gear_flag], flags[gear_flag], model)
        gears = make_gears(stated.shapes, target, stated=stated.axes, flag=KINDS[gear_flag])
    elif any(not dim.isdecimal() for dims in written.values() for dim in dims):
        stated = read_gears([";".join(f"{name}:{','.join(dims)}" for name, dims in written.items())], model)
        gears = make_gears(stated.shapes, find_target("Ascend310P3"))
    options = {name: value for name, value in flags.items() if name not in OWN_FLAGS}
    check_options(options)
    command = build_command(
        model,
        target,
        flags["model"],
        flags.get("output", ""),
        gears=gears,
        format=flags.get("input_format") if format else None,
        precision_mode=flags.get("precision_mode_v2"),
        options=options,
    )
    made = dict(command.flags)
    if "log" not in flags:
        made.pop("log")
    if not flags.get("input_shape") and not flags.get("input_shape_range"):
        made.pop("input_shape")  # the model's own shapes
        flags.pop("input_shape", None)
    made["soc_version"] = flags["soc_version"] = flags.get("soc_version", "") if flags.get("soc_version") in socs() else "Ascend310P3"
    made["output"] = flags["output"] = flags.get("output", "").removesuffix(".om")
    return normal(flags), normal(made)


def stated_gears(written: dict[str, list[str]], kind: Kind, text: str, model: ir.Model) -> Stated:
    """Gears in ATC's own form as a user would state them: one number for each open dimension."""
    places = sum(dim == "-1" for dims in written.values() for dim in dims)
    gears = [gear.split(",") for gear in text.split(";") if gear.strip()]
    if kind == "batch":
        gears = [[size] * places for size in gears[0]]
    if kind == "image":
        gears = [gear * (places // 2) for gear in gears]
    return read_gears([";".join(",".join(gear) for gear in gears)], model)


def outcome(row: dict[str, Any], format: bool) -> str:
    """``same``, what differs, or why it is not made."""
    try:
        wanted, made = regenerate(row, format)
    except (JumarError, ValueError) as error:
        return f"{type(error).__name__}: {error}".partition(";")[0]
    different = sorted(name for name in {*wanted, *made} if wanted.get(name) != made.get(name))
    return "same" if not different else "differs: " + ", ".join(different)


@pytest.fixture(scope="module")
def rows(shared: Path) -> list[dict[str, Any]]:
    data = json.loads((shared / "facts" / "peers" / "atc_commands.json").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = data["rows"]
    return found


def test_real_commands_are_made_again(rows: list[dict[str, Any]]) -> None:
    outcomes = Counter(outcome(row, format=True) for row in rows)
    assert outcomes.pop("same") == 517, "of 529: 97.7 %"
    assert dict(outcomes) == EXCEPTIONS


def test_the_layout_is_chosen_as_people_do(rows: list[dict[str, Any]]) -> None:
    """Without being told: 465 of 529. The rest names NCHW for inputs that have no such layout, or ND for images."""
    outcomes = Counter(outcome(row, format=False) for row in rows)
    assert outcomes["same"] >= 465
    assert outcomes["differs: input_format"] <= 60


def test_a_lost_flag_or_a_changed_size_would_be_noticed(rows: list[dict[str, Any]]) -> None:
    row = next(row for row in rows if row["resolved"].get("dynamic_dims") and outcome(row, format=True) == "same")
    wanted, made = regenerate(row, format=True)
    assert wanted == made
    assert wanted != normal({**made, "input_shape": made["input_shape"] + ",1"})
    assert wanted != normal({name: value for name, value in made.items() if name != "dynamic_dims"})
