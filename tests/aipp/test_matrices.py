"""Colour matrices: made from the standards they equal the tables of CANN, and each is recognised, also when rounded otherwise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumar.aipp.config import AippOp
from jumar.aipp.matrices import ColourMatrix, all_matrices, decoding, encoding, find_matrix, identify
from jumar.errors import UsageError
from jumar.targets.tables import table

SPANS = {"N": "narrow", "W": "full"}


def block(matrix: ColourMatrix, **more: int) -> AippOp:
    name = "YUV420SP_U8" if matrix.decode else "RGB888_U8"
    return AippOp({"aipp_mode": "static", "input_format": name, "csc_switch": True, **matrix.fields(), **more})


def test_the_tables_of_cann_follow_from_the_standards() -> None:
    known = table("aipp.json")["matrices"]
    for name, facts in known.items():
        if name == "RGB888_to_GRAY":
            continue
        source, _, rest = name.partition("_to_")
        order, _, code = rest.partition("_")
        make = decoding if source == "YUV420SP" else encoding
        made = make(code[:3], SPANS[code[3]], order if order in ("RGB", "BGR") else "RGB")
        assert list(made.elements) == [element for row in facts["matrix"] for element in row], name
        assert list(made.bias) == facts.get("input_bias", facts.get("output_bias"))
    assert len(known) == 10


@given(st.sampled_from(all_matrices()), st.integers(0, 8), st.integers(-2, 2))
def test_a_matrix_is_recognised_in_its_own_and_in_other_roundings(matrix: ColourMatrix, place: int, change: int) -> None:
    found = identify(block(matrix))
    assert found.matrix == matrix and found.exact and matrix.name in str(found.text)
    elements = list(matrix.elements)
    elements[place] += change
    near = identify(block(matrix, **{f"matrix_r{place // 3}c{place % 3}": elements[place]}))
    assert near.matrix == matrix and near.exact == (change == 0)


def test_another_matrix_has_no_name() -> None:
    assert identify(block(decoding("601", "narrow"), matrix_r0c0=250)).matrix is None
    assert identify(block(decoding("601", "narrow"), input_bias_0=0)).matrix is None
    gray = {f"matrix_r{index // 3}c{index % 3}": value for index, value in enumerate((76, 150, 30, 0, 0, 0, 0, 0, 0))}
    assert identify(AippOp({"input_format": "RGB888_U8", "csc_switch": True, **gray})).gray


@pytest.mark.parametrize(
    ("name", "expected"), [("601", ("601", "narrow")), ("bt709-full", ("709", "full")), ("601N", ("601", "narrow")), ("jpeg", ("601", "full")), ("BT.2020_tv", ("2020", "narrow"))]
)  # fmt: skip
def test_names(name: str, expected: tuple[str, str]) -> None:
    assert find_matrix(name) == expected


@pytest.mark.parametrize("name", ["", "470", "601-wider", "full"])
def test_wrong_names(name: str) -> None:
    with pytest.raises(UsageError, match="no colour standard"):
        find_matrix(name)
