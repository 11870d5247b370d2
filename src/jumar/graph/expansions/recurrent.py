"""GRU, LSTM and RNN unrolled over a known number of steps, by the equations of the ONNX standard.

The product with the input is made for all steps at once; a step is one product with the state, the gates, and the new state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import unsqueeze
from ..opset.step import Step
from .base import expands

# What keeps the operator is registered, and so preferred, before what writes its steps out.
from .directions import sides_of

NODE_LIMIT = 4000
"""Nodes that a recurrent operator may be unrolled into."""
_GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
_DEFAULTS = {"GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh"), "RNN": ("Tanh",)}
# Nodes of a step: of the plain cell, and what a clip and lengths of the sequences add.
_NODES_A_STEP = {"GRU": (12, 2, 3), "LSTM": (12, 4, 4), "RNN": (3, 1, 3)}
_PEEPHOLE_NODES = 6
# Of the functions with parameters, those of the standard where none are given.
_ALPHA = {"leakyrelu": 0.01, "thresholdedrelu": 1.0, "hardsigmoid": 0.2, "elu": 1.0, "affine": 1.0, "scaledtanh": 1.0}
_BETA = {"hardsigmoid": 0.5, "affine": 0.0, "scaledtanh": 1.0}

Function = Callable[[Step, ir.Value], ir.Value]


def _function(name: str, alpha: float, beta: float) -> Function:
    """An activation of the standard's list."""

    def scaled(step: Step, value: ir.Value, factor: float) -> ir.Value:
        return value if factor == 1 else step.op("Mul", value, step.like(factor))

    functions: dict[str, Function] = {
        "relu": lambda step, value: step.op("Relu", value),
        "tanh": lambda step, value: step.op("Tanh", value),
        "sigmoid": lambda step, value: step.op("Sigmoid", value),
        "softsign": lambda step, value: step.op("Softsign", value),
        "softplus": lambda step, value: step.op("Softplus", value),
        "elu": lambda step, value: step.op("Elu", value, alpha=alpha),
        "leakyrelu": lambda step, value: step.op("LeakyRelu", value, alpha=alpha),
        "hardsigmoid": lambda step, value: step.op("HardSigmoid", value, alpha=alpha, beta=beta),
        "thresholdedrelu": lambda step, value: step.op("Where", step.op("Greater", value, step.like(alpha)), value, step.like(0)),
        "affine": lambda step, value: step.op("Add", scaled(step, value, alpha), step.like(beta)),
        "scaledtanh": lambda step, value: scaled(step, step.op("Tanh", scaled(step, value, beta)), alpha),
    }
    return functions[name]


def _activations(step: Step, directions: int) -> list[list[Function]]:
    """The functions of each direction.

    Raises:
        Unconvertible: the standard does not have one of them, or their number does not fit.
    """
    wanted = list(step.attr("activations", _DEFAULTS[step.node.op_type] * directions))
    alphas, betas = iter(step.attr("activation_alpha", ())), iter(step.attr("activation_beta", ()))
    count = len(_DEFAULTS[step.node.op_type])
    found = []
    for name in (item.lower() for item in wanted):
        alpha = next(alphas, _ALPHA[name]) if name in _ALPHA else 0.0
        beta = next(betas, _BETA[name]) if name in _BETA else 0.0
        try:
            found.append(_function(name, float(alpha), float(beta)))
        except KeyError:
            step.refuse(say("the standard has no activation {name}", "标准中没有激活函数 {name}", name=name))
    if len(found) != count * directions:
        step.refuse(
            say(
                "{given} activations instead of {wanted}",
                "激活函数为 {given} 个，应为 {wanted} 个",
                given=len(found),
                wanted=count * directions,
            )
        )
    return [found[start : start + count] for start in range(0, len(found), count)]


