"""The configuration files that ATC reads beside its command line: mixed precision, kept dtypes, fusion switches, operator precision, quantisation."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from ..errors import UsageError
from ..graph import all_nodes
from ..text import say

LISTS = ("black", "white", "gray")
"""Of a mixed-precision list: kept in float32, lowered to float16, or as the neighbours are."""
OP_PRECISIONS = ("high_precision", "high_performance", "enable_float_32_execution", "enable_hi_float_32_execution")
COMPRESSION_KEYS: Mapping[str, str] = {
    "enable_first_layer_quantization": "bool",
    "input_data_dir": "path",
    "input_shape": "text",
    "config_file": "path",
    "infer_soc": "text",
    "infer_aicore_num": "number",
    "infer_device_id": "number",
    "infer_ip": "text",
    "infer_port": "number",
    "log": "text",
}
"""Keys of --compression_optimize_conf. All but the first belong to its calibration block."""
_FUSION_KINDS = ("GraphFusion", "UBFusion")
_MIXED = ("mixed_float16", "mixed_bfloat16", "mixed_hif8", "allow_mix_precision", "allow_mix_precision_fp16", "allow_mix_precision_bf16")


@dataclass(frozen=True)
class Configs:
    """What the files shall say; an empty part makes no file.

    Attributes:
        keep_dtype: nodes, or ``OpType::TYPE``, that keep the dtype they have in the model.
        mixlist: for each of :data:`LISTS` the operator types added to it (IR names, such as SoftmaxV2).
        fusion_off: names of fusion passes to switch off; ``UBFusion:NAME`` for one of the buffer fusion.
        op_precision: a node name, or ``OpType::TYPE``, and one of :data:`OP_PRECISIONS`.
        compression: keys of :data:`COMPRESSION_KEYS`.
    """

    keep_dtype: Sequence[str] = ()
    mixlist: Mapping[str, Sequence[str]] = field(default_factory=dict)
    fusion_off: Sequence[str] = ()
    op_precision: Mapping[str, str] = field(default_factory=dict)
    compression: Mapping[str, str] = field(default_factory=dict)

    def files(self, model: ir.Model, precision_mode: str | None) -> dict[str, tuple[str, str]]:
        """The flag of each file, its name and its text.

        Raises:
            UsageError: a node the model has not, an unknown word, or a list that has no effect in this precision mode.
        """
        names = {node.name or "" for node in all_nodes(model)}
        found: dict[str, tuple[str, str]] = {}
        if self.keep_dtype:
            _check_nodes("--keep-dtype", self.keep_dtype, names)
            found["keep_dtype"] = ("keep_dtype.cfg", "".join(f"{item}\n" for item in self.keep_dtype))
        if self.mixlist:
            found["modify_mixlist"] = ("mixlist.json", _mixlist(self.mixlist, precision_mode))
        if self.fusion_off:
            found["fusion_switch_file"] = ("fusion_switch.cfg", _fusion(self.fusion_off))
        if self.op_precision:
            found["op_precision_mode"] = ("op_precision.ini", _precision(self.op_precision, names))
        if self.compression:
            found["compression_optimize_conf"] = ("compression.cfg", _compression(self.compression))
        return found


def _check_nodes(option: str, items: Collection[str], names: Collection[str]) -> None:
    for item in items:
        kind = item.removeprefix("OpType::")
        bad_type = item != kind and not re.fullmatch(r"\w+", kind)
        if bad_type or (item == kind and item not in names):
            raise UsageError(
                say("`{item}` is no node of the model", "`{item}` 不是模型中的节点", item=item),
                say(
                    "expected the name of a node, or OpType::TYPE for all of one type",
                    "应为节点名称，或以 OpType::类型 表示某一类型的全部算子",
                ),
                say("correct {option}", "请修正 {option}", option=option),
            )


def _wrong(option: str, found: str, known: Collection[str]) -> UsageError:
    return UsageError(
        say("`{found}` is no value of {option}", "`{found}` 不是 {option} 的取值", found=found, option=option),
        say("expected one of: {known}", "应为其中之一：{known}", known=", ".join(known)),
        say("correct {option}", "请修正 {option}", option=option),
    )


def _mixlist(lists: Mapping[str, Sequence[str]], precision_mode: str | None) -> str:
    if precision_mode not in _MIXED:
        raise UsageError(
            say("a mixed-precision list needs a mixed precision mode", "混合精度名单需要混合精度模式"),
            say(
                "expected --precision-mode mixed_float16 or mixed_bfloat16 (ATC: E10001)",
                "应为 --precision-mode mixed_float16 或 mixed_bfloat16（ATC：E10001）",
            ),
            say("add it, or keep single nodes with --keep-dtype", "请补上，或用 --keep-dtype 保留个别节点的精度"),
        )
    seen: dict[str, str] = {}
    for name, types in lists.items():
        if name not in LISTS:
            raise _wrong("--mixlist", name, LISTS)
        for kind in types:
            if not re.fullmatch(r"\w+", kind) or seen.setdefault(kind, name) != name:
                raise UsageError(
                    say("`{kind}` is no operator type, or is in two lists", "`{kind}` 不是算子类型，或同时在两个名单中", kind=kind),
                    say("expected each type in one list", "每个类型只应在一个名单中"),
                    say("correct --mixlist", "请修正 --mixlist"),
                )
    return json.dumps({f"{name}-list": {"to-add": list(types)} for name, types in lists.items()}, indent=2) + "\n"


def _fusion(passes: Sequence[str]) -> str:
    switches: dict[str, dict[str, str]] = {}
    for item in passes:
        kind, _, name = item.rpartition(":")
        kind = kind or "GraphFusion"
        if kind not in _FUSION_KINDS or not re.fullmatch(r"\w+", name):
            raise _wrong("--fusion-off", item, ["PASS", *(f"{known}:PASS" for known in _FUSION_KINDS), "ALL"])
        switches.setdefault(kind, {})[name] = "off"
    return json.dumps({"Switch": switches}, indent=2) + "\n"


def _precision(modes: Mapping[str, str], names: Collection[str]) -> str:
    _check_nodes("--op-precision", list(modes), names)
    for mode in modes.values():
        if mode not in OP_PRECISIONS:
            raise _wrong("--op-precision", mode, OP_PRECISIONS)
    types = [f"{item.removeprefix('OpType::')}={mode}" for item, mode in modes.items() if item.startswith("OpType::")]
    nodes = [f"{item}={mode}" for item, mode in modes.items() if not item.startswith("OpType::")]
    parts = [("[ByOpType]", types), ("[ByNodeName]", nodes)]
    return "".join(f"{title}\n" + "".join(f"{line}\n" for line in lines) for title, lines in parts if lines)


def _compression(settings: Mapping[str, str]) -> str:
    for key, value in settings.items():
        kind = COMPRESSION_KEYS.get(key)
        if kind is None:
            raise _wrong("--compression", key, COMPRESSION_KEYS)
        bad = (kind == "bool" and value not in ("true", "false")) or (kind == "number" and not value.isdecimal())
        if bad or not value or any(letter in value for letter in "\n\r{}"):
            raise _wrong("--compression", f"{key}={value}", ["true, false" if kind == "bool" else kind])
    inner = [f"    {key}: {value}" for key, value in settings.items() if key != "enable_first_layer_quantization"]
    lines = [f"{key}:{value}" for key, value in settings.items() if key == "enable_first_layer_quantization"]
    return "\n".join([*lines, *(["calibration:", "{", *inner, "}"] if inner else [])]) + "\n"
