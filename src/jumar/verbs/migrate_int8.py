"""The int8 stage of ``jumar migrate``: samples by the caller's names, files into the bundle, and what does not go together with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import onnx_ir as ir

from ..case import Case, Record
from ..errors import UsageError
from ..graph import Evaluator, load
from ..graph.digest import file_sha256
from ..proof import Interface
from ..quant.config import QuantConfig
from ..quant.quality import SampleMetric
from ..quant.samples import Samples, open_samples
from ..text import Text, say
from .aipp_common import TransformLike, as_transform
from .common import Progress
from .compile_int8 import REFUSED_MODES
from .quantize import DEFAULT_DROP, STATE_FILE, quantize
from .quantize_parts import DEPLOY_FILE


@dataclass(frozen=True)
class Int8:
    """What is asked for; the fields are the arguments of :func:`jumar.quantize`."""

    calib: Any
    held: Any = None
    preprocess: TransformLike | None = None
    method: str | None = None
    metric: str | SampleMetric | None = None
    max_drop: float = DEFAULT_DROP
    config: str | Path | QuantConfig | None = None

    def key(self) -> list[Any]:
        """Changes when a result would; of what is no file, every time."""
        words = [self.method, self.max_drop, self.metric if not callable(self.metric) else uuid4().hex]
        return [*words, *(_digest(item) for item in (self.calib, self.held, self.preprocess, self.config))]


def _digest(item: Any) -> str | None:
    if item is None:
        return None
    if not isinstance(item, (str, Path)):
        return uuid4().hex
    path = Path(item)
    if path.is_file():
        return file_sha256(path)
    files = sorted(path.iterdir()) if path.is_dir() else []
    told = [f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files if file.is_file()]
    return sha256("\n".join([str(path), *told]).encode()).hexdigest()


def check_int8(quantise: str | None, wanted: Int8, *, gears: bool, cut: bool, one_step: bool, precision_mode: str | None) -> Int8 | None:
    """What was asked for, or None.

    Raises:
        UsageError: another type, no samples, samples for nothing, or something that ATC or this stage does not do together with it.
    """
    if quantise is None:
        if wanted != Int8(None):
            raise _refused(
                say("options of --quantize are given without it", "给出了 --quantize 的选项，但没有 --quantize"),
                say("add --quantize int8", "请加上 --quantize int8"),
            )
        return None
    if quantise != "int8":
        raise UsageError(
            say("`{kind}` is no kind of quantisation", "`{kind}` 不是量化类型", kind=quantise[:20]),
            say("expected int8", "应为 int8"),
            say("correct --quantize", "请修正 --quantize"),
        )
    if wanted.calib is None:
        raise _refused(say("--quantize int8 has no samples", "--quantize int8 没有样本"), say("add --calib DATA", "请加上 --calib DATA"))
    against: dict[str, bool] = {
        "--gears": gears,
        "--cut": cut,
        "--one-step": one_step,
        "--precision-mode": precision_mode in REFUSED_MODES,
    }
    for option, given in against.items():
        if given:
            raise _refused(
                say("{option} does not go together with --quantize int8", "{option} 不能与 --quantize int8 同时使用", option=option),
                say("leave one of them out", "请去掉其中之一"),
            )
    return wanted


def _refused(found: Text, remedy: Text) -> UsageError:
    return UsageError(found, say("expected a model of one shape with samples", "应为单一形状的模型并附样本"), remedy)


def quantize_into(
    case: Case, folder: Path, model_file: str, original: ir.Model, record: Record, wanted: Int8, evaluator: Evaluator, progress: Progress
) -> Record:
    """Quantise the fixed model of a bundle; samples are given by the names that the original has."""
    fixed = load(folder / model_file)
    ports = Interface.of(original).changed(record.interface)
    transform = None if wanted.preprocess is None else as_transform(wanted.preprocess)

    def renamed(given: Any) -> Samples | None:
        return None if given is None else through(open_samples(given, original, transform), fixed, ports.to_model)

    done = quantize(
        Case(fixed, case.target, Record(verb="quantize")),
        calib=renamed(wanted.calib),
        held=renamed(wanted.held),
        output=folder,
        method=wanted.method,
        metric=wanted.metric,
        max_drop=wanted.max_drop,
        config=wanted.config,
        evaluator=evaluator,
        progress=progress,
    ).record
    (folder / STATE_FILE).unlink(missing_ok=True)
    return replace(done, artifacts=tuple(replace(item, path=Path(item.path).name) for item in done.artifacts))


def through(samples: Samples, model: ir.Model, change: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Samples:
    """Samples for another model, made of those for the first."""
    found = Samples(model, len(samples), lambda number: change(samples.feeds(number)), samples.name, samples.origin)
    return found.owning(samples)


def deploy_digest(record: Record) -> str | None:
    """Digest of the deploy model, if one was written."""
    return next((item.sha256 for item in record.artifacts if item.path == DEPLOY_FILE), None)
