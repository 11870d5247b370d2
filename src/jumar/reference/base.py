"""What the operators of this folder share."""

from __future__ import annotations

from typing import Any

from onnx.reference.op_run import OpRun


class Operator(OpRun):
    """An operator whose attributes are read by name."""

    op_domain = ""

    def attribute(self, name: str, default: Any = None) -> Any:
        """The attribute's value.

        Raises:
            ValueError: it is absent and has no default.
        """
        found = getattr(self, name, None)
        if found is None:
            if default is None:
                raise ValueError(f"{type(self).__name__} has no {name}")
            return default
        return found
