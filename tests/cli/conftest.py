"""The program, in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from jumar.cli.main import run


class Ended(NamedTuple):
    """How a call ended, and what it said (file descriptors, so that native libraries are heard too)."""

    status: int
    out: str
    err: str


@pytest.fixture
def jumar(capfd: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    def call(*words: object) -> Ended:
        capfd.readouterr()
        status = run([str(word) for word in words])
        return Ended(status, *capfd.readouterr())

    return call
