"""What all verbs do first: turn what the caller gave into a case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx_ir as ir

from ..case import Case, Record
from ..errors import ModelError, ShapeError, TargetError, UsageError
from ..graph import all_nodes, copy_model, infer_shapes, known_shape, load, model_info, model_opset, node_place
from ..graph.opset.schemas import find_schema, newest_opset
from ..om import check_fits, looks_like_om
from ..om import read as read_om
from ..proof import FeedSet
from ..targets import Target, find_target
from ..text import Text, say

Shapes = Mapping[str, Sequence[int]]
ModelLike = str | Path | ir.Model | Case
_LARGEST = 2**31 - 1  # of one dimension
Progress = Callable[[Text, float], None]
"""Called with what is being done and the fraction done (0 to 1)."""


def silent(_what: Text, _fraction: float) -> None:
    """No progress shown."""


def parse_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Read ``--shape "name:1,3,224,224;other:1,128"`` (repeatable). A name ends at the last colon; nothing after it is a scalar.

    Raises:
        ShapeError: not of this form, or a size below 1.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for part in (piece.strip() for text in texts for piece in text.split(";")):
        if not part:
            continue
        name, colon, sizes = part.rpartition(":")
        try:
            shape = tuple(int(size) for size in sizes.split(",")) if sizes.strip() else ()
        except ValueError:
            shape = (0,)
        if not colon or not name or any(not 1 <= size <= _LARGEST for size in shape):
            raise ShapeError(
                say("`{part}` is not a shape", "`{part}` 不是形状描述", part=part),
                say("expected NAME:SIZE,SIZE,... with sizes of 1 or more", "应为 名称:大小,大小,...，大小不小于 1"),
                say("several sizes in one .om: `jumar compile --gears`", "一个 .om 支持多种大小：`jumar compile --gears`")
                if -1 in shape
                else say('for example --shape "x:1,3,224,224"', '例如 --shape "x:1,3,224,224"'),
            )
        shapes[name] = shape
    return shapes


def parse_ranges(texts: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Read ``--range "ids:0,30521;mask:0,1"`` (repeatable). A name ends at the last colon.

    Raises:
        UsageError: not of this form.
    """
    ranges: dict[str, tuple[int, int]] = {}
    for part in (piece.strip() for text in texts for piece in text.split(";")):
        if not part:
            continue
        name, colon, limits = part.rpartition(":")
        try:
            low, high = (int(limit) for limit in limits.split(","))
        except ValueError:
            colon = ""
        if not colon or not name:
            raise UsageError(
                say("`{part}` is not a range", "`{part}` 不是取值范围描述", part=part),
                say("expected NAME:LOW,HIGH with integers", "应为 名称:最小值,最大值，均为整数"),
                say('for example --range "ids:0,30521"', '例如 --range "ids:0,30521"'),
            )
        ranges[name] = (low, high)
    return ranges


def parse_constants(texts: Sequence[str]) -> dict[str, Any]:
    """Read ``--set-const "k=100;sizes=1,3,64,64"`` (repeatable). A name ends at the last ``=``; one number is a scalar.

    Raises:
        UsageError: not of this form.
    """
    constants: dict[str, Any] = {}
    for part in (piece.strip() for text in texts for piece in text.split(";")):
        if not part:
            continue
        name, equals, numbers = part.rpartition("=")
        try:
            values = [_number(item) for item in numbers.strip().strip("[]").split(",")]
        except ValueError:
            values = []
        if not equals or not name or not values:
            raise UsageError(
                say("`{part}` is not a constant", "`{part}` 不是常量描述", part=part),
                say("expected NAME=NUMBER or NAME=NUMBER,NUMBER,...", "应为 名称=数值 或 名称=数值,数值,..."),
                say('for example --set-const "k=100"', '例如 --set-const "k=100"'),
            )
        constants[name] = values[0] if len(values) == 1 and "[" not in numbers else values
    return constants


def _number(text: str) -> int | float | bool:
    words = {"true": True, "false": False}
    plain = text.strip().lower()
    if plain in words:
        return words[plain]
    try:
        return int(plain)
    except ValueError:
        return float(plain)


