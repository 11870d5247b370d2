"""Operators that no parser knows: where they come from, and what brings a parser or avoids them."""

from __future__ import annotations

from ..text import Text, say
from .parser import known_operators
from .tables import table


def package_hint(domain: str, op: str) -> Text | None:
    """What to do about an operator without a parser, where its origin is known."""
    name = f"{domain}::{op}"
    packages = table("packages.json")["packages"]
    named = next((item for item in packages if {op, name} & {*item.get("operators", ())}), None)
    if named is not None:
        return Text(named["en"], named["zh"])
    elsewhere = [key for key in known_operators() if key != name and key.rpartition("::")[2] == op]
    if domain not in ("", "ai.onnx") and elsewhere:
        return say(
            "CANN parses it as {names}: export it in that domain if the meaning is the same",
            "CANN 以 {names} 解析该算子：若含义相同，请以该域导出",
            names=", ".join(key if "::" in key else f"ai.onnx::{key}" for key in elsewhere),
        )
    whole = next((item for item in packages if domain in item.get("domains", ())), None)
    return None if whole is None else Text(whole["en"], whole["zh"])
