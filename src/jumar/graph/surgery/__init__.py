"""The public editing functions: each takes a model and returns a new one."""

from .batch import change_batch
from .concat import concat
from .cut import Cut, cut, extract, pin, set_inputs, set_outputs
from .rename import rename
from .replace import replace, replace_between
from .splice import insert, remove
from .streaming import StepModel, step_model

__all__ = [
    "Cut",
    "StepModel",
    "change_batch",
    "concat",
    "cut",
    "extract",
    "insert",
    "pin",
    "remove",
    "rename",
    "replace",
    "replace_between",
    "set_inputs",
    "set_outputs",
    "step_model",
]
