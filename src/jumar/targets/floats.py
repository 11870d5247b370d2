"""Which float types the AI Core kernels of an ONNX operator take, and on which list of mixed precision they stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from .judge import carriers_of
from .kernels import float_types_of, tables_for
from .model import Target
from .parser import operator_key
from .tables import table

ListName = Literal["white", "black", "gray"]


@dataclass(frozen=True)
class FloatKernel:
    """What is known of an operator on the AI Core.

    Attributes:
        irs: the IR operators that get its inputs; empty where that is not known.
        types: float types that its first input may have; empty where no table says.
        on_list: its list in the mixed precision modes; None where no table says.
    """

    irs: tuple[str, ...]
    types: frozenset[str]
    on_list: ListName | None

    def takes(self, dtype: str) -> bool | None:
        """None if nobody says."""
        return dtype in self.types if self.types else None


def float_kernel(domain: str, op: str, opset: int, target: Target) -> FloatKernel:
    """The kernel of an operator on a target (engine AI Core)."""
    irs = carriers_of(operator_key(domain, op), opset, target.cann)
    tables, _ = tables_for(target.cann, target.soc)
    if not irs or not tables:
        return FloatKernel(irs, frozenset(), None)
    types = frozenset[str]().union(*(float_types_of(tables[-1], ir) for ir in irs))
    lists = mixed_lists(tables[-1].soc)
    found = None if lists is None else {_on(lists, ir) for ir in irs}
    return FloatKernel(irs, types, None if not found else found.pop() if len(found) == 1 else "gray")


def cube_takes_float32(target: Target) -> bool | None:
    """Whether matrix products can be computed in float32 on the AI Core; None where no table says.

    Known to fail on the 310 series, whose convolutions take float16 and int8 only. The cores that compute in bfloat16 (910B and later) have
    float32 matrix products too; the choosing code of the older ones names float32 without a kernel behind it.
    """
    tables, _ = tables_for(target.cann, target.soc)
    return tables[-1].has_bfloat16 if tables else None


def _on(lists: Mapping[str, ListName], ir: str) -> ListName:
    """With a constant parameter the attribute form stands in; the lists often name only that one."""
    return lists.get(ir) or lists.get(f"{ir}D") or "gray"


@cache
def mixed_lists(soc: str) -> Mapping[str, ListName] | None:
    """White and black IR operators of a kernel table (the newest known state), or None for a SoC without one."""
    found = table("mixlists.json")["socs"].get(soc)
    if found is None:
        return None
    names: tuple[ListName, ListName] = ("black", "white")
    return {ir: name for name in names for ir in found[name]}
