"""Forms of ours compute what torch computes, places of equal elements included, and a wrong one is noticed by the export."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import jumar  # noqa: E402
from jumar.exporting import forms  # noqa: E402
from jumar.exporting.forms import form_names, own_forms  # noqa: E402
from jumar.graph import Evaluator  # noqa: E402

CALLS: dict[str, Callable[[Any, int], Any]] = {
    "cummax": lambda x, dim: torch.cummax(x, dim),
    "cummin": lambda x, dim: x.cummin(dim),
    "cumprod": lambda x, dim: torch.cumprod(x, dim),
    "logcumsumexp": lambda x, dim: torch.logcumsumexp(x, dim),
    "median": lambda x, dim: torch.median(x, dim, keepdim=True)[0],
    "median of all": lambda x, _dim: x.median(),
    "diff": lambda x, dim: torch.diff(x, dim=dim),
    "diff with ends": lambda x, dim: torch.diff(x, n=2, dim=dim, prepend=x, append=x),
    "expm1": lambda x, _dim: torch.expm1(x),
    "trunc and frac": lambda x, _dim: (x.trunc(), torch.frac(x)),
    "rms_norm": lambda x, _dim: torch.nn.functional.rms_norm(x, x.shape[-1:], torch.arange(1.0, x.shape[-1] + 1)),
    "unflatten": lambda x, dim: x.unflatten(dim, (1, -1)),
    "masked_select": lambda x, _dim: torch.masked_select(x, x > 0),
    "searchsorted": lambda x, _dim: (
        torch.searchsorted(torch.tensor([-1.0, 0.0, 0.0, 2.0]), x),
        torch.searchsorted(torch.tensor([-1.0, 0.0, 2.0]), x, right=True, out_int32=True),
    ),
    "scatter_reduce": lambda x, dim: (
        torch.ones_like(x).scatter_reduce(dim, torch.zeros_like(x, dtype=torch.int64), x, "mean"),
        torch.ones_like(x).scatter_reduce(dim, torch.zeros_like(x, dtype=torch.int64), x, "mean", include_self=False),
    ),
}


def parts(value: Any) -> list[Any]:
    return [value] if isinstance(value, torch.Tensor) else list(value)


@pytest.mark.parametrize("name", CALLS)
@settings(deadline=None, max_examples=25)
@given(shape=st.lists(st.integers(1, 6), min_size=1, max_size=3), seed=st.integers(0, 99), steps=st.booleans(), data=st.data())
def test_a_form_computes_what_torch_computes(name: str, shape: list[int], seed: int, steps: bool, data: Any) -> None:
    random = np.random.default_rng(seed)
    values = random.integers(-2, 3, shape) if steps else random.standard_normal(shape) * 2  # few different values: many are equal
    x, dim = torch.from_numpy(values.astype(np.float32)), data.draw(st.integers(-len(shape), len(shape) - 1))
    right = parts(CALLS[name](x, dim))
    with own_forms():
        found = parts(CALLS[name](x, dim))
    assert len(found) == len(right)
    for one, other in zip(found, right, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        assert torch.allclose(one.double(), other.double(), atol=1e-5)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_small_inverses(size: int) -> None:
    torch.manual_seed(size)
    x = torch.randn(3, size, size) + 2 * torch.eye(size)
    with own_forms():
        found = torch.linalg.inv(x)
    assert torch.allclose(found, torch.linalg.inv(x), atol=1e-4)


def test_calls_that_no_form_fits_are_left_to_torch() -> None:
    x = torch.randn(6, 6) + 6 * torch.eye(6)
    with own_forms():
        assert torch.equal(torch.linalg.inv(x), torch.linalg.inv(x)) and torch.equal(x.relu(), x.clamp(min=0))
        assert torch.searchsorted(torch.tensor([2.0, 1.0]), x, sorter=torch.tensor([1, 0])).shape == x.shape
    assert {"cummax", "median", "searchsorted"} <= form_names()


class Product(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.cumprod(x, 1)


@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (1.01, False)])
def test_a_form_that_is_one_per_cent_off_is_not_handed_over(
    factor: float, right: bool, evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine = forms._cumprod
    monkeypatch.setattr(forms, "_cumprod", lambda x, dim: genuine(x, dim) * factor)
    case = jumar.export(Product(), (torch.randn(2, 5),), target="mdc510pro", evaluator=evaluator, exporters=["torchscript"])
    assert (case.record.data["export"]["exporter"] == "torchscript@17+own") is right
    assert (case.record.verdict == "blocked") is not right
