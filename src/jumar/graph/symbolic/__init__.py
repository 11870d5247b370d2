"""Shape arithmetic evaluated in this process: exact integers, and expressions where dimensions are not known yet."""

from .arithmetic import is_equal, is_less
from .evaluate import DEFAULT_LIMIT, SymbolicResult, evaluate_symbolically
from .expr import Element, Expr, bounds, evaluate, symbol
from .known import Known
from .operations import is_nonzero
from .profiles import Profiles, per_profile
from .targets import constant_target, is_same_shape, reshape_target, same_as_input, shape_operands

__all__ = [
    "DEFAULT_LIMIT",
    "Element",
    "Expr",
    "Known",
    "Profiles",
    "SymbolicResult",
    "bounds",
    "constant_target",
    "evaluate",
    "evaluate_symbolically",
    "is_equal",
    "is_less",
    "is_nonzero",
    "is_same_shape",
    "per_profile",
    "reshape_target",
    "same_as_input",
    "shape_operands",
    "symbol",
]
