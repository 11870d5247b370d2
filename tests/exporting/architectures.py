"""Small networks of well-known shape, with random weights, at widths that a test can afford."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch import nn


@dataclass(frozen=True)
class Architecture:
    """What makes the module, its inputs, and the package that it comes from."""

    name: str
    make: Callable[[], Any]
    inputs: Callable[[], Sequence[Any]]
    needs: str | None = None


def module_of(architecture: Architecture) -> tuple[Any, tuple[Any, ...]]:
    """The module in eval mode, and its inputs; both the same every time."""
    torch.manual_seed(0)
    module = architecture.make().eval()
    return module, tuple(architecture.inputs())


def _image(size: int = 64, channels: int = 3) -> Callable[[], Sequence[Any]]:
    return lambda: (torch.rand(1, channels, size, size),)


def _tokens(length: int = 12, high: int = 50) -> Callable[[], Sequence[Any]]:
    return lambda: (torch.randint(1, high, (1, length)),)


class Tagger(nn.Module):
    """Embedding, bidirectional LSTM, one score for each tag and step."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.lstm = nn.Embedding(50, 16), nn.LSTM(16, 12, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(24, 7)

    def forward(self, ids: Any) -> Any:
        return self.head(self.lstm(self.embed(ids))[0]).log_softmax(-1)


class Gru(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(8, 16, num_layers=2, batch_first=True), nn.Linear(16, 4)

    def forward(self, x: Any) -> Any:
        steps, last = self.gru(x)
        return self.head(steps[:, -1]), last


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 4)

    def forward(self, x: Any, lengths: Any) -> Any:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return self.head(nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=6)[0])