@dataclass
class _Direction:
    """One direction: weights as matrices to multiply with from the right, and the states as [1, batch, hidden]."""

    inputs: ir.Value  # [input, gates * hidden]
    states: ir.Value  # [hidden, gates * hidden]
    matrices: list[ir.Value]  # of a GRU: the states' part of the gates and of the candidate
    early_bias: ir.Value | None  # [gates * hidden], of input and state, added for all steps at once
    late_bias: ir.Value | None  # [hidden], of a GRU's candidate that is reset after the product
    peepholes: list[ir.Value]
    hidden: ir.Value
    cell: ir.Value | None
    functions: list[Function]
    backwards: bool


class _Unrolled:
    """A recurrent node and what its steps share."""

    def __init__(self, step: Step) -> None:
        self.step, self.kind = step, step.node.op_type
        self.layout = int(step.attr("layout", 0))
        shape = step.static()
        self.batch, self.steps = (shape[0], shape[1]) if self.layout else (shape[1], shape[0])
        self.size = step.static(2)[-1]
        self.clip = step.attr("clip")
        backwards = sides_of(step.attr("direction", "forward"))
        self.directions = len(backwards)
        plain, clipped, ending = _NODES_A_STEP[self.kind]
        each = plain + (clipped if self.clip is not None else 0) + (ending if step.input(4) is not None else 0)
        each += _PEEPHOLE_NODES if self.kind == "LSTM" and step.input(7) is not None else 0
        nodes = self.steps * self.directions * each
        if nodes > NODE_LIMIT or not self.steps:
            step.refuse(
                say(
                    "unrolled over {steps} steps it has about {nodes} nodes; {limit} are allowed (--one-step makes a model of one step)",
                    "展开 {steps} 步约需 {nodes} 个节点，上限为 {limit}（--one-step 可生成单步模型）",
                    steps=self.steps,
                    nodes=nodes,
                    limit=NODE_LIMIT,
                )
            )
        functions = _activations(step, self.directions)
        self.data = step.op("Transpose", step.needed(0), perm=[1, 0, 2]) if self.layout else step.needed(0)
        self.valid = self._masks()
        self.sides = [self._direction(place, functions[place], back) for place, back in enumerate(backwards)]

    def _masks(self) -> list[ir.Value | None]:
        """For each step which sequences are still going on ([1, batch, 1]); None where all are."""
        step, lengths = self.step, self.step.input(4)
        if lengths is None:
            return [None] * self.steps
        known = step.value_of(lengths)
        if known is not None:
            rows = [known.reshape(1, -1, 1) > place for place in range(self.steps)]
            return [None if row.all() else step.const(row, np.bool_, "going") for row in rows]
        column = step.op("Reshape", step.cast(lengths, ir.DataType.INT32), step.ints([1, -1, 1], "shape"))
        return [step.op("Greater", column, step.const(place, np.int32, "time")) for place in range(self.steps)]

    def _part(self, index: int, place: int, transpose: bool = False) -> ir.Value | None:
        """What a direction has of a stacked weight."""
        value = self.step.input(index)
        if value is None:
            return None
        known = self.step.value_of(value)
        if known is not None:
            own = known[place]
            return self.step.const(np.ascontiguousarray(own.T) if transpose else own, name="weights")
        own_value = self.step.op("Gather", value, self.step.ints(place, "direction"), axis=0)
        return self.step.op("Transpose", own_value, perm=[1, 0]) if transpose else own_value

    def _state(self, index: int, place: int) -> ir.Value:
        """An initial state as [1, batch, hidden]."""
        value = self.step.input(index)
        if value is None:
            return self.step.const(np.zeros((1, self.batch, self.size)), self.step.dtype().numpy(), "initial")
        if self.layout:
            value = self.step.op("Transpose", value, perm=[1, 0, 2])
        if self.directions == 1:
            return value
        return self.step.op("Gather", value, self.step.ints([place], "direction"), axis=0)

    def _direction(self, place: int, functions: list[Function], backwards: bool) -> _Direction:
        step, gates = self.step, _GATES[self.kind]
        inputs, states = self._part(1, place, transpose=True), self._part(2, place, transpose=True)
        if inputs is None or states is None:
            step.refuse(say("its weights are missing", "缺少权重"))
        bias = self._part(3, place)
        early, late = (None, None) if bias is None else self._biases(*self._split(bias, [gates * self.size] * 2, axis=0))
        peepholes: list[ir.Value] = []
        if self.kind == "LSTM":
            given = self._part(7, place)
            peepholes = [] if given is None else self._split(given, [self.size] * 3, axis=0)
        cell = self._state(6, place) if self.kind == "LSTM" else None
        matrices = self._split(states, [2 * self.size, self.size], axis=1) if self.kind == "GRU" else []
        return _Direction(inputs, states, matrices, early, late, peepholes, self._state(5, place), cell, functions, backwards)

    def _biases(self, inputs: ir.Value, states: ir.Value) -> tuple[ir.Value, ir.Value | None]:
        """What can be added before the first step, and what cannot: a bias that is reset together with the state."""
        step = self.step
        if self.kind != "GRU" or not step.attr("linear_before_reset", 0):
            return step.op("Add", inputs, states), None
        gates, candidate = self._split(states, [2 * self.size, self.size], axis=0)
        none = step.const(np.zeros(self.size), step.dtype().numpy(), "none")
        return step.op("Add", inputs, step.op("Concat", gates, none, axis=0)), candidate

    def _split(self, value: ir.Value, sizes: list[int], axis: int = 2) -> list[ir.Value]:
        """Consecutive parts of a tensor; of a weight they are weights."""
        step = self.step
        if len(sizes) == 1:
            return [value]
        known = step.value_of(value)
        if known is not None:
            ends = np.cumsum(sizes)
            return [step.const(part, name="part") for part in np.split(known, ends[:-1], axis=axis)]
        if step.version >= 13:
            step.op("Split", value, step.ints(sizes, "sizes"), outputs=len(sizes), axis=axis)
        else:
            step.op("Split", value, outputs=len(sizes), axis=axis, split=sizes)
        return list(step.made[-1].outputs)

    def clipped(self, value: ir.Value) -> ir.Value:
        if self.clip is None:
            return value
        step = self.step
        if step.version >= 11:
            return step.op("Clip", value, step.like(-self.clip), step.like(self.clip))
        return step.op("Clip", value, min=-self.clip, max=self.clip)

    def run(self, side: _Direction) -> tuple[list[ir.Value], ir.Value, ir.Value | None]:
        """The output of every step in the order of time, the last hidden state and the last cell."""
        step = self.step
        product = step.op("MatMul", self.data, side.inputs)
        if side.early_bias is not None:
            product = step.op("Add", product, side.early_bias)
        # The gates and the candidate of a GRU are needed apart: two parts of the whole instead of two of every step.
        parts = self._split(product, [2 * self.size, self.size]) if self.kind == "GRU" else [product]
        rows = list(zip(*(self._split(part, [1] * self.steps, axis=0) for part in parts), strict=True))
        outputs: dict[int, ir.Value] = {}
        hidden, cell = side.hidden, side.cell
        for place in self._order(side):
            fresh, fresh_cell = self._cell(side, rows[place], hidden, cell)
            going = self.valid[place]
            if going is None:
                outputs[place], hidden, cell = fresh, fresh, fresh_cell
                continue
            outputs[place] = step.op("Where", going, fresh, step.like(0))
            hidden = step.op("Where", going, fresh, hidden)
            cell = None if fresh_cell is None or cell is None else step.op("Where", going, fresh_cell, cell)
        return [outputs[place] for place in range(self.steps)], hidden, cell

    def _order(self, side: _Direction) -> Iterator[int]:
        # What lies behind the end of a sequence leaves its state alone, so that going backwards begins with its last element.
        return iter(range(self.steps - 1, -1, -1) if side.backwards else range(self.steps))

    def _cell(
        self, side: _Direction, row: tuple[ir.Value, ...], hidden: ir.Value, cell: ir.Value | None
    ) -> tuple[ir.Value, ir.Value | None]:
        if self.kind == "GRU":
            return self._gru(side, row[0], row[1], hidden), None
        total = self.step.op("Add", row[0], self.step.op("MatMul", hidden, side.states))
        if self.kind == "RNN":
            return side.functions[0](self.step, self.clipped(total)), None
        if cell is None:
            raise AssertionError("an LSTM has a cell")
        return self._lstm(side, total, cell)

    def _gru(self, side: _Direction, both: ir.Value, last: ir.Value, hidden: ir.Value) -> ir.Value:
        step, size = self.step, self.size
        gate, candidate = side.functions
        early, late = side.matrices
        gates = gate(step, self.clipped(step.op("Add", both, step.op("MatMul", hidden, early))))
        update, reset = self._split(gates, [size, size])
        if step.attr("linear_before_reset", 0):
            inner = step.op("MatMul", hidden, late)
            inner = step.op("Mul", reset, inner if side.late_bias is None else step.op("Add", inner, side.late_bias))
        else:
            inner = step.op("MatMul", step.op("Mul", reset, hidden), late)
        fresh = candidate(step, self.clipped(step.op("Add", last, inner)))
        # (1 - z) * fresh + z * hidden
        return step.op("Add", fresh, step.op("Mul", update, step.op("Sub", hidden, fresh)))

    def _lstm(self, side: _Direction, total: ir.Value, cell: ir.Value) -> tuple[ir.Value, ir.Value]:
        step = self.step
        gate, candidate, output = side.functions
        let_in, let_out, keep, fresh = self._split(total, [self.size] * 4)

        def peeked(value: ir.Value, place: int, seen: ir.Value) -> ir.Value:
            return step.op("Add", value, step.op("Mul", side.peepholes[place], seen)) if side.peepholes else value

        opened = gate(step, self.clipped(peeked(let_in, 0, cell)))
        coupled = bool(step.attr("input_forget", 0))
        kept = step.op("Sub", step.like(1), opened) if coupled else gate(step, self.clipped(peeked(keep, 2, cell)))
        added = step.op("Mul", opened, candidate(step, self.clipped(fresh)))
        new_cell = step.op("Add", step.op("Mul", kept, cell), added)
        shown = gate(step, self.clipped(peeked(let_out, 1, new_cell)))
        return step.op("Mul", shown, output(step, new_cell)), new_cell


