"""Fusions of arithmetic: importing this registers all of them."""

from . import algebra, fuse_conv, fuse_matmul, fuse_norm, fuse_reduce  # noqa: F401 - they register what they match
