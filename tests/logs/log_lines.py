"""Lines of each pattern, as they are seen in public reports (written anew)."""

from __future__ import annotations

EXAMPLES: dict[str, list[str]] = {
    "no-parser": ["        No parser is registered for Op [/stem/Conv, optype [ai.onnx::22::Conv]]."],
    "no-engine": [
        "EZ3003: [PID: 42] No supported Ops kernel and engine are found for [/head/Act], optype [HardSwish].",
        "No supported Op kernel and engine is found for [n], optype [X]",
    ],
    "format-operator-missing": [
        "EZ3002: [PID: 9] Optype [TransData] of Ops kernel [AIcoreEngine] is unsupported. Reason: [tbe-custom]:op type TransData is not found in this op store."
    ],
    "kernel-refuses": [
        "EZ3002: Optype [Range] of Ops kernel [AIcoreEngine] is unsupported. Reason: the dtype int64 of input 0 is not listed"
    ],
    "shape-inference-failed": ["[ERROR] GE(1,atc.bin): Call InferShapeFunc failed for node:head_nms(NonMaxSuppressionV7)"],
    "compile-failed": [
        "E40021: Failed to compile Op [Select121]. (oppath: [Compile x.py], optype: [Select])",
        "[ERROR] TEFUSION(1,python):2023 [fusion_op.cc:5504]3 PrintOp Failed to compile node [name Slice, type Slice]. Detailed",
        "        Compile op[Select121] failed, oppath[/usr/x.py], optype[Select], taskID[243].",
    ],
    "soc-differs": ["EE1001: ModelCheckCompatibility failed, supported socVersion=Ascend910B2, but the model socVersion=Ascend910B"],
    "device-exception": [
        "EZ9999: The error from device(chipId:0), serial number is 5, there is an aicore error exception, core id is 1, error code = 0x800000, x",
        "EZ9999: there is an exception of fftsplus aicore error, core id is 12, error code = 0x20000, dump info: x",
    ],
    "device-fault-text": [
        "  The extend info: errcode:(95) errorStr: The DDR address of the MTE instruction is out of range. subErrType: 0x4.[FUNC:P]"
    ],
    "kernel-failed": [
        "[ERROR] RUNTIME(8,python):2024 Aicore kernel execute failed, device_id=0, fault kernel_name=te_realdiv_ee98c6628030785f610b924ab1557b31_1, x",
        "[ERROR] GE(8,python): task failed, node_name=/head/Div, tid=1",
    ],
    "path-unreadable": ["[ERROR] GE(700,atc.bin): Failed to get real path of /home/u/ops_info.json"],
    "disk-full": ["OSError: [Errno 28] No space left on device"],
    "numpy-2": [
        "AttributeError: `np.float_` was removed in the NumPy 2.0 release. Use `np.float64` instead.",
        "A module that was compiled using NumPy 1.x cannot be run in NumPy 2.2.0 as it may crash.",
        "AttributeError: module 'numpy' has no attribute 'float'.",
        "ImportError: numpy.core.multiarray failed to import",
    ],
    "python-module-missing": ["ModuleNotFoundError: No module named 'decorator'"],
    "library-missing": [
        "python3: error while loading shared libraries: libascendcl.so: cannot open shared object file: No such file or directory"
    ],
    "library-too-old": ["atc.bin: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.26' not found (required by libge.so)"],
    "python-too-new": ["E40024: Failed call Python Func, Reason[SystemError: PY_SSIZE_T_CLEAN macro must be defined for '#' formats"],
    "program-missing": ["bash: atc: command not found", "compile.sh: line 3: atc: not found"],
    "driver-absent": [
        "dcmi model initialized failed, because the device is used. ret is -8020",
        "dcmi module initialize failed. ret is -8005",
    ],
    "device-permission": ["open /dev/davinci0: Permission denied"],
    "oom-killer": [
        "[12345.6] Out of memory: Killed process 4711 (atc.bin) total-vm:1234kB",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null)",
    ],
    "host-memory": [
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "OSError: [Errno 12] Cannot allocate memory",
        "MemoryError",
    ],
    "signal-segv": ["/usr/bin/atc: line 12: 4711 Segmentation fault      (core dumped) atc.bin"],
    "signal-kill": ["Killed", "./run.sh: line 3:  4711 Killed                  atc --model=a.onnx"],
    "signal-abort": ["Aborted (core dumped)", "double free or corruption (out)"],
    "signal-bus": ["Bus error (core dumped)"],
    "exit-status": ["bisheng: command failed with exit code 139", "subprocess returned -11"],
    "stopped-late": [
        "subprocess.TimeoutExpired: Command 'atc' timed out after 3600 seconds",
        "slurmstepd: JOB 1 CANCELLED DUE TO TIME LIMIT",
    ],
    "unhealthy": ["| 0     310P3               | Alarm         | NA          50                0    / 0             |"],
}
