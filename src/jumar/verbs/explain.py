"""``jumar explain``: the documentation of a code."""

from __future__ import annotations

from ..case import Record
from ..rules import find_rule
from ..text import Lang, default_lang, say


def explain(code: str, *, lang: Lang | None = None) -> Record:
    """What a code means, why it matters on Ascend, what the fix is and how safe it is.

    Args:
        code: of a finding (``OP101``) or the name of its rule (``no-parser``); case does not matter.

    Returns:
        A record whose ``data`` has ``code``, ``name``, ``severity``, ``safety``, ``since`` and ``text``.

    Raises:
        UsageError: unknown code.
    """
    rule = find_rule(code)
    data = {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity,
        "safety": rule.safety,
        "since": rule.since,
        "text": rule.doc(lang or default_lang()),
    }
    return Record(verb="explain", data=data, notes=(say("{text}", "{text}", text=say(rule.doc("en"), rule.doc("zh"))),))
