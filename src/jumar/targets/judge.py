"""One question, one answer: does this target take this node, and how is that known?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from ..text import Text, say
from .kernels import KernelTable, Placement, tables_for, takes_dtype
from .limits import NodeFacts, violated
from .model import SEVERITY_ORDER, TAKEN, Confidence, Engine, Status, Support, Target
from .own import own_answers, own_support
from .parser import Registration, operator_key, parser_status, registration
from .tables import opset_text, table

_CLASSES: dict[Placement, tuple[Status, Engine]] = {
    "aicore": (Status.SUPPORTED, "aicore"),
    "aicore_via_pass": (Status.SUPPORTED, "aicore"),
    "aicore_if_const": (Status.NEEDS_CONSTANT, "aicore"),
    "local": (Status.NO_KERNEL_NEEDED, "local"),
    "aicpu": (Status.AICPU_ONLY, "aicpu"),
    "aicpu_tf": (Status.AICPU_ONLY, "aicpu"),
    "none": (Status.NO_KERNEL, "none"),
}
_JUDGED: tuple[Placement, ...] = ("aicore", "aicore_via_pass", "aicpu")
# ONNX's names of dtypes -> the kernel tables'.
_DTYPES = {"FLOAT": "float32", "DOUBLE": "double", "COMPLEX64": "complex64", "COMPLEX128": "complex128"}


def support(domain: str, op: str, opset: int, target: Target) -> Support:
    """Does ``target`` take operator ``domain::op`` at all in a model at ``opset``? (Parser and engine; not dtypes, not limits.)"""
    own = own_support(domain, op, opset, target)
    if own is not None:
        return own
    key = operator_key(domain, op)
    status = parser_status(key, opset, target.cann)
    if key == "Constant":
        return Support(Status.NO_KERNEL_NEEDED, "local", ("Constant bypasses the parser registry and becomes a Const",))
    found = registration(key, target.cann)
    if found is None:
        return Support(
            Status.NO_PARSER, "none", (f"no registration in any known CANN state ({table('onnx_parser.json')['meta']['source']})",)
        )
    opsets = opset_text(found.accepted or found.anywhere)
    if status is Status.NO_PARSER_AT_OPSET:
        return Support(status, "none", found.evidence, opsets, confidence=found.confidence)
    answer = _engine(key, found, opset, target)
    answer = Support(
        answer.status,
        answer.engine,
        (*found.evidence, *answer.evidence),
        opsets,
        answer.reason,
        _weaker(found.confidence, answer.confidence),
    )
    if answer.status is Status.NO_KERNEL:
        return answer
    if status is Status.UNKNOWN:
        reason = say(
            "its parser is registered only on one side of CANN {cann} (in the public sources before or after it)",
            "它的解析插件只在 CANN {cann} 之前或之后的公开源码中出现",
            cann=target.cann,
        )
        return Support(Status.UNKNOWN, "unknown", answer.evidence, opsets, reason)
    return answer


def _weaker(*confidences: Confidence) -> Confidence:
    order: tuple[Confidence, ...] = ("observed", "documented", "inferred")
    return max(confidences, key=order.index)


def _unknown(reason: Text, evidence: Iterable[str] = ()) -> Support:
    return Support(Status.UNKNOWN, "unknown", tuple(evidence), reason=reason)


def _engine(key: str, found: Registration, opset: int, target: Target) -> Support:
    """The engine of an operator that is parsed: kernel tables of the state, or of the states around it."""
    if key in table("ir.json.gz")["outside_tables"]:
        return _unknown(say("sequence operators are served outside the kernel tables", "序列算子由算子表之外的机制处理"))
    tables, how = tables_for(target.cann, target.soc)
    if how == "none":
        return _unknown(say("no public kernel table covers {target}", "没有公开的算子表覆盖 {target}", target=target.label))
    places = {kernels.place_all(key, parts) for kernels in tables for parts in found.alternatives(opset)}
    evidence = [f"{_words(kernels, found.alternatives(opset))} ({kernels.source})" for kernels in tables]
    classes = {_CLASSES[place] for place in places}
    if len(classes) > 1:
        words = " / ".join(sorted(places))
        reason = (
            say("CANN states before and after it disagree: {words}", "其前后的 CANN 版本不一致：{words}", words=words)
            if how == "between"
            else say(
                "parser variants end in different engines ({words}) and which one this CANN ships is not public",
                "不同的解析方式落在不同引擎上（{words}），该 CANN 采用哪一种没有公开",
                words=words,
            )
        )
        return _unknown(reason, evidence)
    status, engine = classes.pop()
    if how == "before":
        reason = say(
            "the newest public kernel table is older ({cann}: {words})",
            "公开的最新算子表较旧（{cann}：{words}）",
            cann=tables[0].cann,
            words=" / ".join(sorted(places)),
        )
        return _unknown(reason, evidence)
    if engine == "aicpu" and target.soc.aicpu_package == "unknown":
        return _unknown(
            say(
                "it runs on the AI CPU only, and whether this vehicle SoC's board image has the AI CPU kernels is not public",
                "它只能在 AI CPU 上运行，而该车载 SoC 的板端镜像是否带有 AI CPU 算子包并未公开",
            ),
            evidence,
        )
    return Support(status, engine, tuple(evidence), confidence="observed" if how == "at" else "inferred")


def _words(kernels: KernelTable, alternatives: Iterable[tuple[str, ...]]) -> str:
    parts = {part: kernels.place(part) for parts in alternatives for part in parts}
    return f"{kernels.cann} {kernels.soc}: " + ", ".join(f"{part} {place}" for part, place in parts.items())


def judge(node: NodeFacts, opset: int, target: Target, form_opset: int | None = None, known: Support | None = None) -> tuple[Support, ...]:
    """All answers on one node, the decisive one first: support of the operator, limits, dtypes.

    A node that is taken gets exactly one answer.

    Args:
        opset: at which the parser is asked.
        form_opset: whose form the node has (inputs or attributes), where that is another one; limits are judged on the form.
        known: what :func:`support` says of the operator, if the caller asked already.
    """
    own = own_answers(node, opset, target)
    if own is not None:
        return own
    base = known or support(node.domain, node.op, opset, target)
    if base.status in (Status.NO_PARSER, Status.NO_PARSER_AT_OPSET, Status.NO_KERNEL):
        return (base,)
    if base.status is Status.NEEDS_CONSTANT:
        base = _with_constants(base, node)
    answers = _limit_answers(node, opset if form_opset is None else form_opset, target, base)
    if base.status is not Status.UNKNOWN:
        answers += _dtype_answers(node, opset, target, base)
    if base.status not in TAKEN:
        answers.append(base)
    return tuple(sorted(answers, key=lambda answer: SEVERITY_ORDER[answer.status])) or (base,)


def engine_of(answers: Sequence[Support]) -> Engine:
    """Where a node with these answers runs."""
    engines = {answer.engine for answer in answers}
    order: tuple[Engine, ...] = ("none", "unknown", "aicpu", "aicore", "local")
    return next(engine for engine in order if engine in engines)


def _with_constants(base: Support, node: NodeFacts) -> Support:
    """The AI Core form exists with constant parameters: are they?"""
    if all(item.is_constant or not item.present for item in node.inputs[1:]):
        return Support(Status.SUPPORTED, "aicore", base.evidence, base.opsets, confidence=base.confidence)
    return Support(Status.NEEDS_CONSTANT, "unknown", base.evidence, base.opsets, base.reason, base.confidence)


_EFFECTS = {
    "reject": Status.LIMIT_VIOLATED,
    "ignored": Status.ATTRIBUTE_IGNORED,
    "aicpu": Status.AICPU_ONLY,
    "unproven": Status.LIMIT_UNPROVEN,
}


def _limit_answers(node: NodeFacts, opset: int, target: Target, base: Support) -> list[Support]:
    if node.domain not in ("", "ai.onnx"):
        return []
    answers = []
    for limit, truth in violated(node, opset, target.cann):
        evidence = (f"{limit.confidence}: {limit.source}",)
        if truth is None:
            if limit.effect in ("reject", "ignored"):
                reason = say("a shape or value it depends on is not known: {limit}", "所依赖的形状或取值未知：{limit}", limit=limit.text)
                answers.append(Support(Status.LIMIT_UNJUDGED, base.engine, evidence, base.opsets, reason, limit.confidence))
            continue
        engine: Engine = {"reject": "none", "aicpu": "aicpu"}.get(limit.effect, base.engine)  # type: ignore[assignment]
        answers.append(Support(_EFFECTS[limit.effect], engine, evidence, base.opsets, limit.text, limit.confidence))
    return answers


def _dtype_answers(node: NodeFacts, opset: int, target: Target, base: Support) -> list[Support]:
    """Inputs whose dtype the engine's kernel does not take.

    Judged where it is known which IR operator gets the ONNX inputs in their order. Constants are converted while the graph is built
    and are not judged.
    """
    tables, how = tables_for(target.cann, target.soc)
    if base.engine not in ("aicore", "aicpu") or how == "before":
        return []
    kernels = tables[-1]
    carriers = carriers_of(operator_key(node.domain, node.op), opset, target.cann)
    if not carriers or not all(kernels.place(ir) in _JUDGED for ir in carriers):
        return []
    answers = []
    for index, item in enumerate(node.inputs):
        if not item.present or item.is_constant or item.dtype is None:
            continue
        dtype = _DTYPES.get(item.dtype, item.dtype.lower())
        core, core_takes = _taken_by(kernels, carriers, "A", index, dtype)
        # The AI CPU has two libraries; what either takes runs there.
        on_cpu = [_taken_by(kernels, carriers, engine, index, dtype) for engine in "CT"]
        cpu, cpu_takes = any(taken for taken, _ in on_cpu), frozenset().union(*(takes for _, takes in on_cpu))
        if core or (cpu and base.engine == "aicpu"):
            continue
        words = {"index": index, "dtype": dtype, "taken": ", ".join(sorted(core_takes if cpu else core_takes | cpu_takes))}
        evidence = (f"{kernels.cann} {kernels.soc}: {'/'.join(carriers)} input {index} takes {words['taken']} ({kernels.source})",)
        if cpu:
            reason = say(
                "input {index} is {dtype}; its AI Core kernel takes {taken}",
                "第 {index} 个输入为 {dtype}；其 AI Core 算子支持 {taken}",
                **words,
            )
            answers.append(_on_cpu(target, reason, evidence, base))
        else:
            reason = say(
                "input {index} is {dtype}, which no engine takes; taken are {taken}",
                "第 {index} 个输入为 {dtype}，没有引擎支持；支持的类型为 {taken}",
                **words,
            )
            answers.append(Support(Status.DTYPE_NOT_TAKEN, "none", evidence, base.opsets, reason, base.confidence))
    return answers


@cache
def carriers_of(key: str, opset: int, cann: str) -> tuple[str, ...]:
    """The IR operators that get the inputs of an ONNX operator in their order (one of them does); none where that is not known."""
    found = registration(key, cann)
    alternatives = () if found is None else found.alternatives(opset)
    named = table("ir.json.gz")["carriers"].get(key)
    if named:
        return tuple(ir for ir in named if all(ir in parts for parts in alternatives))
    return alternatives[0] if len(alternatives) == 1 and len(alternatives[0]) == 1 else ()


@cache
def _taken_by(kernels: KernelTable, carriers: tuple[str, ...], engine: str, index: int, dtype: str) -> tuple[bool, frozenset[str]]:
    """Whether the engine takes the dtype in any of the operators. A kernel that lists no dtypes refuses none."""
    answers = [(takes_dtype(kernels, ir, engine, index, dtype), engine in kernels.engines(ir)) for ir in carriers]
    if engine == "A":
        answers = [
            (answer, listed or kernels.place(ir) == "aicore_via_pass") for ir, (answer, listed) in zip(carriers, answers, strict=True)
        ]
    taken = any(answer is True or (answer is None and listed) for (answer, _), listed in answers)
    return taken, frozenset().union(*(dtypes for (_, dtypes), _ in answers))


def _on_cpu(target: Target, reason: Text, evidence: tuple[str, ...], base: Support) -> Support:
    if target.soc.aicpu_package == "unknown":
        unknown = say(
            "{reason}; whether this vehicle SoC's board image has the AI CPU kernels is not public",
            "{reason}；该车载 SoC 的板端镜像是否带有 AI CPU 算子包并未公开",
            reason=reason,
        )
        return Support(Status.UNKNOWN, "unknown", evidence, base.opsets, unknown, base.confidence)
    return Support(Status.AICPU_ONLY, "aicpu", evidence, base.opsets, reason, base.confidence)
