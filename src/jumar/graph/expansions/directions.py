"""GRU and LSTM kept as operators: of what they say, only what a kernel for the plain cell may lack is written out.

Unrolling costs hundreds of nodes where often only an end state, a layout or a direction is in the way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import section, squeeze
from ..opset.step import NotThisForm, Step
from .base import expands

_PLAIN = {"GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}
_STATES = (5, 6)
_LENGTHS, _PEEPHOLES = 4, 7
_SAID_ANEW = ("direction", "layout", "activations")


def sides_of(direction: str) -> list[bool]:
    """Of each direction of a recurrent operator, in the order of its weights, whether it runs backwards."""
    return [False, True] if direction == "bidirectional" else [direction == "reverse"]


class _Cell:
    """A node as one of layout 0: its inputs, and what is done to its outputs."""

    def __init__(self, step: Step) -> None:
        self.step, self.kind = step, step.node.op_type
        self._need_plain()
        self.direction = str(step.attr("direction", "forward"))
        self.backwards = sides_of(self.direction)
        self.sides = len(self.backwards)
        self.layout = int(step.attr("layout", 0))
        shape = step.static()
        self.batch, self.steps = (shape[0], shape[1]) if self.layout else (shape[1], shape[0])
        self.inputs = [step.input(index) for index in range(len(step.node.inputs))]
        self.changed = bool(self.layout)
        if self.layout:
            for index in (0, *_STATES):
                value = step.input(index)
                if value is not None:
                    self.inputs[index] = step.op("Transpose", value, perm=[1, 0, 2])
        self.lengths = self._lengths()

    def _need_plain(self) -> None:
        """Refuse what no forward form would help: the steps have to be written out."""
        step = self.step
        wanted = [str(name).lower() for name in step.attr("activations", ())]
        usual = [name.lower() for name in _PLAIN[self.kind]]
        other = wanted not in ([], usual, usual * 2) or any(name in step.node.attributes for name in ("clip", "input_forget"))
        other = other or (self.kind == "GRU" and not step.attr("linear_before_reset", 0)) or step.input(_PEEPHOLES) is not None
        if other:
            raise NotThisForm(step.node, say("its cell is not the plain one", "其单元不是基本形式"))

    def _lengths(self) -> ir.Value | None:
        """The lengths of the sequences; None where all are whole."""
        value = self.step.input(_LENGTHS)
        known = None if value is None else self.step.value_of(value)
        if known is not None and (known >= self.steps).all():
            self.inputs[_LENGTHS], self.changed = None, True
            return None
        return value

    def run(self, inputs: list[ir.Value | None], direction: str, used: int) -> list[ir.Value]:
        """The operator of layout 0 with these inputs; its first ``used`` outputs."""
        step = self.step
        while inputs and inputs[-1] is None:
            inputs.pop()
        kept: dict[str, Any] = {name: value for name, value in step.node.attributes.items() if name not in _SAID_ANEW}
        result = step.op(self.kind, *inputs, outputs=used, **kept, direction=direction)
        return [result] if used == 1 else list(step.made[-1].outputs)

    def finish(self, whole: ir.Value | None, hidden: ir.Value | None, cell: ir.Value | None = None) -> None:
        step = self.step
        # An output that nobody reads may have no name, which must not pass to a tensor that is read here.
        ends = [value if step.used(index) else None for index, value in enumerate((whole, hidden, cell))]
        if self.layout:
            perms = ([2, 0, 1, 3], [1, 0, 2], [1, 0, 2])
            ends = [None if value is None else step.op("Transpose", value, perm=perm) for value, perm in zip(ends, perms, strict=True)]
        step.finish(*ends[: len(step.node.outputs)])


def _need_steps(cell: _Cell) -> None:
    if not cell.steps or not cell.batch:
        raise NotThisForm(cell.step.node, say("it has no step or no sequence", "没有时间步或没有序列"))


@expands("GRU", "LSTM")
def ends_of_the_output(step: Step) -> None:
    """The operator is asked for Y alone: the end of a direction is a place in it, exactly."""
    cell = _Cell(step)
    _need_steps(cell)
    if step.used(2) and cell.direction != "forward":
        raise NotThisForm(step.node, say("the last cell state is no part of another output", "最终的单元状态不包含在其他输出中"))
    if cell.direction == "reverse" and cell.kind == "GRU":
        raise NotThisForm(step.node, say("it has to run forward", "需要正向运行"))
    masked = cell.kind == "GRU" and cell.lengths is not None
    if masked and cell.direction != "forward":
        raise NotThisForm(step.node, say("its backward half begins where a sequence ends", "其反向部分从序列末尾开始"))
    inputs = list(cell.inputs)
    if masked:
        inputs[_LENGTHS] = None
    if cell.direction == "forward" and not masked:
        if not cell.changed:
            raise NotThisForm(step.node, say("it is in this form already", "已经是这种形式"))
        made: list[ir.Value | None] = list(cell.run(inputs, "forward", len(step.node.outputs)))
        cell.finish(*(made + [None] * (3 - len(made)))[:3])
        return
    whole = cell.run(inputs, cell.direction, 1)[0]
    hidden = _ends(cell, whole) if step.used(1) else None
    cell.finish(_until_the_end(cell, whole) if masked else whole, hidden)


def _ends(cell: _Cell, whole: ir.Value) -> ir.Value:
    """[directions, batch, hidden]: where each direction ends in [steps, directions, batch, hidden]."""
    step, found = cell.step, list[ir.Value]()
    for place, backwards in enumerate(cell.backwards):
        own = whole if cell.sides == 1 else section(step, whole, 1, place, place + 1)
        if backwards or cell.lengths is None:
            at = 0 if backwards else cell.steps - 1
            found.append(squeeze(step, section(step, own, 0, at, at + 1), [0]))
        else:
            found.append(_last_of_each(cell, own))
    if cell.lengths is not None:
        _need_elements(cell)
    return found[0] if len(found) == 1 else step.op("Concat", *found, axis=0)


def _need_elements(cell: _Cell) -> None:
    """A sequence without an element ends in its initial state, which is no place in the output."""
    step, value = cell.step, cell.lengths
    known = step.value_of(value)
    if value is None or (bool((known < 1).any()) if known is not None else step.range_of(value).lo < 1):
        raise NotThisForm(step.node, say("a sequence may have no element", "可能存在没有元素的序列"))


def _last_of_each(cell: _Cell, own: ir.Value) -> ir.Value:
    """[1, batch, hidden]: of each sequence what stands at its last element."""
    step = cell.step
    hidden = step.static(2)[-1]
    known = step.value_of(cell.lengths)
    if known is not None:
        rows = step.ints((known.astype(np.int64) - 1) * cell.batch + np.arange(cell.batch), "rows")
    else:
        if cell.lengths is None:
            raise AssertionError("asked where sequences end that are whole")
        last = step.op("Sub", step.cast(cell.lengths, ir.DataType.INT32), step.const(1, np.int32, "one"))
        rows = step.op("Add", step.op("Mul", last, step.const(cell.batch, np.int32, "batch")), step.const(np.arange(cell.batch), np.int32))
    flat = step.op("Reshape", own, step.ints([cell.steps * cell.batch, hidden], "shape"))
    return step.op("Reshape", step.op("Gather", flat, rows, axis=0), step.ints([1, cell.batch, hidden], "shape"))


def _until_the_end(cell: _Cell, whole: ir.Value) -> ir.Value:
    """Zeros behind the end of each sequence."""
    step = cell.step
    known = step.value_of(cell.lengths)
    times = np.arange(cell.steps).reshape(-1, 1, 1, 1)
    if known is not None:
        going = step.const(known.reshape(1, 1, -1, 1) > times, np.bool_, "going")
    else:
        if cell.lengths is None:
            raise AssertionError("asked where sequences end that are whole")
        column = step.op("Reshape", step.cast(cell.lengths, ir.DataType.INT32), step.ints([1, 1, -1, 1], "shape"))
        going = step.op("Greater", column, step.const(times, np.int32, "times"))
    return step.op("Where", going, whole, step.like(0))


@expands("GRU", "LSTM")
def forward_only(step: Step) -> None:
    """Each backward direction is a forward one over the turned sequence."""
    cell = _Cell(step)
    _need_steps(cell)
    if cell.direction == "forward":
        raise NotThisForm(step.node, say("it runs forward already", "已经是正向"))
    if cell.lengths is not None:
        raise NotThisForm(step.node, say("its sequences end at different steps", "各序列的结束位置不同"))
    turned = step.ints(np.arange(cell.steps)[::-1], "turned")
    used = max(index for index in range(len(step.node.outputs)) if step.used(index)) + 1
    found: list[list[ir.Value]] = []
    for place, backwards in enumerate(cell.backwards):
        inputs = [_half(cell, index, place) for index in range(len(cell.inputs))]
        if backwards and inputs[0] is not None:
            inputs[0] = step.op("Gather", inputs[0], turned, axis=0)
        outputs = cell.run(inputs, "forward", used)
        if backwards and step.used(0):
            outputs[0] = step.op("Gather", outputs[0], turned, axis=0)
        found.append(outputs)
    ends: list[ir.Value | None] = [None] * 3
    for index in range(used):
        if step.used(index):
            parts = [outputs[index] for outputs in found]
            ends[index] = parts[0] if len(parts) == 1 else step.op("Concat", *parts, axis=0 if index else 1)
    cell.finish(*ends)


def _half(cell: _Cell, index: int, place: int) -> ir.Value | None:
    """What one direction has of an input."""
    value = cell.inputs[index]
    if value is None or index == 0 or cell.sides == 1:
        return value
    known = cell.step.value_of(value)
    if known is not None:
        return cell.step.const(known[place : place + 1], name="weights")
    return section(cell.step, value, 0, place, place + 1)