@expands("GRU", "LSTM", "RNN")
def unrolled(step: Step) -> None:
    """All steps one after the other."""
    if step.version < 7:
        step.refuse(say("a form older than opset 7", "早于 opset 7 的形式"))
    node = _Unrolled(step)
    ran = [node.run(side) for side in node.sides]

    def joined(values: list[ir.Value], axis: int) -> ir.Value:
        return values[0] if len(values) == 1 else step.op("Concat", *values, axis=axis)

    whole = None
    if step.used(0):
        # [steps, batch, hidden] of each direction -> [steps, directions, batch, hidden]
        whole = joined([unsqueeze(step, joined(outputs, 0), [1]) for outputs, _, _ in ran], 1)
        whole = step.op("Transpose", whole, perm=[2, 0, 1, 3]) if node.layout else whole
    ends: list[ir.Value | None] = []
    for place, found in ((1, [hidden for _, hidden, _ in ran]), (2, [cell for _, _, cell in ran])):
        if not step.used(place):
            ends.append(None)
            continue
        states = [state for state in found if state is not None]
        end = joined(states, 0)
        ends.append(step.op("Transpose", end, perm=[1, 0, 2]) if node.layout else end)
    step.finish(whole, *ends)


@expands("com.microsoft::DynamicQuantizeLSTM")
def dynamic_lstm(step: Step) -> None:
    """Refused: it quantises its input and its state by their own range at every step, and what it rounds decides what comes next."""
    step.refuse(
        say(
            "it rounds its state to 8 bits by its own range at every step, which no float form repeats; export the float model, or leave the rounding out with --unsafe OP279",
            "它在每一步按自身范围将状态舍入为 8 位，浮点形式无法重现；请导出浮点模型，或用 --unsafe OP279 去掉舍入",
        )
    )
