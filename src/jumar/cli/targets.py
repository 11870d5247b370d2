"""``jumar targets list|show|diff|import``."""

from __future__ import annotations

from typing import Annotated

import typer

from .common import CannOption, Output, text, verb

HELP = text("What is known of each Ascend target.", "各昇腾目标的已知信息。")
app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.command(
    "list", help=text("All exact soc_version names, profiles and CANN versions.", "所有确切的 soc_version、目标配置与 CANN 版本。")
)
@verb
def list_(output: Output) -> None:
    from ..verbs.targets import list_targets

    output.show(list_targets())


@app.command("show", help=text("One SoC, or one operator by SoC, CANN and opset.", "单个 SoC，或单个算子在各 SoC、CANN、opset 上的情况。"))
@verb
def show(
    output: Output,
    name: Annotated[
        str,
        typer.Argument(metavar="SOC|OP", help=text("a soc_version, a profile or an ONNX operator", "soc_version、目标配置或 ONNX 算子")),
    ],
    soc: Annotated[str | None, typer.Option("--soc", help=text("for an operator: only this SoC", "查询算子时：只看该 SoC"))] = None,
    cann: CannOption = None,
) -> None:
    from ..verbs.targets import show_target

    output.show(show_target(name, soc=soc, cann=cann))


_SIDE = text("a soc_version or a profile, with @CANN if wanted", "soc_version 或目标配置，可附加 @CANN 版本")


@app.command("diff", help=text("Operators on which two targets differ.", "两个目标结论不同的算子。"))
@verb
def diff(
    output: Output,
    first: Annotated[str, typer.Argument(metavar="A", help=_SIDE)],
    second: Annotated[str, typer.Argument(metavar="B", help=_SIDE)],
) -> None:
    from ..verbs.targets_diff import diff_targets

    output.show(diff_targets(first, second))


@app.command("import", help=text("Read the operator tables of an installed CANN.", "读取已安装 CANN 的算子表。"))
@verb
def import_(
    output: Output,
    path: Annotated[str, typer.Argument(metavar="PATH", help=text("the folder of CANN that holds opp", "CANN 安装目录（其中含 opp）"))],
    cann: Annotated[
        str | None,
        typer.Option(
            "--cann",
            metavar="VERSION",
            help=text("its release, where the installation does not say it", "CANN 版本（安装目录未注明时使用）"),
        ),
    ] = None,
) -> None:
    from ..verbs.targets_import import import_targets

    output.show(import_targets(path, cann=cann))
