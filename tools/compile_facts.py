#!/usr/bin/env python3
"""Compile the fact tables of ``../shared/facts`` into the package data of ``jumar.targets``.

usage: python tools/compile_facts.py [FACTS_DIR] [DATA_DIR]

Same input, same bytes: keys are sorted, nothing depends on the clock. A test runs this and compares with what is committed.
``aipp_socs.json``, ``limits.json``, ``cann.json``, ``claims.json``, ``packages.json`` and ``profiles.json`` in the same folder are kept by hand.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))  # a checkout need not be installed

from jumar.targets.encode import dump, encode_kernels, pack

ROOT = Path(__file__).resolve().parent.parent
KERNEL_STATES = ("8.1.RC1", "canndev-2022-06")
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
    known = {soc for state in KERNEL_STATES for soc in kernel_files(facts, state)}
    socs = {}
    for row in table["rows"]:
        short = row["short_soc_version"].lower()
        socs[row["soc_version"]] = {
            "short": row["short_soc_version"],
            "family": row["family"],
            "kernels": short if short in known else None,
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
            "source": "platform files of the CANN toolkit: " + table["cann_version"],
            "confidence": "observed",
        },
        "socs": socs,
        "families": {name: sorted(members) for name, members in families.items()},
        "confusing": confusing,
        "without_public_ini": sorted(row["soc_version"].split(" ")[0] for row in table["new_in_9_2_without_public_ini"]),
    }


def compile_parser(facts: Path) -> dict[str, Any]:
    """Registrations per CANN state: opsets, the IR operators the plug-in makes, and whether it is a single one."""
    table = read(facts / "ops" / "onnx_frontend.json")
    ops: dict[str, Any] = {}
    for row in table["rows"]:
        states = {}
        for state, registrations in row["releases"].items():
            # Const is made while the graph is built and needs no kernel.
            states[state] = [
                [ranges(item["opsets"]), [ir for ir in item.get("subgraph_ir_ops") or [item["ir_op"]] if ir != "Const"]]
                for item in registrations
            ]
        newest = row["releases"][row["newest_release_seen"]][0]["source"]
        name = row["op"] if row["domain"] == "ai.onnx" else f"{row['domain']}::{row['op']}"
        ops[name] = {"kind": row["kind"], "states": states, "source": f"{newest['repo']}:{newest['path']}"}
    return {
        "meta": {
            "what": "opsets at which a CANN ONNX parser plug-in is registered, and the IR operators it makes, per CANN state",
            "source": "CANN ONNX parser plug-in sources; lookup key <domain>::<opset>::<op>, exact match",
            "confidence": "observed",
        },
        "ops": ops,
    }


def compile_ir(facts: Path) -> dict[str, Any]:
    """How an IR operator finds an engine beyond having a kernel of its own, and upper bounds of its dtypes."""
    matrix = read(facts / "ops" / "onnx_soc_matrix.json")
    local, constant_forms = set(), {}
    for entry in matrix["ops"].values():
        for alternatives in entry["soc"].values():
            for alternative in alternatives:
                for ir, kernel in alternative["kernels"].items():
                    if kernel == "local" or (isinstance(kernel, dict) and kernel.get("local")):
                        local.add(ir)
                    if isinstance(kernel, dict) and "const_attr_form" in kernel:
                        constant_forms[ir] = kernel["const_attr_form"]
    proto = read(facts / "ops" / "ir_proto_8.1.RC1.json")
    words = read(facts / "ops" / "ir_select_format_dtypes_8.1.RC1.json")
    lowering_passes: dict[str, list[str]] = {}
    for item in read(facts / "ops" / "ir_lowering_canndev-2022-06.json")["passes"]:
        for matched in item["matches"]:
            lowering_passes[matched] = sorted({*lowering_passes.get(matched, []), *item["creates"]} - {matched})
    return {
        "meta": {
            "what": "engine rules of IR operators: served by the graph engine, lowered by a graph pass, AI Core form with a constant parameter",
            "source": "kernel tables and headers of the CANN 8.1.RC1 toolkit; graph passes of canndev 2022-06",
            "confidence": "observed",
        },
        "local": sorted(local | {"Dropout"}),
        "lowering": matrix["meta"]["lowering"],
        "lowering_passes": {name: created for name, created in lowering_passes.items() if created},
        "constant_form": constant_forms,
        # Parts of a plug-in's subgraph that only some attribute values need.
        "optional_parts": {"ScatterND": ["ScatterNdAdd", "ScatterNdMax", "ScatterNdMin"]},
        # Served by the runtime outside the kernel tables: their absence there proves nothing.
        "outside_tables": sorted(op for op in matrix["ops"] if op.startswith("Sequence") or op.endswith(("ToSequence", "FromSequence"))),
        # Operators whose last input may stand for any number of inputs.
        "dynamic": sorted(name for name, op in proto["ops"].items() if any(item["kind"] == "dynamic" for item in op["inputs"])),
        # Which of several IR operators gets the ONNX inputs in their order (one of them, by rank or attributes).
        "carriers": {
            "AveragePool": ["AvgPoolV2"],
            "Concat": ["ConcatD"],
            "Conv": ["Conv2D", "Conv3D"],
            "Max": ["Maximum"],
            "MaxPool": ["MaxPool", "MaxPoolV3"],
            "Mean": ["AccumulateNV2"],
            "Min": ["Minimum"],
        },
        # Outputs that ONNX declares int64 and the IR operator makes as int32 (headers and kernel tables).
        "int32_outputs": {"ArgMax": [0], "ArgMin": [0], "NonMaxSuppression": [0], "TopK": [1]},
        "dtypes": {
            "proto": {name: [[item["name"], item["dtypes"]] for item in op["inputs"]] for name, op in proto["ops"].items() if op["inputs"]},
            "select_format": {
                name: sorted({dtype for found in op["dtype_words"].values() for dtype in found}) for name, op in words["ops"].items()
            },
        },
    }


def compile_aipp(facts: Path) -> dict[str, Any]:
    """Fields, formats and colour matrices of AIPP files. Rules of single chips are in ``aipp_socs.json``, by hand."""
    schema = read(facts / "toolchain" / "aipp_schema.json")
    fields = {
        row["field"]: {key: row[key] for key in ("number", "type", "repeated", "default", "range") if key in row}
        for row in schema["fields"]
    }
    formats = {
        row["name"]: {"value": row["value"], "channels": row["channels_out_of_csc"], "bytes_per_pixel": row["bytes_per_pixel"]}
        for row in schema["input_format_enum"]
    }
    keys = ("matrix", "input_bias", "output_bias")
    return {
        "meta": {
            "what": "fields of AIPP files, image formats, and the colour matrices that come with CANN",
            "source": "hicann/ge:graph_metadef/proto/insert_op.proto; conf/aipp of the toolkit: " + schema["cann_version"],
            "confidence": "observed",
        },
        "fields": fields,
        "formats": formats,
        "matrices": {row["id"]: {key: row[key] for key in keys if key in row} for row in schema["csc_matrices"]},
        "multi_shape_op": schema["multi_shape_op"],
    }


def kernel_files(facts: Path, state: str) -> dict[str, Path]:
    prefix = f"ir_dtypes_{state}_"
    return {path.stem[len(prefix) :]: path for path in sorted((facts / "ops").glob(f"{prefix}*.json")) if "vector_core" not in path.name}


def compile_kernels(path: Path) -> dict[str, Any]:
    """One SoC's kernels; see :func:`jumar.targets.encode.encode_kernels`."""
    table = read(path)
    dtypes, ops = encode_kernels(table["ops"])
    source = table["source"][0]
    return {
        "cann": table["cann"],
        "soc": table["soc"],
        "source": f"{source['repo']}:{source['path']}",
        "confidence": "observed",
        "dtypes": dtypes,
        "ops": ops,
    }


