"""Flags against each other: what is missing, what excludes what, what has no effect beside another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from ..targets.tables import table
from ..text import Text, say
from .grammar import GEAR_FLAGS, parse_shapes
from .options import Options, Problem, atc_flags, symbolic

_MIXED = ("allow_mix_precision", "allow_mix_precision_fp16", "allow_mix_precision_bf16", "mixed_float16", "mixed_bfloat16", "mixed_hif8")
_SUFFIXES = {".onnx": "5", ".prototxt": "0", ".air": "1"}
_FRAMEWORKS = {"0": "Caffe", "1": "MindSpore", "3": "TensorFlow", "5": "ONNX"}


def check_rules(options: Options) -> Iterator[Problem]:
    """Problems that two or more flags make together, and flags that are missing."""
    if options.get("help"):
        return
    yield from _missing(options)
    yield from _excluded(options)
    yield from _single_operator(options)
    yield from _needing(options)
    yield from _framework(options)
    yield from _idle(options)


def missing(flag: str, atc: str, why: Text, remedy: Text) -> Problem:
    """A flag that must be there."""
    message = say("--{flag} is missing", "缺少 --{flag}", flag=flag)
    return Problem("AT903", "error", message, why, remedy, flag, (atc,), (atc_flags()[flag].source,))


def exclusive(
    flags: tuple[str, ...] | list[str], atc: str | None, why: Text, remedy: Text, *, sure: bool = True, source: str = ""
) -> Problem:
    """Flags that may not stand together."""
    names = " + ".join(f"--{flag}" for flag in flags)
    message = say("{names} do not go together", "{names} 不能同时使用", names=names)
    evidence = (source or atc_flags()[flags[-1]].source,)
    return Problem("AT904", "error" if sure else "warning", message, why, remedy, flags[-1], (atc,) if atc else (), evidence)


def _missing(options: Options) -> Iterator[Problem]:
    mode = options.get("mode") or "0"
    builds = say("ATC needs it to build a model", "ATC 构建模型需要它")
    if mode in ("0", "3", "7", "30") and not options.get("model") and not options.get("singleop"):
        yield missing("model", "E10054", builds, say("add --model=FILE.onnx", "请加上 --model=FILE.onnx"))
    if mode in ("0", "7", "30"):
        if not options.get("output"):
            yield missing("output", "E10054", builds, say("add --output=NAME, without .om", "请加上 --output=NAME，不带 .om"))
        if not options.get("soc_version"):
            remedy = say(
                "add --soc_version=NAME; on A2 and older it is `Ascend` and the Chip Name of `npu-smi info`",
                "请加上 --soc_version=NAME；A2 及更早的芯片为 `Ascend` 加 `npu-smi info` 中的 Chip Name",
            )
            yield missing("soc_version", "E10054", say("a model is built for one chip", "模型只能针对一种芯片构建"), remedy)
        if not options.get("framework") and not options.get("singleop"):
            why = say("ATC does not guess the kind of the file", "ATC 不会猜测文件类型")
            yield missing("framework", "E10007", why, say("add --framework=5 for ONNX", "ONNX 请加上 --framework=5"))
    if options.get("framework") == "0" and mode in ("0", "7", "30") and not options.get("weight"):
        why = say("Caffe keeps its weights in a file of their own", "Caffe 的权重保存在单独的文件中")
        yield missing("weight", "E10008", why, say("add --weight=FILE.caffemodel", "请加上 --weight=FILE.caffemodel"))
    if mode in ("1", "6") and not options.get("om") and not (mode == "1" and options.get("model")):
        why = say("mode {mode} reads an .om file", "模式 {mode} 读取 .om 文件", mode=mode)
        yield missing("om", "E10004", why, say("add --om=FILE.om", "请加上 --om=FILE.om"))


def _excluded(options: Options) -> Iterator[Problem]:
    given = {name for name in options if options.get(name)}
    if options.get("enable_compress_weight") == "false":  # the default, which compresses nothing
        given.discard("enable_compress_weight")
    gears = [flag for flag in GEAR_FLAGS if flag in given]
    for group in table("atc.json")["excludes"]:
        both = [flag for flag in group["flags"] if flag in given]
        if "any gear flag" in group["flags"] and gears:
            both += gears[:1]
        if "input_shape with '~'" in group["flags"] and any(shape.ranged for shape in parse_shapes(options.get("input_shape"))):
            both.insert(0, "input_shape")
        if len(both) > 1:
            yield exclusive(both, group["code"], _why_exclusive(both), _remedy_exclusive(both), source=group["source"])
    if {"op_precision_mode"} <= given and given & {"op_select_implmode", "optypelist_for_implmode"}:
        other = sorted(given & {"op_select_implmode", "optypelist_for_implmode"})[0]
        why = say("both choose how operators compute", "两者都指定算子的实现方式")
        yield exclusive([other, "op_precision_mode"], None, why, say("keep --op_precision_mode", "请保留 --op_precision_mode"), sure=False)
    if "multi_stream_parallel_mode" in given and options.get("enable_single_stream") == "true":
        why = say("one asks for one stream, the other for several", "一个要求单流，另一个要求多流")
        yield exclusive(["enable_single_stream", "multi_stream_parallel_mode"], None, why, say("keep one", "请只保留一个"), sure=False)
    if options.get("mode") == "7":
        for flag in sorted(given & set(table("atc.json")["not_in_mode_7"])):
            why = say("mode 7 (.om2) does not take it", "模式 7（.om2）不接受它")
            yield exclusive(["mode", flag], "E10001", why, say("leave --{flag} out", "请去掉 --{flag}", flag=flag))
    if options.get("om") and options.get("mode") not in ("1", "6") and not symbolic(options.get("mode")):
        why = say("an .om is read in modes 1 and 6 only", "只有模式 1 和 6 读取 .om")
        yield exclusive(["mode", "om"], "E10057", why, say("add --mode=1 or --mode=6", "请加上 --mode=1 或 --mode=6"))


def _why_exclusive(flags: list[str]) -> Text:
    if flags == ["insert_op_conf", "dynamic_dims"]:
        return say("AIPP fixes height and width, which gears of dims would change", "AIPP 固定了高和宽，而 dims 档位会改变它们")
    if "input_shape" in flags:
        return say(
            "`lo~hi` builds one model for a range; gears want -1 at these places",
            "`lo~hi` 为一个范围构建单个动态模型；档位要求此处写 -1",
        )
    return say("ATC takes one of them", "ATC 只接受其中之一")


def _remedy_exclusive(flags: list[str]) -> Text:
    if flags == ["insert_op_conf", "dynamic_dims"]:
        return say("for images use --dynamic_image_size with AIPP", "图像请将 --dynamic_image_size 与 AIPP 搭配使用")
    if "input_shape" in flags:
        return say("write -1 for the ranges, or leave the gears out", "请把范围改写为 -1，或去掉档位参数")
    if flags == ["precision_mode", "precision_mode_v2"]:
        return say("keep --precision_mode_v2", "请保留 --precision_mode_v2")
    return say("keep one of them", "请只保留一个")


def _single_operator(options: Options) -> Iterator[Problem]:
    if not options.get("singleop"):
        return
    remedy = say("leave it out beside --singleop", "使用 --singleop 时请去掉它")
    why = say("--singleop compiles operators, not a model", "--singleop 编译的是算子而不是模型")
    for flag in ("framework", "insert_op_conf"):
        if options.get(flag):
            yield exclusive(["singleop", flag], "E10001", why, remedy)
    if options.get("display_model_info") == "1":
        yield exclusive(["singleop", "display_model_info"], "E10001", why, remedy)
    if options.get("mode") not in ("", "0") and not symbolic(options.get("mode")):
        yield exclusive(["singleop", "mode"], "E10001", why, remedy)


def _needing(options: Options) -> Iterator[Problem]:
    if options.get("optypelist_for_implmode") and not options.get("op_select_implmode"):
        why = say("--optypelist_for_implmode names operators for it", "--optypelist_for_implmode 为它指定算子")
        remedy = say(
            "add --op_select_implmode=high_performance, or use --op_precision_mode",
            "请加上 --op_select_implmode=high_performance，或改用 --op_precision_mode",
        )
        yield missing("op_select_implmode", "E10001", why, remedy)
    mode = options.get("precision_mode") or options.get("precision_mode_v2")
    if options.get("modify_mixlist") and mode not in _MIXED and not symbolic(mode):
        why = say("--modify_mixlist changes the lists of a mixed precision mode", "--modify_mixlist 修改的是混合精度模式的名单")
        remedy = say("add --precision_mode_v2=mixed_float16", "请加上 --precision_mode_v2=mixed_float16")
        if mode:
            names = ["precision_mode" if options.get("precision_mode") else "precision_mode_v2", "modify_mixlist"]
            yield exclusive(names, "E10001", why, remedy)
        else:
            yield missing("precision_mode_v2", "E10001", why, remedy)
    level, switch = options.get("deterministic_level"), options.get("deterministic")
    if level in ("0", "1", "2", "3") and switch in ("0", "1") and (level == "0") != (switch == "0"):
        why = say("both must be zero, or both not", "两者须同时为零或同时不为零")
        yield exclusive(["deterministic", "deterministic_level"], "E10001", why, say("set both", "请同时设置两者"))


def _framework(options: Options) -> Iterator[Problem]:
    """The file's name against --framework."""
    given, model = options.get("framework"), options.get("model")
    if given not in _FRAMEWORKS:
        return
    # Not Path.suffix: a file that is called `.onnx` has one here.
    _, dot, ending = PurePosixPath(model).name.rpartition(".")
    wanted = _SUFFIXES.get(dot + ending.lower())
    if wanted is not None and wanted != given:
        yield Problem(
            "AT908",
            "error",
            say(
                "--framework={given} is {name}, but `{file}` is {other}",
                "--framework={given} 表示 {name}，但 `{file}` 是 {other} 文件",
                given=given,
                name=_FRAMEWORKS[given],
                file=PurePosixPath(model).name[-60:],
                other=_FRAMEWORKS[wanted],
            ),
            say("ATC cannot parse the file then", "ATC 将无法解析该文件"),
            say("write --framework={wanted}", "请写成 --framework={wanted}", wanted=wanted),
            "framework",
            ("E10041",),
            (atc_flags()["framework"].source,),
        )


