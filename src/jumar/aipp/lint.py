"""All that can be said of an AIPP file without its images: form, rules, chip, numbers, model, command."""

from __future__ import annotations

from collections.abc import Sequence

from ..atc.options import Options
from ..case import TensorInfo
from .config import AippConfig, Located, parse_config
from .model_fit import check_model, check_options, image_size
from .schema import chip
from .suspect import check_numbers
from .validate import check_config


def lint_aipp(
    text: str, *, short: str | None = None, inputs: Sequence[TensorInfo] = (), options: Options | None = None, layout: str = "NCHW"
) -> tuple[AippConfig, list[Located]]:
    """Judge an AIPP file.

    Args:
        short: short name of the SoC; None judges by what holds everywhere.
        inputs: of the model, in their order; none where it is not known.
        options: of the call that names the file.
        layout: of the image inputs, NCHW or NHWC.

    Returns:
        What the file says, and what is wrong, by line.
    """
    config, found = parse_config(text)
    target = None if short is None else chip(short)
    if options is not None and options.get("input_format") in ("NCHW", "NHWC"):
        layout = options.get("input_format")
    sizes = {rank: size[1:] for rank, tensor in enumerate(inputs) if (size := image_size(tensor, layout)) is not None}
    found += check_config(config, target, {rank: (height, width) for rank, (height, width) in sizes.items()})
    for op in config.ops:
        found += check_numbers(op, "float16" if target is None else target.var)
    if inputs:
        found += check_model(config, inputs, layout)
    if options is not None:
        found += check_options(config, options, inputs)
    return config, sorted(found, key=lambda item: item[0])
