"""The ``jumar`` program."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated

import typer

from .. import __version__
from . import check, compile, explain, fix, migrate, targets, verify
from .common import HELP_LANG, ColorOption, Format, FormatOption, LangOption, Output, QuietOption, VerboseOption, merge, text

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
for module in (migrate, check, fix, verify, compile, explain):
    app.command(name=module.__name__.rpartition(".")[2], help=module.HELP)(module.command)
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
    context.obj = merge(Output(format=Format.text, lang=HELP_LANG), format, lang, quiet, verbose, no_color)


def main() -> None:
    """Run the command line. Exit status: 0 done, 1 something blocks, 2 could not do it (one line on stderr)."""
    sys.exit(run(sys.argv[1:]))


def run(argv: list[str]) -> int:
    try:
        return int(app(args=argv, standalone_mode=False) or 0)
    except BrokenPipeError:
        # The reader went away (`jumar ... | head`); keep Python from complaining while it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        return _fail(error, argv)


def _fail(error: Exception, argv: list[str]) -> int:
    from ..errors import JumarError

    if isinstance(error, JumarError):
        line = error.render(HELP_LANG)
    elif hasattr(error, "format_message"):  # the option parser's own errors
        line = " ".join(error.format_message().split())
    elif type(error).__name__ == "Abort":
        return 130
    else:
        line = text(
            "internal error: {error}; this is a fault of Jumar's; run again with -vv and report it",
            "内部错误：{error}；这是 Jumar 的缺陷；请加 -vv 重新运行并反馈",
        ).format(error=f"{type(error).__name__}: {error}"[:300])
    print(f"jumar: {line}", file=sys.stderr)  # noqa: T201 - this is the program's error output
    if (
        any(word.startswith("-") and not word.startswith("--") and word.count("v") > 1 for word in argv)
        or argv.count("-v") + argv.count("--verbose") > 1
    ):
        traceback.print_exception(error)
    return 2
