"""--input_shape, --input_shape_range and the three gear flags, by the rules of ATC's sources."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from ..text import Text, say
from .grammar import GEAR_FLAGS, Shape, is_integer, is_number, is_range, parse_gears, parse_shape_ranges, parse_shapes, range_bounds
from .options import Options, Problem, atc_flags, symbolic

MOST_GEARS = 100
"""Documented for all chips but Ascend950 (256)."""
_LARGEST = 2**31 - 1
_LIKE = say(
    'write "name:1,3,224,224;other:1,10", each size a number, -1 or lo~hi',
    '请写成 "name:1,3,224,224;other:1,10"，每个尺寸为数字、-1 或 lo~hi',
)
_PLACES = {"NCHW": (2, 3), "NHWC": (1, 2)}


def check_gears(options: Options, soc: str | None = None) -> Iterator[Problem]:
    """Problems of shapes and gears that the command line alone shows."""
    shapes = parse_shapes(options.get("input_shape"))
    yield from _shapes(shapes)
    yield from _ranges(options)
    for flag in GEAR_FLAGS:
        text = options.get(flag)
        if not text or symbolic(text):
            continue
        if not shapes:
            why = say("gears fill the -1 of --input_shape", "档位填充的是 --input_shape 中的 -1")
            remedy = say('add --input_shape="name:-1,3,224,224"', '请加上 --input_shape="name:-1,3,224,224"')
            message = say("--{flag} without --input_shape", "给出了 --{flag} 却没有 --input_shape", flag=flag)
            yield Problem("AT903", "error", message, why, remedy, "input_shape", ("E10004",), (atc_flags()[flag].source,))
        yield from _gears(flag, text, options, shapes, soc or options.get("soc_version"))


def _wrong(code: str, flag: str, atc: tuple[str, ...], message: Text, why: Text, remedy: Text, *, sure: bool = True) -> Problem:
    return Problem(code, "error" if sure else "warning", message, why, remedy, flag, atc, (atc_flags()[flag].source,))


def _shapes(shapes: tuple[Shape, ...]) -> Iterator[Problem]:
    # Without names ("1~2,3;4~5") an entry stands for the input at its place; ATC reads it so where a size is open.
    positional = all(not shape.name for shape in shapes) and any(shape.ranged or shape.open for shape in shapes)
    seen: set[str] = set()
    bracketed = next((shape for shape in shapes if _bracketed(shape)), None)
    if bracketed is not None:
        message = say("--input_shape: `{text}` is in brackets", "--input_shape：`{text}` 带有方括号", text=bracketed.text[:80])
        why = say(
            "brackets belong to --input_shape_range; here only digits, `,`, `~` and `-` are allowed",
            "方括号属于 --input_shape_range；此处只允许数字、`,`、`~` 和 `-`",
        )
        yield _wrong("AT906", "input_shape", ("E10002",), message, why, say("remove the brackets", "请去掉方括号"))
    for shape in shapes:
        if symbolic(shape.text) and not shape.name:
            continue
        if not shape.name and not positional:
            message = say("--input_shape: `{text}` names no input", "--input_shape：`{text}` 没有输入名", text=shape.text[:80])
            yield _wrong("AT906", "input_shape", ("E10002",), message, say("each entry is NAME:SIZES", "每一项应为 NAME:SIZES"), _LIKE)
            continue
        if shape.name and shape.name in seen and not symbolic(shape.name):
            message = say("--input_shape names `{name}` twice", "--input_shape 两次写了 `{name}`", name=shape.name)
            yield _wrong(
                "AT906", "input_shape", (), message, say("one entry is lost", "其中一项会丢失"), say("keep one", "请只保留一项"), sure=False
            )
        seen.add(shape.name)
        if not _bracketed(shape):
            yield from chain.from_iterable(_size(shape, dim) for dim in shape.dims)


def _bracketed(shape: Shape) -> bool:
    return bool(shape.dims) and shape.dims[0].startswith("[") and shape.dims[-1].endswith("]")


def _size(shape: Shape, dim: str) -> Iterator[Problem]:
    name = shape.name or shape.text[:40]
    if symbolic(dim) or dim == "-1":
        return
    if is_range(dim):
        low, high = range_bounds(dim)
        if high != -1 and low > high:
            message = say(
                "--input_shape: `{dim}` of `{name}` runs backwards", "--input_shape：`{name}` 的 `{dim}` 上下界颠倒", name=name, dim=dim
            )
            remedy = say("write {high}~{low}", "请写成 {high}~{low}", high=high, low=low)
            yield _wrong("AT906", "input_shape", ("E10002",), message, say("the lower bound comes first", "下界在前"), remedy)
    elif not is_integer(dim):
        message = say(
            "--input_shape: `{dim}` of `{name}` is no size", "--input_shape：`{name}` 的 `{dim}` 不是尺寸", name=name, dim=dim[:40]
        )
        why = say("only whole numbers, -1 and lo~hi are sizes", "只有整数、-1 和 lo~hi 是尺寸")
        yield _wrong("AT906", "input_shape", ("E10002", "E10014"), message, why, _LIKE)
    elif int(dim) <= 0:
        message = say(
            "--input_shape: `{dim}` of `{name}` is not above zero", "--input_shape：`{name}` 的 `{dim}` 不大于零", name=name, dim=dim
        )
        why = say("a size is positive, or -1 where it is open", "尺寸应为正数；可变处写 -1")
        yield _wrong("AT906", "input_shape", ("E10011",), message, why, _LIKE)
    elif int(dim) > _LARGEST:
        message = say("--input_shape: `{dim}` of `{name}` is too large", "--input_shape：`{name}` 的 `{dim}` 过大", name=name, dim=dim[:40])
        yield _wrong("AT906", "input_shape", ("E10013",), message, say("it does not fit an integer of ATC's", "超出 ATC 整数范围"), _LIKE)


def _ranges(options: Options) -> Iterator[Problem]:
    text = options.get("input_shape_range")
    remedy = say('write "name:[1~8,3,224,224];other:[...]"', '请写成 "name:[1~8,3,224,224];other:[...]"')
    try:
        shapes = parse_shape_ranges(text)
    except ValueError as error:
        message = say("--input_shape_range: `{text}` has no brackets", "--input_shape_range：`{text}` 缺少方括号", text=str(error)[:80])
        yield _wrong("AT906", "input_shape_range", ("E10048",), message, say("brackets are mandatory", "必须有方括号"), remedy)
        return
    for shape in shapes:
        for dim in shape.dims:
            fits = symbolic(dim) or dim == "-1" or is_range(dim) or (is_integer(dim) and int(dim) > 0)
            if not fits or (is_range(dim) and range_bounds(dim)[1] != -1 and range_bounds(dim)[0] > range_bounds(dim)[1]):
                message = say(
                    "--input_shape_range: `{dim}` of `{name}` is no range",
                    "--input_shape_range：`{name}` 的 `{dim}` 不是范围",
                    name=shape.name,
                    dim=dim[:40],
                )
                yield _wrong(
                    "AT906",
                    "input_shape_range",
                    ("E10048",),
                    message,
                    say("a size is a number, -1 or lo~hi", "尺寸为数字、-1 或 lo~hi"),
                    remedy,
                )


def _gears(flag: str, text: str, options: Options, shapes: tuple[Shape, ...], soc: str) -> Iterator[Problem]:
    gears = parse_gears(flag, text)
    malformed = list(_blanks(flag, text)) or list(_digits(flag, gears))
    yield from malformed
    if malformed:
        return
    numbers = [tuple(int(value) for value in gear) for gear in gears]
    yield from _numbers(flag, numbers, shapes, soc)
    if any(symbolic(shape.text) for shape in shapes):
        return  # a symbol may stand for -1
    places = {"dynamic_batch_size": _batch, "dynamic_image_size": _image, "dynamic_dims": _dims}
    if shapes:
        yield from places[flag](numbers, options, shapes)


def _blanks(flag: str, text: str) -> Iterator[Problem]:
    if flag == "dynamic_image_size" or not any(letter.isspace() for letter in text):
        return
    message = say("--{flag} holds a blank", "--{flag} 中含有空格", flag=flag)
    why = say("only digits and separators are allowed here", "此处只允许数字和分隔符")
    remedy = say("remove it, also where a line is continued inside the quotes", "请删除空格，包括引号内续行处的空格")
    yield _wrong("AT907", flag, ("E10001" if flag == "dynamic_dims" else "E10003",), message, why, remedy)


def _digits(flag: str, gears: tuple[tuple[str, ...], ...]) -> Iterator[Problem]:
    code = "E10001" if flag == "dynamic_dims" else "E10003"
    for gear in gears:
        bad = next((value for value in gear if not is_number(value)), None)
        if bad is not None:
            negative = bad.startswith("-") and is_number(bad[1:])
            message = say(
                "--{flag}: `{bad}` in gear `{gear}` is no size",
                "--{flag}：档位 `{gear}` 中的 `{bad}` 不是尺寸",
                flag=flag,
                bad=bad[:40],
                gear=",".join(gear)[:60],
            )
            why = say("gears are whole numbers above zero", "档位应为大于零的整数")
            yield _wrong("AT907", flag, (code, "E10038") if negative else (code,), message, why, _separators(flag))
            return


def _separators(flag: str) -> Text:
    if flag == "dynamic_batch_size":
        return say('write "1,2,4,8"', '请写成 "1,2,4,8"')
    return say('write "h,w;h,w": commas inside a gear, semicolons between gears', '请写成 "h,w;h,w"：档位内用逗号，档位间用分号')


def _numbers(flag: str, gears: list[tuple[int, ...]], shapes: tuple[Shape, ...], soc: str) -> Iterator[Problem]:
    """What must hold of the gears whatever the shapes are."""
    most = 256 if soc.startswith("Ascend950") else MOST_GEARS
    if len(gears) < 2:
        message = say("--{flag} has one gear", "--{flag} 只有一个档位", flag=flag)
        fixed = _fixed(gears, shapes)
        remedy = say(
            'write --input_shape="{shape}" and leave --{flag} out, or add a gear',
            '请写成 --input_shape="{shape}" 并去掉 --{flag}，或再加一个档位',
            shape=fixed,
            flag=flag,
        )
        yield _wrong("AT907", flag, ("E10035",), message, say("ATC wants at least two", "ATC 要求至少两个"), remedy)
    if len(gears) > most:
        message = say("--{flag} has {count} gears", "--{flag} 有 {count} 个档位", flag=flag, count=len(gears))
        why = say(
            "at most {most} are documented; each is compiled, so that the build takes as many times as long",
            "文档规定最多 {most} 个；每个档位都要编译，构建时间成倍增长",
            most=most,
        )
        remedy = say("take fewer gears and pad to the next larger one", "请减少档位，并把输入补齐到下一个更大的档位")
        yield _wrong("AT907", flag, ("E10036",), message, why, remedy)
    zero = next((gear for gear in gears if 0 in gear), None)
    if zero is not None:
        message = say("--{flag}: gear `{gear}` holds 0", "--{flag}：档位 `{gear}` 含有 0", flag=flag, gear=_text(zero))
        why = say(
            "sizes are above zero; newer ATC does not notice and builds an empty gear", "尺寸须大于零；新版 ATC 不检查，会构建出空档位"
        )
        yield _wrong("AT907", flag, ("E10038",), message, why, say("remove that gear", "请删除该档位"))
    twice = next((gear for index, gear in enumerate(gears) if gear in gears[:index]), None)
    if twice is not None:
        message = say("--{flag}: gear `{gear}` is there twice", "--{flag}：档位 `{gear}` 重复", flag=flag, gear=_text(twice))
        yield _wrong("AT907", flag, ("E10039",), message, say("gears must differ", "档位不能重复"), say("remove one", "请删除一个"))


def _fixed(gears: list[tuple[int, ...]], shapes: tuple[Shape, ...]) -> str:
    """The static --input_shape that a single gear amounts to, with ? where it gives no value; batch gears fill every -1."""
    gear = list(gears[0]) if gears else []
    values = iter(gear * sum(shape.open for shape in shapes) if len(gear) == 1 else gear)
    entries = [f"{shape.name}:" + ",".join(str(next(values, "?")) if dim == "-1" else dim for dim in shape.dims) for shape in shapes]
    text = ";".join(entries) or "NAME:SIZES"
    return text if len(text) <= 200 else text[:197] + "..."


def _text(gear: tuple[int, ...]) -> str:
    text = ",".join(str(value) for value in gear)
    return text if len(text) <= 60 else text[:57] + "..."


def _open_places(shapes: tuple[Shape, ...]) -> str:
    """``data.1, mask.0``: which value of a gear fills which dimension."""
    return ", ".join(f"{shape.name}.{index}" for shape in shapes for index, dim in enumerate(shape.dims) if dim == "-1")


def _batch(_gears: list[tuple[int, ...]], _options: Options, shapes: tuple[Shape, ...]) -> Iterator[Problem]:
    flag = "dynamic_batch_size"
    elsewhere = next((shape for shape in shapes if "-1" in shape.dims[1:]), None)
    scalar = next((shape for shape in shapes if not shape.dims), None)
    if scalar is not None:
        message = say("--{flag}: `{name}` has no dimensions", "--{flag}：`{name}` 没有维度", flag=flag, name=scalar.name)
        why = say("batch gears want inputs with a first dimension", "batch 档位要求输入有首维")
        remedy = say("leave scalar inputs out, or use --dynamic_dims", "请去掉标量输入，或改用 --dynamic_dims")
        yield _wrong("AT907", flag, ("E10012",), message, why, remedy)
    elif elsewhere is not None:
        message = say(
            "--{flag}: `{shape}` has -1 beyond its first dimension",
            "--{flag}：`{shape}` 在首维之外还有 -1",
            flag=flag,
            shape=elsewhere.text[:80],
        )
        remedy = say("use --dynamic_dims for other dimensions", "其他维度请使用 --dynamic_dims")
        yield _wrong("AT907", flag, ("E10018",), message, say("batch gears fill the first dimension only", "batch 档位只填充首维"), remedy)
    elif not any(shape.dims[:1] == ("-1",) for shape in shapes):
        message = say("--{flag}: no input has -1 as its first dimension", "--{flag}：没有输入的首维为 -1", flag=flag)
        remedy = say("write -1 for the batch in --input_shape", "请在 --input_shape 中把 batch 写成 -1")
        why = say("there is nothing to fill", "没有可填充的维度")
        yield _wrong("AT907", flag, ("E10031",), message, why, remedy)


def _image(gears: list[tuple[int, ...]], options: Options, shapes: tuple[Shape, ...]) -> Iterator[Problem]:
    flag = "dynamic_image_size"
    layout = options.get("input_format") or ("NHWC" if options.get("framework") == "3" else "NCHW")
    bad = next((gear for gear in gears if len(gear) != 2), None)
    if bad is not None:
        message = say(
            "--{flag}: gear `{gear}` has {count} values",
            "--{flag}：档位 `{gear}` 有 {count} 个值",
            flag=flag,
            gear=_text(bad),
            count=len(bad),
        )
        yield _wrong("AT907", flag, ("E10020",), message, say("a gear is height and width", "一个档位由高和宽组成"), _separators(flag))
    if symbolic(layout):
        return
    if layout not in _PLACES:
        message = say("--{flag} with --input_format={layout}", "--{flag} 与 --input_format={layout} 同用", flag=flag, layout=layout)
        why = say("ATC must know which dimensions are height and width", "ATC 必须知道哪两维是高和宽")
        yield _wrong(
            "AT907",
            flag,
            ("E10003",),
            message,
            why,
            say("write --input_format=NCHW, or use --dynamic_dims", "请写 --input_format=NCHW，或改用 --dynamic_dims"),
        )
        return
    wanted = _PLACES[layout]
    opened = [shape for shape in shapes if shape.open]
    wrong = next(
        (shape for shape in opened if [i for i, dim in enumerate(shape.dims) if dim == "-1"] != list(wanted) or len(shape.dims) != 4), None
    )
    if wrong is not None or not opened:
        text = (wrong or shapes[0]).text[:80]
        message = say(
            "--{flag}: `{shape}` is not open in exactly height and width",
            "--{flag}：`{shape}` 并非恰好在高和宽处为 -1",
            flag=flag,
            shape=text,
        )
        why = say("image gears fill two dimensions of a 4-D {layout} input", "图像档位填充 4 维 {layout} 输入的两维", layout=layout)
        remedy = say("write -1 for height and width, or use --dynamic_dims", "请把高和宽写成 -1，或改用 --dynamic_dims")
        yield _wrong("AT907", flag, ("E10019",), message, why, remedy)


def _dims(gears: list[tuple[int, ...]], _options: Options, shapes: tuple[Shape, ...]) -> Iterator[Problem]:
    flag = "dynamic_dims"
    opened = sum(shape.open for shape in shapes)
    if not opened:
        message = say("--{flag}: --input_shape has no -1", "--{flag}：--input_shape 中没有 -1", flag=flag)
        remedy = say("write -1 where the gears belong", "请在档位对应处写 -1")
        yield _wrong("AT907", flag, ("E10001",), message, say("there is nothing to fill", "没有可填充的维度"), remedy)
        return
    for index, gear in enumerate(gears):
        if len(gear) == opened:
            continue
        unequal = len({len(item) for item in gears}) > 1
        message = say(
            "--{flag}: gear {number} `{gear}`: values: {count} given, {opened} wanted (-1 in --input_shape)",
            "--{flag}：第 {number} 个档位 `{gear}` 给出 {count} 个值，而 --input_shape 中有 {opened} 个 -1",
            flag=flag,
            number=index + 1,
            gear=_text(gear),
            count=len(gear),
            opened=opened,
        )
        why = say(
            "each gear has one value per -1, in this order: {places}",
            "每个档位按此顺序为每个 -1 给一个值：{places}",
            places=_open_places(shapes)[:200],
        )
        missing = opened - len(gear)
        if missing > 0:
            filled = ",".join([*(str(value) for value in gear), *["?"] * missing])
            remedy = say("complete it: {filled}", "请补全：{filled}", filled=filled[:80])
        else:
            remedy = say("remove {count} values, or open more dimensions", "请删除 {count} 个值，或把更多维度写成 -1", count=-missing)
        atc = ("E10003", "E10037") if unequal else ("E10003", "E10045", "E10046")
        yield _wrong("AT907", flag, atc, message, why, remedy)
        return
