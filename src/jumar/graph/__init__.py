"""Models as graphs: load, save, extract, edit, fold, evaluate. The only room that edits graphs.

Public, and described in ``docs/en/graph-api.md``: load, save, extract, cut, insert, replace, replace_between, remove, rename, concat,
set_inputs, set_outputs, pin, change_batch, step_model. They return new models. The rest edits in place and serves the rules.
"""

from .digest import Digester, file_sha256
from .edit import Builder, capture_model, copy_model, extract_model, rename_value, replace_value, used_names
from .evaluate import Evaluator, Session, shared_or_new
from .load import load, model_info, tensor_info
from .save import save, write_atomic
from .shapes import agreed_shapes, constant_of, infer_shapes, known_shape, pin_shapes, static_shape, symbol_values
from .surgery import (
    Cut,
    StepModel,
    change_batch,
    concat,
    cut,
    extract,
    insert,
    pin,
    remove,
    rename,
    replace,
    replace_between,
    set_inputs,
    set_outputs,
    step_model,
)
from .walk import all_nodes, model_opset, node_place, source_line

__all__ = [
    "Builder",
    "Cut",
    "Digester",
    "Evaluator",
    "Session",
    "StepModel",
    "agreed_shapes",
    "all_nodes",
    "capture_model",
    "change_batch",
    "concat",
    "constant_of",
    "copy_model",
    "cut",
    "extract",
    "extract_model",
    "file_sha256",
    "infer_shapes",
    "insert",
    "known_shape",
    "load",
    "model_info",
    "model_opset",
    "node_place",
    "pin",
    "pin_shapes",
    "remove",
    "rename",
    "rename_value",
    "replace",
    "replace_between",
    "replace_value",
    "save",
    "set_inputs",
    "set_outputs",
    "shared_or_new",
    "source_line",
    "static_shape",
    "step_model",
    "symbol_values",
    "tensor_info",
    "used_names",
    "write_atomic",
]
