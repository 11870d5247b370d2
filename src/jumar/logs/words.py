"""What a finding of a log says: the fact, where it stands, and the way on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..text import Text, say
from .codes import Code
from .command import command_problems
from .lines import SAME
from .operators import Verdict
from .scan import Clue, Log

KINDS = (
    "operator", "option", "model", "file", "environment", "load", "device", "call", "memory", "timeout", "compiler", "silent", "inner",
    "unknown", "health",
)  # fmt: skip
"""The kinds of trouble, as the table of codes and the patterns name them."""


@dataclass(frozen=True)
class Group:
    """Clues of one cause. ``head`` explains most."""

    kind: str
    clues: tuple[Clue, ...]

    @property
    def head(self) -> Clue:
        return self.clues[0]

    @property
    def codes(self) -> tuple[Code, ...]:
        """All codes of its lines, each once."""
        found = {code.code: code for clue in self.clues for code in (clue.code, clue.also) if code is not None}
        return tuple(found.values())


@dataclass(frozen=True)
class Told:
    """What there is to tell of one cause."""

    group: Group
    log: Log
    verdict: Verdict | None = None


def _title(code: Code) -> Text:
    name = f" {code.name}" if code.name and code.name != code.code else ""
    return say("{code}{name}", "{code}{name}", code=code.code, name=name)


def _both_numbers(code: Code | None) -> Text:
    """The number of the same error in the other CANN."""
    if code is None or code.also is None:
        return say("", "")
    older, newer = sorted((code.code, code.also), reverse=True)
    return say("; {older} of CANN 8.x is {newer} of 9.x", "；CANN 8.x 的 {older} 即 9.x 的 {newer}", older=older, newer=newer)


def _said(clue: Clue) -> Text:
    """Where the log says it."""
    many = say("{count} times", "共 {count} 次", count=clue.count)
    if clue.count >= SAME:  # more lines like it were not read
        many = say("{count} times or more", "{count} 次以上", count=clue.count)
    times = say("", "") if clue.count == 1 else say(" ({many})", "（{many}）", many=many)
    return say("{file} line {line}{times}", "{file} 第 {line} 行{times}", file=clue.file, line=clue.line, times=times)


Words = tuple[Text, Text, Text]


def _plain(told: Told) -> Words:
    """A pattern's own words, else those of the code, else the line as it stands."""
    head = told.group.head
    code = head.code
    fact = head.what or (code.cause if code else _line(head))
    message = say("{title}: {fact}", "{title}：{fact}", title=_title(code), fact=fact) if code else fact
    values = _values(head) if head.what is None and code is not None and code.kind != "silent" else say("", "")
    why = say(
        "said by {place}{numbers}{values}", "见 {place}{numbers}{values}", place=_said(head), numbers=_both_numbers(code), values=values
    )
    remedy = head.remedy or (code.remedy if code else REMEDIES[told.group.kind])
    return message, why, remedy


def _values(clue: Clue) -> Text:
    """The line itself, where only its arguments tell what is wrong."""
    return say(": {text}", "：{text}", text=clue.text[:300])


def _line(clue: Clue) -> Text:
    text = clue.groups.get("text") or clue.text
    if clue.pattern == "exception":
        return say("{kind}: {text}", "{kind}：{text}", kind=clue.groups["kind"], text=text[:300])
    return say("the log says: {text}", "日志原文：{text}", text=text[:300])


def _operator_words(told: Told) -> Words:
    head = told.group.head
    if head.op is None and head.node is None:
        return _plain(told)
    nodes = list(dict.fromkeys(clue.node for clue in told.group.clues if clue.node))
    parser = told.verdict if told.verdict and told.verdict.kind in ("private", "opset") else None
    fact = parser.fact if parser else head.what or (head.code.cause if head.code else _line(head))
    name = head.op or head.node
    at = say("", "") if head.opset is None else say(" (opset {opset})", "（opset 版本 {opset}）", opset=head.opset)
    message = say(
        "{title}{name}{at}: {fact}",
        "{title}{name}{at}：{fact}",
        title=say("{title}: ", "{title}：", title=_title(head.code)) if head.code else say("", ""),
        name=name,
        at=at,
        fact=fact,
    )
    where = say("", "") if not nodes else say("; nodes: {nodes}", "；节点：{nodes}", nodes=", ".join(f"`{node}`" for node in nodes[:10]))
    table = say("", "") if told.verdict is None or parser else say("; {fact}", "；{fact}", fact=told.verdict.fact)
    warned = told.log.warned.get(head.op or "")
    reason = say("", "") if warned is None else say("; an engine says: {text}", "；引擎给出的原因：{text}", text=warned[:300])
    why = say(
        "said by {place}{numbers}{where}{table}{reason}",
        "见 {place}{numbers}{where}{table}{reason}",
        place=_said(head),
        numbers=_both_numbers(head.code),
        where=where,
        table=table,
        reason=reason,
    )
    remedy = head.remedy or (
        told.verdict.remedy if told.verdict and told.verdict.kind != "unknown" else head.code.remedy if head.code else REMEDIES["operator"]
    )
    return message, why, remedy


