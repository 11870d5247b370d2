"""The child process that runs ONNX Runtime, ONNX's checker and its shape inference, started by :class:`jumar.graph.Evaluator`.

Whatever a hostile or merely unlucky model does to them (crash, endless loop, all the memory) happens here, not in the
user's process. It reads requests from standard input and answers on standard output; see :mod:`jumar.child.wire`.
Each library is imported when it is first needed.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from typing import Any, BinaryIO

import numpy as np

from . import wire


def _limit_memory() -> None:
    limit = int(os.environ.get("JUMAR_MEMORY_LIMIT_MB", "0")) << 20
    if limit:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _external_initializers(options: Any, external: list[dict[str, Any]]) -> list[Any]:
    """Hand external weights to ONNX Runtime as memory maps, so that nothing is copied and no path check is repeated."""
    if not external:
        return []
    import onnxruntime as ort

    arrays = []
    for item in external:
        raw = np.memmap(item["path"], dtype=np.uint8, mode="r", offset=item["offset"], shape=(item["length"],))
        arrays.append(raw.view(wire.dtype_of(item["dtype"])).reshape(item["shape"]))
    values = [ort.OrtValue.ortvalue_from_numpy(array) for array in arrays]
    options.add_external_initializers([item["name"] for item in external], values)
    return [arrays, values]


_UNREAD = re.compile("bfloat16|float8|int4|int2|float4")


def _is_reference(session: Any) -> bool:
    return hasattr(session, "names")


def _stand_in(error: Exception, header: dict[str, Any], model: bytes) -> Any:
    """ONNX's reference implementation of a model that ONNX Runtime does not implement.

    Raises:
        Exception: ``error``, if it says something else, or if the reference implementation does not take the model either.
    """
    from .reference import ReferenceSession, may_stand_in

    if not may_stand_in(error):
        raise error
    try:
        return ReferenceSession(model, header.get("folder", ""), header["external"])
    except Exception as other:
        raise error from other  # what ONNX Runtime says is what helps


class _Server:
    def __init__(self) -> None:
        # Session, what keeps its weights alive, and the request that loads the model again.
        self.sessions: dict[int, tuple[Any, Any, tuple[dict[str, Any], bytes]]] = {}

    def load(self, header: dict[str, Any], payloads: list[wire.Buffer]) -> tuple[dict[str, Any], list[bytes]]:
        import onnxruntime as ort

        options = ort.SessionOptions()
        # Optimisation off: the reference must be the model as written, not as fused.
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        options.use_deterministic_compute = True
        # Packed copies of the weights double the memory, and a weight would be multiplied by another kernel than a computed tensor.
        options.add_session_config_entry("session.disable_prepacking", "1")
        if header.get("folder"):
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", header["folder"])
        kept = _external_initializers(options, header["external"])
        request = (header, bytes(payloads[0]))
        try:
            session = ort.InferenceSession(request[1], options, providers=["CPUExecutionProvider"])
            # Python cannot read tensors of these types from ONNX Runtime.
            unread = [port.type for port in (*session.get_inputs(), *session.get_outputs()) if _UNREAD.search(port.type)]
            if unread:
                raise RuntimeError(f"NOT_IMPLEMENTED: {unread[0]} as input or output")
        except Exception as error:
            self.sessions[header["id"]] = (_stand_in(error, *request), kept, request)
            return {"engine": "onnx-reference"}, []
        self.sessions[header["id"]] = (session, kept, request)
        return {"engine": "onnxruntime"}, []

    def run(self, header: dict[str, Any], payloads: list[wire.Buffer]) -> tuple[dict[str, Any], list[bytes]]:
        session, kept, request = self.sessions[header["id"]]
        feeds = {item["name"]: wire.unpack_array(item["array"], data) for item, data in zip(header["feeds"], payloads, strict=True)}
        known = session.names() if _is_reference(session) else [output.name for output in session.get_outputs()]
        names = header["outputs"] or known
        try:
            results = session.run(names, feeds)
        except Exception as error:
            if _is_reference(session):
                raise
            # Some kernels find out only now that they do not have this form.
            session = _stand_in(error, *request)
            try:
                results = session.run(names, feeds)
            except Exception as other:
                raise error from other  # it does not have the form either
            self.sessions[header["id"]] = (session, kept, request)
        packed = [wire.pack_array(value) for value in results]
        engine = "onnx-reference" if _is_reference(session) else "onnxruntime"
        return {"arrays": [item for item, _ in packed], "names": names, "engine": engine}, [data for _, data in packed]

    def measure(self, header: dict[str, Any], payloads: list[wire.Buffer]) -> tuple[dict[str, Any], list[bytes]]:
        """Run, compare pairs of outputs here, and send the numbers and only the tensors asked for."""
        from .measures import measured

        session, *_ = self.sessions[header["id"]]
        feeds = {item["name"]: wire.unpack_array(item["array"], data) for item, data in zip(header["feeds"], payloads, strict=True)}
        names = list(dict.fromkeys([*(name for pair in header["pairs"] for name in pair), *header["outputs"]]))
        found = dict(zip(names, session.run(names, feeds), strict=True))
        numbers = [measured(found[one], found[other], header["normal"]) for one, other in header["pairs"]]
        packed = [wire.pack_array(found[name]) for name in header["outputs"]]
        return {"arrays": [item for item, _ in packed], "names": header["outputs"], "numbers": numbers}, [data for _, data in packed]

    def observe(self, header: dict[str, Any], payloads: list[wire.Buffer]) -> tuple[dict[str, Any], list[bytes]]:
        """Run, and send histograms of the named float outputs instead of the outputs: what is kept of a tensor does not grow with it."""
        from .histogram import channel_sums, counted

        session, *_ = self.sessions[header["id"]]
        feeds = {item["name"]: wire.unpack_array(item["array"], data) for item, data in zip(header["feeds"], payloads, strict=True)}
        names = [item["name"] for item in header["tensors"]]
        found = session.run(names, feeds)
        results, counts, sums = [], [], []
        for item in header["tensors"]:
            array = found.pop(0)  # freed as soon as it is counted
            histogram, numbers = counted(array)
            counts.append(histogram.tobytes())
            total = channel_sums(array, item["axis"]) if item["axis"] is not None and array.ndim > item["axis"] else np.zeros(0)
            sums.append(total.tobytes())
            results.append({**numbers, "size": int(array.size), "shape": list(array.shape)})
        return {"tensors": results}, [*counts, *sums]

    def check(self, header: dict[str, Any], payloads: list[wire.Buffer]) -> tuple[dict[str, Any], list[bytes]]:
        """Run the ONNX checker; ``reason`` is None for a valid model."""
        import onnx

        try:
            onnx.checker.check_model(header.get("path") or onnx.load_model_from_string(bytes(payloads[0])))
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            return {"reason": (lines[0] if lines else type(error).__name__)[:300]}, []
        return {"reason": None}, []

    def infer(self, _header: dict[str, Any], payloads: list[wire.Buffer]) -> tuple[dict[str, Any], list[bytes]]:
        """Infer types and shapes, with data propagation."""
        import onnx

        model = onnx.load_model_from_string(bytes(payloads[0]))
        inferred = onnx.shape_inference.infer_shapes(model, check_type=False, strict_mode=False, data_prop=True)
        return {}, [inferred.SerializeToString()]

    def unload(self, header: dict[str, Any], _payloads: list[wire.Buffer]) -> tuple[dict[str, Any], list[bytes]]:
        self.sessions.pop(header["id"], None)
        return {}, []


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer requests until standard input ends."""

    def read(size: int) -> bytes:
        data = source.read(size)
        if len(data) != size:
            raise EOFError
        return data

    server = _Server()
    commands = {
        "load": server.load,
        "run": server.run,
        "measure": server.measure,
        "observe": server.observe,
        "unload": server.unload,
        "check": server.check,
        "infer": server.infer,
    }
    while True:
        try:
            header, payloads = wire.decode(read)
        except EOFError:
            return
        try:
            reply, data = commands[header["cmd"]](header, payloads)
        except Exception as error:  # everything a model can provoke is reported, not raised
            reply, data = {"error": f"{type(error).__name__}: {error}"}, []
        for part in wire.encode(reply, data):
            sink.write(part)
        sink.flush()


def main() -> None:
    _limit_memory()
    # Native code may print; only answers may reach the pipe.
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        serve(sys.stdin.buffer, sink)
