"""``jumar targets diff A B``: the operators on which two targets answer differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..case import Record
from ..errors import TargetError
from ..reports.table import table_lines
from ..targets import Status, Support, Target, find_target, profiles, support
from ..targets.survey import kernel_types, standard_operators
from ..text import Text, say
from .targets_words import STATUSES


def diff_targets(first: str, second: str) -> Record:
    """Which standard operators two targets answer differently, and which input types they differ in.

    ``data`` has ``first``, ``second``, ``opset`` (the newest both take), ``same`` (how many operators get the same answer), ``changes``
    (operators by pair of answers) and ``dtypes`` (for operators on the AI Core of both: what only one takes at the first input).

    Args:
        first: a soc_version or a profile, alone or followed by ``@`` and a CANN version (``Ascend310P3@canndev-2022-06``).
        second: the same.

    Raises:
        TargetError: unknown SoC, profile or CANN version, or no opset that both take.
    """
    one, two = _target(first), _target(second)
    opset = min(one.opset_max, two.opset_max)
    if opset < max(one.opset_min, two.opset_min):
        raise TargetError(
            say("{one} and {two} take no common opset", "{one} 与 {two} 没有共同支持的 opset", one=one.label, two=two.label),
            say("expected ranges that overlap", "应有重叠的 opset 范围"),
            say("compare other CANN versions", "请比较其他 CANN 版本"),
        )
    found = {op: (support("", op, opset, one), support("", op, opset, two)) for op in standard_operators()}
    changes: dict[tuple[Status, Status], list[str]] = {}
    for op, (before, after) in found.items():
        if before.status is not after.status:
            changes.setdefault((before.status, after.status), []).append(op)
    both = [op for op, pair in found.items() if all(answer.status is Status.SUPPORTED for answer in pair)]
    dtypes = [row for op in both if (row := _types_row(op, opset, one, two)) is not None]
    data = {
        "first": one.to_dict(),
        "second": two.to_dict(),
        "opset": opset,
        "same": sum(before.status is after.status for before, after in found.values()),
        "changes": [_change_row(pair, ops, found) for pair, ops in _ordered(changes)],
        "dtypes": dtypes,
    }
    return Record(verb="targets", data=data, notes=tuple(_lines(data, changes, one, two)))


def _target(text: str) -> Target:
    name, _, cann = text.partition("@")
    if name in profiles():
        return find_target(profile=name, cann=cann or None)
    return find_target(name, cann=cann or None)


def _ordered(changes: Mapping[tuple[Status, Status], list[str]]) -> list[tuple[tuple[Status, Status], list[str]]]:
    """The best answers of the first target before the others, as one reads losses first."""
    rank = {status: number for number, status in enumerate(reversed(Status))}
    return sorted(changes.items(), key=lambda item: (rank[item[0][0]], rank[item[0][1]]))


def _change_row(pair: tuple[Status, Status], ops: list[str], found: Mapping[str, tuple[Support, Support]]) -> dict[str, Any]:
    evidence = {op: [list(answer.evidence) for answer in found[op]] for op in ops}
    return {"from": pair[0].value, "to": pair[1].value, "operators": ops, "evidence": evidence}


def _first_types(op: str, opset: int, target: Target) -> frozenset[str] | None:
    """Types of the first input on the AI Core where the parser makes one IR operator; None where it makes more or nobody says.

    Where graph passes make other operators of it, all of them must take a type.
    """
    kernels = kernel_types(op, opset, target)
    core = [item for item in kernels if item.engine == "aicore" and item.inputs]
    if len({item.of for item in kernels}) != 1 or not core:
        return None
    own = [item for item in core if item.ir == item.of] or core
    return frozenset.intersection(*(frozenset(item.inputs[0].types) for item in own)) or None


def _types_row(op: str, opset: int, one: Target, two: Target) -> dict[str, Any] | None:
    before, after = _first_types(op, opset, one), _first_types(op, opset, two)
    if before is None or after is None or before == after:
        return None
    return {"operator": op, "only_first": sorted(before - after), "only_second": sorted(after - before)}


def _lines(data: Mapping[str, Any], changes: Mapping[tuple[Status, Status], list[str]], one: Target, two: Target) -> Sequence[Text]:
    lines = [
        say(
            "{one} -> {two}, at opset {opset}: {same} standard operators get the same answer, {differ} another",
            "{one} -> {two}，opset {opset}：{same} 个标准算子结论相同，{differ} 个不同",
            one=one.label,
            two=two.label,
            opset=data["opset"],
            same=data["same"],
            differ=sum(map(len, changes.values())),
        )
    ]
    for (before, after), ops in _ordered(changes):
        lines.append(
            say(
                "{before} -> {after} ({count}): {ops}",
                "{before} -> {after}（{count}）：{ops}",
                before=STATUSES[before],
                after=STATUSES[after],
                count=len(ops),
                ops=", ".join(ops),
            )
        )
    if data["dtypes"]:
        lines.append(
            say(
                "Types of the first input on the AI Core (- only the first, + only the second)",
                "AI Core 上第一个输入的类型（- 仅前者支持，+ 仅后者支持）",
            )
        )
        rows = [
            (row["operator"], " ".join([*(f"-{name}" for name in row["only_first"]), *(f"+{name}" for name in row["only_second"])]))
            for row in data["dtypes"]
        ]
        lines += table_lines(rows)
    return lines
