"""What ``jumar quantize`` works with and finds out."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..quant.calibrate import Calibration
from ..quant.gate import Verdict
from ..quant.layers import Layer, Survey
from ..quant.plan import Plan, WeightOptions
from ..quant.proof import LayerProof
from ..quant.quality import spread
from ..text import Text

DEPLOY_FILE, QDQ_FILE, RECORD_FILE = "deploy.onnx", "qdq.onnx", "record.txt"
HELD_EVERY, MOST_HELD = 5, 100


@dataclass
class Split:
    """Numbers of the samples: to calibrate on, and held out.

    Attributes:
        shared: there are too few to hold any out.
        first: number of the first sample of a set given for the gate alone.
    """

    calibration: list[int]
    held: list[int]
    shared: bool = False
    first: int = 0

    @classmethod
    def of(cls, count: int, most: int, apart: int = 0) -> Split:
        """``apart``: size of a set for the gate alone, numbered behind the others."""
        numbers = spread(count, most)
        if apart:
            return cls(numbers, [count + place for place in spread(apart, most)], first=count)
        held = numbers[HELD_EVERY - 1 :: HELD_EVERY]
        if not held:
            return cls(numbers, numbers, shared=True)
        kept = set(held)
        return cls([number for number in numbers if number not in kept], [held[place] for place in spread(len(held), MOST_HELD)])


@dataclass(frozen=True)
class Recipe:
    """How ranges are found and weights rounded."""

    method: str
    weights: WeightOptions

    @property
    def name(self) -> str:
        options = [
            word for word, wanted in (("correct-bias", self.weights.correct_bias), ("search-weights", self.weights.search)) if wanted
        ]
        return " + ".join([self.method, *options])


@dataclass
class Outcome:
    """Everything that was found out, for the words and the files."""

    survey: Survey
    layers: tuple[Layer, ...]
    skipped: dict[str, Text]
    calibration: Calibration
    split: Split
    recipe: Recipe
    trials: dict[str, float]
    plan: Plan
    verdict: Verdict
    proofs: list[LayerProof]
    float_size: int
    whole: float | None = None
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def work_share(self) -> float:
        """Of the multiply-adds that are in int8."""
        return sum(item.layer.work for item in self.plan.items.values()) / max(self.survey.work, 1)
