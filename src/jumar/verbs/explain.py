"""``jumar explain``: the documentation of a code, and what is true of what articles claim."""

from __future__ import annotations

from ..case import Record
from ..errors import UsageError
from ..reports.table import table_lines
from ..rules import find_rule
from ..targets.claims import Claim, all_claims, find_claim
from ..text import Lang, Text, default_lang, say


def explain(code: str, *, lang: Lang | None = None) -> Record:
    """What a code means, why it matters on Ascend, what the fix is and how safe it is; or what is true of a claim.

    Args:
        code: of a finding (``OP101``), the name of its rule (``no-parser``), the code of a claim (``CL001``), or ``claims`` for the list
            of all claims; case does not matter.

    Returns:
        A record whose ``data`` has ``code``, ``name`` and ``text``; for a finding also ``severity``, ``safety`` and ``since``, for a claim
        ``verdict``, ``show`` (commands that show the facts) and ``facts``; for ``claims`` the list ``claims``.

    Raises:
        UsageError: unknown code.
    """
    lang = lang or default_lang()
    if code.lower() == "claims":
        return _claims(lang)
    claim = find_claim(code)
    if claim is not None:
        return _claim(claim, lang)
    try:
        rule = find_rule(code)
    except UsageError as error:
        raise _unknown(error) from error
    data = {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity,
        "safety": rule.safety,
        "since": rule.since,
        "text": rule.doc(lang),
    }
    return Record(verb="explain", data=data, notes=(say("{text}", "{text}", text=say(rule.doc("en"), rule.doc("zh"))),))


def _unknown(error: UsageError) -> UsageError:
    codes = [claim.code for claim in all_claims()]
    expected = say(
        "{expected}, {first} to {last} (`jumar explain claims`)",
        "{expected}，或 {first} 到 {last}（`jumar explain claims`）",
        expected=error.expected,
        first=codes[0],
        last=codes[-1],
    )
    return UsageError(error.found, expected, error.remedy)


def _claims(lang: Lang) -> Record:
    rows = [(claim.code, claim.verdict, claim.says) for claim in all_claims()]
    data = [{"code": code, "verdict": verdict.render(lang), "says": says.render(lang)} for code, verdict, says in rows]
    return Record(verb="explain", data={"claims": data}, notes=table_lines(rows, indent=""))


def _claim(claim: Claim, lang: Lang) -> Record:
    commands = [f"jumar targets show {op}" for op in claim.show]
    shown = ", ".join(f"`{command}`" for command in commands)
    en = f"""What articles say: {claim.says.en}

What is true ({claim.verdict.en}): {claim.true.en}

Evidence: {claim.evidence.en}

See: {shown}"""
    zh = f"""文章的说法：{claim.says.zh}

实情（{claim.verdict.zh}）：{claim.true.zh}

依据：{claim.evidence.zh}

查看：{shown}"""
    text = Text(en, zh)
    data = {
        "code": claim.code,
        "name": claim.name,
        "verdict": claim.verdict.render(lang),
        "text": text.render(lang),
        "show": commands,
        "facts": [dict(fact) for fact in claim.facts],
    }
    return Record(verb="explain", data=data, notes=(text,))