def check_shapes(model: ir.Model, shapes: Shapes) -> dict[str, tuple[int, ...]]:
    """The shapes, checked against the model's inputs.

    Raises:
        ShapeError: unknown input, wrong rank, or a fixed dimension contradicted.
    """
    inputs = {value.name or "": value for value in model.graph.inputs if value.name not in model.graph.initializers}
    checked = {}
    for name, given in shapes.items():
        shape = tuple(int(size) for size in given)
        if name not in inputs:
            raise ShapeError(
                say("the model has no input `{name}`", "模型没有名为 `{name}` 的输入", name=name),
                say("expected one of: {names}", "应为其中之一：{names}", names=", ".join(inputs) or "-"),
                say("correct --shape", "请修正 --shape"),
            )
        declared = known_shape(inputs[name])
        if declared is not None:
            _check_shape(name, shape, declared)
        checked[name] = shape
    return checked


def _check_shape(name: str, shape: tuple[int, ...], declared: tuple[int | str | None, ...]) -> None:
    text = "[" + ", ".join("?" if dim is None else str(dim) for dim in declared) + "]"
    fits = len(shape) == len(declared) and all(not isinstance(dim, int) or dim == size for dim, size in zip(declared, shape, strict=True))
    if not fits:
        raise ShapeError(
            say("shape {given} does not fit input `{name}`", "形状 {given} 与输入 `{name}` 不符", given=list(shape), name=name),
            say("expected {text}", "应为 {text}", text=text),
            say("correct --shape", "请修正 --shape"),
        )


def check_number(option: str, value: float, high: float, *, zero: bool) -> float:
    """A number from the caller: finite, within (0, high], or [0, high] if ``zero`` is allowed.

    Raises:
        UsageError: it is not (NaN fails every comparison).
    """
    if (value > 0 or (zero and value == 0)) and value <= high:
        return value
    raise UsageError(
        say("{option} {value:g} makes no sense", "{option} {value:g} 没有意义", option=option, value=value),
        say("expected a number from 0 to {high:g}", "应为 0 到 {high:g} 之间的数", high=high)
        if zero
        else say("expected a number over 0, up to {high:g}", "应为大于 0、不超过 {high:g} 的数", high=high),
        say("correct {option}", "请修正 {option}", option=option),
    )


def _check_form(model: ir.Model) -> None:
    """Every standard node of a model from memory has enough inputs, and attributes of the kinds that the standard gives them.

    Raises:
        ModelError: one has not.
    """
    opset = model_opset(model)
    for node in all_nodes(model):
        known = node.domain in ("", "ai.onnx")
        # An operator newer than the model's opset is held to its newest form: rules take its inputs for granted too.
        schema = (find_schema(node.op_type, opset) or find_schema(node.op_type, newest_opset())) if known else None
        if schema is None:
            continue
        expected = {name: int(item.type.value) for name, item in schema.attributes.items()}  # type: ignore[attr-defined]
        odd = [name for name, item in node.attributes.items() if item.type.value != expected.get(name)]
        odd += [name for name, item in schema.attributes.items() if item.required and name not in node.attributes]
        if odd or len(node.inputs) < schema.min_input:
            what = say("attribute {name}", "属性 {name}", name=odd[0]) if odd else say("the number of inputs", "输入个数")
            raise ModelError(
                say(
                    "`{node}`: {what} is not what ONNX gives {op}",
                    "`{node}`：{what}与 ONNX 对 {op} 的规定不符",
                    node=node_place(node),
                    what=what,
                    op=node.op_type,
                ),
                say("expected a valid ONNX model", "应为有效的 ONNX 模型"),
                say("onnx.checker.check_model says more", "可用 onnx.checker.check_model 查看详情"),
            )


def _copied(model: ir.Model) -> ir.Model:
    """A copy of the caller's model.

    Raises:
        ModelError: it is in pieces (a node reads a tensor that nothing makes), which only a model from memory can be.
    """
    try:
        return copy_model(model)
    except (RuntimeError, ValueError) as error:
        reason: BaseException = error
        while reason.__cause__ is not None:  # the innermost names the tensor, the others print whole graphs
            reason = reason.__cause__
        raise ModelError(
            say("the model in memory cannot be copied: {error}", "无法复制内存中的模型：{error}", error=str(reason).splitlines()[0][:200]),
            say("expected every tensor to have a source", "每个张量都应有来源"),
            say(
                "onnx_ir drops sparse initializers: pass the path of the file instead",
                "onnx_ir 会丢弃稀疏初始值：请改为传入模型文件的路径",
            ),
        ) from error


