"""Overrides from the command line, ``a.b=value``, put into a configuration before it is checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from campaign.problems import ConfigError, Loc, Problem, clip, dotted, observed
from campaign.yamlfile import MAX_DEPTH, Document, read_text
from executors.base import Json

# One step of a place: .name, [2] or ["a key"].
_STEP = re.compile(
    r"\.(?P<name>[^.\[\]\"'=]+)"
    r"|\[(?P<index>\d{1,6})\]"
    r"|\[(?P<quote>[\"'])(?P<key>[^\"']*)(?P=quote)\]"
)


def override(document: Document, overrides: Sequence[str]) -> Document:
    """The document with all of them in it, and with a problem for each that does not fit.

    Its data is changed in place; an overridden place has line 0, for none.
    """
    if not isinstance(document.data, dict):
        return document
    lines, problems = dict(document.lines), list(document.problems)
    for text in overrides:
        place, given, value = text.partition("=")
        steps = _steps(place)
        if not given or not steps:
            message = f"the override {clip(text)}; write a.b=value, or a[0].b=value in a list"
            problems.append(Problem("", message))
            continue
        wrong, loc = _apply(document.data, steps, value)
        problems += [Problem(found.path, f"in the override, {found.message}") for found in wrong]
        lines = {known: line for known, line in lines.items() if known[: len(loc)] != loc}
        lines[loc] = 0
    return replace(document, lines=lines, problems=tuple(problems))


def _steps(place: str) -> Loc:
    """A place as its steps; empty when it cannot be read."""
    steps: list[str | int] = []
    text, at = f".{place}", 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or len(steps) == MAX_DEPTH:
            return ()
        at = match.end()
        steps.append(int(match["index"]) if match["index"] else match["name"] or match["key"] or "")
    return tuple(steps)


def _apply(data: Json, steps: Loc, text: str) -> tuple[list[Problem], Loc]:
    """Set a place to a YAML value; what was wrong, and the place with list indices as numbers."""
    loc, wrong = steps, []
    try:
        read = read_text(text)
        wrong = list(read.problems)
        loc = _put(data, steps, read.data, ())
    except ConfigError as error:
        wrong += error.problems
    return [Problem(dotted(loc), found.message) for found in wrong], loc


def _put(here: Json, steps: Loc, value: Json, done: Loc) -> Loc:
    """Set a value below ``here``, making the mappings on the way; gives its place."""
    step, rest = steps[0], steps[1:]
    if isinstance(here, list):
        index = _index(here, step, done)
        if not rest:
            here[index] = value
            return (*done, index)
        return _put(here[index], rest, value, (*done, index))
    if not isinstance(here, dict):
        message = f"{dotted(done)} is {observed(here)} with nothing inside; set it as a whole"
        raise ConfigError([Problem("", message)])
    key = str(step)
    if not rest:
        here[key] = value
        return (*done, key)
    if here.get(key) is None:
        here[key] = {}
    return _put(here[key], rest, value, (*done, key))


def _index(items: list[Json], step: str | int, done: Loc) -> int:
    index = int(step) if isinstance(step, int) or re.fullmatch(r"\d{1,6}", step, re.A) else -1
    if not 0 <= index < len(items):
        last = f"0 to {len(items) - 1}" if items else "none, the list is empty"
        raise ConfigError([Problem("", f"no item {step!r} in {dotted(done)}; it has {last}")])
    return index
