#!/usr/bin/env python3
"""Compile the table of ATC's flags into ``src/jumar/data/atc.json``.

usage: python tools/compile_atc.py [FACTS_DIR] [DATA_DIR]

Same input, same bytes: keys are sorted, one flag a line. A test runs this and compares with what is committed. What the source table
says of single chips stands there as sentences; ``CHIPS`` below states them as data, each with the sentence it rests on, and this program
fails when that sentence is gone.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CODE = re.compile(r"E\d{5}")
KEPT = ("type", "default", "group", "source", "since", "deprecated", "meaning", "grammar", "default_effective", "extra_values_in_code")

# Rules on single chips: flag, values (empty: any; "~": a range or an open size in it), short names of the chips, whether these are the
# only ones that take it or those that do not, ATC's code where the table gives one, and the sentence of the table.
CHIPS: tuple[dict[str, Any], ...] = (
    {
        "flag": "input_shape",
        "values": ["~"],
        "not": ["Ascend310B", "Ascend035"],
        "sentence": "ranges unsupported on 310B (Atlas 200I/500 A2) and IPV350 (documentation)",
    },
    {
        "flag": "precision_mode",
        "values": ["allow_mix_precision_bf16", "allow_fp32_to_bf16"],
        "only": ["Ascend910B", "Ascend910_93", "Ascend310B", "Ascend910_95"],
        "sentence": "bf16 values: A2/A3/310B/950 only",
    },
    {
        "flag": "precision_mode_v2",
        "values": ["cube_hif8", "mixed_hif8"],
        "only": ["Ascend910_95"],
        "sentence": "hif8 values: Ascend950 only",
    },
    {"flag": "core_type", "values": ["VectorCore"], "only": ["Ascend310P"], "sentence": "VectorCore only on 310P"},
    {
        "flag": "sparsity",
        "values": ["1"],
        "only": ["Ascend910B", "Ascend910_93", "Ascend310B"],
        "mild": True,
        "sentence": "4:2 structured sparsity (A2/A3/310B)",
    },
    {
        "flag": "mode",
        "values": ["30"],
        "only": ["Ascend035"],
        "code": "E10055",
        "sentence": "nano/exeom; only Ascend035/035A/035B (else E10055) and those SoCs accept only mode 30",
    },
)


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def sentences(row: dict[str, Any]) -> list[str]:
    """All prose of one flag's row."""
    meaning = row.get("meaning", {})
    return [*row.get("rules", []), *filter(None, [row.get("note")]), *meaning.values()]


def compile_flag(row: dict[str, Any]) -> dict[str, Any]:
    flag = {key: row[key] for key in KEPT if row.get(key) not in (None, "")}
    if isinstance(flag.get("since"), dict):
        flag["values_since"] = flag.pop("since")
    if "allowed" in row:
        # "HIF4(950)": the value is HIF4.
        flag["allowed"] = [value.split("(")[0] for value in row["allowed"]]
        flag["refused"] = flag["listed"] = bool(row.get("enforced_at_parse"))
    if "allowed_by_framework" in row:
        flag["by_framework"] = row["allowed_by_framework"]
    if "error_on_bad_value" in row:
        flag["code"] = row["error_on_bad_value"]
    if "removed" in row:
        flag["removed"] = CODE.findall(row["removed"])
    rules = [[text, CODE.findall(text)] for text in row.get("rules", [])]
    if rules:
        flag["rules"] = rules
    if "code" not in flag:
        # "value -> E10005", "else E10001": what is said of a value outside the list.
        bad = [codes[0] for text, codes in rules if codes and text.split(" ")[0] in ("value", "else", "other", "bad")]
        if bad:
            flag["code"] = bad[0]
            flag["refused"] = True
    return flag


def compile_chips(rows: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    compiled = []
    for rule in CHIPS:
        row = rows[rule["flag"]]
        if not any(rule["sentence"] in text for text in sentences(row)):
            raise SystemExit(f"the table no longer says of --{rule['flag']}: {rule['sentence']}")
        compiled.append({**rule, "source": row["source"]})
    return compiled


def kernels_of_fixed_shape(facts: Path) -> dict[str, Any]:
    """The chips whose AI Core kernels take no open shapes, counted in the kernel tables: a few in a hundred do, elsewhere most."""
    shorts = {row["short_soc_version"].lower(): row["short_soc_version"] for row in read(facts / "toolchain" / "soc_versions.json")["rows"]}
    found = []
    for path in sorted((facts / "ops").glob("ir_dtypes_8.1.RC1_*.json")):
        if path.stem.endswith("vector_core"):
            continue
        table = read(path)
        kernels = [op["AICore"] for op in table["ops"].values() if "AICore" in op]
        if sum(bool(kernel.get("dynamic_shape")) for kernel in kernels) < len(kernels) / 20 and table["soc"] in shorts:
            found.append(shorts[table["soc"]])
    return {
        "flag": "input_shape",
        "values": ["~"],
        "not": found,
        "sentence": "fewer than 5 in 100 AI Core kernels of this chip take open shapes (kernel tables of CANN 8.1.RC1)",
        "source": "leideng/CANN-8.1.RC1",
    }


def compile_atc(facts: Path) -> dict[str, Any]:
    table = read(facts / "toolchain" / "atc_flags.json")
    rows = {row["flag"].removeprefix("--"): row for row in table["flags"]}
    return {
        "meta": {
            "what": "flags of ATC: type, default, values, the code ATC gives for a bad one, groups that exclude each other",
            "source": "hicann/ge sources of CANN " + table["cann_version"],
            "confidence": "observed",
            "parser": table["parser"]["source"],
        },
        "words": table["parser"]["bool"],
        "flags": {name: compile_flag(row) for name, row in rows.items()},
        "excludes": [{"flags": item["flags"], "code": item["error"], "source": item["source"]} for item in table["exclusive_groups"]],
        "not_in_mode_7": sorted(table["om2_mode7_rejects"]),
        "chips": [*compile_chips(rows), kernels_of_fixed_shape(facts)],
        "v2_of": {
            v1: v2
            for v2, text in rows["precision_mode_v2"]["v1_equivalent"].items()
            for v1 in (text.replace("(_fp16)", ""), text.replace("(_fp16)", "_fp16"))
        },
    }


def encode(compiled: dict[str, Any]) -> str:
    """Sorted keys; each flag and each rule on a line of its own, so that a changed fact is a one-line diff."""

    def flat(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)

    parts = []
    for key in sorted(compiled):
        value = compiled[key]
        if key == "flags":
            lines = [f"  {flat(name)}: {flat(value[name])}" for name in sorted(value)]
            parts.append(f' "{key}": {{\n' + ",\n".join(lines) + "\n }")
        elif key in ("excludes", "chips"):
            parts.append(f' "{key}": [\n' + ",\n".join(f"  {flat(item)}" for item in value) + "\n ]")
        else:
            parts.append(f' "{key}": {flat(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main(argv: list[str]) -> int:
    facts = Path(argv[0]) if argv else ROOT.parent / "shared" / "facts"
    data = Path(argv[1]) if len(argv) > 1 else ROOT / "src" / "jumar" / "data"
    path = data / "atc.json"
    path.write_text(encode(compile_atc(facts)), encoding="utf-8")
    print(f"{path.stat().st_size:,} bytes in {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
