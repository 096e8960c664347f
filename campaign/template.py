"""Placeholders: ``{name}`` in the arguments of a task, ``@name@`` in the files it renders.

Values go into one argument or one file at a time and never through a shell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from campaign.problems import choose_from, clip

RESERVED = (
    "campaign_dir",
    "task_dir",
    "seed",
    "ranks",
    "ranks_per_node",
    "nodelist",
    "hostlist",
    "python",
)
"""Placeholders every task has; no parameter may take one of these names."""

_BRACES = re.compile(r"\{\{|\}\}|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}|(?P<odd>\{[^{}]*\}?|\})")
_ATS = re.compile(r"@@|@(?P<name>[A-Za-z_][A-Za-z0-9_]*)@")


class TemplateError(ValueError):
    """A text whose placeholders cannot be filled; the message says which and what would do."""


def text_of(value: float | str) -> str:
    """A value as a task reads it: ``true``/``false``, and the shortest digits that give a float
    back exactly, whatever float type it came as."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return float.__repr__(float(value) + 0.0)  # -0.0 is 0.0, as in the candidate's name
    return str(value)


def placeholders(text: str) -> tuple[str, ...]:
    """The names in ``{…}``, in order; raises ``TemplateError`` for a stray brace."""
    return tuple(match["name"] for match in _braces(text) if match["name"])


def render(text: str, values: Mapping[str, str]) -> str:
    """Fill ``{name}``; ``{{`` and ``}}`` are literal braces.

    Raises ``TemplateError`` for a stray brace or a name without a value.
    """
    _refuse_unknown(placeholders(text), values)
    return _BRACES.sub(lambda match: values[match["name"]] if match["name"] else match[0][0], text)


def file_placeholders(text: str) -> tuple[tuple[int, str], ...]:
    """The line (from 1) and name of every ``@name@``, in order."""
    return tuple(
        (number, match["name"])
        for number, line in enumerate(text.split("\n"), start=1)
        for match in _ATS.finditer(line)
        if match["name"]
    )


def render_file(text: str, values: Mapping[str, str]) -> str:
    """Fill ``@name@``; ``@@`` is a literal ``@``, and an ``@`` that frames no name stays.

    Raises ``TemplateError`` naming the line of each name without a value.
    """
    wrong = [
        f"line {line}: unknown placeholder '@{name}@'; {choose_from(name, values)}"
        for line, name in file_placeholders(text)
        if name not in values
    ]
    if wrong:
        raise TemplateError("; ".join(wrong) + "; write @@ for a literal @")
    return _ATS.sub(lambda match: values[match["name"]] if match["name"] else "@", text)


def unknown_placeholders(text: str, known: Iterable[str]) -> Iterator[str]:
    """What is wrong with a text's placeholders, a message each; nothing if all are known."""
    names = tuple(known)
    try:
        found = placeholders(text)
    except TemplateError as error:
        yield str(error)
        return
    for name in dict.fromkeys(found):
        if name not in names:
            yield f"unknown placeholder '{{{name}}}'; {choose_from(name, names)}"


def _refuse_unknown(names: Iterable[str], values: Mapping[str, str]) -> None:
    for name in names:
        if name not in values:
            raise TemplateError(f"unknown placeholder '{{{name}}}'; {choose_from(name, values)}")


def _braces(text: str) -> Iterator[re.Match[str]]:
    for match in _BRACES.finditer(text):
        if odd := match["odd"]:
            raise TemplateError(
                f"{clip(odd)} at character {match.start() + 1} is no placeholder; "
                "write {name}, or {{ and }} for literal braces"
            )
        yield match
