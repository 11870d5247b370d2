"""The one type that flows through everything: ``Case`` = model + target + record."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from .text import Lang, Text

if TYPE_CHECKING:
    import onnx_ir as ir

    from .targets import Target

SCHEMA = 1

Severity = Literal["error", "warning", "info"]
Measure = Literal["max_rel", "max_scaled"]
FixKind = Literal["safe", "unsafe", "none"]
Origin = Literal["device", "simulator", "reference", "estimate"]
Verdict = Literal["ready", "warnings", "blocked"]
Dim = int | str | None


@dataclass(frozen=True)
class TensorInfo:
    """A graph input or output: ``shape`` holds ints, symbolic names, or None for an unnamed dynamic dimension."""

    name: str
    dtype: str
    shape: tuple[Dim, ...] | None

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype, "shape": None if self.shape is None else list(self.shape)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TensorInfo:
        return cls(data["name"], data["dtype"], None if data["shape"] is None else tuple(data["shape"]))


@dataclass(frozen=True)
class ModelInfo:
    """What the record says of the model: ``path`` and ``sha256`` are those of the file as given."""

    path: str | None
    sha256: str | None
    opset: int
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "sha256": self.sha256,
            "opset": self.opset,
            "inputs": [tensor.to_dict() for tensor in self.inputs],
            "outputs": [tensor.to_dict() for tensor in self.outputs],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ModelInfo:
        tensors = {key: tuple(TensorInfo.from_dict(item) for item in data[key]) for key in ("inputs", "outputs")}
        return cls(data["path"], data["sha256"], data["opset"], tensors["inputs"], tensors["outputs"])


@dataclass(frozen=True)
class Finding:
    """One problem: a stable code, a place, a reason, a remedy, and where the fact comes from."""

    code: str
    name: str
    severity: Severity
    message: Text
    why: Text
    remedy: Text
    node: str | None = None
    op: str | None = None
    fix: FixKind = "none"
    source_line: str | None = None
    evidence: tuple[str, ...] = ()

    def to_dict(self, lang: Lang | None = "en") -> dict[str, Any]:
        def text(value: Text) -> Any:
            return value.to_dict() if lang is None else value.render(lang)

        return {
            "code": self.code,
            "name": self.name,
            "severity": self.severity,
            "node": self.node,
            "op": self.op,
            "message": text(self.message),
            "why": text(self.why),
            "remedy": text(self.remedy),
            "fix": self.fix,
            "source_line": self.source_line,
            "evidence": list(self.evidence),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Finding:
        values = dict(data)
        for key in ("message", "why", "remedy"):
            values[key] = Text.from_dict(values[key])
        values["evidence"] = tuple(values["evidence"])
        return cls(**values)


@dataclass(frozen=True)
class Proof:
    """A numerical comparison. ``bound`` is the allowed value of the ``measure`` (0 = equal values); see ``proof.metrics``."""

    cases: int
    max_abs: float
    max_rel: float
    cosine: float
    bound: float
    passed: bool
    reason: Text | None = None
    max_scaled: float = 0.0
    measure: Measure = "max_rel"

    def to_dict(self, lang: Lang | None = "en") -> dict[str, Any]:
        data: dict[str, Any] = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "reason"}
        if self.reason is not None:
            data["reason"] = self.reason.to_dict() if lang is None else self.reason.render(lang)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Proof:
        reason = data.get("reason")
        return cls(**{**data, "reason": None if reason is None else Text.from_dict(reason)})


@dataclass(frozen=True)
class Step:
    """One rewrite (or another action that changed or judged the model), with its proof and the digests around it."""

    name: str
    version: str
    input_sha256: str | None
    output_sha256: str | None
    seconds: float
    options: Mapping[str, Any] = field(default_factory=dict)
    proof: Proof | None = None
    code: str | None = None
    status: Literal["applied", "rolled-back", "done"] = "done"
    nodes: tuple[str, ...] = ()
    subgraphs: Proof | None = None

    def to_dict(self, lang: Lang | None = "en") -> dict[str, Any]:
        def proof(value: Proof | None) -> Any:
            return None if value is None else value.to_dict(lang)

        return {
            "name": self.name,
            "version": self.version,
            "options": dict(self.options),
            "input_sha256": self.input_sha256,
            "output_sha256": self.output_sha256,
            "proof": proof(self.proof),
            "seconds": self.seconds,
            "code": self.code,
            "status": self.status,
            "nodes": list(self.nodes),
            "subgraphs": proof(self.subgraphs),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Step:
        values = dict(data)
        for key in ("proof", "subgraphs"):
            values[key] = None if values[key] is None else Proof.from_dict(values[key])
        values["nodes"] = tuple(values["nodes"])
        return cls(**values)


@dataclass(frozen=True)
class Measurement:
    """A number and where it comes from; an estimate is never stored as a measurement of a device."""

    name: str
    value: float
    unit: str
    origin: Origin

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Artifact:
    """A file that was written. ``path`` is relative to the bundle where there is one; ``sha256`` is None where hashing was switched off."""

    path: str
    sha256: str | None
    kind: str

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Placement:
    """How many nodes each engine gets; ``local`` nodes need no kernel (the graph engine handles them)."""

    aicore: int = 0
    aicpu: int = 0
    host: int = 0
    none: int = 0
    unknown: int = 0
    local: int = 0

    def to_dict(self) -> dict[str, int]:
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Record:
    """The serialisable half of a case; reports, exit status and JSON read this and nothing else."""

    verb: str = ""
    model: ModelInfo | None = None
    target: Mapping[str, Any] | None = None
    findings: tuple[Finding, ...] = ()
    placement: Placement | None = None
    steps: tuple[Step, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    interface: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Text, ...] = ()
    resolved: tuple[Finding, ...] = ()
    """Findings of the model as given that no longer stand."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What a verb answers beyond findings (target tables, explanations)."""

    @property
    def verdict(self) -> Verdict:
        """``blocked`` when an error stands, ``warnings`` when a warning stands, else ``ready``."""
        severities = {finding.severity for finding in self.findings}
        if "error" in severities:
            return "blocked"
        return "warnings" if "warning" in severities else "ready"

    def extend(self, **changes: Any) -> Record:
        """A copy with the given tuples appended and the given other fields replaced."""
        merged: dict[str, Any] = {}
        for key, value in changes.items():
            present = getattr(self, key)
            merged[key] = (*present, *value) if isinstance(present, tuple) else value
        return dataclasses.replace(self, **merged)

    def to_dict(self, lang: Lang | None = "en") -> dict[str, Any]:
        """The JSON form. ``lang=None`` keeps both languages, so that :meth:`from_dict` can read it back."""
        from . import __version__

        return {
            "schema": SCHEMA,
            "jumar": __version__,
            "verb": self.verb,
            "model": None if self.model is None else self.model.to_dict(),
            "target": None if self.target is None else dict(self.target),
            "verdict": self.verdict,
            "findings": [finding.to_dict(lang) for finding in self.findings],
            "placement": None if self.placement is None else self.placement.to_dict(),
            "steps": [step.to_dict(lang) for step in self.steps],
            "measurements": [measurement.to_dict() for measurement in self.measurements],
            "artifacts": [artifact.to_dict() for artifact in self.artifacts],
            "interface": dict(self.interface),
            "notes": [note.to_dict() if lang is None else note.render(lang) for note in self.notes],
            "resolved": [finding.to_dict(lang) for finding in self.resolved],
            "data": dict(self.data),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Record:
        """Read what ``to_dict(lang=None)`` wrote."""
        return cls(
            verb=data["verb"],
            model=None if data["model"] is None else ModelInfo.from_dict(data["model"]),
            target=data["target"],
            findings=tuple(Finding.from_dict(item) for item in data["findings"]),
            placement=None if data["placement"] is None else Placement(**data["placement"]),
            steps=tuple(Step.from_dict(item) for item in data["steps"]),
            measurements=tuple(Measurement(**item) for item in data["measurements"]),
            artifacts=tuple(Artifact(**item) for item in data["artifacts"]),
            interface=data["interface"],
            notes=tuple(Text.from_dict(item) for item in data["notes"]),
            resolved=tuple(Finding.from_dict(item) for item in data["resolved"]),
            data=data["data"],
        )


@dataclass(frozen=True)
class Case:
    """A model on its way to a target. Stages take a case and return a new one; the model given is never edited."""

    model: ir.Model
    target: Target | None
    record: Record

    def replace(self, *, model: ir.Model | None = None, record: Record | None = None) -> Case:
        return Case(model or self.model, self.target, record or self.record)
