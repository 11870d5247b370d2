"""``jumar verify --triage``: where a wrong result comes from, asked in the order in which mistakes are likely; the first culprit ends it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..case import Case, Finding, Record
from ..errors import JumarError
from ..graph import Evaluator, load, shared_or_new
from ..proof import FeedSet, Interface, Prover, load_feeds, make_feeds, read_arrays
from ..rules import find_rule
from ..targets import Target
from ..text import Text, say
from .aipp_check import check_aipp
from .aipp_common import TransformLike
from .check import pinned
from .common import Progress, Shapes, check_shapes, open_case, silent
from .fix import fix
from .precision import verify_precision
from .verify import DEFAULT_BOUND, compare_outputs, interface_of, reference_of, verify

Array = np.ndarray[Any, Any]
_SLIPS: Mapping[str, tuple[Text, Callable[[Array], Array]]] = {
    "scaled-once-more": (say("it was divided by 255 once more", "多除了一次 255"), lambda x: x / 255),
    "scale-missing": (say("it was not divided by 255", "没有除以 255"), lambda x: x * 255),
    "colours-swapped": (say("red and blue are exchanged", "红蓝通道互换"), lambda x: x[:, ::-1] if x.ndim == 4 else x),
    "channels-last": (
        say("channels stand last instead of first", "通道在最后而不在最前"),
        lambda x: x.transpose(0, 2, 3, 1) if x.ndim == 4 else x,
    ),
    "float16": (say("it was rounded to float16", "被舍入为 float16"), lambda x: x.astype(np.float16).astype(x.dtype)),
}


@dataclass(frozen=True)
class _Stage:
    name: Text
    what: Text
    findings: tuple[Finding, ...] = ()


def triage(
    model: str | Path,
    against: str | Path | None = None,
    *,
    feeds: str | Path | None = None,
    device_feeds: str | Path | None = None,
    shapes: Shapes | None = None,
    aipp: str | Path | None = None,
    preprocess: TransformLike | None = None,
    torchvision: str | Any | None = None,
    images: Sequence[str | Path] = (),
    kind: str | None = None,
    matrix: str | None = None,
    soc: str | None = None,
    target: str | Target | None = None,
    cann: str | None = None,
    precision: str = "fp16",
    bound: float = DEFAULT_BOUND,
    evaluator: Evaluator | None = None,
    progress: Progress = silent,
) -> Case:
    """Ask preprocessing, inputs, conversion and precision, in this order, and stop at the first that explains a wrong result.

    Args:
        model: the migrated model, best in its bundle.
        against: the original (a bundle knows its own); without either, conversion is not asked.
        feeds: inputs on which the original is right.
        device_feeds: what the program on the device feeds in their place.
        aipp, preprocess, torchvision, images, kind, matrix: the AIPP file and the training transform, as for :func:`~jumar.check_aipp`.
        precision: of the device.

    Returns:
        A case whose notes tell each stage and whose findings are those of the culprit: AI101 to AI109, VF612, VF613 and VF601, or VF609 and
        VF610. No finding: nothing that can be seen without a device is wrong.

    Raises:
        UsageError, ModelError, EvaluationError.
    """
    case = open_case(model, "verify", soc=soc, target=target, cann=cann, need_target=False)
    stages: list[_Stage] = []
    told = {
        "preprocess": preprocess,
        "torchvision": torchvision,
        "images": images,
        "kind": kind,
        "matrix": matrix,
        "soc": soc,
        "target": target,
        "cann": cann,
    }
    with shared_or_new(evaluator) as running:
        asked: list[tuple[Text, Callable[[], _Stage]]] = [
            (say("preprocessing", "预处理"), lambda: _preprocessing(model, aipp, told)),
            (say("inputs", "输入"), lambda: _inputs(feeds, device_feeds)),
            (say("conversion", "转换"), lambda: _conversion(model, against, feeds, shapes, bound, running)),
            (say("precision", "精度"), lambda: _precision(model, precision, feeds, shapes, case.target, running)),
        ]
        for number, (name, ask) in enumerate(asked):
            progress(name, number / len(asked))
            stages.append(replace(ask(), name=name))
            if any(item.severity == "error" for item in stages[-1].findings):
                break
    notes = [
        say("{number} {name}: {what}", "{number} {name}：{what}", number=number, name=stage.name, what=stage.what)
        for number, stage in enumerate(stages, 1)
    ]
    findings = stages[-1].findings
    last = (
        say("the culprit is {name}; what comes after it was not asked", "原因在于{name}；其后的阶段未再检查", name=stages[-1].name)
        if any(item.severity == "error" for item in findings)
        else say("nothing that can be seen without a device is wrong", "不使用设备所能检查的内容均未发现问题")
    )
    progress(say("done", "完成"), 1.0)
    return case.replace(record=case.record.extend(findings=findings, notes=(*notes, last)))


def _not_asked(why: Text) -> _Stage:
    return _Stage(say("", ""), say("not asked: {why}", "未检查：{why}", why=why))


def _preprocessing(model: str | Path, aipp: str | Path | None, told: Mapping[str, Any]) -> _Stage:
    if aipp is None or (told["preprocess"] is None and told["torchvision"] is None):
        return _not_asked(say("give --aipp and --preprocess", "请给出 --aipp 与 --preprocess"))
    record = check_aipp(aipp, model=model, **told)
    wrong = [item for item in record.findings if item.severity == "error"]
    what = say("AIPP gives what training gave", "AIPP 与训练时一致") if not wrong else say("AIPP gives something else", "AIPP 与训练时不同")
    return _Stage(say("", ""), what, record.findings)


def _inputs(feeds: str | Path | None, device_feeds: str | Path | None) -> _Stage:
    if feeds is None or device_feeds is None:
        return _not_asked(say("give --feeds and --device-feeds", "请给出 --feeds 与 --device-feeds"))
    right, given = read_arrays(feeds), read_arrays(device_feeds)
    findings = [_input_differs(name, right[name], given.get(name)) for name in right if not _same(right[name], given.get(name))]
    what = say("they are those of the host", "与主机一致") if not findings else say("they are not those of the host", "与主机不一致")
    return _Stage(say("", ""), what, tuple(findings))


def _same(one: Array, other: Array | None) -> bool:
    return other is not None and one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-5, atol=1e-6, equal_nan=True))


def _input_differs(name: str, right: Array, given: Array | None) -> Finding:
    found = None if given is None else slip_between(right, given)
    if given is None:
        text = say("it is not fed at all", "没有送入")
    elif found is not None:
        text = _SLIPS[found][0]
    else:
        text = say("no usual mistake explains it", "不属于常见错误")
    shape = "-" if given is None else str(list(given.shape))
    return find_rule("VF612").finding(
        say("input `{name}`: {text}", "输入 `{name}`：{text}", name=name, text=text),
        say("the host feeds {right}, the device {given}", "主机送入 {right}，设备送入 {given}", right=str(list(right.shape)), given=shape),
        say("correct the preprocessing of the device program", "请修正设备端程序的预处理"),
        place=name,
    )


def slip_between(right: Array, given: Array) -> str | None:
    """The usual mistake that makes ``given`` of ``right``; None where none does."""
    if right.dtype.kind != "f" or given.dtype.kind not in "fiu":
        return None
    for name, (_, change) in _SLIPS.items():
        made = change(right)
        scale = float(np.abs(made).max(initial=0.0))
        if made is not right and made.shape == given.shape and np.allclose(made, given, rtol=1e-4, atol=1e-5 * scale):
            return name
    return None


def _conversion(
    model: str | Path,
    against: str | Path | None,
    feeds: str | Path | None,
    shapes: Shapes | None,
    bound: float,
    evaluator: Evaluator,
) -> _Stage:
    source = against if against is not None else reference_of(model)
    if source is None:
        return _not_asked(say("give --against, or a model in its bundle", "请给出 --against，或 bundle 中的模型"))
    record = verify(model, source, feeds=feeds, shapes=shapes, bound=bound, evaluator=evaluator).record
    wrong = [item for item in record.findings if item.severity == "error"]
    if not wrong:
        return _Stage(
            say("", ""), say("equal to the original within {bound:g}", "与原模型在 {bound:g} 以内相等", bound=bound), record.findings
        )
    blamed = _blame(model, source, feeds, shapes, bound, evaluator)
    return _Stage(say("", ""), say("it differs from the original", "与原模型不同"), (*blamed, *record.findings))


def _blame(
    model: str | Path, source: str | Path, feeds: str | Path | None, shapes: Shapes | None, bound: float, evaluator: Evaluator
) -> tuple[Finding, ...]:
    """The first rewrite of a bundle after which the original, rewritten again, differs on these inputs."""
    told = _told(model)
    if told is None:
        return ()
    codes, soc, cann, opset_max = told
    whole = load(source)
    sizes = check_shapes(whole, shapes or {})
    fixed = pinned(whole, sizes) if sizes else whole
    given = load_feeds(feeds, fixed) if feeds is not None else make_feeds(fixed, evaluator)
    prover = Prover(fixed, evaluator, given)

    def differs(count: int) -> bool:
        try:
            record = fix(whole, soc=soc, cann=cann, opset_max=opset_max, shapes=sizes, select=codes[:count], evaluator=evaluator)
        except JumarError:
            return False
        ports = Interface.of(fixed).changed(record.record.interface or {})
        return any(not item.within(bound) for item in compare_outputs(prover, record.model, ports).values())

    if not codes or not differs(len(codes)):
        return ()
    low, high = 0, len(codes)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if differs(middle) else (middle, high)
    guilty = find_rule(codes[high - 1])
    return (
        find_rule("VF613").finding(
            say(
                "{code} ({name}) is the first rewrite after which it differs",
                "{code}（{name}）是使其开始不同的第一个改写",
                code=guilty.code,
                name=guilty.name,
            ),
            say("it was proven on other inputs", "它是在其他输入上证明的"),
            say("migrate again with these inputs as --feeds", "请用这些输入作为 --feeds 重新迁移"),
            place=guilty.code,
        ),
    )


def _told(model: str | Path) -> tuple[list[str], str, str, int] | None:
    """The codes of the rewrites of a bundle in their order, and its target."""
    import json

    try:
        report = json.loads((Path(model).parent / "report.json").read_text(encoding="utf-8"))
        codes = [step["code"] for step in report["steps"] if step.get("status") == "applied" and step.get("code")]
        where = report["target"]
        return list(dict.fromkeys(codes)), str(where["soc"]), str(where["cann"]), int(where["opset_max"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _precision(
    model: str | Path, precision: str, feeds: str | Path | None, shapes: Shapes | None, target: Target | None, evaluator: Evaluator
) -> _Stage:
    given = None if feeds is None else _as_the_model_takes(model, feeds)
    record: Record = verify_precision(model, precision, target=target, feeds=given, shapes=shapes, evaluator=evaluator).record
    wrong = [item for item in record.findings if item.severity == "error"]
    what = (
        say("within the bound in {mode} (emulated)", "在 {mode} 下满足界限（模拟）", mode=precision)
        if not wrong
        else say("out of bound in {mode} (emulated)", "在 {mode} 下超出界限（模拟）", mode=precision)
    )
    return _Stage(say("", ""), what, record.findings)


def _as_the_model_takes(model: str | Path, feeds: str | Path) -> FeedSet | str | Path:
    """Inputs of the original by the names and types that the inputs of a bundle's model have."""
    source = reference_of(model)
    if source is None:
        return feeds
    ports = Interface.of(load(source)).changed(interface_of(model))
    return FeedSet((ports.to_model(read_arrays(feeds)),), "user")
