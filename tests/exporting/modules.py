"""Small modules, each with one thing that exports go wrong at. Lines that tests look for end with a mark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch


def line_of(mark: str) -> str:
    """The number of the line that ends with this mark."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return f"modules.py:{next(number for number, line in enumerate(lines, 1) if line.endswith(f'# {mark}'))}"


class Frozen(torch.nn.Module):
    """A loop count and a branch taken from values."""

    def forward(self, x: Any, n: Any) -> Any:
        for _ in range(int(n)):  # loop count
            x = x * 2 + 1
        if x.sum() > 0:  # branch
            x = -x
        return x


class Listed(torch.nn.Module):
    """A number taken out by tolist, of which no tracer warns."""

    def forward(self, x: Any) -> Any:
        with torch.no_grad():
            scale = x.detach().abs().max().tolist()  # scale
        return x / scale


class ScatterAdd(torch.nn.Module):
    """TorchScript at opset 11 keeps only the last of equal indices, and says nothing."""

    def forward(self, x: Any, i: Any) -> Any:
        return torch.zeros(3, 2).scatter_add(0, i[:, None].expand(-1, 2), x)  # scatter


class Nested(torch.nn.Module):
    """Arguments and results of every kind."""

    def forward(self, batch: dict[str, Any], scale: float = 2.0, mask: Any = None) -> dict[str, Any]:
        y = batch["a"] * scale + batch["b"][0] * batch["b"][1]
        return {"pred": y if mask is None else y * mask, "aux": (y.mean(), None), "kind": "car"}


class Trained(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Dropout(0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)  # body


class Noisy(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x + torch.randn_like(x)  # noise


class Writes(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        x[0] = 1.0  # write
        return x * 2


class SizeFrozen(torch.nn.Module):
    """A size turned into a Python number before it is used."""

    def forward(self, x: Any) -> Any:
        steps = torch.arange(int(torch.tensor(x.shape[1])), dtype=torch.float32)  # steps
        return x * steps


class Rows(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.softmax(x @ x.transpose(-1, -2), -1).sum(-2)


class Ignores(torch.nn.Module):
    def forward(self, x: Any, unused: Any) -> Any:
        return torch.relu(x)


class Fails(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x.reshape(7, 7)  # reshape


class Weighted(torch.nn.Module):
    """A weight that is computed anew at every call."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.utils.parametrizations.weight_norm(torch.nn.Conv1d(3, 4, 3))

    def forward(self, x: Any) -> Any:
        return self.conv(x)


def make_nested() -> tuple[Any, ...]:
    torch.manual_seed(0)
    return Nested(), ({"a": torch.randn(2, 3), "b": (torch.randn(2, 3), 7)},)


def make_scatter() -> tuple[Any, ...]:
    return ScatterAdd(), (torch.ones(6, 2), torch.tensor([0, 0, 0, 1, 2, 2]))


def make_rows() -> Any:
    return Rows()


def make_failing() -> tuple[Any, ...]:
    return Fails(), (torch.zeros(3),)


def make_text() -> str:
    return "no module"


class ViewWrite(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        y = x.clone()
        left = y[:, :2]
        left.mul_(2)  # view write
        return y + 1


class HarmlessWrite(torch.nn.Module):
    """A buffer filled in place, which becomes a constant, and then a branch."""

    def forward(self, x: Any) -> Any:
        scale = torch.empty(3)
        scale.fill_(2.0)
        y = x * scale
        if y.sum() > 0:  # second branch
            y = -y
        return y + 1


class Chaotic(torch.nn.Module):
    """Rounding decides: terms that cancel, of which only the sign is used; beside something that TorchScript gets wrong at opset 11."""

    def forward(self, x: Any, i: Any) -> Any:
        y = x[:3] * 0.1
        return torch.zeros(3, 2).scatter_add(0, i[:, None].expand(-1, 2), x) + (y + 1e6 - 1e6 - y).sign()
