"""Finding what is to be exported: ``pkg.module:factory`` or ``path/file.py:factory``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..text import say

Made = tuple[Any, Sequence[Any] | None, Mapping[str, Any]]
"""A module, its arguments if the factory gave some, and keyword arguments."""


def call_factory(reference: str) -> Made:
    """Import the user's own code, which is run by this, and call what it names.

    Raises:
        UsageError: there is no such thing, it fails, or returns something else.
    """
    place, colon, name = reference.rpartition(":")
    if not colon or not place or not name:
        raise UsageError(
            say("`{reference}` names no factory", "`{reference}` 没有指明工厂函数", reference=reference),
            say("expected MODULE:CALLABLE or FILE.py:CALLABLE", "应为 模块:可调用对象 或 文件.py:可调用对象"),
            say("for example mypkg.nets:make_net", "例如 mypkg.nets:make_net"),
        )
    target: Any = _import(place)
    for part in name.split("."):
        if not hasattr(target, part):
            raise UsageError(
                say("`{place}` has no `{name}`", "`{place}` 中没有 `{name}`", place=place, name=name),
                say("expected a function that returns the module, or the module", "应为返回模块的函数，或模块本身"),
                say("correct the name after the colon", "请修正冒号后的名称"),
            )
        target = getattr(target, part)
    return split(target if _is_module(target) or isinstance(target, tuple) else _called(target, reference), reference)


def _import(place: str) -> Any:
    # Like `python -m`: the folder one stands in comes first.
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        if place.endswith(".py"):
            path = Path(place).resolve()
            if not path.is_file():
                raise ModuleNotFoundError("no such file")
            spec = importlib.util.spec_from_file_location(path.stem, path)
            if spec is None or spec.loader is None:
                raise ModuleNotFoundError("not a Python file")
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
            return module
        return importlib.import_module(place)
    except (Exception, SystemExit) as error:  # whatever the user's code raises
        raise UsageError(
            say("`{place}` cannot be imported: {error}", "无法导入 `{place}`：{error}", place=place, error=_words(error)),
            say("expected a module on Python's path or in this folder", "应为 Python 路径上或当前目录中的模块"),
            say("correct it, or set PYTHONPATH", "请修正，或设置 PYTHONPATH"),
        ) from error


def _called(function: Any, reference: str) -> Any:
    if not callable(function):
        raise UsageError(
            say("`{reference}` is a {kind}", "`{reference}` 的类型为 {kind}", reference=reference, kind=type(function).__name__),
            say("expected a function without arguments that returns the module", "应为不带参数、返回模块的函数"),
            say("write one", "请编写这样的函数"),
        )
    try:
        return function()
    except (Exception, SystemExit) as error:
        raise UsageError(
            say("`{reference}` failed: {error}", "`{reference}` 执行失败：{error}", reference=reference, error=_words(error)),
            say("expected a function without arguments that returns the module", "应为不带参数、返回模块的函数"),
            say("call it in Python to see why", "请在 Python 中调用以查看原因"),
        ) from error


def split(made: Any, reference: str) -> Made:
    """A module, ``(module, args)`` or ``(module, args, kwargs)``.

    Raises:
        UsageError: something else.
    """
    if _is_module(made):
        return made, None, {}
    if isinstance(made, tuple) and 2 <= len(made) <= 3 and _is_module(made[0]):
        args = tuple(made[1]) if isinstance(made[1], (tuple, list)) else (made[1],)
        kwargs = dict(made[2] or {}) if len(made) == 3 else {}
        return made[0], args, kwargs
    raise UsageError(
        say("`{reference}` returned {kind}", "`{reference}` 返回了 {kind}", reference=reference, kind=type(made).__name__),
        say("expected a module, (module, args) or (module, args, kwargs)", "应为 模块、(模块, args) 或 (模块, args, kwargs)"),
        say("correct what it returns", "请修正返回值"),
    )


def _is_module(value: Any) -> bool:
    import torch

    return isinstance(value, torch.nn.Module)


def _words(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
