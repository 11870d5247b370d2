"""The table of error codes, and what a number says that is not in it."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..targets.tables import table
from ..text import Text, say

STRING_CODE = re.compile(r"(?<![A-Za-z0-9])[EW](?:\d{5}|[A-Z]\d{4})(?![A-Za-z0-9])")
_NAME = re.compile(r"ACL(?:NN)?_ERR(?:OR)?_[A-Z0-9_]+")
_GE_STATUS = 0x50100000  # host, error, level 0, system 8 (GE), in the highest bits of a status of GE
_GE_MEANINGS = {
    1343225856: say("memory could not be allocated", "内存分配失败"),
    1343225857: say("a parameter is not valid", "参数无效"),
    1343225860: say("internal error", "内部错误"),
}
_SIGNALS = {
    "SIGKILL": (
        say(
            "the process was killed from outside, usually by the out-of-memory killer", "进程被外部终止，通常是内存不足时被 OOM killer 终止"
        ),
        say(
            "see `dmesg | grep -i oom`; give it more memory, or limit the parallel compile processes (TE_PARALLEL_COMPILER=1)",
            "查看 `dmesg | grep -i oom`；增加内存，或限制并行编译进程数（TE_PARALLEL_COMPILER=1）",
        ),
    ),
    "SIGSEGV": (
        say("the program crashed by itself and left no error code", "程序自身崩溃，没有留下错误码"),
        say(
            "run `jumar check` on the model: known crashes come from NonMaxSuppression with 3 or 4 inputs; else cut the model to find the node",
            "对模型运行 `jumar check`：已知 3 或 4 个输入的 NonMaxSuppression 会导致崩溃；否则切分模型以定位节点",
        ),
    ),
    "SIGABRT": (
        say("the program gave up by itself (an assertion or an exception nobody caught)", "程序自行中止（断言失败或未捕获的异常）"),
        say("read the last lines before it", "阅读它之前的最后几行"),
    ),
    "SIGBUS": (
        say("memory or a mapped file vanished under the program", "程序所用的内存或映射文件失效"),
        say("check the disk, and /dev/shm in a container", "检查磁盘，容器中还要检查 /dev/shm"),
    ),
    "SIGTERM": (
        say("the process was asked to end, by a time limit or by a user", "进程被要求结束（超时或用户操作）"),
        say("look for the time limit of the caller", "检查调用方的时间限制"),
    ),
}
_OTHER_SIGNAL = (
    say("the process ended by a signal", "进程因信号结束"),
    say("read the last lines before it", "阅读它之前的最后几行"),
)


@dataclass(frozen=True)
class Code:
    """What is known of one code.

    Attributes:
        code: as ATC and ACL print it; a number in decimal.
        name: its title, or the name of the constant.
        kind: of trouble; the kinds are those of :data:`jumar.logs.report.RULES`, or ``warning``.
        family: the module its number belongs to.
        known: whether the table has it; if not, only ``family`` says something.
        specific: whether cause and remedy were written for this code, not for all codes of its title.
        also: the number of the same error in another CANN.
        states: CANN versions whose registries hold it.
        args: names of the arguments of its message.
        checks: Jumar's findings that tell the same before ATC runs.
    """

    code: str
    name: str
    kind: str
    cause: Text
    remedy: Text
    family: Text
    known: bool = True
    specific: bool = True
    also: str | None = None
    states: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    source: str = ""

    @property
    def inner(self) -> bool:
        """Whether it only says that a module failed."""
        return self.kind == "inner"


def _codes() -> Mapping[str, Any]:
    return table("codes.json")


def all_codes() -> Iterator[Code]:
    """Every code of the table."""
    for word in (*_codes()["string"], *_codes()["numeric"]):
        code = find_code(word)
        if code is not None:
            yield code


def family_of(word: str) -> Text | None:
    """The module a code belongs to by its number, or None where the word has not the form of a code."""
    found = next(((en, zh) for pattern, en, zh in _codes()["families"] if re.fullmatch(pattern, word)), None)
    return None if found is None else Text(*found)


def find_code(word: str) -> Code | None:
    """The code a word stands for: ``E19010``, ``507011``, ``0x7BC80``, ``ACL_ERROR_RT_MODEL_EXECUTE``, a status of GE, ``139``, ``SIGSEGV``.

    Returns:
        None where it has the form of no code. A code that is not in the table is answered with ``known=False``.
    """
    word = word.strip().upper()
    if STRING_CODE.fullmatch(word):
        return _string_code(word)
    if _NAME.fullmatch(word):
        number = next((key for key, row in _codes()["numeric"].items() if row["name"] == word), None)
        return None if number is None else _numeric_code(number)
    if re.fullmatch(r"0X[0-9A-F]{1,8}", word):
        word = str(int(word, 16))
    if re.fullmatch(r"SIG[A-Z]{2,6}", word):
        return signal_code(word)
    if not re.fullmatch(r"-?\d{1,10}", word) or not word.isascii():
        return None
    return _number(int(word))


def _number(value: int) -> Code | None:
    if 100000 <= value <= 599999:
        return _numeric_code(str(value))
    if value in (4294967295, -1):
        return Code(
            str(value),
            "FAILED",
            "inner",
            say("-1, which says no more than: it failed", "即 -1，只表示失败，没有更多信息"),
            say("look for the first error before it", "查看它之前的第一个错误"),
            say("any module", "任何模块"),
        )
    if value & 0xFFFE0000 == _GE_STATUS and value <= 0xFFFFFFFF:
        return _ge_status(value)
    if 128 < value <= 192 or -64 <= value < 0:
        return status_code(value)
    return None


def status_code(status: int) -> Code | None:
    """What an exit status of a process says if a signal ended it: 128 + its number, or minus its number."""
    number = -status if status < 0 else status - 128
    try:
        return signal_code(signal.Signals(number).name)
    except ValueError:
        return None


def signal_code(name: str) -> Code | None:
    """What the end of a process by a signal means; None if there is no such signal."""
    if name not in signal.Signals.__members__:
        return None
    cause, remedy = _SIGNALS.get(name, _OTHER_SIGNAL)
    family = say("end of a process: status {status}", "进程的结束：状态 {status}", status=128 + int(signal.Signals[name]))
    return Code(name, name, "silent", cause, remedy, family)


def _ge_status(value: int) -> Code:
    """Layout: runtime (2 bits), type (2), level (3), system (8), module (5), value (12)."""
    meaning = _GE_MEANINGS.get(value) or say(
        "status {number} of module {module}, with no public text",
        "模块 {module} 的状态 {number}，没有公开的说明",
        number=value & 0xFFF,
        module=(value >> 12) & 0x1F,
    )
    return Code(
        str(value),
        f"0x{value:08X}",
        "inner",
        meaning,
        say("it repeats that a step failed: look for the first error before it", "它只说明某一步失败：查看它之前的第一个错误"),
        say("a status inside GE (read from its bits)", "GE 内部的状态（由其位域读出）"),
        specific=value in _GE_MEANINGS,
    )


def _unknown(word: str, family: Text) -> Code:
    warning = word.startswith("W")
    return Code(
        word,
        "",
        "warning" if warning else "inner" if re.fullmatch(r"E[A-Z]9999", word) else "unknown",
        say(
            "the code is not in the public tables; its number says: {family}", "该代码不在公开的码表中；由编号可知：{family}", family=family
        ),
        say("read its own text, and the first error before it", "阅读它自带的文字，以及它之前的第一个错误"),
        family,
        known=False,
    )


def _string_code(word: str) -> Code | None:
    family = family_of(word)
    row = _codes()["string"].get(word)
    if row is None:
        return None if family is None else _unknown(word, family)
    return Code(
        word,
        row["title"],
        "warning" if word.startswith("W") else row["kind"],
        Text(*row["cause"]),
        Text(*row["remedy"]),
        family or say("module not stated", "未说明模块"),
        specific=row["specific"],
        also=row.get("also"),
        states=tuple(row["in"]),
        args=tuple(row["args"]),
        checks=tuple(row.get("checks", ())),
        source=row["source"],
    )


def _numeric_code(word: str) -> Code | None:
    family = family_of(word)
    row = _codes()["numeric"].get(word)
    if row is None:
        return None if family is None else _unknown(word, family)
    remedy = Text(*row["remedy"]) if "remedy" in row else _REMEDIES[row["kind"]]
    return Code(
        word,
        row["name"],
        row["kind"],
        Text(*row["meaning"]),
        remedy,
        family or say("module not stated", "未说明模块"),
        specific=row["specific"],
        states=(row["since"],),
        source=row["source"],
    )


_REMEDIES = {
    "call": say("check this call against the documentation of the function", "对照该接口的文档检查此调用"),
    "device": say(
        "read the plog of this process for the first error of the device; see npu-smi info",
        "在该进程的 plog 中查找设备的第一个错误；查看 npu-smi info",
    ),
    "environment": say("check driver, firmware and CANN against each other", "核对驱动、固件与 CANN 是否配套"),
    "file": say("check the path, the permission and the content of the file", "检查文件的路径、权限和内容"),
    "inner": say("read the first ERROR of the plog", "阅读 plog 中的第一条 ERROR"),
    "load": say("build the .om again with the CANN and the soc_version of this machine", "用本机的 CANN 和 soc_version 重新生成 .om"),
    "memory": say("free memory, or use a smaller batch or gear", "释放内存，或减小 batch、档位"),
    "timeout": say("look for a kernel that hangs, or raise the time-out", "查找卡住的算子核，或调大超时时间"),
}
