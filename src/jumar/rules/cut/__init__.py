"""Findings of the cut between host and device."""
