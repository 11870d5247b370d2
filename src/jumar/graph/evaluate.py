"""Run models with ONNX Runtime in a child process, with a time and a memory limit."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, cast

import numpy as np
import onnx
import onnx_ir as ir

from ..child import wire
from ..errors import EvaluationError
from ..text import Text, say
from .walk import weight_bytes

# Python looks for modules in the current directory first, which may be a stranger's model folder.
_CHILD = "import sys; sys.path[:] = filter(None, sys.path); from jumar.child.serve import main; main()"
# Weights up to this many bytes travel with the model.
_SENT_LIMIT = 1 << 16
DEFAULT_TIMEOUT = 600.0
"""Seconds one load or run may take."""


def _default_memory_mb() -> int:
    """Four fifths of the machine's memory, so that a hostile model cannot take the machine down (0 = no limit known)."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 0
    return int(total * 0.8) >> 20


def shared_or_new(evaluator: Evaluator | None) -> contextlib.AbstractContextManager[Evaluator]:
    """The caller's evaluator, left open, or a new one that is closed at the end."""
    return Evaluator() if evaluator is None else contextlib.nullcontext(evaluator)


class ChildFailure(Exception):  # noqa: N818 - turned into the error that fits by whoever asked
    """Why the child gave no answer. ``stopped``: it crashed or ran too long, so that asking again is no use."""

    def __init__(self, reason: Text, stopped: bool = False) -> None:
        self.reason, self.stopped = reason, stopped
        super().__init__(str(reason))


