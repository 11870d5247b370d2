"""Reports: they read a record and nothing else."""

from .html import html_report
from .json import json_report
from .text import text_report

__all__ = ["html_report", "json_report", "text_report"]