def open_case(
    model: ModelLike,
    verb: str,
    *,
    soc: str | None = None,
    target: str | Target | None = None,
    cann: str | None = None,
    opset_max: int | None = None,
    need_target: bool = True,
    quick: bool = False,
) -> Case:
    """Load the model (unless it is one already), find the target, and start a record.

    Args:
        quick: neither infer shapes nor hash the file.

    Raises:
        ModelError, TargetError: see :func:`jumar.graph.load` and :func:`jumar.targets.find_target`.
    """
    if isinstance(model, Case) and soc is None and target is None and model.target is not None:
        soc, target = (model.target.soc.name, None) if cann or opset_max else (None, model.target)
    if isinstance(target, Target):
        found: Target | None = target
    elif soc is None and target is None and not need_target:
        found = None
    else:
        found = find_target(soc, profile=target, cann=cann, opset_max=opset_max)
    if need_target and found is None:
        raise TargetError(say("no target was named", "没有指定目标"))
    if isinstance(model, Case):
        record = Record(verb=verb, model=model.record.model, target=None if found is None else found.to_dict(), notes=model.record.notes)
        return Case(model.model, found, record)
    if isinstance(model, ir.Model):
        _check_form(model)  # the loader's checker saw only files
    if not isinstance(model, ir.Model):
        refuse_compiled(model, found)
    loaded = model if isinstance(model, ir.Model) else load(model)
    info = model_info(loaded, None if isinstance(model, ir.Model) else model, digest=not quick)
    own = _copied(loaded) if isinstance(model, ir.Model) else loaded
    if not quick:
        infer_shapes(own)
    notes = () if found is None else found.notes()
    return Case(own, found, Record(verb=verb, model=info, target=None if found is None else found.to_dict(), notes=notes))


def refuse_compiled(path: str | Path, target: Target | None) -> None:
    """Say of an .om where an ONNX model is expected whether a device of the target could run it, before anything else reads it.

    Raises:
        ModelError: it is an .om; with the first reason why it does not fit the target, where one was named.
    """
    if not looks_like_om(path):
        return
    om = read_om(path)
    misfit = [] if target is None else [finding for finding in check_fits(om, target) if finding.severity == "error"]
    if misfit:
        raise ModelError(
            say("`{path}`: {reason} ({code})", "`{path}`：{reason}（{code}）", path=path, reason=misfit[0].message, code=misfit[0].code),
            say("expected an .om compiled for {target}", "应为针对 {target} 编译的 .om", target=target.label if target else "-"),
            misfit[0].remedy,
        )
    raise ModelError(
        say("`{path}` is compiled (for {soc})", "`{path}` 是已编译的模型（{soc}）", path=path, soc=", ".join(om.soc_versions()) or "?"),
        say("expected the ONNX model it was compiled from", "应为编译前的 ONNX 模型"),
        say("`jumar inspect` shows what is in it; only a device runs it", "用 `jumar inspect` 查看其内容；只有设备能运行它"),
    )


def generated_feeds(feeds: FeedSet) -> Text:
    """The note that proofs did not run on the user's own inputs."""
    return say(
        "proofs ran on {count} generated inputs; give real ones with --feeds",
        "证明使用了 {count} 组生成的输入；可用 --feeds 提供真实数据",
        count=len(feeds.cases),
    )


def must_not_overwrite(model: ModelLike, output: str | Path | None) -> None:
    """A verb that writes a model never writes it over the given one.

    Raises:
        UsageError: ``output`` is the model itself.
    """
    if output is not None and isinstance(model, (str, Path)) and Path(output).resolve() == Path(model).resolve():
        raise UsageError(
            say("`{path}` is the model itself", "`{path}` 就是模型本身", path=output),
            say("expected another file: the given model is never overwritten", "应为其他文件：不会覆盖给定的模型"),
            say("choose another -o", "请更换 -o"),
        )