class Evaluator:
    """Owner of one child process; restarts it after a crash.

    ::

        with Evaluator() as evaluator:
            outputs = evaluator.run(model, {"x": array})

    Raises (from every method):
        EvaluationError: ONNX Runtime refused the model or the inputs, crashed, or went over a limit.
    """

    def __init__(self, timeout: float = DEFAULT_TIMEOUT, memory_mb: int | None = None) -> None:
        self.timeout = timeout
        self.memory_mb = _default_memory_mb() if memory_mb is None else memory_mb
        self._process: subprocess.Popen[bytes] | None = None
        self._next_id = 0
        self.generation = 0
        self.engines: set[str] = set()
        """What has run models so far (see :class:`Session`)."""
        self.weights = _Weights()

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the child process and remove what was written for it."""
        self._stop()
        self.weights.close()

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def session(self, model: ir.Model) -> Session:
        """Load a model once to run it often."""
        return Session(self, model)

    def run(self, model: ir.Model, feeds: Mapping[str, Any], outputs: Sequence[str] = ()) -> dict[str, Any]:
        """Load, run once, forget. Returns arrays by output name."""
        with self.session(model) as session:
            return session.run(feeds, outputs)

    def request(self, header: dict[str, Any], payloads: Sequence[bytes] = ()) -> tuple[dict[str, Any], list[wire.Buffer]]:
        """Send one command and wait for the answer."""
        try:
            return self.exchange(header, payloads)
        except ChildFailure as failure:
            raise _failure(failure) from None

    def exchange(self, header: dict[str, Any], payloads: Sequence[bytes] = ()) -> tuple[dict[str, Any], list[wire.Buffer]]:
        """As :meth:`request`, with the bare reason of a failure.

        Raises:
            ChildFailure: the child reported an error, died, or took too long.
        """
        process = self._start()
        deadline = time.monotonic() + self.timeout
        stdin, stdout = cast(BinaryIO, process.stdin), cast(BinaryIO, process.stdout)
        try:
            for part in wire.encode(header, payloads):
                stdin.write(part)
            stdin.flush()
            reply, data = wire.decode(lambda size: _read(stdout.fileno(), size, deadline))
        except TimeoutError:
            process.kill()
            self._stop()
            raise ChildFailure(say("it ran longer than {seconds} s", "运行超过 {seconds} 秒", seconds=f"{self.timeout:g}"), True) from None
        except (EOFError, BrokenPipeError, OSError):
            raise ChildFailure(self._death(process), True) from None
        if "error" in reply:
            raise ChildFailure(say("{reason}", "{reason}", reason=" ".join(reply["error"].split())[:400]))
        return reply, data

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._stop()
            environment = {**os.environ, "JUMAR_MEMORY_LIMIT_MB": str(self.memory_mb)}
            command = [sys.executable, "-c", _CHILD]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
            )
            self.generation += 1
            for pipe in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(AttributeError, OSError):  # Linux only, and capped by the system; only speed depends on it
                    fcntl.fcntl(cast(BinaryIO, pipe), fcntl.F_SETPIPE_SZ, 1 << 20)
        return self._process

    def current_generation(self) -> int:
        """Number of the living child, started if there is none: a session of another generation must load its model again."""
        self._start()
        return self.generation

    def is_alive(self, generation: int) -> bool:
        return self._process is not None and self._process.poll() is None and self.generation == generation

    def new_id(self) -> int:
        self._next_id += 1
        return self._next_id

    def _death(self, process: subprocess.Popen[bytes]) -> Text:
        self._stop()
        code = process.returncode
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            return say(
                "ONNX Runtime was killed by {signal} (crash, or out of memory)",
                "ONNX Runtime 被 {signal} 终止（崩溃或内存不足）",
                signal=name,
            )
        return say("ONNX Runtime ended with status {code} (out of memory?)", "ONNX Runtime 以状态 {code} 退出（内存不足？）", code=code)


class _Weights:
    """Large weights of models in memory, written once to a temporary file that the child maps.

    Sending them would cost a copy in each process for every session, and a protobuf cannot hold 2 GB.
    """

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._places: dict[int, tuple[ir.TensorProtocol, int]] = {}
        self._end = 0

    def close(self) -> None:
        folder, self._folder = self._folder, None
        self._places.clear()
        self._end = 0
        if folder is not None:
            folder.cleanup()

    @contextlib.contextmanager
    def outside(self, model: ir.Model) -> Iterator[None]:
        """While this lasts, the model refers to its large weights as external data."""
        held = {value: value.const_value for value in model.graph.initializers.values()}
        try:
            for value, tensor in held.items():
                if tensor is not None and not isinstance(tensor, ir.ExternalTensor) and weight_bytes(tensor) > _SENT_LIMIT:
                    value.const_value = self._reference(tensor, value.name or "")
            yield
        finally:
            for value, tensor in held.items():
                value.const_value = tensor

    def _reference(self, tensor: ir.TensorProtocol, name: str) -> ir.TensorProtocol:
        if tensor.dtype.bitwidth < 8:  # packed
            return tensor
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="jumar-", ignore_cleanup_errors=True)
        path = Path(self._folder.name) / "weights"
        if id(tensor) not in self._places:
            data = np.ascontiguousarray(tensor.numpy()).reshape(-1).view(np.uint8).data
            with path.open("ab") as file:
                file.truncate(self._end)  # up to the next page
                file.write(data)
            self._places[id(tensor)] = (tensor, self._end)  # holding the tensor keeps its id from being reused
            self._end += -(-len(data) // mmap.PAGESIZE) * mmap.PAGESIZE
        offset = self._places[id(tensor)][1]
        return ir.ExternalTensor(path.name, offset, tensor.nbytes, tensor.dtype, shape=tensor.shape, name=name, base_dir=path.parent)  # type: ignore[arg-type]


class Session:
    """A model loaded in the evaluator's child; loads itself again if the child had to be restarted.

    Attributes:
        engine: what runs it: ``onnxruntime``, or ``onnx-reference`` where ONNX Runtime has no implementation of something in it.
    """

    engine: str

    def __init__(self, evaluator: Evaluator, model: ir.Model) -> None:
        self._evaluator, self._model = evaluator, model
        self._id, self._generation = evaluator.new_id(), -1
        self._load()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _load(self) -> None:
        with self._evaluator.weights.outside(self._model):
            header = {"cmd": "load", "id": self._id, **_external(self._model)}
            payload = _with_unique_node_names(ir.to_proto(self._model)).SerializeToString()
        reply, _ = self._evaluator.request(header, [payload])
        self.engine = str(reply["engine"])
        self._evaluator.engines.add(self.engine)
        self._generation = self._evaluator.generation

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] = ()) -> dict[str, Any]:
        """Run on arrays keyed by input name; returns arrays keyed by output name (all outputs if none are named)."""
        if self._generation != self._evaluator.current_generation():
            self._load()
        packed = {name: wire.pack_array(array) for name, array in feeds.items()}
        header = {
            "cmd": "run",
            "id": self._id,
            "outputs": list(outputs),
            "feeds": [{"name": name, "array": item} for name, (item, _) in packed.items()],
        }
        reply, data = self._evaluator.request(header, [payload for _, payload in packed.values()])
        self.engine = str(reply["engine"])
        self._evaluator.engines.add(self.engine)
        return {name: wire.unpack_array(item, raw) for name, item, raw in zip(reply["names"], reply["arrays"], data, strict=True)}

    def measure(
        self, feeds: Mapping[str, Any], pairs: Sequence[tuple[str, str]], outputs: Sequence[str] = (), normal: float = 0.0
    ) -> tuple[list[dict[str, float]], dict[str, Any]]:
        """Run, and compare pairs of outputs (reference, found) in the child: see :func:`jumar.child.measures.measured`.

        Returns:
            The numbers of each pair, and the arrays of the named outputs.
        """
        if self._generation != self._evaluator.current_generation():
            self._load()
        packed = {name: wire.pack_array(array) for name, array in feeds.items()}
        header = {
            "cmd": "measure",
            "id": self._id,
            "pairs": [list(pair) for pair in pairs],
            "outputs": list(outputs),
            "normal": normal,
            "feeds": [{"name": name, "array": item} for name, (item, _) in packed.items()],
        }
        reply, data = self._evaluator.request(header, [payload for _, payload in packed.values()])
        arrays = {name: wire.unpack_array(item, raw) for name, item, raw in zip(reply["names"], reply["arrays"], data, strict=True)}
        return reply["numbers"], arrays

    def observe(self, feeds: Mapping[str, Any], tensors: Mapping[str, int | None]) -> dict[str, tuple[dict[str, Any], Any, Any]]:
        """Run, and describe the named outputs of floats without sending them; see :mod:`jumar.child.histogram`.

        Args:
            tensors: the axis of the channels of each output, of which sums are wanted, or None.

        Returns:
            For each output the numbers (``low``, ``high``, ``odd``, ``size``, ``shape``), the counts of the bins, and the sums of the channels.
        """
        if self._generation != self._evaluator.current_generation():
            self._load()
        packed = {name: wire.pack_array(array) for name, array in feeds.items()}
        header = {
            "cmd": "observe",
            "id": self._id,
            "tensors": [{"name": name, "axis": axis} for name, axis in tensors.items()],
            "feeds": [{"name": name, "array": item} for name, (item, _) in packed.items()],
        }
        reply, data = self._evaluator.request(header, [payload for _, payload in packed.values()])
        counts, sums = data[: len(tensors)], data[len(tensors) :]
        return {
            name: (numbers, np.frombuffer(bins, np.uint32), np.frombuffer(total, np.float64))
            for name, numbers, bins, total in zip(tensors, reply["tensors"], counts, sums, strict=True)
        }

    def close(self) -> None:
        if self._evaluator.is_alive(self._generation):  # a dead child has forgotten the model already
            self._evaluator.request({"cmd": "unload", "id": self._id})
        self._generation = -1


def _external(model: ir.Model) -> dict[str, Any]:
    """Where the external weights are: the folder that ONNX Runtime maps itself, without a copy, and those of other folders."""
    tensors = {
        value.name: value.const_value
        for value in model.graph.initializers.values()
        if isinstance(value.const_value, ir.ExternalTensor) and value.const_value.nbytes
    }
    sizes: dict[str, int] = {}
    for tensor in tensors.values():
        folder = str(tensor.base_dir)
        sizes[folder] = sizes.get(folder, 0) + tensor.nbytes
    mapped = max(sizes, key=lambda folder: sizes[folder], default="")
    elsewhere = [
        {
            "name": name,
            "path": str(tensor.path),
            "offset": tensor.offset or 0,
            "length": tensor.nbytes,
            "dtype": tensor.dtype.numpy().name,
            "shape": list(tensor.shape.numpy()),
        }
        for name, tensor in tensors.items()
        if str(tensor.base_dir) != mapped
    ]
    return {"folder": str(Path(mapped).resolve()) if mapped else "", "external": elsewhere}


def _with_unique_node_names(proto: onnx.ModelProto) -> onnx.ModelProto:
    """ONNX allows two nodes of one name (the checker passes them), ONNX Runtime does not; the names do not matter to it."""
    seen: set[str] = set()
    for node in proto.graph.node:
        if node.name in seen:
            node.name = ""
        seen.add(node.name)
    return proto


def _read(descriptor: int, size: int, deadline: float) -> bytearray:
    """Exactly ``size`` bytes before the deadline."""
    buffer = bytearray(size)
    view, done = memoryview(buffer), 0
    while done < size:
        if not select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimeoutError
        count = os.readv(descriptor, [view[done:]])
        if not count:
            raise EOFError
        done += count
    return buffer


def _failure(failure: ChildFailure) -> EvaluationError:
    error = EvaluationError(
        say("the model could not be executed: {reason}", "模型无法执行：{reason}", reason=failure.reason),
        say("expected it to run in ONNX Runtime", "应能在 ONNX Runtime 中运行"),
        say("give real inputs with --feeds, or export the model again", "请用 --feeds 提供真实输入，或重新导出模型"),
    )
    error.stopped = failure.stopped
    return error
