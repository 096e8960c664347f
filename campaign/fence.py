"""Text of others inside a text for a model: made harmless, bounded, and fenced off.

What comes from an answer, a verifier or a check of the user's own may hold anything: the marks by
which a model's template tells whose turn it is, terminal sequences, half surrogates, the fence
itself. Escapes are those of JSON, so that a JSON text stays one, of the same value.
"""

from __future__ import annotations

import re
import unicodedata

_SUSPECT = re.compile(r"[^\n\t -~]+")
# <|im_start|>, </s>, <start_of_turn>, [INST]: what a tokenizer may take for a mark of its own.
_MARK = re.compile(
    r"<(?=[|\uff5c]|[/!]?[^\s<>]{1,64}>)|\[(?=/?[A-Za-z_]{0,32}[A-Z]{3}[A-Za-z_]{0,32}\])"
)
_LONGEST_ESCAPE = 12  # characters


def harmless(text: str) -> str:
    """The text with its control and invisible characters, and marks of turns, as escapes.

    Line ends and tabs stay; so does every character a reader sees.
    """
    plain = _SUSPECT.sub(_seen, text.replace("\r\n", "\n"))
    return _MARK.sub(lambda mark: _escape(mark[0]), plain)


def line(text: str, limit: int) -> str:
    """The text on one line and without backticks, in at most ``limit`` characters."""
    read = limit * _LONGEST_ESCAPE + 1  # whatever its size, no more of it is looked at
    one = harmless(" ".join(text[:read].split())).replace("`", "'")
    return one if len(one) <= limit and len(text) <= read else f"{one[: limit - 1]}…"


def fenced(text: str, limit: int) -> str:
    """The text as :func:`line` has it, between backticks: ``limit`` characters with them."""
    return f"`{line(text, max(limit - 2, 1))}`"


def block(text: str) -> str:
    """The whole text between two lines of three backticks, which it cannot hold itself."""
    return f"```\n{harmless(text).replace('```', '``' + _escape('`'))}\n```"


def cut(text: str, most: int) -> str:
    """The text in at most ``most`` bytes of UTF-8, cut between characters."""
    found = text.encode("utf-8", "replace")
    return text if len(found) <= most else f"{found[: most - 3].decode('utf-8', 'ignore')}…"


def size(text: str) -> int:
    """Bytes in UTF-8."""
    return len(text.encode("utf-8", "replace"))


def _seen(run: re.Match[str]) -> str:
    return "".join(
        c if c.isprintable() or unicodedata.category(c) == "Zs" else _escape(c) for c in run[0]
    )


def _escape(text: str) -> str:
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
