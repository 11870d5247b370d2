"""Modules in files: TorchScript (.pt), exported programs (.pt2), and weights for a factory. No pickle that may run code is ever loaded."""

from __future__ import annotations

import contextlib
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from ..errors import ModelError, UsageError
from ..text import Text, say
from .reference import Made

Kind = Literal["torchscript", "program", "pickle", "other"]
_NESTED = ("state_dict", "model_state_dict", "model", "weights", "ema", "net", "module")
SUFFIXES = (".pt", ".pth", ".pt2", ".bin", ".ckpt", ".ts", ".torchscript")


def is_file_reference(reference: str) -> bool:
    """Whether what shall be exported is a file of torch's rather than Python code."""
    return reference.lower().endswith(SUFFIXES) or (Path(reference).is_file() and not reference.endswith(".py"))


def kind_of(path: Path) -> Kind:
    """What a file is, by its contents; nothing in it is loaded."""
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            return "pickle" if file.read(1) == b"\x80" else "other"
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if any("/code/" in name for name in names):
        return "torchscript"
    if any(name.endswith(("/models/model.json", "serialized_exported_program.json")) for name in names):
        return "program"
    return "pickle" if any(name.endswith("data.pkl") for name in names) else "other"


def load_file(reference: str) -> Made:
    """The module in a TorchScript file or an exported program, with the latter's own example inputs.

    Raises:
        ModelError: no such file, unreadable, or a pickle: weights alone, or a whole module whose loading would run code.
    """
    path = Path(reference)
    if not path.is_file():
        raise _refused(path, say("there is no such file", "文件不存在"))
    kind = kind_of(path)
    if kind == "torchscript":
        return _loaded(path, lambda torch: torch.jit.load(str(path), map_location="cpu")), None, {}
    if kind == "program":
        program = _loaded(path, lambda torch: torch.export.load(str(path)))
        args, kwargs = program.example_inputs or (None, {})
        return program.module(), args, kwargs
    if kind == "pickle":
        state = load_weights(path)
        raise ModelError(
            say("`{path}` holds {count} weights and no module", "`{path}` 只有 {count} 个权重，没有模块", path=path, count=len(state)),
            say("expected a module: TorchScript or torch.export", "应为模块：TorchScript 或 torch.export 的文件"),
            say("name the factory and pass the file with --weights", "请指明工厂函数，并用 --weights 传入该文件"),
        )
    raise _refused(path, say("it is no file of torch's", "它不是 torch 的文件"))


def load_weights(path: Path) -> Mapping[str, Any]:
    """The tensors of a state_dict, or of the one inside a checkpoint.

    Raises:
        ModelError: it is no such file, or holds objects whose loading would run code.
    """
    if not path.is_file():
        raise _refused(path, say("there is no such file", "文件不存在"))
    if kind_of(path) != "pickle":
        raise _refused(path, say("it holds no weights alone", "它不是单独的权重文件"))
    held = _loaded(path, lambda torch: torch.load(path, map_location="cpu"))
    found = _state_dict(held)
    if found is None:
        raise _refused(path, say("it holds no named tensors", "其中没有按名称存放的张量"))
    return found


def fill(module: Any, path: Path) -> None:
    """Give a module the weights of a file.

    Raises:
        UsageError: they are not this module's.
    """
    state = dict(load_weights(path))
    own = module.state_dict()
    if not set(state) & set(own) and all(name.startswith("module.") for name in state):  # saved from DataParallel
        state = {name.removeprefix("module."): tensor for name, tensor in state.items()}
    odd = [name for name, tensor in state.items() if name in own and own[name].shape != tensor.shape]
    missing, unknown = sorted(set(own) - set(state)), sorted(set(state) - set(own))
    if odd or missing or unknown:
        raise UsageError(
            say(
                "the weights of `{path}` are not the module's: {missing} missing, {unknown} unknown, {odd} of another shape ({names})",
                "`{path}` 中的权重与模块不符：缺少 {missing} 个，多出 {unknown} 个，形状不同 {odd} 个（{names}）",
                path=path,
                missing=len(missing),
                unknown=len(unknown),
                odd=len(odd),
                names=", ".join([*odd, *missing, *unknown][:3]),
            ),
            say("expected exactly the weights that the factory's module has", "应恰好为工厂函数所建模块的权重"),
            say("build the module with the options it was trained with", "请用训练时的选项构建模块"),
        )
    module.load_state_dict(state)


def _state_dict(held: Any) -> Mapping[str, Any] | None:
    import torch

    if not isinstance(held, Mapping) or not held:
        return None
    if all(isinstance(item, torch.Tensor) for item in held.values()):
        return held
    return next((found for name in _NESTED if (found := _state_dict(held.get(name))) is not None), None)


def _loaded(path: Path, load: Callable[[Any], Any]) -> Any:
    import torch

    try:
        with _no_code(torch), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch calls TorchScript old; the file is what there is
            return load(torch)
    except Exception as error:
        words = " ".join(str(error).split("\n")[0].split())[:160]
        if "weights only" in str(error).lower() or "weights_only" in str(error):
            raise ModelError(
                say(
                    "`{path}` holds pickled objects: loading it would run code from the file",
                    "`{path}` 含有 pickle 对象：加载会运行文件中的代码",
                    path=path,
                ),
                say("expected tensors, TorchScript or a program of torch.export", "应为张量、TorchScript 或 torch.export 的程序"),
                say(
                    "where you trust it, load it yourself and save module.state_dict(), for --weights with a factory",
                    "若确信其可信，请自行加载并保存 module.state_dict()，再配合工厂函数用 --weights 传入",
                ),
            ) from error
        raise _refused(path, say("{error}", "{error}", error=f"{type(error).__name__}: {words}")) from error


@contextlib.contextmanager
def _no_code(torch: Any) -> Iterator[None]:
    """While this lasts, everything torch unpickles is held to tensors: `torch.export.load` would otherwise fall back to running code."""
    genuine = torch.load

    def strict(*args: Any, **kwargs: Any) -> Any:
        return genuine(*args, **{**kwargs, "weights_only": True})

    torch.load = strict
    try:
        yield
    finally:
        torch.load = genuine


def _refused(path: Path, reason: Text) -> ModelError:
    return ModelError(
        say("`{path}` cannot be exported: {reason}", "无法导出 `{path}`：{reason}", path=path, reason=reason),
        say(
            "expected TorchScript, a program of torch.export, or MODULE:CALLABLE", "应为 TorchScript、torch.export 的程序或 模块:可调用对象"
        ),
        say("save it with torch.export.save or torch.jit.save", "请用 torch.export.save 或 torch.jit.save 保存"),
    )
