"""The record as JSON."""

from __future__ import annotations

import json
import math

import pytest

from jumar.case import Measurement, Record
from jumar.reports import json_report
from jumar.text import LANGS, Lang


@pytest.mark.parametrize("lang", LANGS)
def test_json_is_the_record_and_one_newline(hostile: Record, lang: Lang) -> None:
    text = json_report(hostile, lang)
    assert text.endswith("}\n")
    assert json.loads(text) == json.loads(json.dumps(hostile.to_dict(lang)))


def test_texts_are_in_the_wanted_language_and_readable(hostile: Record, evil: str) -> None:
    found = {lang: json.loads(json_report(hostile, lang))["findings"][0]["message"] for lang in LANGS}
    assert found == {"en": f"en {evil}", "zh": f"中 {evil}"}
    assert "中" in json_report(hostile, "zh")


def test_infinity_is_refused_rather_than_written() -> None:
    record = Record(measurements=(Measurement("a", math.inf, "1", "reference"),))
    with pytest.raises(ValueError, match="Out of range float values are not JSON compliant"):
        json_report(record)
