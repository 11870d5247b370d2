#!/usr/bin/env python3
"""Compile the fact tables of ``../shared/facts`` into the package data of ``jumar.targets``.

usage: python tools/compile_facts.py [FACTS_DIR] [DATA_DIR]

Same input, same bytes: keys are sorted, nothing depends on the clock. A test runs this and compares with what is committed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KERNEL_STATE = "8.1.RC1"
OLDER = "canndev-2022-06"
NEWER = ("8.5.0", "9.2.0-beta.2")  # the 8.5.0 tree is partial: what it lacks is looked up in the next full tree

# One letter per placement class keeps 162 operators x 17 SoCs in a few kilobytes.
CLASSES = {
    "aicore": "A",
    "aicore_via_pass": "P",
    "aicore_if_const": "C",
    "local": "L",
    "aicpu": "H",
    "aicpu_tf": "T",
    "none": "N",
}
ON_AICORE = {"A", "P"}
# The AI CPU package of these vehicle chips is decided by the board image (caveat of onnx_soc_matrix.json).
VEHICLE = ("ascend610", "ascend610lite", "bs9sx1a", "bs9sx2a", "mc61am21a", "as31xm1")


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def ranges(opsets: list[int]) -> str:
    """``[8, 9, 10, 12]`` -> ``"8-10,12"``."""
    parts: list[list[int]] = []
    for number in sorted(set(opsets)):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)


def compile_socs(facts: Path) -> dict[str, Any]:
    table = read(facts / "toolchain" / "soc_versions.json")
    prefix = f"ir_dtypes_{KERNEL_STATE}_"
    kernel_tables = {path.stem[len(prefix) :] for path in (facts / "ops").glob(f"{prefix}*.json")}
    socs = {}
    for row in table["rows"]:
        short = row["short_soc_version"].lower()
        socs[row["soc_version"]] = {
            "short": row["short_soc_version"],
            "family": row["family"],
            "kernels": short if short in kernel_tables else None,
            "aic_version": row["aic_version"],
            "ai_cores": row["ai_core_cnt"],
            "ai_cpus": row["ai_cpu_cnt"],
            "memory_bytes": row["memory_size_bytes"],
            "peak_fp16_tflops": row["peak_fp16_tflops_derived"],
            "peak_int8_tops": row["peak_int8_tops_derived"],
            "aicpu_package": "unknown" if short in VEHICLE else "toolkit",
            "products": [{"text": item["text"], "confidence": item["confidence"]} for item in row["products"] or []],
            "source": row["source"],
        }
    families: dict[str, list[str]] = {}
    for name, soc in socs.items():
        families.setdefault(soc["short"], []).append(name)
    # One row may name several values ("MDC610/MDC810/MDC510").
    confusing = {value: item["fact"] for item in table["invalid_or_confusing"] for value in item["value"].split("/")}
    return {
        "meta": {
            "what": "soc_version values of ATC; peaks are derived from the compiler's own cost model, not measured",
            "source": "facts/toolchain/soc_versions.json: " + table["cann_version"],
            "confidence": "observed",
        },
        "socs": socs,
        "families": {name: sorted(members) for name, members in families.items()},
        "confusing": confusing,
        "without_public_ini": sorted(row["soc_version"] for row in table["new_in_9_2_without_public_ini"]),
    }


def compile_parser(facts: Path) -> dict[str, Any]:
    table = read(facts / "ops" / "onnx_frontend.json")
    ops: dict[str, Any] = {}
    for row in table["rows"]:
        states = {}
        for state, registrations in row["releases"].items():
            states[state] = ranges([opset for registration in registrations for opset in registration["opsets"]])
        newest = row["releases"][row["newest_release_seen"]][0]["source"]
        name = row["op"] if row["domain"] == "ai.onnx" else f"{row['domain']}::{row['op']}"
        ops[name] = {"kind": row["kind"], "states": states, "source": f"{newest['repo']}:{newest['path']}"}
    return {
        "meta": {
            "what": "opsets at which a CANN ONNX parser plug-in is registered, per CANN state",
            "source": "facts/ops/onnx_frontend.json (plug-in sources; key '<domain>::<opset>::<op>', exact match)",
            "confidence": "observed",
        },
        "cann": {
            KERNEL_STATE: {
                "opset_min": 8,
                "opset_max": 18,
                "older": OLDER,
                "newer": list(NEWER),
                "confidence": "documented",
                "source": "facts/ops/onnx_spec_limits.json: CANN 7.0.0 documents opset 9-18, CANN 8.0 .. 9.1 opset per operator (8-18)",
            }
        },
        "ops": ops,
    }


def compile_placement(facts: Path) -> dict[str, Any]:
    table = read(facts / "ops" / "onnx_soc_matrix.json")
    socs = sorted(next(iter(table["ops"].values()))["best"])
    ops: dict[str, str] = {}
    for op, entry in table["ops"].items():
        letters = ""
        for soc in socs:
            found = {CLASSES[alternative["verdict"]] for alternative in entry["soc"][soc]}
            if found <= ON_AICORE and len(found) > 1:
                found = {"P"}
            # Parser variants that end in different engines: which one 8.1.RC1 shipped is not public, so nobody knows.
            letters += found.pop() if len(found) == 1 else "?"
        ops[op] = letters
    return {
        "meta": {
            "what": "engine that can hold a standard ONNX operator; dtype, format and shape limits are not in this table",
            "classes": {letter: name for name, letter in CLASSES.items()} | {"?": "parser variants disagree"},
            "source": f"facts/ops/onnx_soc_matrix.json (kernel tables of CANN {table['meta']['cann_kernels']})",
            "confidence": "observed",
            "unproven_none": sorted(op for op in ops if op.startswith("Sequence") or op.endswith(("ToSequence", "FromSequence"))),
        },
        "cann": table["meta"]["cann_kernels"],
        "socs": socs,
        "ops": ops,
    }


def main(argv: list[str]) -> int:
    facts = Path(argv[0]) if argv else ROOT.parent / "shared" / "facts"
    data = Path(argv[1]) if len(argv) > 1 else ROOT / "src" / "jumar" / "data"
    data.mkdir(parents=True, exist_ok=True)
    for name, compiled in {
        "socs.json": compile_socs(facts),
        "onnx_parser.json": compile_parser(facts),
        "onnx_placement.json": compile_placement(facts),
    }.items():
        text = json.dumps(compiled, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        # One operator or SoC a line: a changed fact is a one-line diff.
        (data / name).write_text(text.replace("},", "},\n") + "\n", encoding="utf-8")
        print(f"{name}: {(data / name).stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
