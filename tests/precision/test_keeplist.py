"""What to keep: few nodes, enough by a run of its own, in files that ATC's own checks accept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from jumar import verify_precision
from jumar.errors import UsageError
from jumar.graph import Evaluator, infer_shapes
from jumar.precision import emulate, find_mode, make_plan
from jumar.precision.keeplist import KeepSearch, keep_files, work_shares
from jumar.precision.localise import localise
from jumar.precision.metrics import make_goal
from jumar.precision.table import per_node
from jumar.targets import find_target

BODY = """{
    h = MatMul(x, w)
    t = Tanh(h)
    big = Add(t, offset)
    back = Sub(big, offset)
    r = Relu(back)
    z = MatMul(r, w)
}"""


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator() as running:
        yield running


def made() -> ir.Model:
    model = ir.from_onnx_text(
        f'<ir_version: 8, opset_import: ["" : 13]>\nmade (float[8,16] x, float[16,16] w, float offset) => (float[8,16] z) {BODY}'
    )
    values = {"w": np.random.default_rng(0).standard_normal((16, 16)), "offset": np.array(4000.0)}
    for value in list(model.graph.inputs)[1:]:
        model.graph.inputs.remove(value)
        value.const_value = ir.tensor(values[value.name or ""].astype(np.float32), name=value.name)
        model.graph.register_initializer(value)
    for node in model.graph:
        node.name = f"make_{node.outputs[0].name}"
    infer_shapes(model)
    return model


def feed() -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(1).standard_normal((8, 16)).astype(np.float32)}


def search(evaluator: Evaluator, model: ir.Model, mode: str = "fp16", soc: str | None = None) -> KeepSearch:
    table = per_node(model, make_plan(model, find_mode(mode)), evaluator, [feed()])
    target = None if soc is None else find_target(soc)
    return KeepSearch(model, find_mode(mode), target, make_goal(), [feed()], table.right, evaluator)


def test_the_fewest_nodes_are_found_and_are_enough(evaluator: Evaluator) -> None:
    model = made()
    plan = make_plan(model, find_mode("fp16"))
    rows = per_node(model, plan, evaluator, [feed()]).rows
    keep = search(evaluator, model).search(plan, rows, localise(model, plan, rows, ["z"]))
    assert keep.enough
    assert set(keep.nodes) == {"make_big", "make_back"}
    assert set(keep.types) == {"Add", "Sub"}
    assert keep.tries <= 20
    right = evaluator.run(model, feed())
    device = evaluator.run(emulate(model, find_mode("fp16"), keep.nodes), feed())
    assert make_goal().values([right], [device])["z"] >= 0.999
    for name in keep.nodes:  # none can be left out
        fewer = evaluator.run(emulate(model, find_mode("fp16"), [other for other in keep.nodes if other != name]), feed())
        assert make_goal().values([right], [fewer])["z"] < 0.999


def test_products_cannot_be_kept_where_the_core_has_none(evaluator: Evaluator) -> None:
    model = made()
    with pytest.raises(UsageError, match="make_h"):
        make_plan(model, find_mode("fp16"), ["make_h"], find_target("Ascend310P3"))
    assert make_plan(model, find_mode("fp16"), ["make_h"], find_target("Ascend910B3")).of(model.graph.node(0)) == "keep"
    with pytest.raises(UsageError, match="no node"):
        make_plan(model, find_mode("fp16"), ["nothing"])


def test_a_goal_out_of_reach_is_said_to_be(evaluator: Evaluator) -> None:
    """On a core without float32 products, more than they give cannot be had."""
    model = made()
    plan = make_plan(model, find_mode("fp16"), (), find_target("Ascend310P3"))
    rows = per_node(model, plan, evaluator, [feed()]).rows
    found = search(evaluator, model, soc="Ascend310P3")
    found.goal = make_goal("max_abs", 1e-7)
    keep = found.search(plan, rows, localise(model, plan, rows, ["z"]))
    assert not keep.enough
    assert keep.nodes == ()


def test_files_for_a_mixed_mode(evaluator: Evaluator) -> None:
    model = made()
    mode, target = find_mode("mixed"), find_target("Ascend910B3")
    plan = make_plan(model, mode, (), target)
    rows = per_node(model, plan, evaluator, [feed()]).rows
    keep = search(evaluator, model, "mixed", "Ascend910B3").search(plan, rows, localise(model, plan, rows, ["z"]))
    files = keep_files(keep, model, mode, target)
    assert set(files) == {"keep_dtype.cfg", "customize_dtypes.cfg", "mixlist.json"}
    assert '"black-list"' in files["mixlist.json"]
    assert "make_big::InputDtype:float32,float32,OutputDtype:float32" in files["customize_dtypes.cfg"].splitlines()


def test_the_files_pass_jumars_own_lint(tmp_path: Path) -> None:
    from jumar import lint

    model = made()
    case = verify_precision(model, "mixed", soc="Ascend910B3", keep_list=tmp_path / "keep")
    written = [Path(item.path) for item in case.record.artifacts]
    assert {path.name for path in written} == {"keep_dtype.cfg", "customize_dtypes.cfg", "mixlist.json"}
    assert not lint(written).findings


def test_shares_of_the_work_add_up() -> None:
    model = made()
    shares = work_shares(model, [node.name or "" for node in model.graph])
    assert sum(shares.values()) == pytest.approx(1.0, abs=1e-9)
    assert shares["make_h"] == max(shares.values())
