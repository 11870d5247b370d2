"""The options that state gears."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from .common import text


class GearFlag(str, Enum):
    batch = "batch"
    image = "image"
    dims = "dims"


GearsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--gears",
        metavar="TEXT",
        help=text(
            'sizes one .om takes: "batch 1,4,8", "seq up to 512", "batch 1~16"',
            '一个 .om 接受的大小："batch 1,4,8"、"seq up to 512"、"batch 1~16"',
        ),
    ),
]
GearsFromOption = Annotated[
    str | None,
    typer.Option(
        "--gears-from",
        metavar="FILE",
        help=text("choose gears from shapes with counts (.npz, .csv, .json)", "按形状直方图选择档位（.npz、.csv、.json）"),
    ),
]
GearCountOption = Annotated[
    int | None, typer.Option("--gear-count", metavar="N", help=text("most gears to choose (default 8)", "最多选择的档位数（默认 8）"))
]
GearMultipleOption = Annotated[
    int | None,
    typer.Option("--gear-multiple", metavar="N", help=text("round chosen sizes up to multiples of N", "所选大小向上取整为 N 的倍数")),
]
GearFlagOption = Annotated[
    GearFlag | None, typer.Option("--gear-flag", help=text("which gear flag of ATC to use", "使用 ATC 的哪一种档位参数"))
]
GearOption = Annotated[
    list[str] | None,
    typer.Option(
        "--gear",
        metavar='"NAME:SIZES;..."',
        help=text("shapes to be right for; sizes stay open (repeatable)", "需保证正确的形状，尺寸保持可变（可重复）"),
    ),
]
