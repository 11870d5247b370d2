"""What compiling says and tells of the AIPP file that it inserts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..aipp.lint import lint_aipp
from ..aipp.model_fit import image_size
from ..atc.options import parse_argv
from ..case import Finding, TensorInfo
from ..targets import Target
from .aipp_check import finding_of
from .aipp_common import read_aipp, summary


def judge_inserted(
    path: Path, argv: Sequence[str], inputs: Sequence[TensorInfo], target: Target
) -> tuple[tuple[Finding, ...], list[dict[str, Any]]]:
    """An AIPP file beside the command that names it and the model it is inserted into.

    Returns:
        Findings AI101 to AI107, and what each block takes and gives, for the manifest: the runtime must hand over ``bytes`` of ``format``.

    Raises:
        UsageError: the file is no text.
    """
    text, name = read_aipp(path)
    options = parse_argv(list(argv)[1:])[0]
    config, problems = lint_aipp(text, short=target.soc.short, inputs=inputs, options=options)
    layout = options.get("input_format") if options.get("input_format") in ("NCHW", "NHWC") else "NCHW"
    blocks = []
    for op in config.ops:
        rank = int(op["related_input_rank"])
        size = image_size(inputs[rank], layout) if rank < len(inputs) else None
        blocks.append({**summary(op, None if size is None else size[1:]), **({"name": inputs[rank].name} if rank < len(inputs) else {})})
    return tuple(finding_of(problem, Path(name).name, line) for line, problem in problems), blocks
