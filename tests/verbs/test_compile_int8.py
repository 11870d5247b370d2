"""A deploy model is compiled like any other, but not with what ATC refuses beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jumar import UsageError, compile

BODY = "agraph (float[%s,8] x) => (float[%s,8] y) { q = AscendQuant<scale = 8.0, offset = 0.0>(x) y = AscendAntiQuant<scale = 0.125, offset = 0.0>(q) }"


def test_one_shape_is_compiled(save_text: Callable[..., Path], tmp_path: Path) -> None:
    case = compile(save_text(BODY % (2, 2)), output=tmp_path / "out", soc="Ascend310P3", dry_run=True)
    assert (tmp_path / "out" / "compile.sh").exists() and case.record.verdict != "blocked"


@pytest.mark.parametrize("mode", ["origin", "must_keep_origin_dtype"])
def test_modes_that_keep_floats_are_refused(mode: str, save_text: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"does not take --precision-mode {mode} with it|is not a precision mode"):
        compile(save_text(BODY % (2, 2)), output=tmp_path / "out", soc="Ascend310P3", precision_mode=mode, dry_run=True)
    assert not (tmp_path / "out" / "compile.sh").exists()


def test_gears_of_batches_are_refused(save_text: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"does not take --gears \(batch\) with it"):
        compile(save_text(BODY % ("N", "N")), output=tmp_path / "out", soc="Ascend310P3", gears="batch 1,2", dry_run=True)
    plain = save_text("agraph (float[N,8] x) => (float[N,8] y) { y = Relu(x) }", "plain.onnx")
    assert compile(plain, output=tmp_path / "plain", soc="Ascend310P3", gears="batch 1,2", dry_run=True).record.verdict != "blocked"
