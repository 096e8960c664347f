"""What is wrong with a configuration: every problem with its place, all in one exception."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Loc: TypeAlias = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z_][\w-]{0,63}", re.ASCII)
_CLIP = 60  # characters of a value that a message quotes
_SHOWN = 100  # problems that str() lists
_LONGEST_GUESS = 64  # difflib is quadratic; nobody mistypes a longer word


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to put right: a dotted path (``""`` for the whole file), what and where.

    ``line`` counts from 1 in the file and is None when the file does not hold the place, for
    instance for what an override set.
    """

    path: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        places = [f"line {self.line}"] if self.line else []
        places += [self.path] if self.path else []
        return f"{', '.join(places)}: {self.message}" if places else self.message


class ConfigError(Exception):
    """A configuration that cannot be used; ``str()`` lists every problem, one a line."""

    def __init__(self, problems: Sequence[Problem], source: str = "") -> None:
        self.problems = tuple(problems)
        self.source = source
        super().__init__(self.problems, source)  # what pickle hands back to __init__

    def __str__(self) -> str:
        count = len(self.problems)
        head = f"{self.source or 'configuration'}: {count} problem{'s' if count != 1 else ''}"
        lines = [f"  {problem}" for problem in self.problems[:_SHOWN]]
        more = [f"  +{count - _SHOWN} more"] if count > _SHOWN else []
        return "\n".join([head, *lines, *more])


def dotted(loc: Iterable[str | int]) -> str:
    """``("verifiers", 0, "walltime")`` as ``verifiers[0].walltime``; odd keys in quotes."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{clip(part)}]"
    return text


def clip(value: object) -> str:
    """The repr of a value, cut to a length a message can bear."""
    if isinstance(value, int) and value.bit_length() > 1000:
        return "a huge whole number"  # Python refuses to print thousands of digits
    text = repr(value[: 2 * _CLIP] if isinstance(value, str) else value)
    return text if len(text) <= _CLIP else f"{text[: _CLIP - 1]}…"


def observed(value: object) -> str:
    """A value as a message shows it, with its kind: ``'six' (text)``."""
    match value:
        case None:
            return "nothing"
        case bool():
            return f"{str(value).lower()} (a boolean)"
        case int() | float():
            return f"{clip(value)} (a number)"
        case str():
            return f"{clip(value)} (text)"
        case Mapping():
            return f"a mapping of {len(value)}"
        case list() | tuple():
            return f"a list of {len(value)}"
        case _:
            return f"{clip(value)} ({type(value).__name__})"


def choose_from(word: object, known: Iterable[str]) -> str:
    """What would be right where a name is unknown: the nearest one, then all of them."""
    names = list(known)
    near = []
    if isinstance(word, str) and len(word) <= _LONGEST_GUESS:
        near = difflib.get_close_matches(word.lower(), names, n=1)
    guess = f"did you mean {near[0]!r}? " if near else ""
    return f"{guess}known: {', '.join(map(repr, names)) or 'none'}"
