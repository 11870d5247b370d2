"""``jumar simplify`` at the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

MODEL = """agraph (float[1,2,4,4] image, int64[2] other) => (float[1,2,4,4] y, int64[2] z)
<float[2,2,1,1] w = {1.0, 2.0, 3.0, 4.0}, float[2,1,1] scale = {2.0, -3.0}> {
    a = Identity(image)
    b = Conv(a, w)
    c = Mul(b, scale)
    d = Transpose<perm = [1, 0, 2, 3]>(c)
    e = Transpose<perm = [1, 0, 2, 3]>(d)
    y = Relu(e)
    z = Identity(other)
}"""


def test_the_command(save_text: Callable[..., Path], tmp_path: Path, jumar: Callable[..., tuple[int, str, str]]) -> None:
    out = tmp_path / "small.onnx"
    status, text, error = jumar("simplify", str(save_text(MODEL)), "-o", str(out), "--exact")
    assert (status, error) == (0, "")
    assert "7 nodes became 4" in text
    assert out.exists()
    status, _, error = jumar("simplify", str(save_text(MODEL)), "-o", str(out), "--without", "nonsense")
    assert status == 2
    assert error.count("\n") == 1
