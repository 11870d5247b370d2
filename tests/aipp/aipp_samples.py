"""AIPP blocks that the tests share, and any block at all."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from jumar.aipp.config import AippConfig, AippOp
from jumar.aipp.schema import fields, formats

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
GOOD = """
aipp_op {
  aipp_mode: static
  related_input_rank: 0
  input_format: RGB888_U8
  src_image_size_w: 8
  src_image_size_h: 8
  csc_switch: false
  rbuv_swap_switch: false
  min_chn_0: 123.675
  min_chn_1: 116.28
  min_chn_2: 103.53
  var_reci_chn_0: 0.0171248
  var_reci_chn_1: 0.017507
  var_reci_chn_2: 0.0174292
}
"""


def changed(*lines: str, without: tuple[str, ...] = ()) -> str:
    """The good block with other lines in place of its own of the same name; the last line of a name counts."""
    last = {line.split(":")[0].strip(): line for line in lines}
    names = {*last, *without}
    kept = [line for line in GOOD.strip().splitlines()[1:-1] if line.split(":")[0].strip() not in names]
    return "\n".join(["aipp_op {", *kept, *(line for name, line in last.items() if name not in without), "}"]) + "\n"


def _values(name: str) -> st.SearchStrategy[Any]:
    facts = fields()[name]
    if facts.type == "bool":
        return st.booleans()
    if facts.type == "float":
        return st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 1.0, 0.1, 123.675, 1e300])
    if facts.type == "string":
        return st.text(max_size=8)
    if name == "input_format":
        return st.sampled_from(sorted(formats()))
    if facts.type == "enum":
        return st.sampled_from(["static", "dynamic", "undefined"])
    return st.integers(0 if facts.type == "uint32" else -(1 << 31), (1 << 31) - 1)


def any_op() -> st.SearchStrategy[AippOp]:
    return st.fixed_dictionaries({}, optional={name: _values(name) for name in fields()}).map(AippOp)


def any_config() -> st.SearchStrategy[AippConfig]:
    return st.lists(any_op(), min_size=1, max_size=3).map(lambda ops: AippConfig(tuple(ops)))
