"""Text that exists in English and Chinese from the moment it is written.

Every sentence Jumar says to a user is a :class:`Text`: the two templates stand side by side where the fact is known, so that
no message can exist in one language only and a new rule needs no catalogue elsewhere.
"""

from __future__ import annotations

import locale
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Lang = Literal["en", "zh"]
LANGS: tuple[Lang, ...] = ("en", "zh")


@dataclass(frozen=True)
class Text:
    """One sentence in both languages, with its parameters.

    The templates use ``{name}`` fields; both must use the same set (a test reads every template in the source).
    """

    en: str
    zh: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def render(self, lang: Lang = "en") -> str:
        template = self.zh if lang == "zh" else self.en
        if not self.params:
            return template
        values = {key: value.render(lang) if isinstance(value, Text) else value for key, value in self.params.items()}
        return template.format(**values)

    def __str__(self) -> str:
        return self.render("en")

    def to_dict(self) -> dict[str, str]:
        """Both renderings, for records that are read again later (the parameters are already filled in)."""
        return {"en": self.render("en"), "zh": self.render("zh")}

    @classmethod
    def from_dict(cls, data: Mapping[str, str]) -> Text:
        return cls(data["en"], data["zh"])


def say(en: str, zh: str, /, **params: Any) -> Text:
    """Build a :class:`Text`; the keyword arguments fill both templates."""
    return Text(en, zh, params)


_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(9), *range(10, 32), *range(127, 160))}


def visible(text: str) -> str:
    """Control characters written out: a name in a model must not move the cursor, recolour the terminal or begin a line."""
    return text.translate(_CONTROLS)


def default_lang() -> Lang:
    """The language of the process's locale: Chinese for ``zh*``, else English."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = os.environ.get(name)
        if value:
            return "zh" if value.lower().startswith("zh") else "en"
    try:
        found = locale.getlocale()[0]
    except ValueError:
        found = None
    return "zh" if (found or "").lower().startswith(("zh", "chinese")) else "en"
