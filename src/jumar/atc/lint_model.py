"""A call against the model it names: inputs, ranks, sizes and nodes."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from ..text import Text, say
from .grammar import Shape, is_number, is_range, parse_shape_ranges, parse_shapes, range_bounds, split
from .options import ModelFacts, Options, Problem, atc_flags, symbolic

_SEPARATORS = ":;,"


def check_model(options: Options, facts: ModelFacts) -> Iterator[Problem]:
    """Problems that show only beside the model; needs no weights."""
    try:
        shapes = (*parse_shapes(options.get("input_shape")), *parse_shape_ranges(options.get("input_shape_range")))
    except ValueError:
        shapes = parse_shapes(options.get("input_shape"))
    unclear = any(symbolic(shape.name) or (symbolic(shape.text) and not shape.name) for shape in shapes)
    for shape in shapes:
        if shape.name and not symbolic(shape.name):
            yield from _entry(shape, facts)
    yield from _left_out(shapes, facts, unclear)
    yield from _separators(facts)
    if options.get("framework") in ("0", "1", "3") and facts.kind == "onnx":
        why = say("ATC parses the file as another kind", "ATC 会按其他类型解析该文件")
        message = say("--framework={number}, but the model is ONNX", "--framework={number}，但模型是 ONNX", number=options.get("framework"))
        yield _problem("framework", ("E10041",), message, why, say("write --framework=5", "请写成 --framework=5"))
    for entry in split(options.get("out_nodes"), ";"):
        if not symbolic(entry):
            yield from _out_node(entry.strip(), facts)
    for name in split(options.get("input_fp16_nodes"), ";"):
        if not symbolic(name) and facts.input(name.strip()) is None:
            yield _no_input("input_fp16_nodes", name.strip(), facts)


def _problem(flag: str, atc: tuple[str, ...], message: Text, why: Text, remedy: Text, *, sure: bool = True) -> Problem:
    return Problem("AT908", "error" if sure else "warning", message, why, remedy, flag, atc, (atc_flags()[flag].source,))


def _near(name: str, names: Iterable[str]) -> Text:
    known = list(names)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if close:
        return say("write `{name}`", "请写成 `{name}`", name=close[0])
    return say("it has: {names}", "模型中有：{names}", names=", ".join(known[:12]) or "-")


def _no_input(flag: str, name: str, facts: ModelFacts) -> Problem:
    names = [item.name for item in facts.inputs]
    if name in facts.initializers:
        message = say("--{flag}: `{name}` is a weight, not an input", "--{flag}：`{name}` 是权重，不是输入", flag=flag, name=name)
        why = say("old exporters list weights among the inputs; ATC does not", "旧的导出器把权重也列为输入，但 ATC 不这样处理")
        return _problem(flag, ("E10017",), message, why, say("leave it out", "请去掉它"))
    if name in facts.nodes:
        message = say("--{flag}: `{name}` is a node, not an input", "--{flag}：`{name}` 是节点，不是输入", flag=flag, name=name)
        return _problem(flag, ("E10017",), message, say("only inputs are given here", "此处只能写输入"), _near(name, names))
    message = say("--{flag}: the model has no input `{name}`", "--{flag}：模型没有输入 `{name}`", flag=flag, name=name[:80])
    return _problem(flag, ("E10016",), message, say("names are compared letter by letter", "名称逐字符比较"), _near(name, names))


def _entry(shape: Shape, facts: ModelFacts) -> Iterator[Problem]:
    found = facts.input(shape.name)
    if found is None:
        yield _no_input("input_shape", shape.name, facts)
        return
    if found.shape is None:
        return
    written = ",".join(shape.dims)
    if len(shape.dims) != len(found.shape):
        if symbolic(written) and len(shape.dims) == 1:
            return  # one variable for all of them
        message = say(
            "--input_shape gives `{name}` {count} dimensions; the model has {rank}",
            "--input_shape 为 `{name}` 写了 {count} 维，而模型中是 {rank} 维",
            name=shape.name,
            count=len(shape.dims),
            rank=len(found.shape),
        )
        yield _problem(
            "input_shape",
            ("E10049",),
            message,
            say("ranks must agree", "维数必须一致"),
            say("the model's: {shape}", "模型中为：{shape}", shape=_words(found.shape)),
        )
        return
    yield from _sizes(shape, found.shape)


def _sizes(shape: Shape, model_shape: tuple[int | str | None, ...]) -> Iterator[Problem]:
    for place, (dim, own) in enumerate(zip(shape.dims, model_shape, strict=True)):
        if not isinstance(own, int) or symbolic(dim):
            continue
        low, high = range_bounds(dim) if is_range(dim) else (own, own)
        if not (low <= own and (high == -1 or own <= high)):
            message = say(
                "--input_shape: the model's `{name}` is {own} at dimension {place}, outside {dim}",
                "--input_shape：模型的 `{name}` 第 {place} 维是 {own}，不在 {dim} 内",
                name=shape.name,
                own=own,
                place=place,
                dim=dim,
            )
            yield _problem(
                "input_shape",
                ("E10050",),
                message,
                say("a range must hold the model's own size", "范围须包含模型自身的尺寸"),
                say("widen it", "请放宽范围"),
            )
        elif is_number(dim) and int(dim) not in (own, 0):
            message = say(
                "--input_shape: dimension {place} of `{name}` is {dim}; the model fixes {own}",
                "--input_shape：`{name}` 第 {place} 维写了 {dim}，而模型固定为 {own}",
                name=shape.name,
                place=place,
                dim=dim,
                own=own,
            )
            why = say("the rest of the graph may hold the old size in constants", "图中其余部分可能以常量保存了原尺寸")
            yield _problem(
                "input_shape",
                (),
                message,
                why,
                say("export the model with an open dimension, or write {own}", "请以可变维度重新导出模型，或写 {own}", own=own),
                sure=False,
            )


def _words(shape: tuple[int | str | None, ...]) -> str:
    return "[" + ",".join("?" if dim is None else str(dim) for dim in shape) + "]"


def _left_out(shapes: tuple[Shape, ...], facts: ModelFacts, unclear: bool) -> Iterator[Problem]:
    if unclear or any(not shape.name for shape in shapes):
        return
    named = {shape.name for shape in shapes}
    for item in facts.inputs:
        if item.name not in named and item.shape is not None and not all(isinstance(dim, int) for dim in item.shape):
            message = say(
                "--input_shape leaves out `{name}`, whose shape is open", "--input_shape 遗漏了形状可变的 `{name}`", name=item.name
            )
            remedy = say('add "{name}:{shape}"', '请加上 "{name}:{shape}"', name=item.name, shape=_words(item.shape)[1:-1])
            yield _problem("input_shape", ("E11005",), message, say("ATC wants every open input", "ATC 要求写出每个可变输入"), remedy)


def _separators(facts: ModelFacts) -> Iterator[Problem]:
    for kind, flag, tensors in (("input", "input_shape", facts.inputs), ("output", "out_nodes", facts.outputs)):
        for item in tensors:
            if any(mark in item.name for mark in _SEPARATORS):
                message = say(
                    "the name of {kind} `{name}` holds a separator of --{flag}",
                    "{kind} `{name}` 的名称含有 --{flag} 的分隔符",
                    kind=say("input", "输入") if kind == "input" else say("output", "输出"),
                    name=item.name,
                    flag=flag,
                )
                why = say(
                    "`;` and `,` split the value, and older ATC splits at the first `:`",
                    "`;` 和 `,` 会切分该值，较早的 ATC 按第一个 `:` 切分",
                )
                remedy = say(
                    "rename it: `jumar fix` does, with a map of the names (NM401)",
                    "请改名：`jumar fix` 可以完成并保留名称对应关系（NM401）",
                )
                # A single colon is read rightly by newer ATC.
                yield _problem(flag, ("E10016",), message, why, remedy, sure=any(mark in item.name for mark in ";,") or kind == "output")


def _out_node(entry: str, facts: ModelFacts) -> Iterator[Problem]:
    name, colon, index = entry.rpartition(":")
    if not colon or not is_number(index) or not facts.nodes:
        return
    count = facts.nodes.get(name)
    if count is None:
        message = say("--out_nodes: the model has no node `{name}`", "--out_nodes：模型没有节点 `{name}`", name=name[:80])
        yield _problem(
            "out_nodes",
            ("E11017",),
            message,
            say("it wants names of nodes, not of tensors", "此处应为节点名而非张量名"),
            _near(name, facts.nodes),
        )
    elif int(index) >= count:
        message = say(
            "--out_nodes: node `{name}` has no output {index}", "--out_nodes：节点 `{name}` 没有第 {index} 个输出", name=name, index=index
        )
        yield _problem(
            "out_nodes",
            ("E11016", "E10013"),
            message,
            say("it has {count}, counted from 0", "它有 {count} 个输出，从 0 开始计数", count=count),
            say("write an index below {count}", "请写小于 {count} 的序号", count=count),
        )
