"""Example arguments from what the user gives: the factory's own, an .npz, or shapes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UsageError
from ..proof.feeds import read_arrays
from ..text import say
from .program import is_tensor, signature_of, to_tensor
from .structure import path_text, take_apart

Given = Mapping[str, Any] | str | Path | None


def make_arguments(
    module: Any, args: Sequence[Any] | None, kwargs: Mapping[str, Any], inputs: Given, shapes: Mapping[str, Sequence[int]]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional and keyword arguments of forward.

    Args:
        inputs: arrays by parameter name; one of a nested argument is named by its path (``batch.a``), and replaces the tensor there.
        shapes: of parameters for which random numbers are drawn.

    Raises:
        UsageError: a name that forward does not have, or nothing for a parameter that it needs.
    """
    arrays = dict(read_arrays(inputs) if isinstance(inputs, (str, Path)) else inputs or {})
    random = np.random.default_rng(0)
    for name, shape in shapes.items():
        arrays.setdefault(name, random.standard_normal(tuple(shape)).astype(np.float32))
    if args is not None or kwargs:
        return _replaced(module, tuple(args or ()), dict(kwargs), arrays)
    parameters = _parameters(module)
    unknown = [name for name in arrays if name not in parameters]
    missing = [name for name, item in parameters.items() if item.default is item.empty and name not in arrays]
    if unknown or missing:
        raise UsageError(
            say(
                "forward has no {unknown}, and nothing is given for {missing}",
                "forward 没有 {unknown}，且缺少 {missing}",
                unknown=", ".join(unknown) or "-",
                missing=", ".join(missing) or "-",
            ),
            say("expected arrays named like its parameters: {names}", "应为与参数同名的数组：{names}", names=", ".join(parameters)),
            say(
                "use --inputs or --shape, or let the factory return (module, args)",
                "请使用 --inputs 或 --shape，或让工厂函数返回 (模块, args)",
            ),
        )
    return (), {name: to_tensor(arrays[name]) for name in parameters if name in arrays}


def _parameters(module: Any) -> dict[str, inspect.Parameter]:
    signature = signature_of(module)
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {} if signature is None else {name: item for name, item in signature.parameters.items() if item.kind in kinds}


def _replaced(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], arrays: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if not arrays:
        return args, kwargs
    names = list(_parameters(module))
    named = {names[index] if index < len(names) else f"arg_{index}": value for index, value in enumerate(args)} | kwargs
    flat = take_apart(named, is_tensor)
    places = [path_text(path) for path in flat.paths]
    unknown = [name for name in arrays if name not in places]
    if unknown:
        raise UsageError(
            say("there is no tensor {names} among the arguments", "参数中没有张量 {names}", names=", ".join(unknown)),
            say("expected some of: {places}", "应取自：{places}", places=", ".join(places)),
            say("rename the arrays", "请修改数组名"),
        )
    tensors = [to_tensor(arrays[place]) if place in arrays else tensor for place, tensor in zip(places, flat.tensors, strict=True)]
    values = flat.rebuild(tensors)
    return tuple(list(values.values())[: len(args)]), dict(list(values.items())[len(args) :])
