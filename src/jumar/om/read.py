"""Read an .om file from a stranger: what it says of itself, or one clear error."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ..errors import ModelError
from ..text import Text, say
from .container import HEADER, MAGIC, Source, read_image
from .model import OmFile
from .names import BUNDLE
from .wire import Malformed

_EXPECTED = say("expected an .om file made by ATC", "应为 ATC 生成的 .om 文件")
_AGAIN = say("copy the file again, or compile the model again", "请重新复制该文件，或重新编译模型")
_CHECK_PATH = say("check the path", "请检查路径")


def read(path: str | Path) -> OmFile:
    """Read header, partitions, inputs, outputs, gears, AIPP, operators and the ATC command of an .om file.

    Weights and kernels are not read, so that size hardly matters; nothing in the file is executed.

    Raises:
        ModelError: no such file, no .om, truncated, encrypted, or in contradiction with itself.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise _bad(path, say("is a directory", "是一个目录"), say("name the .om file in it", "请指定其中的 .om 文件"))
        if not path.exists():
            raise _bad(path, say("does not exist", "不存在"), _CHECK_PATH)
        if not path.is_file():  # reading a pipe or a device may never end
            raise _bad(path, say("is not a regular file", "不是普通文件"), _CHECK_PATH)
        with path.open("rb") as file:
            source = Source(file.fileno(), os.fstat(file.fileno()).st_size)
            if not source.size:
                raise _bad(path, say("is empty", "是空文件"), _AGAIN)
            try:
                return read_image(source, 0, source.size)
            except Malformed as error:
                found = _kind(source.read(0, min(512, source.size))) or error.what
                raise _bad(path, say("cannot be read as an .om: {what}", "无法作为 .om 读取：{what}", what=found), _AGAIN) from error
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error)
        raise _bad(path, say("cannot be read: {error}", "无法读取：{error}", error=reason), _CHECK_PATH) from error


def looks_like_om(path: str | Path) -> bool:
    """Whether a file is to be read as an .om: by its first bytes, or by its name. False where there is no such file."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            head = file.read(HEADER)
    except (OSError, ValueError):
        return False
    bundle = len(head) == HEADER and head[:4] == bytes(4) and head[82] == BUNDLE
    return head[:4] == MAGIC or bundle or path.suffix.lower() in (".om", ".om2", ".exeom")


def digest(path: str | Path) -> str:
    """SHA-256 of a file, in hexadecimal. (The one of ``jumar.graph`` would load ONNX, which nothing here needs.)"""
    found = hashlib.sha256()
    with Path(path).open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def _bad(path: Path, what: Text, remedy: Text) -> ModelError:
    return ModelError(say("`{path}` {what}", "`{path}` {what}", path=path, what=what), _EXPECTED, remedy)


def _kind(head: bytes) -> Text | None:
    """Other kinds of files that go by this name."""
    if head.startswith(b"PK\x03\x04"):
        return say("it is a ZIP archive (an .om2 of ATC mode 7, or something else)", "这是 ZIP 压缩包（ATC mode 7 的 .om2 或其他文件）")
    if head.startswith(b"PICO"):
        return say("it is a model of the SVP tools (Hi35xx), another format", "这是 SVP 工具（Hi35xx）的模型，属于另一种格式")
    if head.startswith(b"version https://git-lfs"):
        return say("it is a Git LFS pointer: run `git lfs pull`", "这是 Git LFS 指针文件：请运行 `git lfs pull`")
    if head.isascii() and all(byte >= 9 for byte in head):
        return say("it is a text file", "这是文本文件")
    return None
