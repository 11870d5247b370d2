"""The trade-off between size, speed and accuracy as a table and as a picture."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, fields
from xml.sax.saxutils import escape

from .gate import Point

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BELOW = 640, 400, 70, 40, 20, 60


def curve_csv(points: Sequence[Point]) -> str:
    """One line a point, with a head."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, [item.name for item in fields(Point)], lineterminator="\n")
    writer.writeheader()
    for point in points:
        writer.writerow(asdict(point))
    return buffer.getvalue()


def curve_svg(points: Sequence[Point], metric: str, chosen: Point | None = None, limit: float | None = None) -> str:
    """Lost accuracy over the share of multiply-adds in int8; the chosen point is filled, the allowed drop is a line."""
    highest = max([point.drop for point in points] + [limit or 0.0, 1e-6]) * 1.1
    lowest = min([point.drop for point in points] + [0.0])
    across, down = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BELOW

    def place(work: float, drop: float) -> tuple[float, float]:
        return _LEFT + across * work, _TOP + down * (highest - drop) / (highest - lowest)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        _text(_WIDTH / 2, 22, f"drop of {metric} over the share of multiply-adds in int8", "middle"),
        _text(_WIDTH / 2, _HEIGHT - 16, "share of multiply-adds in int8", "middle"),
    ]
    for step in range(6):
        x, _ = place(step / 5, 0)
        lines += [_line(x, _TOP, x, _TOP + down, "#ddd"), _text(x, _TOP + down + 18, f"{step * 20} %", "middle")]
        value = lowest + (highest - lowest) * step / 5
        _, y = place(0, value)
        lines += [_line(_LEFT, y, _LEFT + across, y, "#ddd"), _text(_LEFT - 6, y + 4, f"{value:.3g}", "end")]
    if limit is not None:
        _, y = place(0, limit)
        lines += [_line(_LEFT, y, _LEFT + across, y, "#c00"), _text(_LEFT + 6, y - 4, f"allowed: {limit:g}", "start")]
    for point in points:
        x, y = place(point.work, point.drop)
        fill = "#06c" if point == chosen else "white"
        told = f"{point.quantised} layers, drop {point.drop:.4g}, {point.size} bytes, estimated speed {point.speed:.2f} x"
        lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" stroke="#06c" fill="{fill}"><title>{escape(told)}</title></circle>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'
