"""Tables as lines of text: no frames and no wrapping, so that they survive a pipe and a narrow terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from ..text import LANGS, Lang, Text

Cell = Text | str


def table_lines(rows: Sequence[Sequence[Cell]], indent: str = "  ") -> tuple[Text, ...]:
    """One text per row, with columns as wide as their widest cell in either language; the last column is open."""
    lines = {lang: _lines(rows, indent, lang) for lang in LANGS}
    return tuple(Text(en, zh) for en, zh in zip(lines["en"], lines["zh"], strict=True))


def _lines(rows: Sequence[Sequence[Cell]], indent: str, lang: Lang) -> list[str]:
    cells = [[cell.render(lang) if isinstance(cell, Text) else cell for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    padded = [[cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)] for row in cells]
    return [indent + "  ".join((*row[:-1], raw[-1])).rstrip() for row, raw in zip(padded, cells, strict=True)]
