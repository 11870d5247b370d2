"""``jumar targets list|show``."""

from __future__ import annotations

from typing import Annotated

import typer

from .common import Output, text, verb

HELP = text("What is known of each Ascend target.", "各昇腾目标的已知信息。")
app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command("list", help=text("All exact soc_version names and profiles.", "所有确切的 soc_version 与目标配置。"))
@verb
def list_(output: Output) -> None:
    from ..verbs.targets import list_targets

    output.show(list_targets())


@app.command("show", help=text("One SoC, or one operator on all SoCs.", "单个 SoC，或单个算子在所有 SoC 上的情况。"))
@verb
def show(
    output: Output,
    name: Annotated[
        str,
        typer.Argument(metavar="SOC|OP", help=text("a soc_version, a profile or an ONNX operator", "soc_version、目标配置或 ONNX 算子")),
    ],
    soc: Annotated[str | None, typer.Option("--soc", help=text("for an operator: only this SoC", "查询算子时：只看该 SoC"))] = None,
) -> None:
    from ..verbs.targets import show_target

    output.show(show_target(name, soc=soc))
