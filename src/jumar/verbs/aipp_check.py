"""``jumar aipp check``: an AIPP file against its chip, its model and the training transform."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from ..aipp.compare import Difference, Pair, compare, describe, image_kind
from ..aipp.config import AippConfig, AippOp, write_config
from ..aipp.derive.block import derive_block
from ..aipp.emulate import Layout
from ..aipp.geometry import geometry
from ..aipp.images import read_image
from ..aipp.lint import lint_aipp
from ..aipp.matrices import identify
from ..aipp.model_fit import image_size
from ..aipp.network import Head, find_head
from ..aipp.schema import EIGHT_BIT, Chip
from ..aipp.transform import Transform
from ..atc.lint import model_facts
from ..atc.options import ModelFacts, Problem
from ..case import Artifact, Finding, Measurement, Record
from ..errors import UsageError
from ..graph import load, write_atomic
from ..graph.digest import file_sha256
from ..rules import find_rule
from ..targets import Target
from ..text import Text, say
from .aipp_common import TransformLike, chip_of, find_transform, read_aipp, read_matrix, summary
from .aipp_derive import comments_of
from .aipp_outputs import outputs_apart


def check_aipp(
    config: str | Path,
    *,
    soc: str | None = None,
    target: str | Target | None = None,
    cann: str | None = None,
    model: str | Path | None = None,
    preprocess: TransformLike | None = None,
    torchvision: str | Any | None = None,
    images: Sequence[str | Path] = (),
    kind: str | None = None,
    matrix: str | None = None,
    layout: Layout = "NCHW",
    output: str | Path | None = None,
    run: bool = False,
    taken: list[tuple[str, Sequence[Pair]]] | None = None,
) -> Record:
    """Judge an AIPP file, and prove it against the training transform where that is given.

    Args:
        config: the AIPP file.
        soc, target, cann: the chip to judge for.
        model: the ONNX file it is inserted into.
        preprocess, torchvision: the transform, as :func:`derive_aipp` takes it.
        images: RGB pictures of the source size to compare on, besides a pattern with all pixel values.
        kind: of the images that the device is given (rgb, bgr, nv12, ...); where it is left out, the record says what was assumed.
        matrix: standard of YUV images; where it is left out, the block's own is believed.
        layout: of the model's image inputs.
        output: where to write the corrected file, if one of the blocks differs from the transform.
        run: also run the model behind AIPP and behind the transform, and compare its outputs.
        taken: gets, for each block that was compared, the name of its input and what AIPP and the transform make of each image.

    Returns:
        A record with findings AI101 to AI109; ``data["blocks"]`` has, for each block, the sizes, and with a transform ``equal``,
        ``largest``, ``mean`` and ``allowed`` difference of each channel and the names of the ``slips``; ``data["corrected"]`` the text of the
        corrected file. Measurements hold the differences.

    Raises:
        UsageError, ModelError, TargetError, OutputError: what cannot be read, compared or written.
    """
    found, chip = chip_of(soc, target, cann)
    text, name = read_aipp(config)
    loaded = None if model is None else load(model)
    facts = None if loaded is None else model_facts(loaded, str(model))
    parsed, problems = lint_aipp(
        text, short=None if chip is None else chip.short, inputs=() if facts is None else facts.inputs, layout=layout
    )
    transform = find_transform(preprocess=preprocess, torchvision=torchvision)
    notes: list[Text] = []
    pictures = [_picture(path) for path in images]
    judged = _Judged(parsed, facts, chip, transform, kind, matrix, layout, pictures, notes)
    findings = judged.compare(name) if transform is not None else []
    if run:
        judged.run(loaded)
    if taken is not None:
        taken += judged.inputs()
    certain = {op.line for op in judged.judged_ops}
    findings += [
        finding_of(problem, name, line)
        for line, problem in problems
        if not (problem.code == "AI106" and _block_line(parsed, line) in certain)
    ]
    if loaded is not None:
        findings += [
            finding for op in parsed.ops for finding in _twice(op, find_head(loaded, _input_name(facts, op), layout), transform, name)
        ]
    data: dict[str, Any] = {"blocks": judged.rows}
    artifacts: tuple[Artifact, ...] = ()
    corrected = judged.corrected()
    if corrected is not None:
        data["corrected"] = corrected
        if output is not None:
            write_atomic(output, corrected)
            artifacts = (Artifact(str(output), file_sha256(Path(output)), "aipp"),)
        else:
            notes += [
                say("the corrected file (-o writes it):", "修正后的文件（可用 -o 写出）："),
                say("{text}", "{text}", text=corrected.rstrip()),
            ]
    order = ("error", "warning", "info")
    return Record(
        verb="aipp",
        target=None if found is None else found.to_dict(),
        findings=tuple(sorted(findings, key=lambda finding: order.index(finding.severity))),
        notes=tuple(notes),
        artifacts=artifacts,
        measurements=tuple(judged.measurements),
        data=data,
    )


def finding_of(problem: Problem, name: str, line: int) -> Finding:
    """A problem with its place; ATC's codes stand behind the reason."""
    place = f"{name}:{line}"
    why = (
        problem.why
        if not problem.atc
        else say("{why} (ATC: {codes})", "{why}（ATC 错误码：{codes}）", why=problem.why, codes=", ".join(problem.atc))
    )
    message = say("{place}: {message}", "{place}：{message}", place=place, message=problem.message)
    evidence = (*(f"ATC {code}" for code in problem.atc), *problem.evidence)
    return find_rule(problem.code).finding(message, why, problem.remedy, place=place, severity=problem.severity, evidence=evidence)


