"""Inputs to prove on: the user's own, or generated ones that the model accepts."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from ..case import TensorInfo
from ..errors import EvaluationError, ShapeError, UsageError
from ..graph import Evaluator, constant_of, static_shape
from ..graph.load import model_info
from ..text import say

DEFAULT_CASES = 2
_BYTES_LIMIT = 4 << 30

# Shape- and value-preserving operators an index may pass through on its way to the operator that limits it.
_PASS_THROUGH = {
    "Cast",
    "Concat",
    "Expand",
    "Flatten",
    "Identity",
    "Reshape",
    "Slice",
    "Split",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
}
# Sizes tried for dimensions the user left open, first to last.
_OPEN_SIZES = (64, 224, 32, 8, 16, 1)


@dataclass(frozen=True)
class FeedSet:
    """Arrays by input name, and where they come from: ``user`` or ``generated``.

    Attributes:
        made_for: the model the inputs were generated on, and ``outputs`` what it gave, so that it need not run again; ``engine`` ran it.
    """

    cases: tuple[Mapping[str, Any], ...]
    origin: str
    made_for: ir.Model | None = field(default=None, repr=False, compare=False)
    outputs: tuple[dict[str, Any], ...] = field(default=(), repr=False, compare=False)
    engine: str = field(default="onnxruntime", repr=False, compare=False)


def load_feeds(path: str | Path, model: ir.Model, unused: Collection[str] = ()) -> FeedSet:
    """Read ``--feeds F.npz`` and check it against the model's inputs. Pickled arrays are refused.

    Args:
        unused: names that may be there without being inputs.

    Raises:
        UsageError: unreadable file, wrong names, ranks or dtypes.
    """
    arrays = {name: array for name, array in read_arrays(path).items() if name not in unused}
    return FeedSet((check_feeds(arrays, model),), "user")


def read_arrays(path: str | Path) -> dict[str, Any]:
    """The arrays of an .npz. Pickled ones are refused.

    Raises:
        UsageError: it cannot be read.
    """
    path = Path(path)
    try:
        if not path.is_file():
            raise OSError("no such file")
        with zipfile.ZipFile(path):  # a lone .npy has no names
            pass
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except Exception as error:  # numpy, zipfile, zlib and tokenize each have their own words for a broken archive
        raise UsageError(
            say(
                "feeds `{path}` cannot be read: {error}",
                "无法读取输入数据 `{path}`：{error}",
                path=path,
                error=str(error).splitlines()[0] if str(error) else type(error).__name__,
            ),
            say("expected a .npz of plain arrays keyed by input name", "应为以输入名为键的 .npz 数组文件"),
            say("write it with numpy.savez", "请用 numpy.savez 生成"),
        ) from error


def piece_feeds(feeds: str | Path | FeedSet | None, whole: ir.Model, piece: ir.Model, evaluator: Evaluator) -> FeedSet:
    """The inputs given for a model as those of a piece of it; generated ones where none are given or the piece reads something else.

    Raises:
        UsageError: as :func:`load_feeds`.
        EvaluationError: as :func:`make_feeds`.
    """
    wanted, given = {info.name for info in model_info(piece).inputs}, {info.name for info in model_info(whole).inputs}
    if feeds is None or not wanted <= given:
        return make_feeds(piece, evaluator)
    if isinstance(feeds, FeedSet):
        return FeedSet(tuple({name: feed[name] for name in wanted} for feed in feeds.cases), feeds.origin)
    return load_feeds(feeds, piece, given - wanted)


def check_feeds(arrays: Mapping[str, Any], model: ir.Model) -> dict[str, Any]:
    """Check arrays against the model's inputs; integer and float widths are adapted, nothing else."""
    infos = model_info(model).inputs
    names = [info.name for info in infos]
    missing, unknown = [name for name in names if name not in arrays], [name for name in arrays if name not in names]
    if missing or unknown:
        raise UsageError(
            say(
                "the feeds lack {missing} and have unknown {unknown}",
                "输入数据缺少 {missing}，多出 {unknown}",
                missing=missing or "nothing",
                unknown=unknown or "nothing",
            ),
            say("expected exactly: {names}", "应恰好为：{names}", names=", ".join(names)),
            say("rename the arrays in the .npz", "请修改 .npz 中的数组名"),
        )
    checked = {}
    for info in infos:
        array = np.asarray(arrays[info.name])
        wanted = _numpy_dtype(info.dtype)
        fits = info.shape is None or (
            len(info.shape) == array.ndim
            and all(not isinstance(dim, int) or dim == size for dim, size in zip(info.shape, array.shape, strict=True))
        )
        if not fits or not _takes(wanted, array):
            raise UsageError(
                say(
                    "feed `{name}` is {dtype}{shape}",
                    "输入 `{name}` 为 {dtype}{shape}",
                    name=info.name,
                    dtype=array.dtype,
                    shape=array.shape,
                ),
                say("expected {dtype}{shape}", "应为 {dtype}{shape}", dtype=info.dtype, shape=info.shape),
                say("correct the array or the --shape", "请修正数组或 --shape"),
            )
        with np.errstate(over="ignore"):  # a float too large for the narrower type becomes infinity, as it would on the device
            checked[info.name] = array.astype(wanted, copy=False)
    return checked


