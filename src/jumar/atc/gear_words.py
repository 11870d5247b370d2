"""Gears as people state them: ``batch 1,4,8``, ``H,W in {640x640,1280x720}``, ``seq up to 512``, ``batch 1~16``, or shapes in full."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from ..errors import ShapeError, UsageError
from ..graph import known_shape
from ..text import say
from .gears import LARGEST, UNBOUNDED, Range, Size, facts

Axis = tuple[str, int]
"""Name of an input and index of a dimension."""
Dims = tuple[int | str | None, ...]

_STATEMENT = re.compile(
    r"(?P<names>[^\s,={}~:]+(?:\s*,\s*[^\s,={}~:]+)*?)\s*(?:\bin\b|=|:|\s|(?=\{))\s*(?P<rest>up\s*to\b.*|-1|[\d{~,\sxX×*}-]+)", re.DOTALL
)
_UP_TO = re.compile(r"up\s*to\s*(?P<last>\d+)(?:\s*by\s*(?P<step>\d+))?")
_PLACE = re.compile(r"(?P<input>.+)\[(?P<axis>\d+)\]")
_NUMBER = re.compile(r"\d{1,10}")
_RANGE = re.compile(r"(\d{1,10})~(\d{1,10}|-1)")
_FORMS = "`batch 1,4,8`, `H,W in {640x640,1280x720}`, `seq up to 512`, `batch 1~16` or `x:1,3,224,224;x:1,3,448,448`"
_MOST = 10_000
"""Gears that a statement may name: far beyond ATC's limit, which is checked with a better answer."""


@dataclass(frozen=True)
class Stated:
    """What the user said: the shapes of all inputs for each gear, and the dimensions that were given several sizes, equal ones too."""

    shapes: tuple[dict[str, tuple[Size, ...]], ...]
    axes: frozenset[Axis] = field(default_factory=frozenset)


def declared_inputs(model: ir.Model) -> dict[str, Dims]:
    """Shapes of the inputs that are no weights, as the model declares them.

    Raises:
        ShapeError: of one not even the number of dimensions is known.
    """
    found: dict[str, Dims] = {}
    for value in model.graph.inputs:
        if value.name in model.graph.initializers:
            continue
        shape = known_shape(value)
        if shape is None:
            raise ShapeError(
                say("the number of dimensions of input `{name}` is not known", "输入 `{name}` 的维数未知", name=value.name),
                say("expected a declared shape, with names for open dimensions", "应声明形状，可变维度用名称表示"),
                say("export the model again with it", "请重新导出模型并声明形状"),
            )
        found[value.name or ""] = shape
    return found


def read_gears(texts: Sequence[str], model: ir.Model) -> Stated:
    """The shapes that the texts state for the model.

    Args:
        texts: each holds statements separated by ``;``. Shapes in full (``x:1,3,224,224;x:1,3,448,448``): a name given again begins the
            next gear, and so does the next text. Bare numbers (``1,64;1,128``): one for each open dimension, in order. Otherwise names of
            dimensions and their sizes; statements about different dimensions are combined.

    Raises:
        UsageError: a text is not understood, does not fit the model, or leaves a dimension open.
    """
    return _Reader(declared_inputs(model)).read(texts)


