"""What an .om file says of itself."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Dims = tuple[int | None, ...]


@dataclass(frozen=True)
class Header:
    """The first 256 bytes. ``version`` is 1 or 2; ``wide`` tells that partition tables have 64-bit entries."""

    version: int
    version_hex: str
    model_type: str
    wide: bool
    model_num: int
    name: str
    om_ir_version: int
    platform_version: str
    platform_type: int
    length: int
    checks_host: bool
    dynamic_shape: bool


@dataclass(frozen=True)
class Partition:
    """A part of a model; ``offset`` and ``size`` in bytes, the former from the beginning of the file."""

    type: int
    name: str
    offset: int
    size: int


@dataclass(frozen=True)
class Tensor:
    """An input or output as the device sees it.

    Attributes:
        shape: None for an open dimension; None as a whole where the rank is open.
        bytes: memory that it takes; None where the shape is open.
        ranges: lowest and highest size of each dimension (-1: no end) of an open shape, where the file states them.
    """

    name: str
    dtype: str
    shape: Dims | None
    layout: str
    bytes: int | None
    ranges: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Gears:
    """The sizes a model was compiled for, of which one is chosen at each run.

    Attributes:
        kind: ``batch``, ``image``, ``dims``, or ``unknown`` where an old file does not say.
        inputs: the order in which the user named the inputs.
        values: the numbers of each gear: one batch size; height and width; or all open dimensions in that order.
        output_dims: the shape of the outputs in each gear, as the file has it: gear, output, sizes.
    """

    kind: str
    inputs: tuple[str, ...]
    values: tuple[tuple[int, ...], ...]
    output_dims: tuple[str, ...] = ()


@dataclass(frozen=True)
class Aipp:
    """Preprocessing of an image input on the device; ``config`` holds the fields as the file has them."""

    input: str
    mode: str
    config: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator, where it runs, and the graph it is in.

    Attributes:
        engine: ``aicore``, ``aicpu``, ``host``, ``local`` (no kernel), ``runtime`` (streams, events, ends of the network),
            ``collective``, ``dvpp`` or ``unknown``.
        engine_name: what the file calls it; empty where the engine follows from the kernel.
        original_type: of a ``FrameworkOp``, which the AI CPU runs as the framework did.
    """

    name: str
    type: str
    engine: str
    engine_name: str
    graph: str
    original_type: str = ""

    @property
    def kind(self) -> str:
        """The type, and for an operator of the framework's what it was there."""
        return f"{self.type}({self.original_type})" if self.original_type else self.type


@dataclass(frozen=True)
class OmModel:
    """One model of a file: ``attributes`` are those of the model definition that say something to a user."""

    name: str
    attributes: Mapping[str, Any]
    partitions: tuple[Partition, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    gears: Gears | None
    aipp: tuple[Aipp, ...]
    graphs: tuple[str, ...]
    operators: tuple[Operator, ...]

    def engines(self) -> dict[str, int]:
        """How many operators each engine has, the most first."""
        return dict(Counter(operator.engine for operator in self.operators).most_common())

    def to_dict(self) -> dict[str, Any]:
        data = dataclasses.asdict(self)
        data["engines"] = self.engines()
        return data


@dataclass(frozen=True)
class OmFile:
    """An .om image: models, and whole images inside it (flow and bundle files).

    Attributes:
        size: bytes of the image.
        trailing: bytes after the end that the header announces; CANN's loader takes no such file.
        outside: parts of a flow model that are no image (a user's function, or a file of its own).
    """

    header: Header
    models: tuple[OmModel, ...]
    images: tuple[OmFile, ...] = ()
    size: int = 0
    trailing: int = 0
    outside: int = 0

    @property
    def main(self) -> OmModel | None:
        """The model whose inputs and outputs are those of the file: the first one, also of the images inside a bundle."""
        if self.models:
            return self.models[0]
        return next((image.main for image in self.images if image.main is not None), None)

    def _text(self, key: str) -> str | None:
        """A text attribute of the first model that has it, in this image or one inside."""
        for model in self.models:
            value = model.attributes.get(key)
            if isinstance(value, str) and value:
                return value
        return next((value for image in self.images if (value := image._text(key)) is not None), None)

    @property
    def soc_version(self) -> str | None:
        return self._text("soc_version")

    @property
    def atc_version(self) -> str | None:
        return self._text("atc_version")

    @property
    def opp_version(self) -> str | None:
        return self._text("opp_version")

    @property
    def command_line(self) -> str | None:
        return self._text("atc_cmdline")

    @property
    def target_type(self) -> str | None:
        return self._text("target_type")

    @property
    def weights_bytes(self) -> int:
        """Bytes of all weight partitions."""
        own = sum(part.size for model in self.models for part in model.partitions if part.name == "WEIGHTS_DATA")
        return own + sum(image.weights_bytes for image in self.images)

    def soc_versions(self) -> tuple[str, ...]:
        """Every SoC that any model of the file names."""
        own = [model.attributes.get("soc_version") for model in self.models]
        inner = [name for image in self.images for name in image.soc_versions()]
        return tuple(dict.fromkeys([name for name in own if isinstance(name, str) and name] + inner))

    def to_dict(self) -> dict[str, Any]:
        return {
            "header": dataclasses.asdict(self.header),
            "size": self.size,
            "trailing": self.trailing,
            "soc_version": self.soc_version,
            "atc_version": self.atc_version,
            "opp_version": self.opp_version,
            "command_line": self.command_line,
            "weights_bytes": self.weights_bytes,
            "models": [model.to_dict() for model in self.models],
            "images": [image.to_dict() for image in self.images],
            "outside": self.outside,
        }