def _compiler_words(told: Told) -> Words:
    message, why, remedy = _plain(told)
    if told.log.exception is not None:
        reason = f"{told.log.exception.groups['kind']}: {told.log.exception.groups['text'][:200]}"
        why = say("{why}; the compiler's own reason: {reason}", "{why}；编译器给出的原因：{reason}", why=why, reason=reason)
    return message, why, remedy


def _device_words(told: Told) -> Words:
    head = told.group.head
    numbers = [code for code in told.group.codes if code.code.isdigit()]
    fact = head.what or (numbers[0].cause if numbers else head.code.cause if head.code else _line(head))
    title = numbers[0] if numbers else head.code
    message = say("{title}: {fact}", "{title}：{fact}", title=_title(title), fact=fact) if title else fact
    more = [clue.what for clue in told.group.clues[1:4] if clue.what is not None]
    if head.what is not None and numbers:
        more.append(say("{code} means: {cause}", "{code} 表示：{cause}", code=numbers[0].code, cause=numbers[0].cause))
    why = say("said by {place}{numbers}", "见 {place}{numbers}", place=_said(head), numbers=_both_numbers(head.code))
    for fact in more:
        why = say("{why}; {fact}", "{why}；{fact}", why=why, fact=fact)
    why = say("{why}; execution is asynchronous", "{why}；执行是异步的", why=why)
    remedy = head.remedy or (numbers[0].remedy if numbers else head.code.remedy if head.code else REMEDIES["device"])
    if told.log.hidden_gear:
        remedy = say(
            "{remedy}; the model has gears (ascend_mbatch_shape_data): call set_input_dynamic_dims, set_dynamic_batch_size or set_dynamic_hw_size "
            "before each execution",
            "{remedy}；模型带有档位（ascend_mbatch_shape_data）：每次执行前须调用 set_input_dynamic_dims、set_dynamic_batch_size 或 set_dynamic_hw_size",
            remedy=remedy,
        )
    return message, why, remedy


def _load_words(told: Told) -> Words:
    message, why, remedy = _plain(told)
    numbers = [code for code in told.group.codes if code.code.isdigit() and code is not told.group.head.code]
    for code in numbers[:2]:
        why = say("{why}; {code} means: {cause}", "{why}；{code} 表示：{cause}", why=why, code=code.code, cause=code.cause)
    if told.log.virtual_device:
        why = say(
            "{why}; the device is a slice of a card (vNPU), which may lack what this .om needs",
            "{why}；设备是整卡的切分实例（vNPU），可能缺少该 .om 所需的能力",
            why=why,
        )
    return message, why, remedy


def _option_words(told: Told) -> Words:
    """The flag and the value where the command stands in the log."""
    message, why, remedy = _plain(told)
    code = told.group.head.code
    if told.log.command is None or code is None:
        return message, why, remedy
    for problem in command_problems(told.log.command, code.code):
        why = say(
            "{why}; in the command: {message}: {reason}",
            "{why}；命令中：{message}：{reason}",
            why=why,
            message=problem.message,
            reason=problem.why,
        )
        remedy = problem.remedy
    return message, why, remedy


def _inner_words(told: Told) -> Words:
    head = told.group.head
    code = head.code
    if code is None and head.tier >= 3:
        fact = _line(head)
    else:
        fact = say("{title}: {cause}", "{title}：{cause}", title=_title(code), cause=code.cause) if code else _line(head)
    inner = list(dict.fromkeys(clue.code.code for clue in told.log.clues if clue.code is not None and clue.code.inner and clue is not head))
    why = say(
        "said by {place}; no line names a cause{text}{codes}",
        "见 {place}；没有一行说明原因{text}{codes}",
        place=_said(head),
        text=_values(head) if code is not None else say("", ""),
        codes=say("; inner codes: {codes}", "；内部错误码：{codes}", codes=", ".join(inner[:5])) if inner else say("", ""),
    )
    return fact, why, REMEDIES["inner"]


REMEDIES = {
    "operator": say("run `jumar check` on the model for this chip", "针对该芯片对模型运行 `jumar check`"),
    "device": say("read the plog of this process for the first error of the device", "在该进程的 plog 中查找设备的第一个错误"),
    "inner": say(
        "run it again with ASCEND_GLOBAL_LOG_LEVEL=1 ASCEND_SLOG_PRINT_TO_STDOUT=1, or diagnose the folder ~/ascend/log",
        "设置 ASCEND_GLOBAL_LOG_LEVEL=1 ASCEND_SLOG_PRINT_TO_STDOUT=1 重新运行，或诊断目录 ~/ascend/log",
    ),
}
REMEDIES |= {kind: say("read the lines around it", "阅读它前后的日志行") for kind in KINDS if kind not in REMEDIES}

_WORDS: dict[str, Callable[[Told], Words]] = {
    "operator": _operator_words,
    "compiler": _compiler_words,
    "device": _device_words,
    "load": _load_words,
    "option": _option_words,
    "inner": _inner_words,
    "unknown": _inner_words,
}


def words_of(told: Told) -> Words:
    """Message, reason and remedy of one cause."""
    return _WORDS.get(told.group.kind, _plain)(told)
