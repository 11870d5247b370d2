"""Arguments and results of any shape (dicts, lists, dataclasses, None, numbers) as a flat list of tensors, each with its path, and back."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import UsageError
from ..text import say

Path = tuple[str | int, ...]
Rebuild = Callable[[Sequence[Any]], Any]
_DEEPEST = 32


@dataclass
class Flat:
    """A nested value taken apart.

    Attributes:
        tensors: the tensors in order, and ``paths`` where each was.
        bound: everything else that is not None, by path: it stays as it is whenever ``rebuild`` puts the value together again.
        empty: paths of None.
    """

    tensors: list[Any] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    bound: dict[Path, Any] = field(default_factory=dict)
    empty: list[Path] = field(default_factory=list)
    rebuild: Rebuild = field(default=lambda _tensors: None, repr=False)


def take_apart(value: Any, is_tensor: Callable[[Any], bool], path: Path = ()) -> Flat:
    """Flatten a nested value.

    Raises:
        UsageError: it is nested too deeply, which is a structure that holds itself.
    """
    flat = Flat()
    flat.rebuild = _visit(value, path, flat, is_tensor)
    return flat


def _visit(value: Any, path: Path, flat: Flat, is_tensor: Callable[[Any], bool]) -> Rebuild:
    if len(path) > _DEEPEST:
        raise UsageError(
            say("an argument is nested more than {depth} deep", "某个参数的嵌套超过 {depth} 层", depth=_DEEPEST),
            say("expected tensors in dicts, lists, tuples or dataclasses", "应为放在字典、列表、元组或 dataclass 中的张量"),
            say("does it hold itself? pass the tensors that forward reads", "它是否包含自身？请只传入 forward 读取的张量"),
        )
    if is_tensor(value):
        index = len(flat.tensors)
        flat.tensors.append(value)
        flat.paths.append(path)
        return lambda tensors: tensors[index]
    if value is None:
        flat.empty.append(path)
        return lambda _tensors: None
    found = _parts(value)
    if found is None:
        flat.bound[path] = value
        return lambda _tensors: value
    parts, join = found
    rebuilds = {key: _visit(item, (*path, key), flat, is_tensor) for key, item in parts.items()}
    return lambda tensors: join({key: rebuild(tensors) for key, rebuild in rebuilds.items()})


def _parts(value: Any) -> tuple[dict[Any, Any], Callable[[dict[Any, Any]], Any]] | None:
    """What a container holds, by key, and how it is put together again; None for what is no container."""
    kind = type(value)
    if isinstance(value, Mapping):
        return dict(value), lambda items: items if kind is dict else _filled(value, items)
    if hasattr(value, "to_dict") and hasattr(kind, "from_dict"):  # graphs of PyTorch Geometric: typed stores, no Mapping
        return dict(value.to_dict()), kind.from_dict
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True)), lambda items: kind(**items)
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value)), lambda items: kind(items.values())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [item.name for item in dataclasses.fields(value)]
        return {name: getattr(value, name) for name in names}, lambda items: _with_attributes(value, items)
    return None


def _filled(model: Any, items: dict[Any, Any]) -> Any:
    """A mapping of the same kind with other values."""
    result = copy.copy(model)
    for key, item in items.items():
        result[key] = item
    return result


def _with_attributes(model: Any, items: dict[str, Any]) -> Any:
    """A dataclass of the same kind with other values; its __post_init__ has run once and must not run on traced tensors."""
    result = copy.copy(model)
    for key, item in items.items():
        object.__setattr__(result, key, item)
    return result


def path_text(path: Path) -> str:
    """``("batch", "b", 0)`` -> ``batch.b.0``."""
    return ".".join(map(str, path))


def input_names(paths: Sequence[Path]) -> list[str]:
    """A clean name for each input. The parameter's own name is left out where all tensors lie in containers of one parameter."""
    parameters = {path[0] for path in paths}
    short = len(parameters) == 1 and all(len(path) > 1 and isinstance(path[1], str) for path in paths)
    return unique([clean("_".join(map(str, path[1:] if short else path))) for path in paths], ())


def output_names(paths: Sequence[Path], taken: Iterable[str]) -> list[str]:
    """A clean name for each output, never that of an input."""
    named = ["_".join(map(str, path if path and isinstance(path[0], str) else ("output", *path))) for path in paths]
    return unique([clean(name) for name in named], taken)


def clean(name: str) -> str:
    """Letters, digits and underscores only: ATC separates names by colons, semicolons and commas, and torch by dots."""
    found = re.sub(r"[^0-9A-Za-z_]+", "_", name).strip("_")
    return found if found and not found[0].isdigit() else f"t_{found}".rstrip("_")


def unique(names: Sequence[str], taken: Iterable[str]) -> list[str]:
    """Each name once; one that is taken by the other side of the model gets ``_out``, one that came before a number."""
    others, used, result = set(taken), set(taken), []
    for name in names:
        stem = f"{name}_out" if name in others else name
        found, number = stem, 0
        while found in used:
            number += 1
            found = f"{stem}_{number}"
        used.add(found)
        result.append(found)
    return result
