"""``jumar view``: show a model in Netron, which is an extra."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

from ..errors import ModelError, ToolError, UsageError
from ..text import Text, say


def view(path: str | Path, *, port: int | None = None, browse: bool = True, announce: Callable[[Text], None] | None = None) -> None:
    """Serve a model file on this machine until the user stops it (Ctrl-C), and open it in the browser.

    Args:
        path: any file that Netron knows, among them .onnx and .om.
        port: 1 to 65535; None lets Netron choose.
        browse: False only serves it.
        announce: called with the address once it is served.

    Raises:
        ModelError: there is no such file.
        ToolError: Netron is not installed, or could not start.
        UsageError: no such port.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelError(
            say("`{path}` is not a file", "`{path}` 不是文件", path=path),
            say("expected a model such as .onnx or .om", "应为 .onnx、.om 等模型文件"),
            say("check the path", "请检查路径"),
        )
    if port is not None and not 1 <= port <= 65535:
        raise UsageError(
            say("--port {port} makes no sense", "--port {port} 没有意义", port=port),
            say("expected a number from 1 to 65535", "应为 1 到 65535 之间的数"),
            say("leave it out to let Netron choose", "省略即由 Netron 选择"),
        )
    try:
        netron = importlib.import_module("netron")
    except ImportError as error:
        raise ToolError(
            say("Netron is not installed", "没有安装 Netron"),
            say("expected the extra `view`", "需要附加组件 `view`"),
            say('run: pip install "jumar[view]"', '请运行：pip install "jumar[view]"'),
        ) from error
    try:
        address = netron.start(str(path), address=("localhost", port), browse=browse)
        if announce is not None:
            host, port = address if isinstance(address, tuple) else ("localhost", port)
            announce(
                say(
                    "{path} at http://{host}:{port} (Ctrl-C ends it)",
                    "{path}：http://{host}:{port}（按 Ctrl-C 结束）",
                    path=path,
                    host=host,
                    port=port,
                )
            )
        netron.wait()
    except OSError as error:
        raise ToolError(
            say("Netron cannot start: {error}", "Netron 无法启动：{error}", error=error.strerror or str(error)),
            say("expected a free port", "应为空闲端口"),
            say("choose another --port", "请更换 --port"),
        ) from error