class Yolo(nn.Module):
    """Strided convolutions, two scales, boxes decoded on a grid."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(*[self._block(cin, cout) for cin, cout in ((3, 8), (8, 16), (16, 24))])
        self.deep, self.up = self._block(24, 32), nn.Conv2d(32, 24, 1)
        self.heads = nn.ModuleList([nn.Conv2d(24, 3 * 9, 1), nn.Conv2d(32, 3 * 9, 1)])

    @staticmethod
    def _block(cin: int, cout: int) -> Any:
        return nn.Sequential(nn.Conv2d(cin, cout, 3, 2, 1, bias=False), nn.BatchNorm2d(cout), nn.SiLU())

    def forward(self, x: Any) -> Any:
        near = self.stem(x)
        far = self.deep(near)
        near = near + F.interpolate(self.up(far), scale_factor=2.0, mode="nearest")
        return torch.cat([self._decode(head(y), stride) for head, y, stride in zip(self.heads, (near, far), (8, 16), strict=True)], 1)

    def _decode(self, y: Any, stride: int) -> Any:
        batch, _, height, width = y.shape
        y = y.view(batch, 3, 9, height, width).permute(0, 1, 3, 4, 2).sigmoid()
        rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        grid = torch.stack([columns, rows], -1).to(y)
        centre = (y[..., :2] * 2 - 0.5 + grid) * stride
        return torch.cat([centre, (y[..., 2:4] * 2) ** 2 * stride, y[..., 4:]], -1).reshape(batch, -1, 9)


class Unet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)])
        self.up, self.mix = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 4, 3, padding=1)

    def forward(self, x: Any) -> Any:
        top = F.relu(self.down[0](x))
        low = F.relu(self.down[1](F.max_pool2d(top, 2)))
        return self.mix(torch.cat([top, self.up(low)], 1)).softmax(1)


class RadiusGraph(nn.Module):
    """Message passing over edges closer than a radius: the list of edges depends on the data."""

    def __init__(self, dense: bool) -> None:
        super().__init__()
        self.dense = dense
        self.q, self.k, self.v, self.edge = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(3, 8)

    def forward(self, x: Any, pos: Any, head: Any) -> Any:
        relative = torch.cat([pos[None] - pos[:, None], (head[None] - head[:, None])[..., None]], -1)
        q, k, v, e, near = self.q(x), self.k(x), self.v(x), self.edge(relative), (relative[..., :2] ** 2).sum(-1) <= 2.25
        if self.dense:
            a = (q[:, None] * (k[None] + e)).sum(-1) + (1 - near.float()) * -1e4
            return (torch.softmax(a, -1)[..., None] * (v[None] + e)).sum(1)
        i, j = near.nonzero(as_tuple=True)
        a = torch.exp((q[i] * (k[j] + e[i, j])).sum(-1))
        total = torch.zeros(x.shape[0]).index_add(0, i, a)
        return torch.zeros_like(x).index_add(0, i, (a / total[i])[:, None] * (v[j] + e[i, j]))


class PointNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.each = nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU(), nn.Conv1d(16, 32, 1))
        self.head = nn.Linear(32, 5)

    def forward(self, points: Any) -> Any:
        return self.head(self.each(points.transpose(1, 2)).amax(-1))


class PolylineEncoder(nn.Module):
    """Lanes and agents as polylines (VectorNet): masked maxima, then attention among them."""

    def __init__(self) -> None:
        super().__init__()
        self.point, self.attention = (
            nn.Sequential(nn.Linear(4, 16), nn.LayerNorm(16), nn.ReLU()),
            nn.MultiheadAttention(16, 2, batch_first=True),
        )

    def forward(self, lines: Any, valid: Any) -> Any:
        h = self.point(lines).masked_fill(~valid[..., None], -1e4).amax(2)
        return self.attention(h, h, h, key_padding_mask=~valid.any(-1), need_weights=False)[0]


class Decoder(nn.Module):
    """A causal language model with rotary positions, RMSNorm and SwiGLU."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.qkv, self.out = nn.Embedding(50, 32), nn.Linear(32, 96), nn.Linear(32, 32)
        self.gate, self.up, self.down = nn.Linear(32, 64), nn.Linear(32, 64), nn.Linear(64, 32)
        self.scale = nn.Parameter(torch.ones(32))

    def forward(self, ids: Any) -> Any:
        x = self.embed(ids)
        q, k, v = self.qkv(F.rms_norm(x, (32,), self.scale, 1e-6)).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        angle = torch.arange(ids.shape[1])[:, None] / 100 ** (torch.arange(0, 8, 2) / 8)
        q, k = (self._turn(part, angle) for part in (q, k))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return (x + self.down(F.silu(self.gate(x)) * self.up(x))) @ self.embed.weight.T

    @staticmethod
    def _turn(x: Any, angle: Any) -> Any:
        one, other = x[..., ::2], x[..., 1::2]
        return torch.stack([one * angle.cos() - other * angle.sin(), one * angle.sin() + other * angle.cos()], -1).flatten(-2)


class Deformed(nn.Module):
    """A deformable convolution with offsets of its own."""

    def __init__(self) -> None:
        super().__init__()
        from torchvision.ops import DeformConv2d

        self.offset, self.conv = nn.Conv2d(3, 18, 3, padding=1), DeformConv2d(3, 8, 3, padding=1)

    def forward(self, x: Any) -> Any:
        return self.conv(x, self.offset(x))


class Detections(nn.Module):
    """A detector of torchvision, as a module of one image."""

    def __init__(self, detector: Any) -> None:
        super().__init__()
        self.detector = detector

    def forward(self, x: Any) -> Any:
        found = self.detector([x])[0]
        return found["boxes"], found["scores"], found["labels"]


def _tv(name: str, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        import torchvision

        return torchvision.models.get_model(name, weights=None, **options)

    return make


def _detector(name: str, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        import torchvision

        return Detections(torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=5, **options))

    return make


def _swin() -> Any:
    from torchvision.models.swin_transformer import SwinTransformer

    return SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4], num_classes=10)


def _vit() -> Any:
    from torchvision.models import VisionTransformer

    return VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=10)


