"""An authored repair prompt: text with four placeholders, and nothing else a brace can do."""

from __future__ import annotations

from collections.abc import Sequence
from string import Formatter

PLACEHOLDERS = ("original_prompt", "response_json", "failed_lines", "passing_lines")


def faults(text: str, placeholders: Sequence[str] = PLACEHOLDERS) -> list[str]:
    """What is wrong with a template, each naming what would be right."""
    known = ", ".join(f"{{{name}}}" for name in placeholders)
    try:
        parts = list(Formatter().parse(text))
    except ValueError as fault:
        return [f"unbalanced braces in {text[:60]!r} ({fault}); a brace itself is written twice"]
    found: list[str] = []
    for _, name, form, conversion in parts:
        if name is None:
            continue
        if name not in placeholders:
            found.append(f"unknown placeholder {{{name[:60]}}}; the placeholders are {known}")
        elif form or conversion:
            found.append(f"{{{name}}} with a format; write the placeholder alone")
    return found
