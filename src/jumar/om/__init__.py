"""Compiled models (.om): reading what they say of themselves, and whether they fit a target. Nothing of CANN is needed.

::

    om = jumar.om.read("model.om")
    om.soc_version, om.main.inputs, om.command_line
    jumar.om.check_fits(om, target)
"""

from .fits import check_fits, release_of
from .model import Aipp, Gears, Header, OmFile, OmModel, Operator, Partition, Tensor
from .read import looks_like_om, read

__all__ = [
    "Aipp",
    "Gears",
    "Header",
    "OmFile",
    "OmModel",
    "Operator",
    "Partition",
    "Tensor",
    "check_fits",
    "looks_like_om",
    "read",
    "release_of",
]
