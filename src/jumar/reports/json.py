"""The record as JSON (``data/record.schema.json`` is its schema)."""

from __future__ import annotations

import json

from ..case import Record
from ..text import Lang


def json_report(record: Record, lang: Lang = "en") -> str:
    """One JSON object and a newline."""
    return json.dumps(record.to_dict(lang), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