def _convnext() -> Any:
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    return ConvNeXt([CNBlockConfig(16, 32, 2), CNBlockConfig(32, None, 2)], num_classes=10)


def _segmentation() -> Any:
    from torchvision.models.segmentation import deeplabv3_mobilenet_v3_large

    return deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=4)


def _timm(name: str, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        import timm

        return timm.create_model(name, pretrained=False, num_classes=10, **options)

    return make


def _encoder() -> Any:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)


def _lines() -> Sequence[Any]:
    valid = torch.rand(1, 6, 5) > 0.3
    valid[..., 0] = True
    return torch.randn(1, 6, 5, 4), valid


ARCHITECTURES: tuple[Architecture, ...] = (
    Architecture("bilstm_tagger", Tagger, _tokens()),
    Architecture("gru_seq", Gru, lambda: (torch.randn(2, 6, 8),)),
    Architecture("packed_lstm", Packed, lambda: (torch.randn(3, 6, 8), torch.tensor([6, 4, 2]))),
    Architecture("transformer_encoder", _encoder, lambda: (torch.randn(1, 10, 16),)),
    Architecture("decoder_rope", Decoder, _tokens()),
    Architecture("yolo_like", Yolo, _image()),
    Architecture("unet", Unet, _image(32)),
    Architecture("pointnet", PointNet, lambda: (torch.randn(2, 20, 3),)),
    Architecture("polyline_encoder", PolylineEncoder, _lines),
    Architecture(
        "radius_graph_sparse", lambda: RadiusGraph(False), lambda: (torch.randn(12, 8), torch.rand(12, 2) * 4, torch.rand(12) * 6)
    ),
    Architecture("radius_graph_dense", lambda: RadiusGraph(True), lambda: (torch.randn(12, 8), torch.rand(12, 2) * 4, torch.rand(12) * 6)),
    Architecture("tv_resnet18", _tv("resnet18", num_classes=10), _image(), "torchvision"),
    Architecture("tv_mobilenet_v3_small", _tv("mobilenet_v3_small", num_classes=10), _image(), "torchvision"),
    Architecture("tv_shufflenet", _tv("shufflenet_v2_x0_5", num_classes=10), _image(), "torchvision"),
    Architecture("tv_squeezenet", _tv("squeezenet1_1", num_classes=10), _image(), "torchvision"),
    Architecture("tv_convnext", _convnext, _image(32), "torchvision"),
    Architecture("tv_swin", _swin, _image(32), "torchvision"),
    Architecture("tv_vit", _vit, _image(32), "torchvision"),
    Architecture("tv_deeplabv3_mnv3", _segmentation, _image(), "torchvision"),
    Architecture("tv_deform", Deformed, _image(12), "torchvision"),
    Architecture("tv_ssdlite320", _detector("ssdlite320_mobilenet_v3_large"), lambda: (torch.rand(3, 320, 320),), "torchvision"),
    Architecture(
        "tv_fasterrcnn_mnv3",
        _detector("fasterrcnn_mobilenet_v3_large_320_fpn", min_size=96, max_size=96),
        lambda: (torch.rand(3, 96, 96),),
        "torchvision",
    ),
    Architecture(
        "tv_retinanet", _detector("retinanet_resnet50_fpn", min_size=64, max_size=64), lambda: (torch.rand(3, 64, 64),), "torchvision"
    ),
    Architecture("timm_efficientnet", _timm("efficientnet_lite0"), _image(), "timm"),
    Architecture("timm_mobilevit", _timm("mobilevit_xxs"), _image(), "timm"),
    Architecture("timm_levit", _timm("levit_128s", img_size=64), _image(), "timm"),
    Architecture("timm_edgenext", _timm("edgenext_xx_small"), _image(), "timm"),
    Architecture("timm_mlp_mixer", _timm("mixer_s32_224", img_size=64), _image(), "timm"),
)
