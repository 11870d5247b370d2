"""Modules of one operator each: what exports go wrong at, one by one. Two of a kind where the two exporters differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it


@dataclass(frozen=True)
class Operator:
    """A function of tensors and the inputs to export it with.

    Attributes:
        needs: a package that must be there.
        ranges: of integer inputs that index something.
    """

    name: str
    function: Callable[..., Any]
    inputs: Callable[[], Sequence[Any]]
    needs: str | None = None


class Single(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Any) -> Any:
        return self.function(*tensors)


def module_of(operator: Operator) -> tuple[Any, tuple[Any, ...]]:
    """The module in eval mode, and its inputs; both the same every time."""
    torch.manual_seed(0)
    inputs = tuple(operator.inputs())
    made = operator.function
    return (made if isinstance(made, torch.nn.Module) else Single(made)).eval(), inputs


def _x(*shape: int) -> Callable[[], Sequence[Any]]:
    return lambda: (torch.randn(*shape),)


def _xy(*shape: int) -> Callable[[], Sequence[Any]]:
    return lambda: (torch.randn(*shape), torch.randn(*shape))


def _indexed() -> Sequence[Any]:
    return torch.randn(6, 4), torch.tensor([0, 0, 2, 1, 2, 2])


def _spread(index: Any, width: int) -> Any:
    return index[:, None].expand(-1, width)


def _layer(make: Callable[[], Any]) -> Any:
    torch.manual_seed(1)
    return make()


def _boxes(count: int = 8) -> Any:
    corner = torch.rand(count, 2) * 10
    return torch.cat([corner, corner + 1 + torch.rand(count, 2) * 8], 1)


def _loop(x: Any, n: Any) -> Any:
    for _ in range(int(n)):
        x = x * 0.5 + 1
    return x


def _view_write(x: Any) -> Any:
    y = x.clone()
    left, right = y[:, :2], y[:, 2:]
    left.mul_(2)
    right[0] = 7
    return y


def _rope(x: Any, angle: Any) -> Any:
    turned = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(turned).flatten(-2)


def _deform(x: Any, offset: Any) -> Any:
    from torchvision.ops import deform_conv2d

    return deform_conv2d(x, offset, torch.linspace(-1, 1, 4 * 3 * 9).reshape(4, 3, 3, 3), padding=1)


def _roi(aligned: bool) -> Callable[..., Any]:
    def function(x: Any, boxes: Any) -> Any:
        from torchvision.ops import roi_align

        return roi_align(x, [boxes], (3, 3), 0.5, 2, aligned)

    return function


def _nms(centre: Any, size: Any, scores: Any) -> Any:
    from torchvision.ops import nms

    half = size.exp() / 2
    return nms(torch.cat([centre - half, centre + half], 1), scores, 0.3)


class _Packed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(4, 6, batch_first=True)

    def forward(self, x: Any, lengths: Any) -> Any:
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return torch.nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=5)[0]


class _Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.attention(x, x, x, need_weights=False)[0]


_LSTM = _layer(lambda: torch.nn.LSTM(4, 6, batch_first=True))
_GRU = _layer(lambda: torch.nn.GRU(4, 6, num_layers=2, bidirectional=True, batch_first=True))
_RNN = _layer(lambda: torch.nn.RNN(4, 6))
_CELL = _layer(lambda: torch.nn.GRUCell(4, 6))
_ATTENTION = _layer(_Attention)
_PACKED = _layer(_Packed)
_ENCODER = _layer(lambda: torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True))
_BAG = _layer(lambda: torch.nn.EmbeddingBag(10, 4, mode="sum"))
_EMBED = _layer(lambda: torch.nn.Embedding(10, 4, padding_idx=0))
_GROUP = _layer(lambda: torch.nn.GroupNorm(2, 4))
_TRANSPOSED = _layer(lambda: torch.nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1))

OPERATORS: tuple[Operator, ...] = (
    Operator("atan2", torch.atan2, _xy(3, 4)),
    Operator("avgpool_ceil", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), _x(1, 3, 8, 8)),
    Operator("adaptive_pool", lambda x: F.adaptive_avg_pool2d(x, (3, 5)), _x(1, 3, 8, 9)),
    Operator("adaptive_max", lambda x: F.adaptive_max_pool2d(x, (2, 4)), _x(1, 3, 8, 8)),
    Operator("baddbmm", lambda x, y: torch.baddbmm(x, x, y.transpose(1, 2) @ y, beta=0.5, alpha=2.0), _xy(2, 4, 4)),
    Operator("bitwise", lambda a, b: (a & b, a | b, a ^ b, ~a), lambda: (torch.randint(0, 99, (4,)), torch.randint(0, 99, (4,)))),
    Operator("bitshift", lambda a: (a << 2, a >> 1), lambda: (torch.randint(0, 99, (6,)),)),
    Operator("bucketize", lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), _x(3, 4)),
    Operator("cdist", lambda x, y: torch.cdist(x, y), _xy(5, 3)),
    Operator("complex_rope", _rope, lambda: (torch.randn(2, 5, 8), torch.randn(5, 4))),
    Operator("cross", lambda x, y: torch.linalg.cross(x, y), _xy(4, 3)),
    Operator("ctc_greedy", lambda x: torch.unique_consecutive(x.argmax(-1)), _x(12, 5)),
    Operator("cummax", lambda x: torch.cummax(x, 1), _x(3, 7)),
    Operator("cummin", lambda x: torch.cummin(x, 1), _x(3, 7)),
    Operator("cumprod", lambda x: torch.cumprod(x, 1), _x(3, 5)),
    Operator("cumsum", lambda x: torch.cumsum(x, 1), _x(3, 7)),
    Operator("data_dep_loop", _loop, lambda: (torch.randn(2, 3), torch.tensor(3))),
    Operator("deform_conv", _deform, lambda: (torch.randn(1, 3, 6, 6), torch.randn(1, 18, 6, 6)), "torchvision"),
    Operator("det", lambda x: torch.linalg.det(x), _x(3, 3)),
    Operator("diag_embed", lambda x: (torch.diag_embed(x), torch.diagonal(torch.diag_embed(x), dim1=-2, dim2=-1)), _x(2, 3)),
    Operator("diff", lambda x: torch.diff(x, dim=1), _x(3, 6)),
    Operator("double_math", lambda x: (x.double() * 1.5).sqrt().float(), lambda: (torch.rand(3, 4),)),
    Operator("einsum", lambda x, y: torch.einsum("bik,bjk->bij", x, y), _xy(2, 3, 4)),
    Operator("einsum_diagonal", lambda x: torch.einsum("bii->bi", x), _x(2, 4, 4)),
    Operator("embedding", _EMBED, lambda: (torch.randint(0, 10, (2, 5)),)),
    Operator("embedding_bag", _BAG, lambda: (torch.randint(0, 10, (3, 4)),)),
    Operator("erfinv_like", lambda x: torch.erf(x) + torch.special.expm1(x) + torch.log1p(x.abs()), _x(3, 4)),
    Operator("fft", lambda x: torch.fft.rfft(x).abs(), _x(2, 16)),
    Operator("fmod_remainder", lambda x, y: (torch.fmod(x, y), torch.remainder(x, y)), lambda: (torch.randn(9) * 5, torch.rand(9) + 1)),
    Operator("fold", lambda x: F.fold(x, (6, 6), 3, padding=1), _x(1, 18, 36)),
    Operator("unfold", lambda x: F.unfold(x, 3, padding=1), _x(1, 2, 6, 6)),
    Operator("gather_take_along", lambda x, i: x.gather(1, i), lambda: (torch.randn(3, 5), torch.randint(0, 5, (3, 2)))),
    Operator("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), _x(3, 4)),
    Operator(
        "grid_sample",
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        lambda: (torch.randn(1, 2, 5, 5), torch.rand(1, 4, 4, 2) * 2 - 1),
    ),
    Operator("group_norm", _GROUP, _x(2, 4, 5)),
    Operator("gru", _GRU, _x(2, 5, 4)),
    Operator("gru_cell", _CELL, lambda: (torch.randn(2, 4), torch.randn(2, 6))),
    Operator("hardswish", F.hardswish, _x(3, 4)),
    Operator("histc_like", lambda x: (x[:, None] == torch.arange(5)).sum(0), lambda: (torch.randint(0, 5, (20,)),)),
    Operator("index_add", lambda x, i: torch.zeros(3, 4).index_add(0, i, x), _indexed),
    Operator("index_put_acc", lambda x, i: torch.zeros(3, 4).index_put((i,), x, accumulate=True), _indexed),
    Operator(
        "index_select_fill", lambda x, i: x.index_fill(0, i, 2.0).index_select(0, i), lambda: (torch.randn(4, 3), torch.tensor([0, 2]))
    ),
    Operator("instance_norm_1d", lambda x: F.instance_norm(x), _x(2, 3, 8)),
    Operator("interp_antialias", lambda x: F.interpolate(x, (5, 5), mode="bilinear", antialias=True), _x(1, 2, 9, 9)),
    Operator("interp_bicubic", lambda x: F.interpolate(x, (9, 7), mode="bicubic", align_corners=False), _x(1, 2, 5, 5)),
    Operator("interp_nearest", lambda x: F.interpolate(x, scale_factor=1.7, mode="nearest"), _x(1, 2, 5, 5)),
    Operator("inverse", lambda x: torch.linalg.inv(x @ x.T + 3 * torch.eye(3)), _x(3, 3)),
    Operator("isin", lambda x: torch.isin(x, torch.tensor([1, 3])), lambda: (torch.randint(0, 5, (8,)),)),
    Operator("layer_norm", lambda x: F.layer_norm(x, (4, 5)), _x(2, 4, 5)),
    Operator("logcumsumexp", lambda x: torch.logcumsumexp(x, 1), _x(3, 5)),
    Operator(
        "logical", lambda a, b: (a.logical_not(), a.logical_xor(b), a.logical_or(b)), lambda: (torch.randn(5) > 0, torch.randn(5) > 0)
    ),
    Operator("logsumexp", lambda x: torch.logsumexp(x, 1), _x(3, 5)),
    Operator("lstm", _LSTM, _x(2, 5, 4)),
    Operator("masked_select", lambda x: torch.masked_select(x, x > 0), _x(3, 4)),
    Operator("max_unpool", lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), _x(1, 2, 6, 6)),
    Operator("mha", _ATTENTION, _x(2, 5, 8)),
    Operator("median", lambda x: x.median(1), _x(3, 7)),
    Operator("nan_to_num", lambda x: torch.nan_to_num(x / x.relu(), 0.0, 9.0, -9.0), _x(3, 4)),
    Operator("nms", _nms, lambda: (torch.rand(8, 2) * 4, torch.rand(8, 2), torch.rand(8)), "torchvision"),
    Operator("nonzero", lambda x: (x > 0).nonzero(), _x(3, 4)),
    Operator("one_hot", lambda i: F.one_hot(i, 5), lambda: (torch.randint(0, 5, (6,)),)),
    Operator("packed_lstm", _PACKED, lambda: (torch.randn(3, 5, 4), torch.tensor([5, 3, 4]))),
    Operator("pad_reflect", lambda x: F.pad(x, (1, 2, 2, 1), mode="reflect"), _x(1, 2, 5, 5)),
    Operator("pad_circular", lambda x: F.pad(x, (1, 2), mode="circular"), _x(1, 2, 5)),
    Operator("pixel_shuffle", lambda x: F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2), _x(1, 8, 3, 3)),
    Operator("prod_all_any", lambda x: (x.prod(1), (x > 0).all(1), (x > 0).any()), _x(3, 4)),
    Operator("repeat_interleave", lambda x: x.repeat_interleave(3, 1), _x(2, 4)),
    Operator("repeat_interleave_tensor", lambda x, n: x.repeat_interleave(n, 0), lambda: (torch.randn(3, 4), torch.tensor([1, 2, 1]))),
    Operator("rnn", _RNN, _x(5, 2, 4)),
    Operator("roi_align", _roi(False), lambda: (torch.randn(1, 2, 12, 12), _boxes(3)), "torchvision"),
    Operator("roi_align_aligned", _roi(True), lambda: (torch.randn(1, 2, 12, 12), _boxes(3)), "torchvision"),
    Operator("roll_flip", lambda x: torch.roll(x, (1, -2), (0, 1)).flip(1), _x(3, 5)),
    Operator("rms_norm", lambda x: F.rms_norm(x, (5,)), _x(3, 5)),
    Operator("round_half", lambda x: (torch.round(x), torch.trunc(x), torch.frac(x)), lambda: (torch.arange(-6, 7) / 2,)),
    Operator("scatter_add", lambda x, i: torch.zeros(3, 4).scatter_add(0, _spread(i, 4), x), _indexed),
    Operator("scatter_mean", lambda x, i: torch.zeros(3, 4).scatter_reduce(0, _spread(i, 4), x, "mean", include_self=False), _indexed),
    Operator("scatter_amax", lambda x, i: torch.zeros(3, 4).scatter_reduce(0, _spread(i, 4), x, "amax", include_self=False), _indexed),
    Operator("scatter_prod", lambda x, i: torch.ones(3, 4).scatter_reduce(0, _spread(i, 4), x, "prod"), _indexed),
    Operator("sdpa", lambda q, k: F.scaled_dot_product_attention(q, k, k), _xy(1, 2, 5, 4)),
    Operator("sdpa_causal", lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), _x(1, 2, 5, 4)),
    Operator("searchsorted", lambda x: torch.searchsorted(torch.tensor([-1.0, 0.0, 1.0]), x, right=True), _x(3, 4)),
    Operator("slice_assign", _view_write, _x(3, 5)),
    Operator("sort_topk", lambda x: (*torch.sort(x, 1), *torch.topk(x, 2)), _x(3, 6)),
    Operator("transformer_layer", _ENCODER, _x(2, 5, 8)),
    Operator("conv_transpose", _TRANSPOSED, _x(1, 3, 5, 5)),
    Operator("tril_triu", lambda x: (x.tril(1), x.triu(-1)), _x(4, 5)),
    Operator("unflatten", lambda x: x.unflatten(1, (2, -1)).movedim(0, 2), _x(3, 6)),
    Operator("var_std", lambda x: (x.var(1, correction=0), x.std(1)), _x(3, 6)),
)