def idle(flag: str, beside: str, why: Text, remedy: Text) -> Problem:
    """A flag without effect beside another."""
    message = say("--{flag} has no effect beside --{beside}", "有 --{beside} 时 --{flag} 不起作用", flag=flag, beside=beside)
    return Problem("AT913", "warning", message, why, remedy, flag, (), (atc_flags()[flag].source,))


def _idle(options: Options) -> Iterator[Problem]:
    drop = say("leave one of them out", "请去掉其中一个")
    if options.get("keep_dtype"):
        for name, value in (("precision_mode", "must_keep_origin_dtype"), ("precision_mode_v2", "origin")):
            if options.get(name) == value:
                yield idle("keep_dtype", name, say("the mode keeps every type already", "该模式已保留所有类型"), drop)
    if options.get("input_shape") and options.get("input_shape_range"):
        why = say("--input_shape_range overrides it, with a warning", "--input_shape_range 会覆盖它并告警")
        yield idle("input_shape", "input_shape_range", why, say("write ranges in --input_shape", "请把范围写在 --input_shape 中"))
    if options.get("weight") and options.get("framework") in ("1", "3", "5"):
        why = say("only Caffe has a weight file", "只有 Caffe 使用权重文件")
        yield idle("weight", "framework", why, say("leave --weight out", "请去掉 --weight"))
