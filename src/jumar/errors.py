"""What Jumar raises.

::

    JumarError                  could not do it; the command line prints one line and exits with 2
    +-- UsageError              an option, a name or a value is wrong
    |   +-- TargetError         unknown SoC, CANN state or opset ceiling
    |   +-- ShapeError          a shape does not fit the model
    +-- ModelError              the file is not a model Jumar can read
    |   +-- ExternalDataError   weights missing, truncated or outside the model's folder
    +-- OutputError             a result could not be written
    +-- EvaluationError         the model could not be executed (also: crash, time or memory limit)
    +-- ToolError               a tool (atc, an extra) is missing or failed to start

A problem *of the model on the target* is never an exception: it is a finding in the record.
"""

from __future__ import annotations

from .text import Lang, Text


class JumarError(Exception):
    """Found, expected, what to do next: three texts, one line."""

    def __init__(self, found: Text, expected: Text | None = None, remedy: Text | None = None) -> None:
        self.found, self.expected, self.remedy = found, expected, remedy
        super().__init__(self.render("en"))

    def render(self, lang: Lang = "en") -> str:
        """The error as one line in ``lang``."""
        parts = [part.render(lang) for part in (self.found, self.expected, self.remedy) if part is not None]
        return " ".join(("；" if lang == "zh" else "; ").join(parts).split())


class UsageError(JumarError):
    """A wrong option, name or value."""


class TargetError(UsageError):
    """No such SoC, CANN state or profile."""


class ShapeError(UsageError):
    """A given shape does not fit the model's input."""


class ModelError(JumarError):
    """The file is not a model that can be read."""


class ExternalDataError(ModelError):
    """External weights are missing, too short, or lie outside the model's folder."""


class OutputError(JumarError):
    """A file could not be written."""


class EvaluationError(JumarError):
    """A model could not be executed by ONNX Runtime."""

    stopped = False
    """True when it crashed or ran too long, so that trying again with other inputs is no use."""


class ToolError(JumarError):
    """A tool or an optional package is missing."""
