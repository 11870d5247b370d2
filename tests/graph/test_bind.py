"""Inputs that become weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from jumar import fix
from jumar.errors import UsageError
from jumar.graph import Evaluator, load
from jumar.graph.bind import bind_inputs
from jumar.proof import Interface
from jumar.verbs.common import parse_constants

TOPK = "agraph (float[2,5] x, int64[1] k) => (float[2,n] values, int64[2,n] places) { values, places = TopK(x, k) }"


@pytest.mark.parametrize("given", [2, [2], np.array([2], np.int32)])
def test_a_value_takes_the_dtype_and_shape_of_the_input(given: Any, save_text: Callable[..., Path]) -> None:
    bound, arrays = bind_inputs(load(save_text(TOPK)), {"k": given})
    assert [value.name for value in bound.graph.inputs] == ["x"]
    assert arrays["k"].dtype == np.int64 and arrays["k"].tolist() == [2]
    assert bound.graph.outputs[0].shape == ir.Shape([2, 2])


@pytest.mark.parametrize(("given", "says"), [({"q": 1}, "no input `q`"), ({"k": 1.5}, "does not fit"), ({"k": [1, 2]}, "does not fit")])
def test_what_does_not_fit_is_an_error(given: dict[str, Any], says: str, save_text: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        bind_inputs(load(save_text(TOPK)), given)
    assert "--set-const" in caught.value.render("en") and "\n" not in caught.value.render("zh")


def test_the_caller_goes_on_passing_it_and_another_value_is_refused(save_text: Callable[..., Path], evaluator: Evaluator) -> None:
    path = save_text(TOPK)
    case = fix(path, soc="Ascend310P3", constants={"k": 2}, evaluator=evaluator)
    assert case.record.verdict == "ready"
    step = next(step for step in case.record.steps if step.name == "bound-input")
    assert step.options["assumptions"] == [{"tensor": "k", "value": [2]}]
    ports = Interface.of(load(path)).changed(case.record.interface)
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    found = ports.to_caller(evaluator.run(case.model, ports.to_model({"x": x, "k": np.array([2])})))
    assert found["values"].tolist() == [[4, 3], [9, 8]] and found["places"].dtype == np.int64
    with pytest.raises(UsageError, match="`k` is"):
        ports.to_model({"x": x, "k": np.array([3])})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k=3", {"k": 3}),
        ("k=[3]", {"k": [3]}),
        ("s=1,2.5;b=true", {"s": [1, 2.5], "b": True}),
        ("a=b=4", {"a=b": 4}),
        ("k=-1e3", {"k": -1000.0}),
    ],
)
def test_constants_are_read(text: str, expected: dict[str, Any]) -> None:
    assert parse_constants([text]) == expected


@pytest.mark.parametrize("text", ["k", "k=", "=3", "k=x", "k=1,,2"])
def test_what_is_no_constant_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="not a constant"):
        parse_constants([text])
