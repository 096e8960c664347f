"""Regular expressions and LIKE, both in time linear in the text: RE2 does the matching.

A pattern means what Python's ``re`` says, where RE2 can say it: ``$`` also matches before a last
line end, ``\\Z`` is the very end, ``\\d``, ``\\w`` and ``\\s`` know more than ASCII. ``\\b`` stays
ASCII. What RE2 cannot do is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

Matcher: TypeAlias = Callable[[str | None], bool]

LONGEST = 2_000  # characters of a pattern

_SPACE = r"\s\x0b\x{1c}-\x{1f}\x{85}\p{Z}"
_WORD = r"\p{L}\p{N}_"
_CLASSES = {
    r"\d": r"\p{Nd}", r"\D": r"\P{Nd}", r"\w": f"[{_WORD}]", r"\W": f"[^{_WORD}]",
    r"\s": f"[{_SPACE}]", r"\S": f"[^{_SPACE}]", r"\Z": r"\z", "$": r"(?:\n?\z)",
}  # fmt: skip
_IN_BRACKETS = {r"\d": r"\p{Nd}", r"\D": r"\P{Nd}", r"\w": _WORD, r"\s": _SPACE}
_TOKEN = re.compile(r"\\.|\[\^?\]?|\]|\$|\(\?[a-zA-Z-]+[:)]|.", re.DOTALL)

# By the beginning of RE2's own message.
_CONSTRUCTS = (
    (r"invalid perl operator: \(\?<?[=!]", "look-around (?=…) (?!…) (?<=…) (?<!…)"),
    (r"invalid perl operator: \(\?P\Z", "a back-reference (?P=…)"),
    (r"invalid escape sequence: \\[1-9]", "a back-reference \\1"),
    (r"invalid perl operator: \(\?>", "an atomic group (?>…)"),
    (r"bad repetition operator: .\+", "a possessive quantifier"),
    (r"invalid perl operator: \(\?#", "a comment (?#…)"),
    (r"invalid perl operator: \(\?\(", "a conditional (?(…)…)"),
    (r"invalid repetition size", "a repetition of more than 1000"),
    (r"pattern too large", "a pattern this large"),
)


class PatternError(ValueError):
    """A pattern that cannot be used; the message says what it holds and what would be right."""


def regex(pattern: str) -> Matcher:
    """Whether ``pattern`` is found anywhere in a text; in no text it is not.

    Raises :class:`PatternError`.
    """
    if len(pattern) > LONGEST:
        raise PatternError(f"pattern of {len(pattern)} characters; at most {LONGEST}")
    return _compiled(_translated(pattern), pattern)


def like(pattern: str, *, ignore_case: bool = False) -> Matcher:
    """Whether all of a text is ``pattern``: % is any run, _ one character, all else itself."""
    written = "".join({"%": ".*", "_": "."}.get(c) or re.escape(c) for c in pattern)
    flags = "(?is)" if ignore_case else "(?s)"
    return _compiled(f"{flags}\\A{written}\\z", pattern)


@lru_cache(maxsize=256)
def _compiled(translated: str, pattern: str) -> Matcher:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        found = re2.compile(_encodable(translated), options)
    except re2.error as fault:
        raise PatternError(_refusal(pattern, fault.args[0])) from None
    search = found.search
    return lambda text: text is not None and search(_encodable(text).encode()) is not None


def _translated(pattern: str) -> str:
    """Python's spelling -> RE2's."""
    written: list[str] = []
    inside = lines = False
    for found in _TOKEN.finditer(pattern):
        token = found[0]
        if inside:
            inside = token != "]"
            written.append(_IN_BRACKETS.get(token, token))
        elif token[0] == "[":
            inside = True
            # RE2, too, takes a ] for itself where it comes first.
            written.append(token)
        elif token.startswith("(?") and "m" in token.split("-")[0]:
            lines = True
            written.append(token)
        else:
            written.append(token if token == "$" and lines else _CLASSES.get(token, token))
    return "".join(written)


def _refusal(pattern: str, said: bytes | str) -> str:
    message = said.decode(errors="replace") if isinstance(said, bytes) else said
    shown = repr(pattern if len(pattern) <= 80 else f"{pattern[:79]}…")
    for beginning, construct in _CONSTRUCTS:
        if re.match(beginning, message):
            return f"pattern {shown} uses {construct}, which is not linear in time; do without"
    return f"pattern {shown}: {message}"


def _encodable(text: str) -> str:
    """``text`` with half surrogates, which have no UTF-8, as replacement characters."""
    if text.isascii():
        return text
    return re.sub("[\ud800-\udfff]", "\ufffd", text)
