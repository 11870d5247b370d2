"""``--range`` as typed."""

from __future__ import annotations

import pytest

from jumar import UsageError
from jumar.verbs.common import parse_ranges


def test_names_may_hold_colons_and_texts_repeat() -> None:
    assert parse_ranges(["ids:0,30521;a:b:-1, 1", " mask:0,1; "]) == {"ids": (0, 30521), "a:b": (-1, 1), "mask": (0, 1)}


@pytest.mark.parametrize("text", ["ids", "ids:1", "ids:1,2,3", "ids:a,b", ":1,2", "ids:1.5,2"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_ranges([text])
