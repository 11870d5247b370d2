"""Planted faults: in fifty random graphs the node that was made to lose precision is the first that is named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir
import pytest

from jumar.graph import Evaluator, infer_shapes
from jumar.precision import find_mode, make_plan
from jumar.precision.localise import guilty, localise
from jumar.precision.metrics import make_goal
from jumar.precision.table import per_node


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator() as running:
        yield running


@dataclass
class Net:
    """A random network that is harmless in float16, with one fault planted in it."""

    random: np.random.Generator
    lines: list[str] = field(default_factory=list)
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    last: str = "x"
    count: int = 0

    def weight(self, array: np.ndarray | float) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(array, np.float32)
        return name

    def add(self, op: str, *inputs: str, attributes: str = "") -> str:
        self.count += 1
        name = f"t{self.count}"
        self.lines.append(f"{name} = {op}{attributes}({', '.join(inputs)})")
        return name

    def harmless(self) -> None:
        kind = self.random.integers(0, 6)
        if kind == 0:
            self.last = self.add("MatMul", self.last, self.weight(self.random.standard_normal((16, 16)) / 4))
        elif kind == 1:
            self.last = self.add("Add", self.last, self.weight(self.random.standard_normal(16)))
        elif kind == 2:
            self.last = self.add("Mul", self.last, self.weight(self.random.uniform(0.8, 1.2, 16)))
        elif kind == 3:
            self.last = self.add("Tanh", self.last)
        elif kind == 4:
            self.last = self.add("LeakyRelu", self.last, attributes="<alpha = 0.5>")
        else:
            self.last = self.add("Add", self.last, self.add("Sigmoid", self.last))

    def fault(self, kind: str) -> str:
        """Plant one; returns the tensor at which precision is lost."""
        if kind == "offset":
            lost = self.add("Add", self.last, self.weight(4096.0))
            self.last = self.add("Sub", lost, self.weight(4096.0))
        elif kind == "overflow":
            lost = self.add("Mul", self.last, self.weight(1e6))
            self.last = self.add("Mul", lost, self.weight(1e-6))
        elif kind == "underflow":
            lost = self.add("Mul", self.last, self.weight(1e-9))
            self.last = self.add("Div", lost, self.weight(1e-7))
        elif kind == "exp":
            lost = self.add("Exp", self.add("Add", self.last, self.weight(12.0)))
            self.last = self.add("Add", self.add("Log", lost), self.weight(-12.0))
        else:
            lost = self.add("MatMul", self.last, self.weight(self.random.standard_normal((16, 16)) * 1e5))
            self.last = self.add("Mul", lost, self.weight(1e-5))
        return lost

    def model(self) -> ir.Model:
        text = "{" + "\n".join([*self.lines, f"z = Identity({self.last})"]) + "}"
        shapes = {name: "" if array.ndim == 0 else f"[{','.join(map(str, array.shape))}]" for name, array in self.weights.items()}
        ports = ", ".join(["float[8,16] x", *(f"float{shape} {name}" for name, shape in shapes.items())])
        model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 13]>\nnet ({ports}) => (float[8,16] z) {text}')
        for value in list(model.graph.inputs)[1:]:
            model.graph.inputs.remove(value)
            value.const_value = ir.tensor(self.weights[value.name or ""], name=value.name)
            model.graph.register_initializer(value)
        for node in model.graph:
            node.name = f"make_{node.outputs[0].name}"
        infer_shapes(model)
        return model


KINDS = ("offset", "overflow", "underflow", "exp", "product")


@pytest.mark.parametrize("seed", range(50))
def test_the_planted_fault_is_the_first_named(evaluator: Evaluator, seed: int) -> None:
    random = np.random.default_rng(seed)
    net = Net(random)
    before, after = random.integers(1, 8, 2)
    for _ in range(before):
        net.harmless()
    lost = net.fault(KINDS[seed % len(KINDS)])
    for _ in range(after):
        net.harmless()
    model = net.model()
    plan = make_plan(model, find_mode("fp16"))
    table = per_node(model, plan, evaluator, [{"x": random.standard_normal((8, 16)).astype(np.float32)}])
    found = localise(model, plan, table.rows, ["z"])
    assert found.culprits, "an error is born"
    assert found.culprits[0].row.tensor == lost, found.culprits[0].row
    keys = {"offset": "large-values", "overflow": "overflow", "underflow": "underflow", "exp": "exp-log", "product": "overflow"}
    assert found.culprits[0].pattern.key == keys[KINDS[seed % len(KINDS)]]


@pytest.mark.parametrize("seed", range(5))
def test_a_network_without_fault_reaches_the_bound(evaluator: Evaluator, seed: int) -> None:
    """So the test above finds the fault, not some node."""
    net = Net(np.random.default_rng(seed))
    for _ in range(12):
        net.harmless()
    model = net.model()
    plan = make_plan(model, find_mode("fp16"))
    table = per_node(model, plan, evaluator, [{"x": net.random.standard_normal((8, 16)).astype(np.float32)}])
    goal = make_goal()
    assert not goal.missed(goal.values(table.right, table.device))


def test_a_layer_norm_written_out_gives_silent_zeros(evaluator: Evaluator) -> None:
    """Large activations, as in the image encoder of SAM: the square is infinite, and what is divided by its root is zero, not NaN."""
    body = """{
        two = Constant<value = float {2.0}>()
        eps = Constant<value = float {0.000001}>()
        m = ReduceMean<axes = [-1]>(x)
        d = Sub(x, m)
        p = Pow(d, two)
        v = ReduceMean<axes = [-1]>(p)
        e = Add(v, eps)
        s = Sqrt(e)
        z = Div(d, s)
    }"""
    model = ir.from_onnx_text(f'<ir_version: 8, opset_import: ["" : 13]>\nnorm (float[4,64] x) => (float[4,64] z) {body}')
    for node in model.graph:
        node.name = f"make_{node.outputs[0].name}"
    infer_shapes(model)
    plan = make_plan(model, find_mode("fp16"))
    x = (np.random.default_rng(0).standard_normal((4, 64)) * 700).astype(np.float32)
    table = per_node(model, plan, evaluator, [{"x": x}])
    assert not table.device[0]["z"].any(), "all zeros"
    first = localise(model, plan, table.rows, ["z"]).culprits[0]
    assert first.node.name == "make_p"
    assert first.pattern.key == "layer-norm"


def test_a_loss_that_does_not_matter_is_not_guilty(evaluator: Evaluator) -> None:
    """A gate near 0.5 loses its deviations and nobody minds; the offset behind it is what spoils the output."""
    body = """{
        small = Mul(x, tiny)
        gate = Sigmoid(small)
        open = Mul(x, gate)
        far = Add(open, offset)
        back = Sub(far, offset)
        z = Identity(back)
    }"""
    text = f'<ir_version: 8, opset_import: ["" : 13]>\nnet (float[8,16] x, float tiny, float offset) => (float[8,16] z) {body}'
    model = ir.from_onnx_text(text)
    for value, number in zip(list(model.graph.inputs)[1:], (1e-4, 4096.0), strict=True):
        model.graph.inputs.remove(value)
        value.const_value = ir.tensor(np.array(number, np.float32), name=value.name)
        model.graph.register_initializer(value)
    for node in model.graph:
        node.name = f"make_{node.outputs[0].name}"
    infer_shapes(model)
    plan, goal = make_plan(model, find_mode("fp16")), make_goal()
    feeds = [{"x": np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)}]
    table = per_node(model, plan, evaluator, feeds)
    found = localise(model, plan, table.rows, ["z"])
    assert "make_gate" in [item.node.name for item in found.culprits]
    names = [item.node.name for item in guilty(found, model, plan, goal, feeds, table.right, evaluator).culprits]
    assert names[0] == "make_far"
    assert "make_gate" not in names