def _block_line(config: AippConfig, line: int) -> int:
    """The line at which the block that holds a line begins."""
    return max((op.line for op in config.ops if op.line <= line), default=0)


def _picture(path: str | Path) -> np.ndarray[Any, Any]:
    pixels, picture = read_image(path)
    if not picture:
        raise UsageError(
            say("`{path}` is no RGB picture", "`{path}` 不是 RGB 图片", path=str(path)[-80:]),
            say("expected [height, width, 3] of uint8: the transform starts from pixels", "应为 uint8 的 [高, 宽, 3]：预处理从像素开始"),
            say("give .npy, .ppm, .png or .jpg", "请给出 .npy、.ppm、.png 或 .jpg"),
        )
    return pixels


def _input_name(facts: ModelFacts | None, op: AippOp) -> str | None:
    rank = int(op["related_input_rank"])
    return None if facts is None or rank >= len(facts.inputs) else facts.inputs[rank].name


class _Judged:
    """The blocks of a file beside a transform."""

    def __init__(
        self,
        config: AippConfig,
        facts: ModelFacts | None,
        chip: Chip | None,
        transform: Transform | None,
        kind: str | None,
        matrix: str | None,
        layout: Layout,
        pictures: list[Any],
        notes: list[Text],
    ) -> None:
        self.config, self.facts, self.chip, self.transform, self.kind, self.layout = config, facts, chip, transform, kind, layout
        self.matrix, self.pictures, self.notes = read_matrix(matrix), pictures, notes
        self.measurements: list[Measurement] = []
        self.judged_ops: list[AippOp] = []
        self.tried: list[tuple[AippOp, Difference]] = []
        self.wrong: dict[int, AippOp] = {}
        self.comments: tuple[str, ...] = ()
        self.rows: list[dict[str, Any]] = [summary(op, self._network(op)) for op in config.ops]
        coloured = [op for op in config.ops if op["csc_switch"] and op.format in EIGHT_BIT and op.format != "YUV400_U8"]
        notes += [
            say(
                "the matrix of input {rank} is: {text}",
                "第 {rank} 个输入的矩阵：{text}",
                rank=op["related_input_rank"],
                text=identify(op).text,
            )
            for op in coloured
        ]

    def _network(self, op: AippOp) -> tuple[int, int] | None:
        rank = int(op["related_input_rank"])
        if self.facts is None or rank >= len(self.facts.inputs):
            return None
        size = image_size(self.facts.inputs[rank], self.layout)
        return None if size is None else size[1:]

    def compare(self, name: str) -> list[Finding]:
        """What each static block does otherwise than the transform."""
        findings: list[Finding] = []
        assert self.transform is not None
        for index, op in enumerate(self.config.ops):
            network = self._network(op)
            if op.mode != "static" or op.format not in EIGHT_BIT:
                self.notes.append(
                    say(
                        "block {index} is not compared: {mode}, {format}",
                        "第 {index} 个块未作比较：{mode}，{format}",
                        index=index,
                        mode=op.mode,
                        format=op.format,
                    )
                )
                continue
            try:
                difference = compare(
                    op,
                    self.transform,
                    image=self.kind,
                    matrix=self.matrix,
                    pixels=self.pictures,
                    network=network,
                    var="float16" if self.chip is None else self.chip.var,
                )
            except UsageError as error:
                self.notes.append(
                    say("block {index} cannot be compared: {reason}", "第 {index} 个块无法比较：{reason}", index=index, reason=error.found)
                )
                continue
            self.judged_ops.append(op)
            self.tried.append((op, difference))
            self._tell(index, difference)
            if not difference.equal:
                findings.append(_differs(op, self.transform, difference, name))
                self._correct(index, op, network)
        return findings

    def run(self, model: ir.Model | None) -> None:
        """The outputs of the model behind each block and behind the transform.

        Raises:
            UsageError: there is no model, or no block that was compared.
        """
        for name, pairs in self.inputs():
            if model is not None:
                notes, measurements = outputs_apart(model, name, pairs, self.layout)
                self.notes += notes
                self.measurements += measurements

    def inputs(self) -> list[tuple[str, Sequence[Pair]]]:
        """The name of each compared block's input, with what AIPP and the transform make of each image.

        Raises:
            UsageError: there is no model, or no block that was compared.
        """
        if self.facts is None or not self.tried:
            raise UsageError(
                say("there is nothing to run", "没有可运行的内容"),
                say("expected --model, and a transform that the file can be compared with", "应给出 --model，以及可与文件比较的预处理"),
                say("give both", "请同时给出"),
            )
        named = [(_input_name(self.facts, op), difference.pairs) for op, difference in self.tried]
        return [(name, pairs) for name, pairs in named if name is not None and pairs]

    def _tell(self, index: int, difference: Difference) -> None:
        slips = None if difference.slips is None else [slip.name for slip in difference.slips]
        self.rows[index] |= {
            "equal": difference.equal,
            "largest": list(difference.largest),
            "mean": list(difference.mean),
            "allowed": list(difference.allowed),
            "slips": slips,
        }
        for channel, (largest, mean) in enumerate(zip(difference.largest, difference.mean, strict=True)):
            self.measurements.append(Measurement(f"block {index} channel {channel} largest difference", largest, "", "simulator"))
            self.measurements.append(Measurement(f"block {index} channel {channel} mean difference", mean, "", "simulator"))
        self.notes += difference.notes
        rows = zip(difference.largest, difference.allowed, strict=True)
        shown = ", ".join(f"{one:.2g} ({two:.2g})" for one, two in rows)
        verdict = (
            say("equal to the transform within rounding", "与预处理在舍入范围内相等")
            if difference.equal
            else say("not equal to the transform", "与预处理不相等")
        )
        self.notes.append(
            say(
                "block {index}: {verdict}; largest difference a channel, and what rounding explains: {shown}",
                "第 {index} 个块：{verdict}；各通道最大差异（及舍入可解释的范围）：{shown}",
                index=index,
                verdict=verdict,
                shown=shown,
            )
        )

    def _correct(self, index: int, op: AippOp, network: tuple[int, int] | None) -> None:
        """The block that does what the transform asks, keeping images, sizes and the input of this one."""
        assert self.transform is not None
        kind = image_kind(op, self.kind)[0]
        known = identify(op).matrix if op["csc_switch"] else None
        matrix = self.matrix or (("601", "narrow") if known is None or not known.decode else (known.standard, known.range))
        size = geometry(op, network or self.transform.size)
        wanted = self.transform
        if wanted.size is None or network is not None:
            wanted = wanted.with_size(network or (None if size is None else size.output))
        if wanted.source is None and size is not None and wanted.size is not None and size.source != wanted.size and op["src_image_size_w"]:
            wanted = wanted.with_size(source=size.source)
        try:
            derived = derive_block(wanted, kind, matrix=matrix, chip=self.chip, rank=int(op["related_input_rank"]))
        except UsageError as error:
            self.notes.append(say("no corrected block: {reason}", "没有修正后的块：{reason}", reason=error.found))
            return
        self.comments = comments_of(derived)
        self.wrong[index] = derived.op

    def corrected(self) -> str | None:
        """The text of the file with the wrong blocks put right; None where none was."""
        if not self.wrong:
            return None
        ops = tuple(self.wrong.get(index, op) for index, op in enumerate(self.config.ops))
        return write_config(AippConfig(ops, self.config.gears), self.comments)


