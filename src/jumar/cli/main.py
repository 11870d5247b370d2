"""The ``jumar`` program."""

from __future__ import annotations

import importlib
import logging
import os
import re
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import __version__
from ..text import Lang, say, visible
from . import aipp, targets
from .common import (
    ColorOption,
    FormatOption,
    LangOption,
    Output,
    QuietOption,
    VerboseOption,
    chosen_lang,
    drop_stdout,
    merge,
    text,
)

if TYPE_CHECKING:
    from ..errors import JumarError

VERBS = (
    "migrate",
    "export",
    "check",
    "fix",
    "simplify",
    "verify",
    "reduce",
    "quantize",
    "compile",
    "lint",
    "explain",
    "diagnose",
    "doctor",
    "inspect",
    "view",
)
"""Modules beside this one, in the order of ``jumar --help``."""

app = typer.Typer(
    name="jumar",
    help=text(
        "Carries trained models onto Huawei Ascend NPUs: checks them, rewrites them with proof, writes and runs the ATC command.",
        "将训练好的模型迁移到华为昇腾 NPU：检查模型、给出带证明的改写、生成并运行 ATC 命令。",
    ),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name in VERBS:
    module = importlib.import_module(f".{name}", __package__)
    app.command(name=name, help=module.HELP)(module.command)
app.add_typer(aipp.app, name="aipp", help=aipp.HELP)
app.add_typer(targets.app, name="targets", help=targets.HELP)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jumar {__version__}")
        raise typer.Exit


@app.callback()
def globals_(
    context: typer.Context,
    format: FormatOption = None,
    lang: LangOption = None,
    quiet: QuietOption = False,
    verbose: VerboseOption = 0,
    no_color: ColorOption = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help=text("print the version", "输出版本"))
    ] = False,
) -> None:
    context.obj = merge(context.obj or Output(), format, lang, quiet, verbose, no_color)


def main() -> None:
    """Run the command line. Exit status: 0 done, 1 something blocks, 2 could not do it (one line on stderr)."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller (`>&-`)
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - lives as long as the process
        elif hasattr(stream, "reconfigure"):  # a terminal that cannot show a character gets its number
            stream.reconfigure(errors="backslashreplace")
    # What a library logs is not for the user: whatever matters is a finding or the one line.
    logging.getLogger().addHandler(logging.NullHandler())
    sys.exit(run(sys.argv[1:]))


def run(argv: list[str]) -> int:
    lang = chosen_lang(argv)
    try:
        return int(app(args=argv, prog_name="jumar", standalone_mode=False, obj=Output(lang=lang)) or 0)
    except (BrokenPipeError, SystemExit):
        # The reader went away (`jumar --help | head`), which the option parser turns into an exit with status 1.
        drop_stdout()
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        return _fail(error, argv, lang)


def _fail(error: Exception, argv: list[str], lang: Lang) -> int:
    from ..errors import JumarError

    if isinstance(error, JumarError):
        line = error.render(lang)
    elif hasattr(error, "format_message"):  # the option parser's own errors
        line = _parser_error(error).render(lang)
    elif type(error).__name__ == "Abort":
        return 130
    else:
        line = say(
            "internal error: {error}; this is a fault of Jumar's; run again with -vv and report it",
            "内部错误：{error}；这是 Jumar 的缺陷；请加 -vv 重新运行并反馈",
            error=f"{type(error).__name__}: {error}"[:300],
        ).render(lang)
    print(f"jumar: {visible(' '.join(line.split()))}", file=sys.stderr)  # noqa: T201 - this is the program's error output
    if (
        any(word.startswith("-") and not word.startswith("--") and word.count("v") > 1 for word in argv)
        or argv.count("-v") + argv.count("--verbose") > 1
    ):
        traceback.print_exception(error)
    return 2


def _parser_error(error: Any) -> JumarError:
    """An error of the option parser as found, expected, what to do next, in both languages."""
    from ..errors import UsageError

    context: Any = getattr(error, "ctx", None)
    command = context.command_path if context else "jumar"
    kind = type(error).__name__
    expected = None
    if kind == "NoArgsIsHelpError" and context:
        found = say("no command was given", "没有给出子命令")
        expected = say("expected one of: {names}", "应为其中之一：{names}", names=", ".join(context.command.commands))
    elif kind == "NoSuchOption":
        found = say("there is no option `{name}`", "没有选项 `{name}`", name=error.option_name)
        if error.possibilities:
            expected = say("expected perhaps {names}", "也许应为 {names}", names=", ".join(sorted(error.possibilities)))
    elif kind == "MissingParameter":
        names = " / ".join(f"`{name}`" for name in re.findall("'([^']+)'", error.format_message()))
        found = say("{names} is missing", "缺少 {names}", names=names)
    else:
        message = " ".join(error.format_message().split()).rstrip(".")
        found = say("{message}", "命令行有误（{message}）", message=message)
    return UsageError(found, expected, say("see `{command} --help`", "请查看 `{command} --help`", command=command))
