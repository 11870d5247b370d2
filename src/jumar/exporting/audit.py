"""What a forward does in Python that a graph cannot hold: tensors that become numbers, writes in place, random draws. With the line of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .lines import current_line
from .program import is_tensor, to_array

NUMBERS = frozenset(
    {"item", "tolist", "numpy", "is_nonzero", "__bool__", "__int__", "__float__", "__index__", "__array__", "__contains__", "__complex__"}
)
_DRAWS = frozenset(
    {"rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "randperm", "bernoulli", "multinomial", "normal", "poisson"}
)
_MOST_ELEMENTS = 1 << 20
_MOST_IN_ALL = 1 << 25


@dataclass(frozen=True)
class Event:
    """One call of torch: ``kind`` is ``number`` (a tensor became a Python number), ``write`` (in place), ``draw`` (random) or ``call``."""

    kind: str
    name: str
    line: str | None
    arrays: int = 0

    def to_list(self) -> list[Any]:
        return [self.kind, self.name, self.line, self.arrays]


def watched(run: Callable[[], Any], keep: bool) -> tuple[Any, list[Event], dict[str, Any]]:
    """Run with every call of torch noted.

    Args:
        keep: also the tensors that calls return, as arrays ``EVENT/NUMBER``, as far as they are not too large.
    """
    from torch.overrides import TorchFunctionMode

    events: list[Event] = []
    arrays: dict[str, Any] = {}
    room = [_MOST_IN_ALL]

    class Watch(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
            result = function(*args, **(kwargs or {}))
            name = getattr(function, "__name__", str(function))
            kind = _kind(name, args, kwargs or {})
            if kind is None:
                return result
            shown = args[:1] if kind == "write" else (result if isinstance(result, (tuple, list)) else (result,))
            kept = _kept([item for item in shown if is_tensor(item)], f"{len(events)}", arrays, room) if keep else 0
            events.append(Event(kind, name, current_line(), kept))
            return result

    with Watch():
        result = run()
    return result, events, arrays


def _kind(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> str | None:
    if name in ("__get__", "__set__", "size", "dim", "stride", "is_floating_point", "numel", "__len__", "__repr__", "is_contiguous"):
        return None
    if name in NUMBERS:
        return "number" if args and is_tensor(args[0]) else None
    if name in _DRAWS or ("dropout" in name and kwargs.get("training", args[2] if len(args) > 2 else False) and kwargs.get("p", 0.5)):
        return "draw"
    if name == "__setitem__" or kwargs.get("out") is not None or (name.startswith("__i") and name.endswith("__")):
        return "write"
    in_place = name.endswith("_") and not name.endswith("__") and name not in ("requires_grad_", "detach_")
    return "write" if in_place and args and is_tensor(args[0]) else "call"


def _kept(tensors: list[Any], place: str, arrays: dict[str, Any], room: list[int]) -> int:
    count = 0
    for tensor in tensors:
        size = tensor.numel()
        if not 0 < size <= _MOST_ELEMENTS or size > room[0] or tensor.is_complex() or tensor.is_quantized:
            continue
        room[0] -= size
        arrays[f"{place}/{count}"] = to_array(tensor)
        count += 1
    return count
