"""What the verbs of AIPP share: reading files, transforms and targets."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..aipp.config import AippConfig, AippOp, read_config
from ..aipp.derive.numbers import from_preprocess
from ..aipp.derive.read import from_description, read_transform
from ..aipp.derive.torchvision import from_torchvision
from ..aipp.emulate import input_bytes
from ..aipp.geometry import geometry
from ..aipp.matrices import Range, Standard, find_matrix, identify
from ..aipp.schema import Chip, chip
from ..aipp.transform import Size, Transform
from ..errors import TargetError, UsageError
from ..targets import Target, find_target
from ..text import say

LARGEST_FILE = 1 << 20
TransformLike = Transform | Mapping[str, Any] | Sequence[Any] | str | Path


def read_aipp(path: str | Path) -> tuple[str, str]:
    """Text and name of an AIPP file.

    Raises:
        UsageError: absent, unreadable, too large or no text.
    """
    path = Path(path)
    expected = say("expected an AIPP file, with a block aipp_op", "应为含有 aipp_op 块的 AIPP 文件")
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UsageError(
                say("`{path}` is larger than {size} MB", "`{path}` 大于 {size} MB", path=path, size=LARGEST_FILE >> 20), expected
            )
        return path.read_bytes().decode("utf-8"), str(path)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or say("it is no text", "不是文本")
        found = say("`{path}` cannot be read: {reason}", "无法读取 `{path}`：{reason}", path=str(path)[-200:], reason=reason)
        raise UsageError(found, expected, say("check the path", "请检查路径")) from error


def one_block(path: str | Path, rank: int | None = None) -> tuple[AippConfig, AippOp]:
    """A file that can be read, and its block for an input (or its only one).

    Raises:
        UsageError: unreadable, or no such block.
    """
    text, name = read_aipp(path)
    config = read_config(text, name)
    found = [op for op in config.ops if rank is None or op["related_input_rank"] == rank]
    if len(found) != 1:
        ranks = ", ".join(str(op["related_input_rank"]) for op in config.ops)
        raise UsageError(
            say("`{name}` has blocks for the inputs {ranks}", "`{name}` 中有第 {ranks} 个输入的块", name=name, ranks=ranks),
            say("expected one, or --rank with one of them", "应只有一个，或用 --rank 指定其一"),
            say("give --rank", "请给出 --rank"),
        )
    return config, found[0]


def as_transform(given: TransformLike) -> Transform:
    """A transform from whatever describes one: the value itself, a dictionary, the path of a JSON file, or a torchvision object.

    Raises:
        UsageError: it cannot be read off.
    """
    if isinstance(given, Transform):
        return given
    if isinstance(given, (str, Path)):
        return read_transform(given)
    if isinstance(given, Mapping):
        return from_description(given)
    if isinstance(given, (list, tuple)) and given and all(isinstance(item, Mapping) for item in given):
        return from_description(list(given))
    return from_torchvision(given)


def import_object(where: str) -> Any:
    """``package.module:name.of.object``. The module is imported, which runs it: it is the caller's own.

    Raises:
        UsageError: no such module or object.
    """
    module, colon, name = where.partition(":")
    expected = say(
        "expected MODULE:OBJECT, such as torchvision.models:ResNet50_Weights.DEFAULT",
        "应为 模块:对象，例如 torchvision.models:ResNet50_Weights.DEFAULT",
    )
    if not colon or not module or not name:
        raise UsageError(say("`{where}` names no object", "`{where}` 没有指明对象", where=where[:80]), expected)
    try:
        item: Any = importlib.import_module(module)
        for part in name.split("."):
            item = getattr(item, part)
    except Exception as error:  # whatever the module does when it is run
        reason = f"{type(error).__name__}: {error}"[:160]
        raise UsageError(
            say("`{where}` cannot be loaded: {reason}", "无法加载 `{where}`：{reason}", where=where[:80], reason=reason),
            expected,
            say("check that it can be imported here", "请确认能在此处导入"),
        ) from error
    return item


def find_transform(
    *,
    preprocess: TransformLike | None = None,
    torchvision: str | Any | None = None,
    ultralytics: int | None = None,
    mean: str | Sequence[float] | None = None,
    std: str | Sequence[float] | None = None,
    scale: str | float | None = None,
    order: str | None = None,
    size: Sequence[int] | None = None,
    source: Sequence[int] | None = None,
) -> Transform | None:
    """The transform that exactly one of the descriptions gives; None where none is given.

    Raises:
        UsageError: two descriptions, or one that cannot be used.
    """
    plain = {"mean": mean, "std": std, "scale": scale, "order": order}
    given = [
        name
        for name, value in (("--preprocess", preprocess), ("--torchvision", torchvision), ("--ultralytics", ultralytics))
        if value is not None
    ]
    if any(value is not None for value in plain.values()):
        given.append("--mean/--std/--scale/--order")
    if len(given) > 1:
        raise UsageError(
            say("{names} describe two transforms", "{names} 描述了两种预处理", names=" + ".join(given)),
            say("expected one of them", "应只给出其一"),
        )
    if not given:
        return None
    if preprocess is not None:
        transform = as_transform(preprocess)
    elif torchvision is not None:
        transform = from_torchvision(import_object(torchvision) if isinstance(torchvision, str) else torchvision)
    elif ultralytics is not None:
        transform = from_description({"imgsz": ultralytics})
    else:
        transform = from_preprocess({name: _plain(name, value) for name, value in plain.items() if value is not None})
    return transform.with_size(_pair(size), _pair(source))


def _plain(name: str, value: Any) -> Any:
    """``--mean 0.485,0.456,0.406`` and lists alike."""
    if not isinstance(value, str) or name == "order":
        return value
    try:
        numbers = [_fraction(part) for part in value.split(",")]
    except (ValueError, ZeroDivisionError):
        if name == "scale":
            return value
        raise UsageError(
            say("--{name} `{value}` holds no numbers", "--{name} `{value}` 不是数值", name=name, value=value[:60]),
            say("expected numbers with commas, such as 0.485,0.456,0.406", "应为以逗号分隔的数值，例如 0.485,0.456,0.406"),
            say("correct --{name}", "请修正 --{name}", name=name),
        ) from None
    return numbers[0] if name == "scale" and len(numbers) == 1 else numbers


def _fraction(text: str) -> float:
    above, slash, below = text.partition("/")
    return float(above) / float(below) if slash else float(above)


def _pair(sizes: Sequence[int] | None) -> Size | None:
    if sizes is None:
        return None
    if len(sizes) != 2 or min(sizes) < 1:
        raise UsageError(say("{sizes} is no size", "{sizes} 不是大小", sizes=list(sizes)), say("expected HEIGHT,WIDTH", "应为 高,宽"))
    return int(sizes[0]), int(sizes[1])


def read_matrix(name: str | None) -> tuple[Standard, Range] | None:
    """``--matrix 601-full``; None stays None."""
    return None if name is None else find_matrix(name)


def chip_of(soc: str | None, target: str | Target | None, cann: str | None, *, need: bool = False) -> tuple[Target | None, Chip | None]:
    """The target where one is named, and what AIPP is on it.

    Raises:
        TargetError: unknown, none where one is needed, or a chip of which no public source says what its AIPP does.
    """
    if soc is None and target is None:
        if need:
            raise TargetError(
                say("no target was named", "没有指定目标"),
                say("expected --soc or --target", "应给出 --soc 或 --target"),
                say("see `jumar targets list`", "请查看 `jumar targets list`"),
            )
        return None, None
    found = target if isinstance(target, Target) else find_target(soc, profile=target, cann=cann)
    known = chip(found.soc.short)
    if known is None:
        raise TargetError(
            say("no public source describes AIPP on {soc}", "没有公开资料描述 {soc} 上的 AIPP", soc=found.soc.name),
            say("expected a chip whose operator sources are public", "应为算子源码公开的芯片"),
            say("leave --soc out to judge by what all chips share", "可去掉 --soc，按各芯片的共同规则判断"),
        )
    return found, known


def summary(op: AippOp, network: Size | None = None) -> dict[str, Any]:
    """What a block makes of its input, for records and manifests."""
    data: dict[str, Any] = {"input": int(op["related_input_rank"]), "mode": op.mode}
    if op.mode == "dynamic":
        return {**data, "max_src_image_size": int(op["max_src_image_size"])}
    size = geometry(op, network)
    data |= {
        "format": op.format,
        "source": None if size is None else list(size.source),
        "output": None if size is None else list(size.output),
    }
    try:
        data["bytes"] = input_bytes(op, network)
    except ValueError:
        data["bytes"] = None
    if op["csc_switch"] and op.format != "YUV400_U8":
        found = identify(op)
        data["matrix"] = str(found.text)
    return data
