"""The small languages inside ATC's values: shapes, gears, lists of nodes. Only syntax; what is allowed is judged in the lint modules."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .options import masked, symbolic, unmasked

GEAR_FLAGS = ("dynamic_batch_size", "dynamic_image_size", "dynamic_dims")
# Longer numbers fit no integer of ATC's, nor of anybody's.
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)
_DIGITS = re.compile(r"[0-9]{1,40}", re.ASCII)
_RANGE = re.compile(r"([0-9]{1,40})~(-1|[0-9]{1,40})", re.ASCII)


@dataclass(frozen=True)
class Shape:
    """One entry of --input_shape or --input_shape_range.

    Attributes:
        name: of the input; "" in the positional form.
        dims: as written, one text a dimension; none for a scalar.
        text: the whole entry.
    """

    name: str
    dims: tuple[str, ...]
    text: str

    @property
    def open(self) -> int:
        """How many dimensions are -1: the places that gears fill."""
        return self.dims.count("-1")

    @property
    def ranged(self) -> bool:
        return any("~" in dim for dim in self.dims)

    @property
    def numbers(self) -> tuple[int | None, ...]:
        """Fixed sizes; None where the size is open, a range, or not known yet."""
        return tuple(int(dim) if is_integer(dim) and int(dim) >= 0 else None for dim in self.dims)


def is_integer(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None


def is_number(text: str) -> bool:
    """Digits only."""
    return _DIGITS.fullmatch(text) is not None


def is_range(text: str) -> bool:
    """``lo~hi``, where hi may be -1: no upper bound."""
    return _RANGE.fullmatch(text) is not None


def range_bounds(text: str) -> tuple[int, int]:
    """Lower and upper bound of ``lo~hi``.

    Raises:
        ValueError: no range.
    """
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return int(match[1]), int(match[2])


def parse_shapes(text: str) -> tuple[Shape, ...]:
    """Entries of --input_shape: ``name:1,3,-1,224;other:1~16,10``. A name may hold colons: the last one ends it.

    An empty entry at the end (``x:1;``) is dropped; dimensions keep whatever was written.
    """
    shapes = []
    for entry in split(masked(text), ";"):
        name, colon, dims = entry.rpartition(":")
        if not colon:
            name, dims = "", entry
        shapes.append(_shape(name, dims.split(",") if dims.strip() else [], entry))
    return tuple(shapes)


def _shape(name: str, dims: list[str], entry: str) -> Shape:
    return Shape(unmasked(name).strip(), tuple(unmasked(dim).strip() for dim in dims), unmasked(entry).strip())


def parse_shape_ranges(text: str) -> tuple[Shape, ...]:
    """Entries of --input_shape_range: ``name:[1~8,3,224,224];other:[...]``.

    Raises:
        ValueError: an entry without brackets; its text is the argument.
    """
    shapes = []
    for entry in split(masked(text), ";"):
        name, colon, dims = entry.rpartition(":")
        dims = dims.strip()
        if not colon and symbolic(entry):
            continue
        if not (dims.startswith("[") and dims.endswith("]")):
            raise ValueError(unmasked(entry).strip())
        shapes.append(_shape(name, [part for part in dims[1:-1].split(",") if part.strip()], entry))
    return tuple(shapes)


def parse_gears(flag: str, text: str) -> tuple[tuple[str, ...], ...]:
    """Gears as texts: ``1,2,4`` of --dynamic_batch_size is three gears of one value, ``1,2;3,4`` of the others two of two."""
    if flag == "dynamic_batch_size":
        return tuple((value.strip(),) for value in split(text, ","))
    return tuple(tuple(value.strip() for value in gear.split(",")) for gear in split(text, ";"))


def split(text: str, separator: str) -> list[str]:
    """Parts of a list, without the empty ones that a separator at the end makes."""
    parts = text.strip().split(separator)
    while len(parts) > 1 and not parts[-1].strip():
        parts.pop()
    return [] if parts == [""] else parts
