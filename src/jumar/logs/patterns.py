"""Lines that say more than their code: what each form means, in the words of a user.

The order counts: the first pattern that fits a line speaks for it. Each pattern's words are among those ``lines.py`` looks for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from ..text import Text, say

Groups = dict[str, str]
Words = Callable[[Groups], Text]


@dataclass(frozen=True)
class Pattern:
    """One form of a line.

    Attributes:
        kind: of trouble, as in the table of codes.
        tier: how much it explains; 9 names the cause, 8 a place and a step, 4 and less repeat that something failed.
        what: the fact, from the named groups; None: the code's own cause is said.
        remedy: None: that of the code, or of the kind.
    """

    name: str
    kind: str
    tier: int
    regex: re.Pattern[str]
    what: Words | None = None
    remedy: Words | None = None
    groups: frozenset[str] = field(default=frozenset())


def _make(name: str, kind: str, tier: int, regex: str, what: Words | None = None, remedy: Words | None = None) -> Pattern:
    compiled = re.compile(regex)
    return Pattern(name, kind, tier, compiled, what, remedy, frozenset(compiled.groupindex))


def _file_flag(path: str) -> Text:
    """The flag such a file is usually given with, by its name."""
    name = path.rpartition("/")[2].lower()
    for part, flag in (
        ("ops_info", "--modify_mixlist"),
        ("mixlist", "--modify_mixlist"),
        ("aipp", "--insert_op_conf"),
        ("fusion_switch", "--fusion_switch_file"),
        ("keep_dtype", "--keep_dtype"),
        (".onnx", "--model"),
        (".om", "--model"),
    ):
        if part in name:
            return say(" (by its name: {flag})", "（按文件名推断：{flag}）", flag=flag)
    return say("", "")


PATTERNS: tuple[Pattern, ...] = (
    # Operators: parser, engine, kernel.
    _make(
        "no-parser",
        "operator",
        9,
        r"No parser is registered for Op ?\[(?P<node>[^\[\]]{1,500}?), ?op ?type ?\[(?P<type>[^\]]{1,200})\]",
    ),
    _make(
        "no-engine",
        "operator",
        9,
        r"No supported Ops? kernel and engine (?:are|is) found for ?\[?(?P<node>[^\],]{1,500})\]?,? ?op ?type ?\[?(?P<type>[\w:.]{1,200})",
    ),
    _make(
        "format-operator-missing",
        "environment",
        9,
        r"[Oo]p ?type ?\[(?P<type>TransData|Cast|TransDataRNN|TransposeD?)\] of Ops kernel \[AI?[Cc]ore\w*\] is unsupported[^\n]{0,200}not found in this op store",
        lambda g: say(
            "the operator {type}, which ATC inserts itself, is in no operator store: the kernels package of this chip is missing or of another "
            "version, or a type such as bfloat16 has no kernel on it",
            "ATC 自行插入的算子 {type} 不在算子库中：缺少该芯片的算子核（kernels）软件包或版本不符，或者 bfloat16 等类型在该芯片上没有算子核",
            type=g["type"],
        ),
        lambda _: say(
            "install the kernels package of this chip and CANN version, and check that nothing in the model is bfloat16 where the chip has none "
            "(310P)",
            "安装与芯片和 CANN 版本匹配的 kernels 软件包，并检查模型中是否使用了芯片不支持的 bfloat16（如 310P）",
        ),
    ),
    _make(
        "kernel-refuses",
        "operator",
        9,
        r"[Oo]p ?type ?\[(?P<type>[^\]]{1,200})\] of Ops kernel \[(?P<engine>[^\]]{1,80})\] is unsupported\.? ?(?:Reason: ?(?P<reason>.{0,300}))?",
        lambda g: say(
            "{engine} does not take this {type}: {reason}",
            "{engine} 不接受该 {type}：{reason}",
            engine=g["engine"],
            type=g["type"],
            reason=g["reason"] or "-",
        ),
    ),
    _make(
        "shape-inference-failed",
        "operator",
        8,
        r"(?i:infer ?shape)[^\n]{0,80}?fail[^\n]{0,40}?(?:node|op)\w*[\s:\[(]{1,3}(?P<node>[^\s,\]\[()]{1,300})[\](]{0,2}(?P<type>[A-Z]\w{0,60})?",
        lambda g: say("the shape of `{node}` cannot be inferred", "无法推导 `{node}` 的形状", node=g["node"]),
        lambda _: say(
            "check the attributes and input shapes of this node; run `jumar check` on the model",
            "检查该节点的属性和输入形状；对模型运行 `jumar check`",
        ),
    ),
    _make(
        "compile-failed",
        "compiler",
        8,
        r"[Ff]ail(?:ed)? to (?:pre-?)?compile (?:[Oo]p|node) ?\[?(?:name:? ?)?(?P<node>[^,\]\[\s]{1,300})\]?(?:,? ?type:? ?(?P<type>\w{1,80})|[^\n]{0,2000}?op ?type:? ?\[(?P<type2>\w{1,80})\])?"
        r"|Compile op ?\[(?P<node2>[^\]]{1,300})\] failed(?:[^\n]{0,500}?op ?type ?\[(?P<type3>\w{1,80})\])?",
        lambda g: say("the kernel of `{node}` could not be compiled", "`{node}` 的算子核编译失败", node=g["node"] or g["node2"]),
    ),
    # Loading.
    _make(
        "soc-differs",
        "load",
        9,
        r"supported soc ?[Vv]ersion ?= ?(?P<device>\w{3,40})[^\n]{0,60}?model soc ?[Vv]ersion ?= ?(?P<model>\w{3,40})",
        lambda g: say(
            "the .om was built for {model}, and this device is {device}",
            "该 .om 是为 {model} 编译的，而本设备是 {device}",
            model=g["model"],
            device=g["device"],
        ),
        lambda g: say("build it again with --soc_version={device}", "用 --soc_version={device} 重新编译", device=g["device"]),
    ),
    # Execution on the device.
    _make(
        "device-exception",
        "device",
        9,
        r"(?:there is|exception of|happen)[^\n]{0,30}?\b(?P<core>ai ?core|ai ?vec|vector ?core|ai ?cpu|fftsplus[ \w]{0,20}|AICORE)\b[^\n]{0,60}?(?:exception|error)[^\n]{0,60}?error code = (?P<fault>0x[0-9a-fA-F]{1,20}|\d{1,20})",
        lambda g: say(
            "{core} exception on the device, error code {fault}{meaning}",
            "设备上发生 {core} 异常，错误码 {fault}{meaning}",
            core=g["core"],
            fault=g["fault"],
            meaning=say(
                " (usually an address out of range in a data movement; not confirmed by a public document)",
                "（通常是数据搬运地址越界；没有公开文档证实）",
            )
            if g["fault"].lower() == "0x800000"
            else say("", ""),
        ),
        lambda _: _device_remedy(),
    ),
    _make(
        "device-fault-text",
        "device",
        9,
        r"errorStr: ?(?P<reason>[^\n]{5,200}?)(?:\.? [a-z]\w+_error\d|\.? ?subErrType|\[FUNC|$)",
        lambda g: say("fault on the device: {reason}", "设备故障：{reason}", reason=g["reason"].rstrip(". ")),
        lambda _: _device_remedy(),
    ),
    _make(
        "kernel-failed",
        "device",
        8,
        r"(?:fault kernel[_ ]name|kernel_name)[ =:]{1,3}(?P<kernel>[\w./-]{2,300})|node_name[ =:]{1,3}(?P<node>[\w./:-]{2,300})",
        lambda g: say("the kernel {kernel} failed on the device", "算子核 {kernel} 在设备上执行失败", kernel=g["kernel"] or g["node"]),
        lambda _: _device_remedy(),
    ),
    # Files.
    _make(
        "path-unreadable",
        "file",
        9,
        r"(?:[Ff]ailed to get (?:the )?real ?path of|[Gg]et real ?path (?:of )?fail\w*[ :,]*|RealPath\w* failed[ :,]*)[\s:\[(\"']{0,3}(?P<path>[^\s\],\"']{1,500})",
        lambda g: say(
            "a file that the command names does not exist or cannot be read: {path}{flag}",
            "命令中给出的文件不存在或不可读：{path}{flag}",
            path=g["path"],
            flag=_file_flag(g["path"]),
        ),
        lambda _: say(
            "correct the path; if the file is there and readable, the flag may be newer than this CANN",
            "修正路径；如果文件存在且可读，可能是该标志比此 CANN 版本新",
        ),
    ),
    _make(
        "disk-full",
        "file",
        9,
        r"No space left on device",
        lambda _: say("the disk is full", "磁盘已满"),
        lambda _: say(
            "free space where ATC works (kernel_meta, /tmp, ~/atc_data, ~/ascend/log)",
            "清理 ATC 工作所在磁盘（kernel_meta、/tmp、~/atc_data、~/ascend/log）",
        ),
    ),
    # Environment.
    _make(
        "numpy-2",
        "environment",
        9,
        r"was removed in the NumPy 2\.0 release|compiled using NumPy 1\.x cannot be run|module 'numpy' has no attribute '(?:float_|float|int|bool|object|complex_?|Inf|NaN)'|numpy\.core\.multiarray failed to import",
        lambda _: say(
            "NumPy 2 (or one too new) is installed, and the Python parts of this CANN use names that it removed",
            "安装了 NumPy 2（或过新的版本），而此 CANN 的 Python 部分使用了其中已移除的名称",
        ),
        lambda _: say('install an older one: pip install "numpy<2" (1.24 to 1.26)', '安装旧版本：pip install "numpy<2"（1.24 到 1.26）'),
    ),
    _make(
        "python-module-missing",
        "environment",
        9,
        r"(?:ModuleNotFoundError|ImportError): No module named ['\"](?P<module>[\w.]{1,100})['\"]",
        lambda g: say("the Python package `{module}` is missing", "缺少 Python 包 `{module}`", module=g["module"]),
        lambda _: say(
            "pip install it for the Python that ATC uses; tbe, te, acl and the like come with CANN: source set_env.sh",
            "为 ATC 所用的 Python 安装该包；tbe、te、acl 等由 CANN 提供：请 source set_env.sh",
        ),
    ),
    _make(
        "library-missing",
        "environment",
        9,
        r"(?P<library>lib[\w.+-]{1,100}\.so[\w.]{0,20}): cannot open shared object file",
        lambda g: say("the library {library} is not found", "找不到库 {library}", library=g["library"]),
        lambda _: say(
            "source set_env.sh of CANN (and of the driver: /usr/local/Ascend/driver)",
            "source CANN 的 set_env.sh（驱动在 /usr/local/Ascend/driver）",
        ),
    ),
    _make(
        "library-too-old",
        "environment",
        9,
        r"version [`'\"](?P<version>GLIBC(?:XX)?_[\d.]{1,12})' not found",
        lambda g: say("the system libraries are too old: {version} is needed", "系统库过旧：需要 {version}", version=g["version"]),
        lambda _: say("use a system or an image that this CANN supports", "使用此 CANN 支持的系统或镜像"),
    ),
    _make(
        "python-too-new",
        "environment",
        9,
        r"PY_SSIZE_T_CLEAN macro must be defined",
        lambda _: say(
            "this Python is newer than this CANN supports (3.10 or newer with an older CANN)",
            "Python 版本高于此 CANN 所支持的版本（旧 CANN 配 3.10 及以上）",
        ),
        lambda _: say("use a Python that the release notes of this CANN name", "使用此 CANN 版本说明中列出的 Python"),
    ),
    _make(
        "program-missing",
        "environment",
        9,
        r"(?P<program>\b(?:atc|npu-smi|aoe|msame|amct_onnx))(?:: line \d+)?: (?:command )?not found|(?P<program2>\b(?:atc|npu-smi|aoe)): No such file",
        lambda g: say("`{program}` is not on PATH", "PATH 中没有 `{program}`", program=g["program"] or g["program2"]),
        lambda _: say("source set_env.sh of the CANN toolkit", "source CANN 工具包的 set_env.sh"),
    ),
    _make(
        "driver-absent",
        "environment",
        9,
        r"dcmi (?:model|module) initiali[sz]e(?:d)? fail\w*[^\n]{0,100}",
        lambda _: say(
            "npu-smi cannot talk to the driver: it is not loaded, the device is not in this container, or another container holds it",
            "npu-smi 无法与驱动通信：驱动未加载、设备未映射到此容器，或被其他容器占用",
        ),
        lambda _: say(
            "run npu-smi on the host; pass /dev/davinci*, /dev/davinci_manager, /dev/devmm_svm and /dev/hisi_hdc to the container",
            "在宿主机运行 npu-smi；将 /dev/davinci*、/dev/davinci_manager、/dev/devmm_svm、/dev/hisi_hdc 映射到容器",
        ),
    ),
    _make(
        "device-permission",
        "environment",
        9,
        r"(?P<path>/dev/(?:davinci\w*|devmm_svm|hisi_hdc))\b[^\n]{0,80}(?:[Pp]ermission denied|No such file)",
        lambda g: say("the device file {path} cannot be opened", "无法打开设备文件 {path}", path=g["path"]),
        lambda _: say("pass it to the container, and join the group HwHiAiUser", "将其映射到容器，并加入 HwHiAiUser 组"),
    ),
    # Memory and ends without a code.
    _make(
        "oom-killer",
        "memory",
        9,
        r"(?:Out of memory|oom-kill)[^\n]{0,80}?[Kk]illed process \d+ ?\(?(?P<process>[\w.-]{0,40})|oom-kill:|oom_reaper|OOMKilled",
        lambda g: say(
            "the kernel's out-of-memory killer ended the process {process}",
            "内核的 OOM killer 终止了进程 {process}",
            process=g["process"] or "-",
        ),
        lambda _: say(
            "give it more memory, or limit the parallel compile processes (TE_PARALLEL_COMPILER=1)",
            "增加内存，或限制并行编译进程数（TE_PARALLEL_COMPILER=1）",
        ),
    ),
    _make(
        "host-memory",
        "memory",
        9,
        r"std::bad_alloc|\bMemoryError\b|[Cc]annot allocate memory|Unable to allocate [\d.]+ [KMGT]iB",
        lambda _: say("the host has no memory left", "主机内存不足"),
        lambda _: say(
            "free host memory, or limit the parallel compile processes (TE_PARALLEL_COMPILER=1)",
            "释放主机内存，或限制并行编译进程数（TE_PARALLEL_COMPILER=1）",
        ),
    ),
    _make("signal-segv", "silent", 8, r"[Ss]egmentation fault|\bSIGSEGV\b|段错误"),
    _make("signal-kill", "silent", 8, r"^(?:.{0,80}[:：] ?(?:line )?\d+[:：] +\d+ )?(?:Killed|已杀死|已终止)\b|\bSIGKILL\b"),
    _make(
        "signal-abort",
        "silent",
        8,
        r"\bAborted\b(?: \(core dumped\))?|\bSIGABRT\b|terminate called (?:after|without)|double free or corruption|free\(\): invalid",
    ),
    _make("signal-bus", "silent", 8, r"\bBus error\b|\bSIGBUS\b"),
    _make(
        "exit-status",
        "silent",
        7,
        r"(?:exit(?:ed)?(?: with)?(?: (?:code|status))?|return ?code|returned|status)[ :=]{1,3}(?P<status>-?\d{1,3})\b(?![.\d])",
    ),
    _make(
        "stopped-late",
        "timeout",
        8,
        r"subprocess\.TimeoutExpired|timed out after (?P<seconds>[\d.]+) ?s|(?:ran|运行)[^\n]{0,20}longer than|DUE TO TIME LIMIT",
        lambda _: say("the run was stopped because it took too long", "运行时间过长，已被终止"),
        lambda _: say(
            "raise the time limit; a hang at compile time often is one operator: see the last lines",
            "调大时间限制；编译时卡住常由某个算子引起：查看最后几行",
        ),
    ),
    # The table of npu-smi.
    _make(
        "unhealthy",
        "health",
        9,
        r"^\|\s*(?P<npu>\d+)\s+(?P<chip>[\w-]+)\s*\|\s*(?P<health>Warning|Alarm|Critical|UNKNOWN|Offline)\s*\|",
        lambda g: say(
            "NPU {npu} ({chip}) reports its health as {health}",
            "NPU {npu}（{chip}）的健康状态为 {health}",
            npu=g["npu"],
            chip=g["chip"],
            health=g["health"],
        ),
        lambda g: say(
            "see `npu-smi info -t health -i {npu}` and dmesg; use another device until it is OK",
            "查看 `npu-smi info -t health -i {npu}` 和 dmesg；恢复 OK 前请使用其他设备",
            npu=g["npu"],
        ),
    ),
)

SIGNALS = {"signal-segv": "SIGSEGV", "signal-kill": "SIGKILL", "signal-abort": "SIGABRT", "signal-bus": "SIGBUS"}


def _device_remedy() -> Text:
    return say(
        "set ASCEND_SLOG_PRINT_TO_STDOUT=1 and read the plog for the kernel; look for indices out of range (Gather, GridSample, Scatter), NaN in "
        "the input, gears that were not set and buffers that are too small; verify the model with the same input",
        "设置 ASCEND_SLOG_PRINT_TO_STDOUT=1 并在 plog 中查找算子核；检查越界下标（Gather、GridSample、Scatter）、输入中的 NaN、未设置的档位和过小的缓冲区；"
        "用同一输入校验模型",
    )


def match_pattern(text: str) -> tuple[Pattern, Groups] | None:
    """The first pattern that fits a line, with its groups (empty where they took no part)."""
    for pattern in PATTERNS:
        found = pattern.regex.search(text)
        if found is not None:
            return pattern, {key: value or "" for key, value in found.groupdict().items()}
    return None