class _Reader:
    def __init__(self, inputs: Mapping[str, Dims]) -> None:
        self.inputs = inputs
        self.open = [(name, axis) for name, shape in inputs.items() for axis, size in enumerate(shape) if not isinstance(size, int)]

    def read(self, texts: Sequence[str]) -> Stated:
        full: list[dict[Axis, Size]] = []
        bare: list[tuple[int, ...]] = []
        choices: list[list[dict[Axis, Size]]] = []
        named: set[Axis] = set()
        for text in texts:
            fresh = True  # a text begins a gear of its own
            for piece in _pieces(text):
                name, colon, sizes = piece.rpartition(":")
                if colon and name.strip() in self.inputs:
                    fresh = self._add_shape(full, name.strip(), sizes, fresh)
                elif re.fullmatch(r"[\d,\s]+", piece):
                    bare.append(tuple(int(number) for number in _numbers(piece, piece)))
                else:
                    choices.append(self._statement(piece))
                    named |= {axis for item in choices[-1] for axis in item if len(choices[-1]) > 1}
        if bare:
            named |= set(self.open)
            choices.append([self._by_place(number, profile, len(bare)) for number, profile in enumerate(bare, 1)])
        if full:
            choices.append(full)
        if not choices:
            raise _not_understood(" ".join(texts))
        return Stated(self._combined(choices), frozenset(named))

    def _combined(self, choices: Sequence[list[dict[Axis, Size]]]) -> tuple[dict[str, tuple[Size, ...]], ...]:
        count = 1
        for one, other in ((a, b) for position, a in enumerate(choices) for b in choices[position + 1 :]):
            twice = sorted({key for item in one for key in item} & {key for item in other for key in item})
            if twice:
                raise UsageError(
                    say(
                        "dimension {axis} of `{name}` is given twice",
                        "`{name}` 的第 {axis} 维给出了两次",
                        axis=twice[0][1],
                        name=twice[0][0],
                    ),
                    say("expected each dimension in one statement", "每个维度只应在一处给出"),
                    say("join the sizes in one list", "请将各大小写在同一个列表中"),
                )
        gears: list[dict[Axis, Size]] = [{}]
        for choice in choices:
            count *= len(choice)
            if count > _MOST:
                raise UsageError(
                    say("the statements give {count} gears", "这些描述共给出 {count} 个档位", count=count),
                    say("expected at most 100 (ATC: E10036)", "最多 100 个（ATC：E10036）"),
                    say("name the combinations that occur", "请只列出实际出现的组合"),
                )
            gears = [{**gear, **part} for gear in gears for part in choice]
        return tuple(self._shapes(number, gear) for number, gear in enumerate(gears, 1))

    def _shapes(self, number: int, gear: Mapping[Axis, Size]) -> dict[str, tuple[Size, ...]]:
        """All inputs under one gear. A dimension that is not named follows one of the same symbol that is."""
        symbols: dict[str, set[Size]] = {}
        for (name, axis), size in gear.items():
            symbol = self.inputs[name][axis]
            if isinstance(symbol, str):
                symbols.setdefault(symbol, set()).add(size)
        shapes: dict[str, tuple[Size, ...]] = {}
        for name, dims in self.inputs.items():
            sizes: list[Size] = []
            for axis, dim in enumerate(dims):
                same = symbols.get(dim, set()) if isinstance(dim, str) else set()
                if (name, axis) in gear:
                    sizes.append(gear[(name, axis)])
                elif isinstance(dim, int):
                    sizes.append(dim)
                elif len(same) == 1:
                    sizes.append(next(iter(same)))
                else:
                    raise self._left_open(number, name, axis, dim)
            shapes[name] = tuple(sizes)
        return shapes

    def _left_open(self, number: int, name: str, axis: int, dim: str | None) -> UsageError:
        example = dim or f"{name}[{axis}]"
        return UsageError(
            say(
                "gear {number} leaves dimension {axis} of `{name}` ({dim}) open",
                "第 {number} 档没有给出 `{name}` 第 {axis} 维（{dim}）的大小",
                number=number,
                axis=axis,
                name=name,
                dim=dim or "?",
            ),
            say("expected a size for every open dimension: {places}", "应给出每个可变维度的大小：{places}", places=self._places()),
            say('add it, for example --gears "{example} 16"', '请补上，例如 --gears "{example} 16"', example=example),
        )

    def _places(self) -> str:
        return ", ".join(f"{name}[{axis}]" + (f" ({dim})" if (dim := self.inputs[name][axis]) else "") for name, axis in self.open) or "-"

    def _by_place(self, number: int, profile: tuple[int, ...], count: int) -> dict[Axis, Size]:
        """Bare numbers: one for each open dimension."""
        if len(profile) != len(self.open):
            raise UsageError(
                say(
                    "gear {number} gives {given} of the numbers needed",
                    "第 {number} 档给出了 {given} 个数",
                    number=number,
                    given=len(profile),
                ),
                say(
                    "expected {wanted}, in this order: {places} (ATC: {code})",
                    "应为 {wanted} 个，顺序为：{places}（ATC：{code}）",
                    wanted=len(self.open),
                    places=self._places(),
                    code="E10037" if count > 1 else "E10045",
                ),
                say("complete it: {form}", "请补全：{form}", form=",".join([*map(str, profile), *"?" * 99][: len(self.open)])),
            )
        return dict(zip(self.open, profile, strict=True))

    def _add_shape(self, gears: list[dict[Axis, Size]], name: str, sizes: str, fresh: bool) -> bool:
        dims = self.inputs[name]
        words = [word.strip() for word in sizes.strip().strip("[]").split(",")] if sizes.strip() else []
        shape = [_size(word, f"{name}:{sizes}") for word in words]
        fits = len(shape) == len(dims) and all(not isinstance(dim, int) or dim == size for dim, size in zip(dims, shape, strict=True))
        if not fits:
            raise ShapeError(
                say("shape {given} does not fit input `{name}`", "形状 {given} 与输入 `{name}` 不符", given=sizes.strip(), name=name),
                say("expected {dims}", "应为 {dims}", dims="[" + ", ".join("?" if dim is None else str(dim) for dim in dims) + "]"),
                say("correct --gears", "请修正 --gears"),
            )
        if fresh or not gears or any(key[0] == name for key in gears[-1]) or (not shape and not gears[-1]):
            gears.append({})
        gears[-1].update({(name, axis): size for axis, size in enumerate(shape) if not isinstance(dims[axis], int)})
        return False

    def _statement(self, piece: str) -> list[dict[Axis, Size]]:
        match = _STATEMENT.fullmatch(piece.strip())
        if match is None:
            raise _not_understood(piece)
        names = [name.strip() for name in match["names"].split(",")]
        groups = [self._axes(name) for name in names]
        found = []
        for item in _items(match["rest"].strip(), piece, groups):
            if len(item) != len(groups):
                raise UsageError(
                    say("`{item}` has {given} numbers", "`{item}` 有 {given} 个数", item="x".join(map(str, item)), given=len(item)),
                    say(
                        "expected {wanted}, one for each of: {names}",
                        "应为 {wanted} 个，依次对应：{names}",
                        wanted=len(groups),
                        names=", ".join(names),
                    ),
                    say("complete it (ATC: E10037)", "请补全（ATC：E10037）"),
                )
            found.append({axis: size for axes, size in zip(groups, item, strict=True) for axis in axes})
        return found

    def _axes(self, name: str) -> list[Axis]:
        """The dimensions that a word stands for: ``input[2]``, a symbol of the model, or batch, H and W by their place."""
        place = _PLACE.fullmatch(name)
        if place is not None and place["input"] in self.inputs and int(place["axis"]) < len(self.inputs[place["input"]]):
            return self._only_open([(place["input"], int(place["axis"]))], name)
        named = [(item, axis) for item, axis in self.open if self.inputs[item][axis] == name]
        if named:
            return named
        lower = name.lower()
        folded = [(item, axis) for item, axis in self.open if str(self.inputs[item][axis]).lower() == lower]
        if folded:
            return folded
        index = {"batch": 0, "batch_size": 0, "bs": 0, "n": 0, "h": 2, "height": 2, "w": 3, "width": 3}.get(lower)
        four = index is not None and index > 1
        candidates = [
            (item, index) for item, dims in self.inputs.items() if index is not None and len(dims) > index and (len(dims) == 4 or not four)
        ]
        unlocked = [(item, axis) for item, axis in candidates if (item, axis) in self.open]
        if unlocked:
            return unlocked
        if not candidates and len(self.open) == 1 and lower in ("seq", "seq_len", "sequence", "length", "len"):
            return self.open  # there is but one it can be
        return self._only_open(candidates, name)

    def _only_open(self, axes: list[Axis], name: str) -> list[Axis]:
        fixed = [(item, axis) for item, axis in axes if (item, axis) not in self.open]
        if axes and not fixed:
            return axes
        if fixed:
            raise UsageError(
                say(
                    "dimension {axis} of `{name}` is fixed at {size} in the model",
                    "`{name}` 的第 {axis} 维在模型中固定为 {size}",
                    axis=fixed[0][1],
                    name=fixed[0][0],
                    size=self.inputs[fixed[0][0]][fixed[0][1]],
                ),
                say("expected an open dimension: {places}", "应为可变维度：{places}", places=self._places()),
                say("export the model with this dimension dynamic", "请在导出模型时将该维度设为动态"),
            )
        raise UsageError(
            say("the model has no dimension `{name}`", "模型没有名为 `{name}` 的维度", name=name),
            say("expected one of: {places}", "应为其中之一：{places}", places=self._places()),
            say("name it as INPUT[INDEX]", "请以 输入名[序号] 的形式给出"),
        )


