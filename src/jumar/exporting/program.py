"""A module with its example arguments as a function of tensors to tensors, which is what an exporter takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..child.wire import dtype_of
from ..errors import UsageError
from ..text import say
from .dynamic import Dynamic
from .structure import Flat, Path, input_names, path_text, take_apart

_TRAINED = ("BatchNorm", "Dropout", "InstanceNorm", "DropPath", "StochasticDepth", "RReLU")


@dataclass(frozen=True)
class Slot:
    """One tensor that goes in or comes out: its name in ONNX, and where it lies in the arguments or the result."""

    name: str
    path: Path
    dtype: str
    shape: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "path": list(self.path), "dtype": self.dtype, "shape": list(self.shape)}


@dataclass
class Program:
    """What is exported.

    Attributes:
        module: the live module, never changed here.
        inputs: one slot for each tensor among the arguments.
        given: the tensors as arrays, by name.
        bound: arguments that are no tensors and are baked in, by path.
        dynamic: what dimensions are left open.
    """

    module: Any
    flat: Flat
    inputs: tuple[Slot, ...]
    given: dict[str, Any]
    bound: dict[str, Any]
    dynamic: Dynamic = field(default_factory=Dynamic)

    def call(self, tensors: Sequence[Any], module: Any = None) -> Any:
        """The module's own result on these tensors. ``module``: the same one, as a tracer knows it."""
        args, kwargs = self.flat.rebuild(list(tensors))
        return (self.module if module is None else module)(*args, **kwargs)

    def wrapper(self, around: Callable[[], AbstractContextManager[Any]] = nullcontext) -> Any:
        """A module that takes and returns nothing but tensors, and runs within ``around()``.

        To be used in a child only: it puts the module into eval mode, and has attention computed by operators instead of one kernel.
        """
        import torch

        program = self
        with suppress(NotImplementedError):  # an exported program has one mode, that of its export
            program.module.eval()
        if hasattr(torch.backends, "mha"):
            torch.backends.mha.set_fastpath_enabled(False)

        class Flattened(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.module = program.module

            def forward(self, *tensors: Any) -> tuple[Any, ...]:
                with around():
                    return tuple(results(program.call(tensors, self.module)).tensors)

        made = Flattened()
        made.training = False
        return made

    def tensors(self, arrays: Mapping[str, Any]) -> list[Any]:
        """Fresh tensors of arrays by input name."""
        return [to_tensor(arrays[slot.name]) for slot in self.inputs]

    def training(self) -> list[tuple[str, str]]:
        """Paths and classes of the modules in training mode for which that makes a difference."""
        return [
            (name or "-", kind)
            for name, module in self.module.named_modules()
            if module.training and any(word in (kind := getattr(module, "original_name", type(module).__name__)) for word in _TRAINED)
        ]


def results(value: Any) -> Flat:
    """What a module returned, taken apart."""
    return take_apart(value, is_tensor)


def is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def make_program(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic: Dynamic, names: Sequence[str] | None) -> Program:
    """Take the arguments apart and name them.

    Raises:
        UsageError: no tensors, a module on another device, arguments that forward does not take, or names that do not fit.
    """
    _must_be_module(module)
    places = _named(module, args, kwargs)
    flat = Flat()
    named = dict(places)
    # Named by the parameters of forward, put together as positional and keyword arguments.
    parts = [take_apart(value, is_tensor, (place,)) for place, value in named.items()]
    offsets = np.cumsum([0, *(len(part.tensors) for part in parts)])
    for part in parts:
        flat.tensors += part.tensors
        flat.paths += part.paths
        flat.bound |= part.bound
        flat.empty += part.empty
    keywords = list(named)[len(args) :]

    def rebuild(tensors: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        values = [part.rebuild(tensors[start : start + len(part.tensors)]) for part, start in zip(parts, offsets, strict=False)]
        return values[: len(args)], dict(zip(keywords, values[len(args) :], strict=True))

    flat.rebuild = rebuild
    if not flat.tensors:
        raise UsageError(
            say("there is no tensor among the arguments", "参数中没有张量"),
            say("expected example arguments with at least one tensor", "应给出至少含一个张量的示例参数"),
            say("pass args, or --inputs or --shape", "请传入 args，或使用 --inputs、--shape"),
        )
    found = list(names) if names is not None else input_names(flat.paths)
    if len(found) != len(flat.tensors) or len(set(found)) != len(found):
        raise UsageError(
            say("{count} different names are given", "给出了 {count} 个不同的名称", count=len(set(found))),
            say(
                "expected {count}: one for each of {paths}", "应为 {count} 个：{paths} 各一个", count=len(flat.tensors), paths=_paths(flat)
            ),
            say("correct the names", "请修正名称"),
        )
    given = {name: to_array(tensor) for name, tensor in zip(found, flat.tensors, strict=True)}
    slots = tuple(Slot(name, path, given[name].dtype.name, given[name].shape) for name, path in zip(found, flat.paths, strict=True))
    dynamic.check({slot.name: slot.shape for slot in slots})
    return Program(module, flat, slots, given, {path_text(path): value for path, value in flat.bound.items()}, dynamic)


def _paths(flat: Flat) -> str:
    return ", ".join(path_text(path) for path in flat.paths)


def _must_be_module(module: Any) -> None:
    import torch

    if not isinstance(module, torch.nn.Module):
        raise UsageError(
            say("`{kind}` is no module", "`{kind}` 不是模块", kind=type(module).__name__),
            say("expected a torch.nn.Module", "应为 torch.nn.Module"),
            say("wrap the function in a module", "请把函数包装成模块"),
        )
    tensors = [*module.parameters(), *module.buffers()]
    elsewhere = sorted({tensor.device.type for tensor in tensors} - {"cpu"})
    if elsewhere:
        raise UsageError(
            say("the module is on {device}", "模块位于 {device}", device=", ".join(elsewhere)),
            say("expected it on the CPU, with real weights", "应在 CPU 上，且带有真实权重"),
            say("call .cpu() before, or load the weights", "请先调用 .cpu()，或加载权重"),
        )


def signature_of(module: Any) -> inspect.Signature | None:
    """The parameters of forward; TorchScript keeps them in a schema of its own."""
    schema = getattr(module.forward, "schema", None)
    if schema is not None:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        empty = inspect.Parameter.empty
        return inspect.Signature(
            [
                inspect.Parameter(item.name, kind, default=item.default_value if item.has_default_value() else empty)
                for item in schema.arguments[1:]
            ]
        )
    try:
        return inspect.signature(module.forward)
    except (TypeError, ValueError):
        return None


def _named(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The arguments with the names that forward gives them."""
    signature = signature_of(module)
    if signature is None:
        return [(f"arg_{index}", value) for index, value in enumerate(args)] + list(kwargs.items())
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise UsageError(
            say("forward does not take these arguments: {error}", "forward 不接受这些参数：{error}", error=error),
            say("expected those of forward{signature}", "应为 forward{signature} 的参数", signature=str(signature)[:200]),
            say("correct args and kwargs", "请修正 args 与 kwargs"),
        ) from error
    names = [item.name for item in signature.parameters.values() if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)]
    rest = next((item.name for item in signature.parameters.values() if item.kind is item.VAR_POSITIONAL), "arg")
    found = [(names[index] if index < len(names) else f"{rest}_{index - len(names)}", value) for index, value in enumerate(args)]
    return found + list(kwargs.items())


def to_array(tensor: Any) -> Any:
    """A tensor as an array, bfloat16 and other types that numpy lacks included.

    Raises:
        UsageError: a type that ONNX has no dense tensors of.
    """
    import torch

    tensor = tensor.detach().resolve_conj().resolve_neg() if hasattr(tensor, "resolve_conj") else tensor.detach()
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise UsageError(
            say("a tensor is of layout {layout}", "张量的布局为 {layout}", layout=str(tensor.layout)),
            say("expected dense tensors", "应为稠密张量"),
            say("call .to_dense() or .dequantize() in the module", "请在模块中调用 .to_dense() 或 .dequantize()"),
        )
    name = str(tensor.dtype).removeprefix("torch.")
    narrow = {"bfloat16": torch.int16, "float8_e4m3fn": torch.int8, "float8_e5m2": torch.int8}.get(name)
    if narrow is not None:
        return tensor.contiguous().view(narrow).numpy().copy().view(dtype_of(name))
    return tensor.numpy().copy()


def to_tensor(array: Any) -> Any:
    import torch

    array = np.asarray(array)
    if array.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        raw = torch.from_numpy(array.view(np.int16 if array.dtype.itemsize == 2 else np.int8).copy())
        return raw.view(getattr(torch, array.dtype.name))
    return torch.from_numpy(np.array(array))
