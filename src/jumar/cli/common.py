"""What all verbs share: the global options, the way a record is printed, and the exit status."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..text import Lang, Text, default_lang

if TYPE_CHECKING:
    from ..case import Record
    from ..verbs.common import Progress


class Format(str, Enum):
    text = "text"
    json = "json"


class Language(str, Enum):
    en = "en"
    zh = "zh"


@dataclass(frozen=True)
class Output:
    """How to print: the global options, given before or after the verb."""

    format: Format = Format.text
    lang: Lang = "en"
    quiet: bool = False
    verbose: int = 0
    color: bool = True

    def show(self, record: Record) -> None:
        """Print a record and end with its exit status: 1 when something blocks, else 0.

        Raises:
            OutputError: standard output takes nothing (a full disk). A reader that went away is no error and does not change the status.
        """
        try:
            sys.stdout.write(self._text(record))
            sys.stdout.flush()
        except BrokenPipeError:
            drop_stdout()
        except OSError as error:
            from ..errors import OutputError
            from ..text import say

            drop_stdout()  # what is still in the buffer would fail again when Python exits
            raise OutputError(
                say("standard output cannot be written: {error}", "无法写入标准输出：{error}", error=error.strerror),
                say("expected a writable place", "应为可写的位置"),
                say("check where the output goes", "请检查输出位置"),
            ) from error
        if record.verdict == "blocked":
            raise typer.Exit(1)

    def _text(self, record: Record) -> str:
        from ..reports import json_report, text_report

        if self.format is Format.json:
            return json_report(record, self.lang)
        if self.quiet:
            return ""
        from rich.console import Console

        console = Console(no_color=not self.color, highlight=False)
        with console.capture() as capture:  # rich's own way with a broken pipe would end the process with status 1
            text_report(record, console, self.lang, self.verbose)
        return capture.get()

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """A progress bar on stderr, only on a terminal."""
        if self.quiet or not sys.stderr.isatty():
            yield lambda _what, _fraction: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True, no_color=not self.color), transient=True) as bar:
            task = bar.add_task("", total=1.0)
            yield lambda what, fraction: bar.update(task, completed=fraction, description=what.render(self.lang))


def drop_stdout() -> None:
    """Send what is still buffered nowhere, so that Python does not complain about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def chosen_lang(argv: list[str]) -> Lang:
    """``--lang`` as typed (the last one counts), before anything is parsed: help and error texts need it."""
    for index, word in reversed(list(enumerate(argv))):
        value = (
            word[len("--lang=") :] if word.startswith("--lang=") else argv[index + 1] if word == "--lang" and index + 1 < len(argv) else ""
        )
        if value in ("en", "zh"):
            return "zh" if value == "zh" else "en"
    return default_lang()


HELP_LANG: Lang = chosen_lang(sys.argv[1:])


def text(en: str, zh: str) -> str:
    """A help text in the language of this call."""
    return Text(en, zh).render(HELP_LANG)


FormatOption = Annotated[
    Format | None,
    typer.Option("--format", help=text("text, or json: one record on stdout, nothing else", "text，或 json：标准输出只有一个记录")),
]
LangOption = Annotated[
    Language | None, typer.Option("--lang", help=text("language (default: from the locale)", "语言（默认取自系统区域设置）"))
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help=text("print nothing but errors", "只输出错误"))]
VerboseOption = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        help=text("more: -v every finding and its evidence, -vv tracebacks", "更详细：-v 输出每条结果及依据，-vv 输出调用栈"),
    ),
]
ColorOption = Annotated[bool, typer.Option("--no-color", help=text("no colours", "不使用颜色"))]

ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help=text("the .onnx file", ".onnx 文件"))]
SocOption = Annotated[
    str | None,
    typer.Option("--soc", metavar="NAME", help=text("exact soc_version, e.g. Ascend310P3", "确切的 soc_version，例如 Ascend310P3")),
]
TargetOption = Annotated[
    str | None, typer.Option("--target", metavar="PROFILE", help=text("a named target, e.g. mdc510pro", "目标配置名，例如 mdc510pro"))
]
CannOption = Annotated[
    str | None, typer.Option("--cann", metavar="VERSION", help=text("CANN version (default: newest known)", "CANN 版本（默认：已知最新）"))
]
OpsetMaxOption = Annotated[int | None, typer.Option("--opset-max", metavar="N", help=text("lower the opset ceiling", "降低 opset 上限"))]
ShapeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        metavar="NAME:DIMS",
        help=text('sizes of inputs, e.g. "x:1,3,224,224;y:1,128"', '输入的大小，例如 "x:1,3,224,224;y:1,128"'),
    ),
]
SelectOption = Annotated[
    str | None, typer.Option("--select", metavar="CODES", help=text("only these rules, comma-separated", "只使用这些规则，以逗号分隔"))
]
RangeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--range",
        metavar="NAME:LOW,HIGH",
        help=text("least and largest value of an integer input (repeatable)", "整数输入的最小值和最大值（可重复）"),
    ),
]
CutOption = Annotated[
    bool,
    typer.Option(
        "--cut",
        help=text("move what the device cannot take to models for the host", "把设备不支持的部分移入由主机执行的模型"),
    ),
]
CutAicpuOption = Annotated[
    bool,
    typer.Option(
        "--cut-aicpu",
        help=text(
            "as --cut, and move what the AI Core does not take for certain (AI CPU, unknown) too",
            "同 --cut，并把 AI Core 不能确定支持的部分（AI CPU、未知）也移到主机",
        ),
    ),
]
OneStepOption = Annotated[
    list[str] | None,
    typer.Option(
        "--one-step",
        metavar="NAME:DIMENSION",
        help=text(
            "make a model of one step of a recurrent model; these inputs carry time (repeatable)",
            "生成循环模型的单步模型；这些输入带有时间维度（可重复）",
        ),
    ),
]
SetConstOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set-const",
        metavar="NAME=VALUE",
        help=text("make an input a weight with this value (repeatable)", "把输入变为取此值的权重（可重复）"),
    ),
]
UnsafeOption = Annotated[
    str | None, typer.Option("--unsafe", metavar="CODES", help=text("accept these rules' assumptions", "接受这些规则的前提"))
]
FeedsOption = Annotated[
    str | None, typer.Option("--feeds", metavar="NPZ", help=text("real inputs, arrays keyed by input name", "真实输入，以输入名为键的数组"))
]
FoldLimitOption = Annotated[
    str | None,
    typer.Option(
        "--fold-limit", metavar="SIZE", help=text("bytes a folded tensor may add, e.g. 64KB", "折叠单个张量最多增加的字节数，例如 64KB")
    ),
]
PrecisionOption = Annotated[
    str | None, typer.Option("--precision-mode", metavar="MODE", help=text("ATC's --precision_mode_v2", "ATC 的 --precision_mode_v2"))
]
AippOption = Annotated[str | None, typer.Option("--aipp", metavar="FILE", help=text("preprocessing to insert", "要插入的预处理配置"))]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help=text("do not run atc even if it is installed", "即使已安装也不运行 atc"))]
TimeoutOption = Annotated[float, typer.Option("--timeout", metavar="SECONDS", help=text("seconds atc may take", "atc 的时间上限（秒）"))]

