"""Which engine of a SoC holds an IR operator, and which dtypes it takes there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

from .model import SocInfo
from .overlay import imported_kernels
from .tables import cann_state, table

Placement = Literal["aicore", "aicore_via_pass", "aicore_if_const", "local", "aicpu", "aicpu_tf", "none"]
_ORDER: tuple[Placement, ...] = ("local", "aicore", "aicore_via_pass", "aicore_if_const", "aicpu", "aicpu_tf", "none")

# What precision conversion may make of a float before the kernel sees it (force_fp16 is ATC's default; it never widens to double).
CASTABLE = {"float32": {"float32", "float16"}, "float16": {"float16", "float32"}}


@dataclass(frozen=True, eq=False)
class KernelTable:
    """The kernels of one SoC at one CANN state."""

    cann: str
    soc: str
    source: str
    dtypes: tuple[str, ...]
    ops: dict[str, Any]

    def engines(self, ir: str) -> str:
        """Letters of the engines that list the operator: A(I Core), C (AI CPU), T (AI CPU, TensorFlow library)."""
        return "".join(self.ops.get(ir, {}))

    def inputs(self, ir: str, engine: str) -> list[tuple[str, frozenset[str], str]]:
        """Name, dtypes and flags of each input; no dtypes where they are chosen at compile time."""
        kernel = self.ops.get(ir, {}).get(engine)
        if not kernel:
            return []
        return [
            (name, frozenset(dtype for bit, dtype in enumerate(self.dtypes) if mask >> bit & 1), flags) for name, mask, flags in kernel[0]
        ]

    @cached_property
    def has_bfloat16(self) -> bool:
        """Whether this AI Core computes in bfloat16: the code that chooses dtypes knows the type on every SoC, plain kernels do not."""
        return any("bfloat16" in dtypes for ir in ("Relu", "Exp", "Sqrt") for _, dtypes, _ in self.inputs(ir, "A"))

    @cache  # noqa: B019 - tables live as long as the process
    def place(self, ir: str) -> Placement:
        """The best engine for one IR operator."""
        rules = table("ir.json.gz")
        engines = self.engines(ir)
        if ir in rules["local"]:
            return "local"
        if "A" in engines:
            return "aicore"
        lowered = rules["lowering"].get(ir)
        if lowered and all("A" in self.engines(part) for part in lowered):
            return "aicore_via_pass"
        if "A" in self.engines(rules["constant_form"].get(ir, f"{ir}D")):
            return "aicore_if_const"
        if "C" in engines:
            return "aicpu"
        return "aicpu_tf" if "T" in engines else "none"

    def place_all(self, op: str, parts: tuple[str, ...]) -> Placement:
        """The engine of an ONNX operator that is parsed into several IR operators: the worst part decides."""
        optional = table("ir.json.gz")["optional_parts"].get(op, ())
        return max((self.place(part) for part in parts if part not in optional), key=_ORDER.index)


@cache
def _packaged(cann: str, soc: str) -> KernelTable | None:
    try:
        data = table(f"kernels/{cann}_{soc}.json.gz")
    except FileNotFoundError:
        return None
    return KernelTable(cann, soc, data["source"], tuple(data["dtypes"]), data["ops"])


_IMPORTED: dict[tuple[str, str], tuple[Mapping[str, Any], KernelTable]] = {}
"""Tables made of what the overlay returned last: another folder or a new import is noticed by its data being another object."""


def _imported(cann: str, soc: str) -> KernelTable | None:
    data = imported_kernels(cann, soc)
    if data is None:
        return None
    known = _IMPORTED.get((cann, soc))
    if known is None or known[0] is not data:
        known = _IMPORTED[cann, soc] = (data, KernelTable(cann, soc, data["source"], tuple(data["dtypes"]), data["ops"]))
    return known[1]


def kernel_table(cann: str, soc: SocInfo) -> KernelTable | None:
    """The table at exactly this state: the user's own installation first, then the packaged one."""
    return _imported(cann, soc.short.lower()) or (None if soc.kernels is None else _packaged(cann, soc.kernels))


def tables_for(cann: str, soc: SocInfo) -> tuple[tuple[KernelTable, ...], Literal["at", "near", "between", "before", "none"]]:
    """The tables that speak for a CANN state, and how: exactly, by date, as neighbours on both sides, as an earlier state, not at all."""
    exact = kernel_table(cann, soc)
    if exact is not None:
        return (exact,), "at"
    rule = cann_state(cann)["kernels"]
    names = [rule[key] for key in ("near", "older", "newer", "before") if key in rule]
    found = [kernel_table(name, soc) for name in names]
    if not names or any(item is None for item in found):
        return (), "none"
    how: Literal["near", "between", "before"] = "near" if "near" in rule else "between" if "older" in rule else "before"
    return tuple(item for item in found if item is not None), how


def takes_dtype(kernels: KernelTable, ir: str, engine: str, index: int, dtype: str) -> tuple[bool | None, frozenset[str]]:
    """Whether an engine's kernel takes ``dtype`` at input ``index``; None if nobody says. With the dtypes it takes.

    Where the dtypes are chosen when the operator is compiled, the words of the choosing code (a superset) or the operator's prototype
    decide: what they lack is not taken, what they have is.
    """
    listed = _taken(kernels, ir, engine, index)
    if engine == "A" and listed:
        # With a constant parameter the attribute form stands in, which may take more.
        listed |= _taken(kernels, f"{ir}D", engine, index)
    if not listed:
        return None, frozenset()
    return bool(CASTABLE.get(dtype, {dtype}) & listed), listed


def float_types_of(kernels: KernelTable, ir: str) -> frozenset[str]:
    """float16, bfloat16 and float32 as far as the AI Core kernel takes them at its first input; none where no table says."""
    listed = _taken(kernels, ir, "A", 0) | _taken(kernels, f"{ir}D", "A", 0)
    return listed & {"float16", "bfloat16", "float32"}


def _taken(kernels: KernelTable, ir: str, engine: str, index: int) -> frozenset[str]:
    inputs = kernels.inputs(ir, engine)
    if not inputs and engine == "A" and index == 0 and kernels.place(ir) == "aicore_via_pass":
        # What the operators that a pass puts in its place have in common; their other inputs stand in another order.
        parts = [_taken(kernels, part, "A", 0) for part in table("ir.json.gz")["lowering"][ir]]
        return frozenset.intersection(*parts) if all(parts) else frozenset()
    if index >= len(inputs) and (not inputs or ir not in table("ir.json.gz")["dynamic"]):
        return frozenset()
    # A variadic operator lists its one input once.
    index = min(index, len(inputs) - 1)
    name, listed, _ = inputs[index]
    chosen = not listed
    if chosen:
        listed = _upper_bound(ir, name, index)
    if (chosen or engine == "T") and not kernels.has_bfloat16:
        # Neither the code that chooses dtypes nor the TensorFlow library is of one SoC: both name a type that this one has not.
        listed -= {"bfloat16"}
    return listed


def _upper_bound(ir: str, name: str, index: int) -> frozenset[str]:
    bounds = table("ir.json.gz")["dtypes"]
    proto = bounds["proto"].get(ir, [])
    by_name = {item[0]: frozenset(item[1]) for item in proto}
    bound = by_name.get(name) or (frozenset(proto[index][1]) if index < len(proto) else frozenset())
    words = bounds["select_format"].get(ir)
    return bound & frozenset(words) if words and bound else frozenset(words or bound)
