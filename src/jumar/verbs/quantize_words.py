"""What ``jumar quantize`` says: findings, lines for a reader, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from ..case import Finding, Measurement
from ..quant.config import QuantConfig
from ..quant.layers import policies
from ..quant.proof import BOUND, LayerProof
from ..quant.samples import Samples
from ..rules import find_rule
from ..text import Text, say
from .quantize_parts import DEPLOY_FILE, Outcome

FEW = 32
_NAMED = 6


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")


def calibration_findings(outcome: Outcome, samples: Samples, config: QuantConfig) -> Iterator[Finding]:
    """What is wrong with the samples."""
    count = len(outcome.split.calibration)
    if outcome.recipe.method != "record" and (count < FEW or outcome.split.shared):
        yield find_rule("QT101").finding(
            say("calibrated on {count} samples", "使用 {count} 个样本校准", count=count)
            if not outcome.split.shared
            else say("calibrated and judged on the same {count} samples", "校准与评估使用相同的 {count} 个样本", count=count),
            say("what samples do not show is clipped on the device", "样本中未出现的数值会在设备上被截断"),
            say("give 100 to 1000 real samples", "请给出 100 到 1000 个真实样本"),
        )
    if outcome.calibration.is_noise:
        yield find_rule("QT102").finding(
            say("neighbouring elements of the samples are as unlike as in noise", "样本的相邻元素互不相关，与噪声一样"),
            say("scales for noise are wrong for real data", "针对噪声得到的 scale 不适用于真实数据"),
            say("calibrate on real data, preprocessed as in use", "请用真实数据校准，预处理与使用时一致"),
        )
    for number, tensors in sorted(outcome.calibration.outliers.items()):
        histogram = outcome.calibration.histograms[tensors[0]]
        robust = {config.method_of(layer.name, outcome.recipe.method) for layer in outcome.layers if layer.data.name in tensors} == {
            "histogram"
        }
        yield find_rule("QT103").finding(
            say(
                "sample {number} ({name}) is {ratio:.3g} times as large as all others in {count} tensors ({tensors})",
                "样本 {number}（{name}）在 {count} 个张量中是其余样本的 {ratio:.3g} 倍（{tensors}）",
                number=number,
                name=samples.name(number),
                ratio=histogram.peaks[0] / histogram.peaks[1],
                count=len(tensors),
                tensors=_names(tensors),
            ),
            say("it was left out of their ranges", "已在确定范围时排除")
            if robust
            else say("with max it alone sets their ranges", "使用 max 时范围由它单独决定"),
            say("look at it; use --method histogram if it is real", "请检查该样本；若为真实数据请使用 --method histogram"),
            place=tensors[0],
            severity="info" if robust else None,
        )
    odd = [name for name, item in outcome.calibration.histograms.items() if item.odd]
    if odd:
        yield find_rule("QT109").finding(
            say(
                "{count} tensors are infinite or NaN on samples: {names}",
                "{count} 个张量在样本上为无穷或 NaN：{names}",
                count=len(odd),
                names=_names(odd),
            ),
            say("int8 has neither", "int8 无法表示"),
            say("look at the samples and at the float model", "请检查样本与浮点模型"),
            place=odd[0],
        )


def decision_findings(outcome: Outcome, max_drop: float, metric: str, fallback: bool) -> Iterator[Finding]:
    """What is not in int8 and why, whether the gate holds, and whether both forms agree."""
    yield from _left(outcome)
    verdict = outcome.verdict
    notable = {layer.name: reason for layer, reason in policies(outcome.layers)}
    for name in verdict.returned:
        layer = next(item for item in outcome.layers if item.name == name)
        why = say(
            "alone in int8 it changes the outputs by {loss:.3g} (relative, squared)",
            "单独使用 int8 时输出的相对平方误差为 {loss:.3g}",
            loss=verdict.sensitivity.get(name, 0.0),
        )
        yield find_rule("QT105").finding(
            say("`{name}` ({op}) went back to float16", "`{name}`（{op}）恢复为 float16", name=name, op=layer.op),
            say("{why}; {kind}", "{why}；{kind}", why=why, kind=notable[name]) if name in notable else why,
            say(
                "with all layers in int8 {metric} lost {drop:.4g}, allowed {allowed:g}",
                "全部层使用 int8 时 {metric} 损失 {drop:.4g}，允许 {allowed:g}",
                metric=metric,
                drop=verdict.reference - verdict.full.quality,
                allowed=max_drop,
            ),
            place=name,
        )
    if not verdict.held:
        yield find_rule("QT106").finding(
            say(
                "{metric} lost {drop:.4g}, allowed {allowed:g}",
                "{metric} 损失 {drop:.4g}，允许 {allowed:g}",
                metric=metric,
                drop=verdict.drop,
                allowed=max_drop,
            ),
            say("measured on {count} held-out samples", "在 {count} 个留出样本上测得", count=len(outcome.split.held)),
            say(
                "allow putting layers back (without --no-fallback), or calibrate otherwise",
                "请允许恢复部分层（去掉 --no-fallback），或改变校准方式",
            )
            if not fallback
            else say("calibrate otherwise", "请改变校准方式"),
        )
    yield from form_findings(bool(outcome.plan.items), outcome.proofs)


def form_findings(any_layer: bool, proofs: Sequence[LayerProof]) -> Iterator[Finding]:
    """Whether there is anything in int8, whether both forms agree, and what goes with it."""
    if not any_layer:
        yield find_rule("QT107").finding(
            say("no layer is in int8: the deploy model is the float model", "没有任何层使用 int8：部署模型就是浮点模型"),
            say("it runs in float16 and gains nothing", "以 float16 运行，没有收益"),
            say("see QT104 and QT105", "见 QT104 与 QT105"),
        )
        return
    failed = [proof for proof in proofs if not proof.passed]
    if failed:
        worst = max(failed, key=lambda proof: proof.differ)
        yield find_rule("QT108").finding(
            say(
                "layer `{name}` of the deploy form differs by {differ:.3g}, bound {bound:g}",
                "部署形式的层 `{name}` 相差 {differ:.3g}，界限 {bound:g}",
                name=worst.name,
                differ=worst.differ,
                bound=BOUND,
            ),
            say("{count} of {all} comparisons fail", "{all} 次比较中有 {count} 次失败", count=len(failed), all=len(proofs)),
            say("do not use the files; report the model", "请勿使用这些文件；请报告该模型"),
            place=worst.name,
        )
    yield find_rule("QT111").finding(
        say(
            "a quantised model takes no batch or image gears and no force_fp32, must_keep_origin_dtype or origin",
            "量化模型不支持 batch 或图像尺寸档位，也不支持 force_fp32、must_keep_origin_dtype、origin",
        ),
        say("ATC builds its layers for int8 and one shape", "ATC 按 int8 和固定形状构建各层"),
        say("build one model for each size", "请为每种尺寸各构建一个模型"),
    )


def _left(outcome: Outcome) -> Iterator[Finding]:
    """Layers that were never in question, one finding for each reason."""
    groups: dict[str, tuple[Text, list[str], int]] = {}
    told = [(item.name, item.reason, item.work) for item in outcome.survey.refused]
    told += [(layer.name, outcome.skipped[layer.name], layer.work) for layer in outcome.survey.layers if layer.name in outcome.skipped]
    for name, reason, work in told:
        kept = groups.setdefault(str(reason), (reason, [], 0))
        groups[str(reason)] = (reason, [*kept[1], name], kept[2] + work)
    for reason, names, work in groups.values():
        yield find_rule("QT104").finding(
            say("not quantised ({count}): {names}", "未量化（{count} 个）：{names}", count=len(names), names=_names(names)),
            reason,
            say("{share:.1%} of the multiply-adds", "占乘加运算的 {share:.1%}", share=work / max(outcome.survey.work, 1)),
            place=names[0],
        )


def summary(outcome: Outcome, metric: str, max_drop: float) -> tuple[tuple[Text, ...], tuple[Measurement, ...], dict[str, Any]]:
    """Lines, measurements, and the data of the record."""
    verdict, share = outcome.verdict, outcome.work_share
    size = sum(weight.nbytes for weight in (item.weight.data for item in outcome.plan.items.values()))
    ratio = outcome.sizes[DEPLOY_FILE] / max(outcome.float_size, 1)
    speed = 1.0 / (1.0 - share / 2)
    notes = [
        say(
            "{count} of {all} layers in int8: {share:.1%} of the multiply-adds, file {ratio:.3f} x the float weights",
            "{all} 层中有 {count} 层使用 int8：占乘加运算的 {share:.1%}，文件为浮点权重的 {ratio:.3f} 倍",
            count=len(outcome.plan.items),
            all=len(outcome.survey.layers),
            share=share,
            ratio=ratio,
        ),
        say(
            "{metric}: {reference:.6g} in floats, {full:.6g} all int8, {final:.6g} as written; lost {drop:.4g}, allowed {allowed:g} ({held} held-out samples)",
            "{metric}：浮点 {reference:.6g}，全部 int8 {full:.6g}，最终 {final:.6g}；损失 {drop:.4g}，允许 {allowed:g}（{held} 个留出样本）",
            metric=metric,
            reference=verdict.reference,
            full=verdict.full.quality,
            final=verdict.final.quality,
            drop=verdict.drop,
            allowed=max_drop,
            held=len(outcome.split.held),
        ),
        say(
            "calibration: {recipe}, {count} samples",
            "校准：{recipe}，{count} 个样本",
            recipe=outcome.recipe.name,
            count=len(outcome.split.calibration),
        ),
        say(
            "both forms agree in {count} comparisons of layers; AscendQuant is taken to round half to even (not tried on a device)",
            "两种形式在 {count} 次逐层比较中一致；AscendQuant 按四舍六入五成双处理（未在设备上验证）",
            count=sum(proof.passed for proof in outcome.proofs),
        ),
    ]
    measurements = [
        Measurement("quality float", verdict.reference, metric, "reference"),
        Measurement("quality int8", verdict.final.quality, metric, "reference"),
        Measurement("drop", verdict.drop, metric, "reference"),
        Measurement("multiply-adds in int8", share, "share", "reference"),
        Measurement("size", ratio, "x float weights", "reference"),
        Measurement("speed of matrix products", speed, "x float16", "estimate"),
    ]
    if outcome.whole is not None:
        measurements.append(Measurement("deploy against QDQ, whole model", outcome.whole, "of the largest element", "simulator"))
    data = {
        "metric": metric,
        "max_drop": max_drop,
        "held": verdict.held,
        "recipe": outcome.recipe.name,
        "trials": outcome.trials,
        "samples": {"calibration": len(outcome.split.calibration), "held_out": len(outcome.split.held)},
        "layers": list(outcome.plan.items),
        "put_back": list(verdict.returned),
        "left": {item.name: str(item.reason) for item in outcome.survey.refused}
        | {name: str(reason) for name, reason in outcome.skipped.items()},
        "sensitivity": verdict.sensitivity,
        "curve": [asdict(point) for point in verdict.curve],
        "int8_bytes": size,
        "work_share": share,
        "size_ratio": ratio,
        "proof": {
            "comparisons": len(outcome.proofs),
            "failed": [proof.name for proof in outcome.proofs if not proof.passed],
            "largest": max((proof.differ for proof in outcome.proofs), default=0.0),
            "ties": sum(proof.ties for proof in outcome.proofs),
            "elements": sum(proof.elements for proof in outcome.proofs),
        },
    }
    return tuple(notes), tuple(measurements), data