_GLOBALS = {"format": FormatOption, "lang": LangOption, "quiet": QuietOption, "verbose": VerboseOption, "no_color": ColorOption}
_DEFAULTS: dict[str, Any] = {"format": None, "lang": None, "quiet": False, "verbose": 0, "no_color": False}


def merge(base: Output, format: Format | None, lang: Language | None, quiet: bool, verbose: int, no_color: bool) -> Output:
    """Options after the verb win over those before it."""
    return replace(
        base,
        format=format or base.format,
        lang=base.lang if lang is None else ("zh" if lang is Language.zh else "en"),
        quiet=quiet or base.quiet,
        verbose=max(verbose, base.verbose),
        color=base.color and not no_color,
    )


def verb(function: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the global options. The function's first parameter receives the resulting :class:`Output`."""
    signature = inspect.signature(function, eval_str=True)
    own = list(signature.parameters.values())[1:]
    extra = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_DEFAULTS[name], annotation=kind) for name, kind in _GLOBALS.items()
    ]
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)

    @functools.wraps(function)
    def wrapper(context: typer.Context, **values: Any) -> None:
        given = {name: values.pop(name) for name in _GLOBALS}
        base = context.find_root().obj or Output(lang=HELP_LANG)
        function(merge(base, **given), **values)

    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    wrapper.__signature__ = signature.replace(parameters=[context, *own, *extra])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {"context": typer.Context, **{item.name: item.annotation for item in (*own, *extra)}, "return": None}
    return wrapper


def cut_of(cut: bool, aicpu: bool) -> bool | Literal["aicpu"]:
    """What ``--cut`` and ``--cut-aicpu`` ask for, as the Python functions know it."""
    return "aicpu" if aicpu else cut


def codes(value: str | None) -> list[str] | None:
    """``"OP201, DT301"`` -> two codes; None stays None."""
    return None if value is None else [part.strip() for part in value.split(",") if part.strip()]


def pairs(option: str, values: list[str] | None) -> dict[str, str]:
    """``["a=1", "b=2"]`` -> names and values. A name ends at the first ``=``.

    Raises:
        UsageError: one has no ``=``, or a name is given twice.
    """
    from ..errors import UsageError
    from ..text import say

    found: dict[str, str] = {}
    for item in values or ():
        name, equals, value = item.partition("=")
        if not equals or not name.strip() or name.strip() in found:
            raise UsageError(
                say(
                    "`{item}` of {option} is no NAME=VALUE, or its name is given twice",
                    "{option} 的 `{item}` 不是 名称=取值，或名称重复",
                    item=item,
                    option=option,
                ),
                say("expected NAME=VALUE, each name once", "应为 名称=取值，每个名称一次"),
                say("correct {option}", "请修正 {option}", option=option),
            )
        found[name.strip()] = value.strip()
    return found


def size(value: str, example: str = "--fold-limit 64KB") -> int:
    """``64KB`` -> 65536.

    Raises:
        UsageError: not a number with an optional KB or MB.
    """
    from ..errors import UsageError
    from ..text import say

    number = value.strip().upper().removesuffix("B")
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(number[-1:], 1)
    digits = number[:-1] if factor > 1 else number
    if not digits.isdecimal():
        raise UsageError(
            say("`{value}` is not a size", "`{value}` 不是大小", value=value),
            say("expected a number of bytes, KB or MB", "应为字节数，或以 KB、MB 为单位"),
            say("for example {example}", "例如 {example}", example=example),
        )
    return int(digits) * factor
