"""What the tests of quantisation share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jumar.quant.samples import Samples, open_samples


@pytest.fixture
def opened() -> Iterator[Callable[..., Samples]]:
    """``open_samples``, closed at the end."""
    with contextlib.ExitStack() as stack:

        def call(*given: Any) -> Samples:
            return stack.enter_context(open_samples(*given))

        yield call