def _pieces(text: str) -> list[str]:
    """Statements of a text: parts between ``;`` outside braces."""
    found, depth = [""], 0
    for letter in text:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == ";" and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [piece.strip() for piece in found if piece.strip()]


def _items(rest: str, piece: str, groups: Sequence[Sequence[Axis]]) -> list[tuple[Size, ...]]:
    """Sizes in ``1,4,8``, ``{640x640,1280x720}``, ``1~16`` or ``up to 512``."""
    up_to = _UP_TO.fullmatch(rest)
    if up_to is not None:
        if len(groups) != 1:
            raise _not_understood(piece)
        batch = all(axis == 0 for _, axis in groups[0])
        return [
            (size,)
            for size in sizes_up_to(_positive(up_to["last"], piece), _positive(up_to["step"], piece) if up_to["step"] else None, batch)
        ]
    inner = rest.removeprefix("{").removesuffix("}").strip()
    if inner.count("{") or inner.count("}"):
        raise _not_understood(piece)
    return [tuple(_size(word.strip(), piece) for word in re.split(r"[xX×*]", item)) for item in inner.split(",")]


def sizes_up_to(last: int, step: int | None = None, batch: bool = False) -> list[int]:
    """Gears that cover 1 to ``last``: doubling, in multiples of 64 or 16 where kernels work in such blocks, and the last one exact.

    The last gear is not rounded up: tables in the model (positions) may end there.

    Args:
        step: all multiples of it instead.
        batch: the first dimension: powers of two without multiples.
    """
    if step is not None:
        return [*range(step, last, step), last] if last // step < _MOST else [step, last]
    blocks = facts()["multiples"]
    start = 1 if batch else blocks["wide"] if last >= blocks["wide_from"] else blocks["narrow"]
    found = []
    while start < last:
        found.append(start)
        start *= 2
    return [*found, last]


def _numbers(text: str, piece: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if not all(_NUMBER.fullmatch(word) for word in words):
        raise _not_understood(piece)
    return words


def _size(word: str, piece: str) -> Size:
    if word == "-1":
        return (1, UNBOUNDED)
    found = _RANGE.fullmatch(word)
    if found is not None:
        ends: Range = (int(found[1]), int(found[2]))
        return ends
    if not _NUMBER.fullmatch(word):
        raise _not_understood(piece)
    return int(word)


def _positive(word: str, piece: str) -> int:
    if not _NUMBER.fullmatch(word) or not 1 <= int(word) <= LARGEST:
        raise _not_understood(piece)
    return int(word)


def _not_understood(piece: str) -> UsageError:
    expected = say("expected for example {forms}", "例如 {forms}", forms=_FORMS)
    return UsageError(
        say("`{piece}` states no gears", "`{piece}` 不是档位描述", piece=piece.strip()), expected, say("correct --gears", "请修正 --gears")
    )
