"""Non-maximum suppression without a kernel for it: the best box that is left, once for every row of the output."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from ...text import say
from ..opset.lower.common import reduce, unsqueeze
from ..opset.step import Step
from ..shapes import constant_of
from .base import expands
from .common import DENSE_LIMIT, reshape, sizes

MOST_ROUNDS = 320
"""Selections a class that are written out: each is a handful of nodes."""
MOST_ROUNDS_ROWWISE = 128
"""The same where the overlaps of each chosen box are computed when it is chosen, which takes three times the nodes."""


@dataclass(frozen=True)
class Selection:
    """What NonMaxSuppression selects, in a shape that does not depend on the data.

    Attributes:
        rows: int32 [most, 3]: batch, class and box of each selection, the selected ones first, in the standard's order; then rows that
            mean nothing (of boxes that exist).
        valid: bool [most]: which rows are selections.
        most: rows there can be.
    """

    rows: ir.Value
    valid: ir.Value
    most: int


@expands("NonMaxSuppression")
def corner_boxes(step: Step) -> None:
    """Boxes by their centre as two corners. Where they are corners already, the dense selection."""
    if not int(step.given("center_point_box")):
        greedy_selection(step)
        return
    low, high = _corners(step)
    # A box of negative size overlaps nothing; two corners in the other order would make it one of positive size.
    boxes = step.op("Concat", low, step.op("Max", low, high), axis=2)
    step.finish(*step.op_like([boxes, *step.node.inputs[1:]], center_point_box=ir.AttrInt64("center_point_box", 0)))


@expands("NonMaxSuppression")
def greedy_selection(step: Step) -> None:
    """The dense selection, cut to the rows there are."""
    selection = select(step)
    count = reduce(step, "ReduceSum", step.cast(selection.valid, ir.DataType.INT32), [0])
    ends = step.cast(count, ir.DataType.INT64)
    rows = step.cast(selection.rows, ir.DataType.INT64)
    step.finish(step.op("Slice", rows, step.ints([0], "starts"), ends, step.ints([0], "axes")))


def select(step: Step) -> Selection:
    """Select greedily: the box of the highest score (the first among equals), then the best of those that do not overlap it too much, and
    so on, ``max_output_boxes_per_class`` times in every class of every image.

    A score of minus infinity is never selected, also without a score_threshold. Source: the ONNX operator NonMaxSuppression; the order of
    operations is ONNX Runtime's, so that the overlaps are equal in every bit.

    Raises:
        Unconvertible: open shapes, a computed limit, or too many boxes or selections to be written out.
    """
    batch, classes, count = _sizes(step)
    rounds = _rounds(step, count)
    overlaps = _Overlaps(step, batch, classes, count)
    lanes = batch * classes
    nothing = step.const(-np.inf, np.float32, "nothing")
    left = reshape(step, step.needed(1), [lanes, count])
    threshold = step.input(4)
    if threshold is not None:
        left = step.op("Where", step.op("Greater", left, threshold), left, nothing)
    chosen, best = [], []
    for turn in range(rounds):
        place = step.cast(step.op("ArgMax", left, axis=1, keepdims=0), ir.DataType.INT32)
        chosen.append(unsqueeze(step, place, [1]))
        best.append(reduce(step, "ReduceMax", left, [1]))
        if turn + 1 < rounds:
            left = step.op("Where", overlaps.with_chosen(place), nothing, left)
    places, values = (item[0] if rounds == 1 else step.op("Concat", *item, axis=1) for item in (chosen, best))
    return _in_order(step, _rows(step, values, places, classes), lanes)


def select_by_kernel(step: Step) -> Selection:
    """Select by a NonMaxSuppression whose rows only mark the chosen boxes in a table of all; the table then gives them in order.

    On the device the operator has as many rows as there can be, and those that are not there are -1 (source: the kernel
    NonMaxSuppressionV7): they mark a place in front of the table, which is cut off. So the result is the same in ONNX and on the device.

    Raises:
        Unconvertible: open shapes, or a limit that is computed or absent.
    """
    batch, classes, count = _sizes(step)
    rounds, lanes = _most(step, count), batch * classes
    absent = step.const([np.finfo(np.float32).min], np.float32, "score_threshold")
    overlap = step.input(3) or step.const([0], np.float32, "iou_threshold")
    limit = step.ints([rounds], "max_output_boxes_per_class")
    picked = step.op_like([step.needed(0), step.needed(1), limit, overlap, step.input(4) or absent])[0]
    image, kind, box = (step.cast(step.op("Gather", picked, step.ints([place], "column"), axis=1), ir.DataType.INT32) for place in range(3))
    place = step.op("Add", box, step.const(1, np.int32, "one"))
    if lanes > 1:
        for column, stride in ((image, classes * count), (kind, count)):
            place = step.op("Add", place, step.op("Mul", column, step.const(stride, np.int32, "stride")))
        place = step.op("Where", step.op("Less", box, step.const(0, np.int32, "zero")), step.const(0, np.int32, "zero"), place)
    marks = reshape(step, step.cast(step.op("Greater", box, step.const(-2, np.int32, "below")), ir.DataType.FLOAT), [-1])
    table = step.const(np.zeros(lanes * count + 1), np.float32, "unmarked")
    table = step.op("ScatterND", table, step.cast(place, ir.DataType.INT64), marks)
    table = step.op("Slice", table, step.ints([1], "starts"), step.ints([lanes * count + 1], "ends"), step.ints([0], "axes"))
    table.shape = ir.Shape([lanes * count])
    chosen = step.op("Greater", reshape(step, table, [lanes, count]), step.const(0.5, np.float32, "half"))
    nothing = step.const(-np.inf, np.float32, "nothing")
    scores = step.op("Where", chosen, reshape(step, step.needed(1), [lanes, count]), nothing)
    values, places = _top(step, scores, rounds, axis=1)
    values.shape = places.shape = ir.Shape([lanes, rounds])
    return _in_order(step, _rows(step, values, step.cast(places, ir.DataType.INT32), classes), lanes)


def _rows(step: Step, values: ir.Value, places: ir.Value, classes: int) -> Selection:
    """Rows of the best scores and their places [classes of all images, rounds]."""
    lanes, rounds = sizes(step, places)
    most, lane = lanes * rounds, np.repeat(np.arange(lanes), rounds)
    valid = reshape(step, step.op("Greater", values, step.const(-np.inf, np.float32, "nothing")), [most])
    columns = [step.const(part.reshape(most, 1), np.int32, name) for part, name in ((lane // classes, "image"), (lane % classes, "class"))]
    return Selection(step.op("Concat", *columns, reshape(step, places, [most, 1]), axis=1), valid, most)


def _sizes(step: Step) -> tuple[int, int, int]:
    """Images, classes and boxes."""
    boxes, scores = step.static(0), step.static(1)
    if len(boxes) != 3 or len(scores) != 3 or boxes[:2] != (scores[0], scores[2]) or boxes[2] != 4 or 0 in scores:
        step.refuse(say("boxes {boxes} and scores {scores}", "boxes 为 {boxes}，scores 为 {scores}", boxes=str(boxes), scores=str(scores)))
    return scores[0], scores[1], scores[2]


def _most(step: Step, count: int) -> int:
    """How many selections a class can have.

    Raises:
        Unconvertible: this is not known, or none.
    """
    most = step.constant(2, "max_output_boxes_per_class")
    rounds = 0 if most is None or not most.size else min(int(most.reshape(-1)[0]), count)
    if step.static(1)[:2] == (1, 1):
        rounds = min(rounds, rows_read(step.node.outputs[0]) or rounds)
    if rounds <= 0:
        step.refuse(say("max_output_boxes_per_class is absent or 0: there is no row", "max_output_boxes_per_class 缺失或为 0：没有任何行"))
    return rounds


def _rounds(step: Step, count: int) -> int:
    """How many selections a class can have.

    Raises:
        Unconvertible: this is not known, none, or too many to be written out.
    """
    rounds = _most(step, count)
    if rounds > MOST_ROUNDS:
        step.refuse(
            say(
                "it selects up to {count} boxes a class, one after the other; {limit} are written out",
                "每类最多逐个选出 {count} 个框，最多展开 {limit} 个",
                count=rounds,
                limit=MOST_ROUNDS,
            )
        )
    return rounds


def rows_read(rows: ir.Value, columns: int = 3) -> int | None:
    """How many of the first rows of a selection everybody who reads it is content with. None: all, or nobody knows."""
    if rows.is_graph_output():
        return None
    found = [_read_by(node, index, columns) for node, index in rows.uses()]
    return None if not found or None in found else max(item for item in found if item is not None)


def _read_by(node: ir.Node, index: int, columns: int) -> int | None:
    if index or len(node.outputs) != 1 or node.domain not in ("", "ai.onnx"):
        return None
    constants = [None if value is None else constant_of(value) for value in node.inputs[1:]]
    if node.op_type in ("Cast", "Identity"):
        return rows_read(node.outputs[0], columns)
    if node.op_type == "Gather" and node.attributes.get_int("axis", 0) == 1 and constants[0] is not None:
        return rows_read(node.outputs[0], constants[0].size)
    if node.op_type == "Squeeze":
        listed = constants[0].tolist() if constants and constants[0] is not None else node.attributes.get_ints("axes", ())
        return rows_read(node.outputs[0], 1) if columns == 1 and list(listed) in ([1], [-1]) else None
    if node.op_type == "Reshape" and constants[0] is not None:
        return rows_read(node.outputs[0], 1) if columns == 1 and constants[0].tolist() == [-1] else None
    if node.op_type != "Slice" or len(constants) < 3 or any(item is None or item.size != 1 for item in constants):
        return None
    start, end, axis, pace = [int(item.reshape(-1)[0]) for item in constants if item is not None] + [1] * (4 - len(constants))
    if axis == 1:
        return rows_read(node.outputs[0], len(range(columns)[slice(start, end, pace)]))
    return end if (start, axis, pace) == (0, 0, 1) and end > 0 else None


def _in_order(step: Step, selection: Selection, lanes: int) -> Selection:
    """Selections of all classes before the rows that are none."""
    if lanes == 1:
        return selection
    most = selection.most
    order = step.const(np.arange(most, 0, -1), np.float32, "order")
    keys = step.op("Where", selection.valid, order, step.const(0, np.float32, "zero"))
    _, places = _top(step, keys, most, axis=0)
    places = step.cast(places, ir.DataType.INT32)
    rows = step.op("Gather", selection.rows, places, axis=0)
    valid = step.op("Gather", step.cast(selection.valid, ir.DataType.INT32), places, axis=0)
    return Selection(rows, step.cast(valid, ir.DataType.BOOL), most)


def _top(step: Step, data: ir.Value, count: int, axis: int) -> tuple[ir.Value, ir.Value]:
    step.op("TopK", data, step.ints([count], "k"), outputs=2, axis=axis)
    values, places = step.made[-1].outputs
    return values, places


class _Overlaps:
    """Which boxes overlap a chosen one more than ``iou_threshold``."""

    def __init__(self, step: Step, batch: int, classes: int, count: int) -> None:
        self.step, self.batch, self.classes, self.count = step, batch, classes, count
        self.threshold = step.input(3) or step.const(0, np.float32, "iou_threshold")
        low, high = _corners(step)
        extent = step.op("Sub", high, low)
        self.low, self.high, self.area = low, high, self._product(extent)
        self.dense = batch * count * count <= DENSE_LIMIT
        if self.dense:
            self.pairs = self._pairs()
        elif _rounds(step, count) > MOST_ROUNDS_ROWWISE:
            step.refuse(
                say(
                    "the overlaps of {count} boxes are more than {limit} numbers, and more than {most} selections a class are too many to"
                    " compute them one after the other",
                    "{count} 个框的重叠超过 {limit} 个数，而每类选出超过 {most} 个框时无法逐个计算",
                    count=count,
                    limit=DENSE_LIMIT,
                    most=MOST_ROUNDS_ROWWISE,
                )
            )

    def with_chosen(self, place: ir.Value) -> ir.Value:
        """For the box chosen in every class [classes of all images]: bool [classes of all images, boxes], the box itself included."""
        step, lanes = self.step, self.batch * self.classes
        image = np.repeat(np.arange(self.batch), self.classes)
        row = place if self.batch == 1 else step.op("Add", place, step.const(image * self.count, np.int32, "image"))
        if self.dense:
            return step.op("Gather", self.pairs, row, axis=0)
        corners = [reshape(step, value, [self.batch * self.count, 2]) for value in (self.low, self.high)]
        mine = [reshape(step, step.op("Gather", value, row, axis=0), [lanes, 1, 2]) for value in corners]
        area = step.op("Gather", reshape(step, self.area, [self.batch * self.count]), row, axis=0)
        all_images = self.batch == 1 or self.classes == 1
        others = [
            value if all_images else step.op("Gather", value, step.const(image, np.int32, "image"), axis=0)
            for value in (self.low, self.high, self.area)
        ]
        hit = self._exceeds((mine[0], mine[1], reshape(step, area, [lanes, 1])), (others[0], others[1], others[2]))
        itself = step.op("Equal", reshape(step, place, [lanes, 1]), step.const(np.arange(self.count).reshape(1, -1), np.int32, "places"))
        return step.op("Or", hit, itself)

    def _pairs(self) -> ir.Value:
        """bool [images * boxes, boxes]: whether the second is gone once the first is chosen."""
        step, batch, count = self.step, self.batch, self.count
        first = [reshape(step, value, [batch, count, 1, 2]) for value in (self.low, self.high)]
        second = [reshape(step, value, [batch, 1, count, 2]) for value in (self.low, self.high)]
        areas = reshape(step, self.area, [batch, count, 1]), reshape(step, self.area, [batch, 1, count])
        hit = self._exceeds((first[0], first[1], areas[0]), (second[0], second[1], areas[1]))
        numbers = np.arange(count)
        places = step.const(numbers.reshape(-1, 1), np.int32, "places"), step.const(numbers.reshape(1, -1), np.int32, "places")
        itself = step.op("Equal", *places)
        return reshape(step, step.op("Or", hit, itself), [batch * count, count])

    def _exceeds(self, first: tuple[ir.Value, ir.Value, ir.Value], second: tuple[ir.Value, ir.Value, ir.Value]) -> ir.Value:
        """Whether the overlap of boxes (low corners, high corners, areas) exceeds the threshold; false where it is 0 / 0."""
        step = self.step
        low, high = step.op("Max", first[0], second[0]), step.op("Min", first[1], second[1])
        extent = step.op("Max", step.op("Sub", high, low), step.const(0, np.float32, "zero"))
        shared = self._product(extent)
        union = step.op("Sub", step.op("Add", first[2], second[2]), shared)
        return step.op("Greater", step.op("Div", shared, union), self.threshold)

    def _product(self, extent: ir.Value) -> ir.Value:
        """Height times width (last axis), which goes away."""
        axis = len(extent.shape or ()) - 1
        first, second = (self.step.op("Gather", extent, self.step.ints(place, "side"), axis=axis) for place in (0, 1))
        return self.step.op("Mul", first, second)


def _corners(step: Step) -> tuple[ir.Value, ir.Value]:
    """The low and the high corner of each box [images, boxes, 2], whichever corners or centre it is given by."""
    boxes = step.needed(0)
    first, second = (step.op("Gather", boxes, step.ints(pair, "pair"), axis=2) for pair in ([0, 1], [2, 3]))
    if int(step.given("center_point_box")):
        half = step.op("Mul", second, step.const(0.5, np.float32, "half"))
        return step.op("Sub", first, half), step.op("Add", first, half)
    return step.op("Min", first, second), step.op("Max", first, second)
