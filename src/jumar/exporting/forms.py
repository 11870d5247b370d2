"""Forms of our own for calls of torch that both exporters refuse: the same function in operators that they take.

They take the place of the call while an exporter runs, so that the line stays the user's. What they make is compared with the module as it was,
like any export.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

Form = Callable[..., Any]


def own_forms() -> AbstractContextManager[Any]:
    """While this lasts, calls that have a form of ours are computed by it. A form that does not fit returns NotImplemented: the call is left."""
    import torch
    from torch.overrides import TorchFunctionMode

    forms = _by_function(torch)

    class Forms(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
            form = forms.get(function)
            found = NotImplemented if form is None else form(*args, **(kwargs or {}))
            return function(*args, **(kwargs or {})) if found is NotImplemented else found

    return Forms()


def form_names() -> frozenset[str]:
    """Names of the calls that have a form of ours."""
    import torch

    return frozenset(getattr(function, "__name__", "") for function in _by_function(torch))


def _by_function(torch: Any) -> dict[Any, Form]:
    named: dict[str, Form] = {
        "scatter_reduce": _scatter_reduce,
        "cummax": _cummax,
        "cummin": _cummin,
        "cumprod": _cumprod,
        "logcumsumexp": _logcumsumexp,
        "median": _median,
        "searchsorted": _searchsorted,
        "masked_select": _masked_select,
        "diff": _diff,
        "expm1": lambda x: torch.exp(x) - 1,
        "trunc": lambda x: torch.sign(x) * torch.floor(torch.abs(x)),
        "frac": lambda x: x - torch.sign(x) * torch.floor(torch.abs(x)),
        "unflatten": _unflatten,
    }
    found = {getattr(owner, name): form for name, form in named.items() for owner in (torch, torch.Tensor) if hasattr(owner, name)}
    for function in (torch.inverse, torch.Tensor.inverse, torch.linalg.inv):
        found[function] = _inverse
    found[torch.nn.functional.rms_norm] = _rms_norm
    return found


def _running(x: Any, dim: int, join: Callable[[Any, Any], Any]) -> Any:
    """A running total by doubling: after step k each place holds the join of the 2**k places up to it. ``join(earlier, later)`` works on
    tuples of tensors."""
    import torch

    size, step = x[0].shape[dim], 1
    while step < size:
        kept = tuple(part.narrow(dim, 0, step) for part in x)
        joined = join(tuple(part.narrow(dim, 0, size - step) for part in x), tuple(part.narrow(dim, step, size - step) for part in x))
        x = tuple(torch.cat([head, tail], dim) for head, tail in zip(kept, joined, strict=True))
        step *= 2
    return x


def _extreme(x: Any, dim: int, earlier_wins: Callable[[Any, Any], Any]) -> Any:
    """Running extremes with their places; of equals the last one, as torch has it."""
    import torch

    if x.dim() == 0 or (x.is_floating_point() is False and x.dtype == torch.bool):
        return NotImplemented
    shape = [1] * x.dim()
    shape[dim] = x.shape[dim]
    places = torch.arange(x.shape[dim]).reshape(shape).expand(x.shape)

    def join(left: Any, right: Any) -> Any:
        take = earlier_wins(left[0], right[0])
        return torch.where(take, left[0], right[0]), torch.where(take, left[1], right[1])

    return _running((x, places), dim, join)


def _cummax(x: Any, dim: int) -> Any:
    import torch

    found = _extreme(x, dim, lambda left, right: left > right)
    return found if found is NotImplemented else torch.return_types.cummax(found)


def _cummin(x: Any, dim: int) -> Any:
    import torch

    found = _extreme(x, dim, lambda left, right: left < right)
    return found if found is NotImplemented else torch.return_types.cummin(found)


def _cumprod(x: Any, dim: int, dtype: Any = None) -> Any:
    return _running((x if dtype is None else x.to(dtype),), dim, lambda left, right: (left[0] * right[0],))[0]


def _logcumsumexp(x: Any, dim: int) -> Any:
    import torch

    def join(left: Any, right: Any) -> Any:
        top = torch.maximum(left[0], right[0])
        return (top + torch.log(torch.exp(left[0] - top) + torch.exp(right[0] - top)),)

    return _running((x,), dim, join)[0]


def _median(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    import torch

    if dim is None:
        flat = x.reshape(-1)
        return torch.topk(flat, flat.shape[0] // 2 + 1)[0][-1]
    size = x.shape[dim]
    values, places = torch.topk(x, size - (size - 1) // 2, dim)
    last = values.shape[dim] - 1
    found = [part.narrow(dim, last, 1) for part in (values, places)]
    return torch.return_types.median([part if keepdim else part.squeeze(dim) for part in found])


def _searchsorted(edges: Any, x: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Any = None) -> Any:
    import torch

    if sorter is not None or not isinstance(x, torch.Tensor):
        return NotImplemented
    below = edges[..., None, :] <= x[..., None] if right or side == "right" else edges[..., None, :] < x[..., None]
    return below.to(torch.int32 if out_int32 else torch.int64).sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


def _scatter_reduce(x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Any:
    """The mean as two sums; the others are known to the exporters."""
    import torch

    if reduce != "mean" or not x.is_floating_point():
        return NotImplemented
    base = x if include_self else torch.zeros_like(x)
    total = base.scatter_add(dim, index, src)
    count = (torch.ones_like(x) if include_self else torch.zeros_like(x)).scatter_add(dim, index, torch.ones_like(src))
    mean = total / count.clamp(min=1)
    return mean if include_self else torch.where(count > 0, mean, x)


def _masked_select(x: Any, mask: Any) -> Any:
    import torch

    x, mask = torch.broadcast_tensors(x, mask)
    return x.reshape(-1)[mask.reshape(-1).nonzero().squeeze(1)]


def _diff(x: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    import torch

    parts = [part for part in (prepend, x, append) if part is not None]
    x = torch.cat(parts, dim) if len(parts) > 1 else x
    for _ in range(n):
        size = x.shape[dim]
        x = x.narrow(dim, 1, size - 1) - x.narrow(dim, 0, size - 1)
    return x


def _unflatten(x: Any, dim: int, sizes: Sequence[int]) -> Any:
    place = dim % x.dim()
    return x.reshape(*x.shape[:place], *sizes, *x.shape[place + 1 :])


def _rms_norm(x: Any, normalized_shape: Sequence[int], weight: Any = None, eps: float | None = None) -> Any:
    import torch

    axes = tuple(range(-len(normalized_shape), 0))
    scaled = x * torch.rsqrt((x * x).mean(axes, keepdim=True) + (torch.finfo(x.dtype).eps if eps is None else eps))
    return scaled if weight is None else scaled * weight


_LARGEST_INVERSE = 4


def _inverse(x: Any) -> Any:
    """Of small matrices, by cofactors."""
    import torch

    size = x.shape[-1]
    if size > _LARGEST_INVERSE:
        return NotImplemented
    cells = [[x[..., row, column] for column in range(size)] for row in range(size)]
    turned = [[(-1) ** (row + column) * _determinant(_without(cells, column, row)) for column in range(size)] for row in range(size)]
    whole = sum(cells[0][column] * turned[column][0] for column in range(size))
    return torch.stack([torch.stack(row, -1) for row in turned], -2) / whole[..., None, None]


def _without(cells: list[list[Any]], row: int, column: int) -> list[list[Any]]:
    return [[cell for at, cell in enumerate(line) if at != column] for place, line in enumerate(cells) if place != row]


def _determinant(cells: list[list[Any]]) -> Any:
    import torch

    if not cells:
        return torch.ones(())
    if len(cells) == 1:
        return cells[0][0]
    return sum((-1) ** column * cells[0][column] * _determinant(_without(cells, 0, column)) for column in range(len(cells)))