def _differs(op: AippOp, transform: Transform, difference: Difference, name: str) -> Finding:
    place = f"{name}:{op.line}"
    parts: list[Text] = [describe(slip, transform) for slip in difference.slips or ()]
    parts += list(difference.problems)
    (least, most), (wanted_least, wanted_most) = difference.reach
    if not parts:
        parts = [say("no usual slip explains it", "不属于常见疏漏")]
    explained = parts[0] if len(parts) == 1 else say("{first}; {rest}", "{first}；{rest}", first=parts[0], rest=_joined(parts[1:]))
    factor = max(abs(value) for value in transform.factor)
    small = not difference.problems and all(value <= factor for value in difference.largest)
    message = say(
        "{place}: AIPP does not give the model what training gave it: {explained}",
        "{place}：AIPP 送给模型的数据与训练时不同：{explained}",
        place=place,
        explained=explained,
    )
    worst = int(np.argmax(difference.largest))
    why = say(
        "channel {channel} differs by up to {largest:.4g}, rounding explains {allowed:.2g}; the model gets {least:.4g} to {most:.4g} in place of {wanted_least:.4g} to {wanted_most:.4g}",
        "通道 {channel} 最多相差 {largest:.4g}，舍入只能解释 {allowed:.2g}；模型得到 {least:.4g} 到 {most:.4g}，应为 {wanted_least:.4g} 到 {wanted_most:.4g}",
        channel=worst,
        largest=difference.largest[worst],
        allowed=difference.allowed[worst],
        least=least,
        most=most,
        wanted_least=wanted_least,
        wanted_most=wanted_most,
    )
    remedy = say("use the corrected block, or `jumar aipp derive`", "请使用修正后的块，或 `jumar aipp derive`")
    return find_rule("AI108").finding(message, why, remedy, place=place, severity="warning" if small else "error")


