"""What the user decides: our configuration file and AMCT's, both JSON, written after a run, edited, and read back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..text import Text, say
from .layers import QUANTISABLE, Survey
from .ranges import METHODS, PERCENTILE

AUTO = "auto"
"""Try several methods on calibration samples and take the one that loses least."""
_MOST_BYTES = 1 << 24
_COMMON = ("version", "batch_num", "activation_offset", "do_fusion", "skip_fusion_layers")
_OWN = (
    "jumar",
    "method",
    "percentile",
    "activation_offset",
    "search_weights",
    "correct_bias",
    "fusion",
    "skip_layers",
    "skip_layer_types",
    "layers",
)


@dataclass(frozen=True)
class LayerChoice:
    """Of one layer: whether it is quantised, and a method of its own."""

    enabled: bool = True
    method: str | None = None


@dataclass(frozen=True)
class QuantConfig:
    """Attributes:
    offset: asymmetric activations (AMCT's ``activation_offset``); without it zero is the integer 0.
    search_weights: weights get the range of least squared error, else their largest magnitude; None: whichever loses less, where ``method``
        is ``auto``, else the latter.
    correct_bias: what rounding the weights changes on average is taken off the bias; None likewise.
    fusion: simplify first, so that a BatchNormalization is part of its convolution (AMCT's ``do_fusion``).
    layers: choices for single layers, by name.
    """

    method: str = AUTO
    percentile: float = PERCENTILE
    offset: bool = True
    search_weights: bool | None = None
    correct_bias: bool | None = None
    fusion: bool = True
    skip_layers: tuple[str, ...] = ()
    skip_types: tuple[str, ...] = ()
    layers: Mapping[str, LayerChoice] = field(default_factory=dict)

    def method_of(self, name: str, fallback: str) -> str:
        """How the range of a layer's input is found; ``fallback`` stands for ``auto``."""
        own = self.layers.get(name, LayerChoice()).method
        return own or (fallback if self.method == AUTO else self.method)

    def refusal(self, name: str, op: str) -> Text | None:
        """Why the user keeps a layer in floats, if so."""
        if name in self.skip_layers:
            return say("in skip_layers", "在 skip_layers 中")
        if op in self.skip_types:
            return say("its type {op} is in skip_layer_types", "其类型 {op} 在 skip_layer_types 中", op=op)
        if not self.layers.get(name, LayerChoice()).enabled:
            return say("switched off in the configuration", "在配置中已关闭")
        return None

    def check(self, survey: Survey) -> None:
        """Every layer that is named exists.

        Raises:
            UsageError: one does not.
        """
        known = {layer.name for layer in survey.layers} | {item.name for item in survey.refused}
        for name in (*self.skip_layers, *self.layers):
            if name not in known:
                raise UsageError(
                    say("the model has no layer `{name}`", "模型没有名为 `{name}` 的层", name=name[:100]),
                    say("expected one of: {names}", "应为其中之一：{names}", names=", ".join(sorted(known)[:20]) or "-"),
                    say("correct skip_layers or the configuration", "请修正 skip_layers 或配置"),
                )


def check_method(method: str, option: str = "--method") -> str:
    """A known method.

    Raises:
        UsageError: it is none.
    """
    if method not in (*METHODS, AUTO):
        raise UsageError(
            say(
                "`{method}` of {option} is no calibration method", "{option} 的 `{method}` 不是校准方法", method=method[:40], option=option
            ),
            say("expected one of: {known}", "应为其中之一：{known}", known=", ".join((AUTO, *METHODS))),
            say("correct {option}", "请修正 {option}", option=option),
        )
    return method


def _bad(name: str, reason: Text) -> UsageError:
    return UsageError(
        say("`{path}` is no quantisation configuration: {reason}", "`{path}` 不是量化配置：{reason}", path=name[-200:], reason=reason),
        say('expected JSON with "jumar": 1, or AMCT\'s with "version": 1', '应为含 "jumar": 1 的 JSON，或含 "version": 1 的 AMCT 配置'),
        say("`jumar quantize` writes both, to be edited", "`jumar quantize` 会写出两种配置，可在其上修改"),
    )


def load_config(path: str | Path) -> QuantConfig:
    """Read a file of either form.

    Raises:
        UsageError: it cannot be read.
    """
    path = Path(path)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ValueError("it is too large")
        text = path.read_bytes().decode("utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _bad(str(path), say("{error}", "{error}", error=reason[:80])) from None
    return read_config(text, str(path))


def read_config(text: str, name: str = "config.json") -> QuantConfig:
    """Read either form.

    Raises:
        UsageError: neither form, an unknown key, a value of another type.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _bad(name, say("{error}", "{error}", error=str(error)[:80])) from None
    if not isinstance(data, dict) or not ("jumar" in data or "version" in data):
        raise _bad(name, say("neither key is there", "两个键都不存在"))
    reader = _Reader(name)
    return reader.own(data) if "jumar" in data else reader.amct(data)


class _Reader:
    def __init__(self, name: str) -> None:
        self._name = name

    def _typed(self, data: Mapping[str, Any], key: str, default: Any) -> Any:
        value = data.get(key, default)
        wanted = type(default)
        if wanted is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if wanted is tuple and isinstance(value, list) and all(isinstance(item, str) for item in value):
            value = tuple(value)
        if not isinstance(value, wanted):
            raise _bad(self._name, say("`{key}` is of another type", "`{key}` 的类型不符", key=key))
        return value

    def _perhaps(self, data: Mapping[str, Any], key: str) -> bool | None:
        return None if data.get(key) is None else bool(self._typed(data, key, False))

    def _only(self, data: Mapping[str, Any], known: Sequence[str]) -> None:
        for key in data:
            if key not in known:
                raise _bad(self._name, say("`{key}` is unknown", "`{key}` 未知", key=str(key)[:60]))

    def own(self, data: Mapping[str, Any]) -> QuantConfig:
        plain = QuantConfig()
        self._only(data, _OWN)
        layers = {}
        for name, item in self._typed(data, "layers", {}).items():
            if not isinstance(item, dict):
                raise _bad(self._name, say("`{key}` is of another type", "`{key}` 的类型不符", key=name))
            self._only(item, ("quantise", "method", "why", "scale", "offset"))
            method = item.get("method")
            layers[name] = LayerChoice(self._typed(item, "quantise", True), None if method is None else check_method(str(method), name))
        percentile = self._typed(data, "percentile", plain.percentile)
        if not 50 < percentile <= 100:
            raise _bad(self._name, say("the percentile {value:g} makes no sense", "百分位 {value:g} 没有意义", value=percentile))
        return QuantConfig(
            method=check_method(self._typed(data, "method", plain.method), self._name),
            percentile=percentile,
            offset=self._typed(data, "activation_offset", plain.offset),
            search_weights=self._perhaps(data, "search_weights"),
            correct_bias=self._perhaps(data, "correct_bias"),
            fusion=self._typed(data, "fusion", plain.fusion),
            skip_layers=self._typed(data, "skip_layers", ()),
            skip_types=self._typed(data, "skip_layer_types", ()),
            layers=layers,
        )

    def amct(self, data: Mapping[str, Any]) -> QuantConfig:
        layers = {}
        for name, item in data.items():
            if name in _COMMON:
                continue
            if not isinstance(item, dict):
                raise _bad(self._name, say("`{key}` is unknown", "`{key}` 未知", key=name[:60]))
            layers[name] = LayerChoice(
                self._typed(item, "quant_enable", True), _method_of(self._typed(item, "activation_quant_params", {}))
            )
        return QuantConfig(
            method="histogram",
            offset=self._typed(data, "activation_offset", True),
            fusion=self._typed(data, "do_fusion", True),
            layers=layers,
        )


def _method_of(params: Mapping[str, Any]) -> str | None:
    """Our method that does what an algorithm of AMCT is for: IFMR seeks a range, HFMG is a histogram."""
    if not params:
        return None
    if params.get("act_algo") == "hfmg" or "num_of_bins" in params:
        return "histogram"
    if list(params.get("search_range", ())) == [1.0, 1.0]:
        return "max" if params.get("max_percentile") == 1.0 else "percentile"
    return "mse"


def write_config(config: QuantConfig, layers: Mapping[str, Mapping[str, Any]]) -> str:
    """Our form. ``layers`` tells of each what was decided (``quantise``, ``method``, ``why``, ``scale``, ``offset``)."""
    data = {
        "jumar": 1,
        "method": config.method,
        "percentile": config.percentile,
        "activation_offset": config.offset,
        "search_weights": config.search_weights,
        "correct_bias": config.correct_bias,
        "fusion": config.fusion,
        "skip_layers": list(config.skip_layers),
        "skip_layer_types": list(config.skip_types),
        "layers": {name: dict(item) for name, item in layers.items()},
    }
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def write_amct(config: QuantConfig, layers: Mapping[str, tuple[str, bool, str]]) -> str:
    """AMCT's expanded form. ``layers``: operator, whether it is quantised, and the method, by name."""
    data: dict[str, Any] = {
        "version": 1,
        "batch_num": 1,
        "activation_offset": config.offset,
        "do_fusion": config.fusion,
        "skip_fusion_layers": [],
    }
    for name, (op, enabled, method) in layers.items():
        data[name] = {
            "quant_enable": enabled,
            "activation_quant_params": _params(method, config.percentile),
            "weight_quant_params": {"wts_algo": "arq_quantize", "channel_wise": op in QUANTISABLE[:2], "num_bits": 8},
        }
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _params(method: str, percentile: float) -> dict[str, Any]:
    if method in ("histogram", "entropy"):
        return {"num_bits": 8, "act_algo": "hfmg", "num_of_bins": 4096}
    share, span = {"max": (1.0, [1.0, 1.0]), "percentile": (percentile / 100, [1.0, 1.0])}.get(method, (0.999999, [0.7, 1.3]))
    return {"num_bits": 8, "act_algo": "ifmr", "max_percentile": share, "min_percentile": share, "search_range": span, "search_step": 0.01}


def with_options(config: QuantConfig, **options: Any) -> QuantConfig:
    """A copy with the options that are not None."""
    return replace(config, **{key: value for key, value in options.items() if value is not None})
