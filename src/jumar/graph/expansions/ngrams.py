"""TfIdfVectorizer of integers: every window compared with every n-gram of the pool."""

from __future__ import annotations

import itertools

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import reduce
from ..opset.step import Array, Step
from .base import expands
from .common import reshape, within


@expands("TfIdfVectorizer")
def count_ngrams(step: Step) -> None:
    """How often each n-gram occurs at each distance between its words, times its weight.

    An n-gram of one word is counted once however many distances there are (as the operator's definition and ONNX Runtime have it).
    """
    pool = step.attr("pool_int64s")
    if pool is None:
        step.refuse(say("its words are strings", "其词为字符串"))
    shape = step.static()
    batch, words = (1, shape[0]) if len(shape) == 1 else shape
    places = np.asarray(step.attr("ngram_indexes"), np.int64)
    size = int(places.max()) + 1
    grams = _grams(step, np.asarray(pool, np.int64), places)
    data = reshape(step, step.needed(0), [batch, words])
    counts, found = [], list[Array]()
    for length, (table, columns) in grams.items():
        if not int(step.attr("min_gram_length")) <= length <= int(step.attr("max_gram_length")):
            continue
        count = _count(step, data, table, words)
        if count is not None:
            counts.append(count)
            found.append(columns)
    if not counts:
        step.refuse(say("no n-gram of its pool can occur", "词表中的 n-gram 都不可能出现"))
    whole = counts[0] if len(counts) == 1 else step.op("Concat", *counts, axis=1)
    columns = np.concatenate(found)
    select = np.zeros((len(columns), size), np.float32)
    select[np.arange(len(columns)), columns] = 1
    within(step, select.size)
    result = _weighted(step, step.op("MatMul", whole, step.const(select, np.float32, "columns")), size)
    step.finish(reshape(step, result, [size]) if len(shape) == 1 else result)


def _grams(step: Step, pool: Array, places: Array) -> dict[int, tuple[Array, Array]]:
    """The n-grams of each length, one a row, and the output column of each."""
    starts = [*(int(start) for start in step.attr("ngram_counts")), len(pool)]
    grams, number = {}, 0
    for length, (start, end) in enumerate(itertools.pairwise(starts), 1):
        rows = (end - start) // length
        if rows:
            grams[length] = pool[start:end].reshape(rows, length), places[number : number + rows]
        number += rows
    return grams


def _count(step: Step, data: ir.Value, table: Array, words: int) -> ir.Value | None:
    """How often each row of the table occurs in each row of the data; None where the data is too short for any."""
    length = table.shape[1]
    windows = []
    for distance in range(1, int(step.attr("max_skip_count")) + 2 if length > 1 else 2):
        last = words - (length - 1) * distance
        windows += [[start + place * distance for place in range(length)] for start in range(last)]
    if not windows:
        return None
    batch = (data.shape or [1])[0]
    within(step, int(batch if isinstance(batch, int) else 1) * len(windows) * table.size)
    dtype = step.dtype().numpy()
    if table.min() < np.iinfo(dtype).min or table.max() > np.iinfo(dtype).max:
        step.refuse(say("a word of its pool does not fit the input's type", "词表中的词超出输入类型的范围"))
    # [batch, windows, 1, length] with [n-grams, length]
    read = step.op("Gather", data, step.ints(np.array(windows)[:, None, :], "windows"), axis=1)
    same = step.op("Equal", read, step.const(table, dtype, "pool"))
    hits = reduce(step, "ReduceMin", step.cast(same, ir.DataType.FLOAT), [3], keepdims=0)
    return reduce(step, "ReduceSum", hits, [1], keepdims=0)


def _weighted(step: Step, counts: ir.Value, size: int) -> ir.Value:
    mode, given = step.attr("mode"), step.attr("weights")
    if mode == "TF":
        return counts
    weights = np.ones(size, np.float32)
    if given is not None:
        # Weights are listed as the n-grams are, which is not the order of the columns.
        places = np.asarray(step.attr("ngram_indexes"), np.int64)
        weights[places] = np.asarray(given, np.float32)[: len(places)]
    constant = step.const(weights, np.float32, "weights")
    if mode == "TFIDF":
        return step.op("Mul", counts, constant)
    there = step.op("Greater", counts, step.const(0.5, np.float32, "half"))
    return step.op("Where", there, constant, step.const(0, np.float32, "nothing"))
