"""What a difference of the input does to the outputs: the model behind AIPP beside the model behind the training transform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from ..aipp.compare import Pair
from ..aipp.emulate import Layout
from ..case import Measurement
from ..graph import shared_or_new
from ..graph.evaluate import Evaluator
from ..proof.feeds import make_feeds
from ..proof.metrics import Comparison, compare, worst
from ..text import Text, say


def outputs_apart(
    model: ir.Model, name: str, pairs: Sequence[Pair], layout: Layout, evaluator: Evaluator | None = None
) -> tuple[list[Text], list[Measurement]]:
    """Run the model on both inputs of each image and compare what comes out.

    Args:
        name: of the image input; other inputs get made values.
        pairs: for each image the input that AIPP makes and that of the transform, [channels, height, width].

    Returns:
        Sentences and measurements: ``max_scaled`` of each output, and how often the largest element of an output is the same.

    Raises:
        EvaluationError: the model does not run.
    """
    compared: dict[str, list[Comparison]] = {}
    same: dict[str, list[bool]] = {}
    with shared_or_new(evaluator) as running:
        feed = dict(make_feeds(model, running).cases[0])
        with running.session(model) as session:
            for made, exact in pairs:
                first, second = (session.run({**feed, name: batch_of(item, feed[name], layout)}) for item in (made, exact))
                for output in second:
                    compared.setdefault(output, []).append(compare(first[output], second[output]))
                    same.setdefault(output, []).append(largest_at(first[output]) == largest_at(second[output]))
    notes, measurements = [], []
    for output, found in compared.items():
        agree, value = sum(same[output]), worst(found).max_scaled
        measurements.append(Measurement(f"{output} max_scaled behind AIPP", value, "", "simulator"))
        measurements.append(Measurement(f"{output} largest element agrees", agree / len(found), "", "simulator"))
        notes.append(
            say(
                "output `{name}` behind AIPP: {value:.2g} of its largest element away from the one behind the transform; the largest element is the same for {agree} of {count} images",
                "AIPP 之后的输出 `{name}`：与预处理之后的输出相差其最大元素的 {value:.2g}；{count} 幅图像中有 {agree} 幅的最大元素位置相同",
                name=output,
                value=value,
                agree=agree,
                count=len(found),
            )
        )
    return notes, measurements


def batch_of(image: Any, like: Any, layout: Layout) -> Any:
    """An image [channels, height, width] as the input ``like``, once for each place of its batch."""
    array = image if layout == "NCHW" else image.transpose(1, 2, 0)
    return np.repeat(array[None].astype(like.dtype), like.shape[0], axis=0)


def largest_at(output: Any) -> int:
    """Where the largest element of a flattened output is."""
    array = np.asarray(output)
    return int(array.reshape(-1).argmax()) if array.size and array.dtype.kind in "fiu" else 0
