"""Logs and error codes of ATC, the runtime and the driver: what they say, and which line says it first.

``codes`` and ``scan`` import nothing heavy; ``report`` asks the rules.
"""
