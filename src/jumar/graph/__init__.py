"""Models as graphs: load, save, extract, edit, fold, evaluate. The only room that edits graphs."""

from .digest import Digester, file_sha256
from .edit import Builder, capture_model, copy_model, extract_model, rename_value, replace_value, used_names
from .evaluate import Evaluator, Session, shared_or_new
from .load import load, model_info, tensor_info
from .save import save, write_atomic
from .shapes import constant_of, infer_shapes, known_shape, pin_shapes, static_shape, symbol_values
from .walk import all_nodes, model_opset, node_place, source_line

__all__ = [
    "Builder",
    "Digester",
    "Evaluator",
    "Session",
    "all_nodes",
    "capture_model",
    "constant_of",
    "copy_model",
    "extract_model",
    "file_sha256",
    "infer_shapes",
    "known_shape",
    "load",
    "model_info",
    "model_opset",
    "node_place",
    "pin_shapes",
    "rename_value",
    "replace_value",
    "save",
    "shared_or_new",
    "source_line",
    "static_shape",
    "symbol_values",
    "tensor_info",
    "used_names",
    "write_atomic",
]