def _takes(wanted: np.dtype[Any], array: np.ndarray) -> bool:
    """Whether the array may be converted: a wider or narrower type of the same kind whose values fit."""
    if array.dtype == wanted or (array.dtype.kind != wanted.kind and np.can_cast(array.dtype, wanted)):
        return True
    if array.dtype.kind in "iu" and wanted.kind in "iu":
        limits = np.iinfo(wanted)
        return array.size == 0 or (limits.min <= int(array.min()) and int(array.max()) <= limits.max)
    # numpy has no bfloat16 of its own, and no file format for it.
    return array.dtype.kind == wanted.kind or (array.dtype.kind == "f" and wanted.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"))


def make_feeds(model: ir.Model, evaluator: Evaluator, cases: int = DEFAULT_CASES) -> FeedSet:
    """Generate seeded inputs that the model runs on.

    Floats are normally distributed; integers stay within what the model itself shows (the vocabulary of an embedding they index, the
    constant they are compared with). If the model refuses them, plainer values and other sizes for open dimensions are tried.

    Raises:
        EvaluationError: the model runs on none of them.
    """
    with evaluator.session(model) as session:
        failure: EvaluationError | None = None
        for sizes, style in _attempts(model):
            first = _draw(model, 0, sizes, style)
            try:
                outputs = [session.run(first)]
            except EvaluationError as error:
                failure = failure or error
                if error.stopped:
                    break
                continue
            feeds = [first]
            for seed in range(1, cases) if _has_freedom(model) else ():
                feed = _draw(model, seed, sizes, style)
                with contextlib.suppress(EvaluationError):  # a seed on which the model does not run is left out
                    outputs.append(session.run(feed))
                    feeds.append(feed)
            return FeedSet(tuple(feeds), "generated", model, tuple(outputs), session.engine)
    if failure is None:
        raise AssertionError("at least one attempt is always made")
    raise failure


def _has_freedom(model: ir.Model) -> bool:
    return bool(model_info(model).inputs)


def _attempts(model: ir.Model) -> Iterator[tuple[int, str]]:
    is_open = any(not isinstance(dim, int) for info in model_info(model).inputs for dim in info.shape or ())
    for style in ("natural", "ones", "zeros"):
        for size in _OPEN_SIZES if is_open else _OPEN_SIZES[:1]:
            yield size, style


def _draw(model: ir.Model, seed: int, open_size: int, style: str) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    feeds = {}
    for value in model.graph.inputs:
        if value.name in model.graph.initializers:
            continue
        info = _info(value)
        shape = tuple(dim if isinstance(dim, int) else (1 if axis == 0 else open_size) for axis, dim in enumerate(info.shape or ()))
        dtype = _numpy_dtype(info.dtype)
        if int(np.prod(shape, dtype=np.float64)) * max(dtype.itemsize, 1) > _BYTES_LIMIT:
            raise ShapeError(
                say(
                    "input `{name}` of shape {shape} needs more than 4 GB",
                    "输入 `{name}` 的形状 {shape} 需要超过 4 GB",
                    name=info.name,
                    shape=shape,
                ),
                say("expected a shape that can be run", "应为可以运行的形状"),
                say("correct --shape", "请修正 --shape"),
            )
        feeds[info.name] = _values(value, shape, dtype, random, style)
    return feeds


def _info(value: ir.Value) -> TensorInfo:
    from ..graph import tensor_info

    return tensor_info(value)


def _numpy_dtype(name: str) -> np.dtype[Any]:
    if name == "string":
        return np.dtype(object)
    if name.upper() not in ir.DataType.__members__ or name == "undefined":
        raise UsageError(
            say("an input of kind `{kind}` cannot be fed", "无法为 `{kind}` 类型的输入提供数据", kind=name),
            say("expected tensor inputs", "应为张量输入"),
            say("cut the model after it", "请在其后切分模型"),
        )
    return np.dtype(ir.DataType[name.upper()].numpy())


def _values(value: ir.Value, shape: tuple[int, ...], dtype: np.dtype[Any], random: np.random.Generator, style: str) -> Any:
    if dtype.kind == "O":
        return np.full(shape, "a", dtype=object)
    if style == "zeros":
        return np.zeros(shape, dtype)
    if style == "ones":
        return np.ones(shape, dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        choices, high, limited = integer_hints(value)
        limits = np.iinfo(dtype)
        choices, high = {choice for choice in choices if limits.min <= choice <= limits.max}, min(high, int(limits.max) + 1)
        array = np.asarray(random.integers(0, high, shape)).astype(dtype)
        if not choices:
            return array
        # An index that is also compared with a constant (a padding id) takes both kinds of value.
        chosen = random.choice(np.array(sorted(choices), dtype=dtype), shape)
        return np.where(random.random(shape) < 0.25, chosen, array) if limited else chosen
    return np.asarray(random.standard_normal(shape)).astype(dtype)


def integer_hints(value: ir.Value) -> tuple[set[int], int, bool]:
    """What the model says of an integer input: constants it is compared with, an exclusive upper limit, and whether that limit is known
    (it is 2 otherwise)."""
    choices: set[int] = set()
    limits: list[int] = []
    waiting, seen = [value], {value}
    while waiting:
        current = waiting.pop()
        for node, index in current.uses():
            if (node.op_type in _PASS_THROUGH and index == 0) or node.op_type == "Concat":
                new = [output for output in node.outputs if output not in seen]
                seen.update(new)
                waiting += new
            elif node.op_type == "Equal":
                other = constant_of(node.inputs[1 - index])
                if other is not None and other.size == 1 and other.dtype.kind in "biuf" and np.isfinite(other).all():
                    choices.add(int(other.reshape(-1)[0]))
            else:
                limits += _index_limit(node, index)
    return choices, max(min(limits, default=2), 1), bool(limits)


def _index_limit(node: ir.Node, index: int) -> list[int]:
    """Size of the axis that input ``index`` of ``node`` points into, if it is an index."""
    if index != 1 or node.op_type not in ("Gather", "GatherElements", "ScatterElements"):
        return []
    shape = static_shape(node.inputs[0])
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    return [shape[axis]] if shape and -len(shape) <= axis < len(shape) else []
