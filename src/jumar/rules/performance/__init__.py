"""Findings on what works and could be faster."""