def compile_mixlists(facts: Path) -> dict[str, Any]:
    """For each SoC the operators on the black and the white list of mixed precision (``precision_reduce``), of those the ONNX parser makes."""
    parser = read(facts / "ops" / "onnx_frontend.json")
    text = json.dumps(parser)
    socs = {}
    for soc, path in kernel_files(facts, KERNEL_STATES[0]).items():
        flags = {name: op.get("AICore", {}).get("precision_reduce") for name, op in read(path)["ops"].items()}
        made = {name: flag for name, flag in flags.items() if flag and (f'"{name}"' in text or f'"{name.removesuffix("D")}"' in text)}
        socs[soc] = {
            key: sorted(name for name, flag in made.items() if flag == word) for key, word in (("black", "false"), ("white", "true"))
        }
    return {"cann": KERNEL_STATES[0], "source": "precision_reduce in aic-SOC-ops-info.json", "socs": socs}


def main(argv: list[str]) -> int:
    facts = Path(argv[0]) if argv else ROOT.parent / "shared" / "facts"
    data = Path(argv[1]) if len(argv) > 1 else ROOT / "src" / "jumar" / "data"
    (data / "kernels").mkdir(parents=True, exist_ok=True)
    for name, compiled in {
        "socs.json": compile_socs(facts),
        "onnx_parser.json": compile_parser(facts),
        "aipp.json": compile_aipp(facts),
        "mixlists.json": compile_mixlists(facts),
    }.items():
        # One operator or SoC a line: a changed fact is a one-line diff.
        (data / name).write_text(dump(compiled).replace("},", "},\n") + "\n", encoding="utf-8")
    packed = {"ir.json.gz": compile_ir(facts)}
    for state in KERNEL_STATES:
        for soc, path in kernel_files(facts, state).items():
            packed[f"kernels/{state}_{soc}.json.gz"] = compile_kernels(path)
    for name, compiled in packed.items():
        (data / name).write_bytes(pack(compiled))
    print(f"{sum(path.stat().st_size for path in data.rglob('*') if path.is_file()):,} bytes in {data}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