def _joined(parts: list[Text]) -> Text:
    return parts[0] if len(parts) == 1 else say("{first}; {rest}", "{first}；{rest}", first=parts[0], rest=_joined(parts[1:]))


def _twice(op: AippOp, head: Head | None, transform: Transform | None, name: str) -> list[Finding]:
    """Whether the network normalises what AIPP has normalised."""
    if head is None or not head.nodes or op.mode != "static" or op.format not in EIGHT_BIT:
        return []
    place = f"{name}:{op.line}"
    count = min(head.channels, 3)
    factor = max(abs(float(op[f"var_reci_chn_{index}"])) for index in range(count))
    subtract = [float(op[f"mean_chn_{index}"]) + float(op[f"min_chn_{index}"]) for index in range(count)]
    normalises = any(subtract) or not 0.9 / 255 <= factor <= 1.1 / 255
    text = say("(value - {mean}) * {scale}", "(值 - {mean}) * {scale}", mean=_few(head.subtract), scale=_few(head.gain))
    doubled = (head.pixels is True and factor < 0.5) or (head.pixels is False and normalises)
    if transform is not None or not doubled:
        message = say("{place}: the network begins with {text}", "{place}：网络开头为 {text}", place=place, text=text)
        why = say(
            "it is computed after AIPP; the transform must be that of the network's input", "它在 AIPP 之后计算；预处理应对应网络的输入"
        )
        return [
            find_rule("AI109").finding(
                message, why, say("`jumar aipp move` takes it out", "`jumar aipp move` 可以移出"), place=place, severity="info"
            )
        ]
    message = say(
        "{place}: AIPP normalises, and the network begins with {text} on {scale}",
        "{place}：AIPP 做了归一化，而网络开头又对 {scale} 做 {text}",
        place=place,
        text=text,
        scale="0..255" if head.pixels else "0..1",
    )
    why = say("the pixels are normalised twice", "像素被归一化两次")
    remedy = say("leave it to one of them: `jumar aipp move` takes it out of the network", "只保留其一：`jumar aipp move` 可将其移出网络")
    return [find_rule("AI109").finding(message, why, remedy, place=place)]


def _few(values: Sequence[float]) -> str:
    plain = [f"{value:.4g}" for value in values[:3]]
    return plain[0] if len(set(plain)) == 1 else "[" + ", ".join(plain) + "]"
