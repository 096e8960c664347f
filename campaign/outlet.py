"""What is printed can be printed, whatever characters the terminal or the pipe takes.

A character that an encoding does not have is written by its stand-in, else as Python escapes it.
Tables fall back to ASCII by themselves. JSON and CSV are for programs and stay what they are.
"""

from __future__ import annotations

import codecs
import io
import sys

import click

STAND_IN = "simgate.stand_in"
"""The name of the error handler, for ``str.encode`` and for streams."""

_STAND_INS = {"…": "...", "±": "+-", "·": "|", "µ": "u"}


def _stand_in(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    character, after = error.object[error.start], error.start + 1
    if "\udc80" <= character <= "\udcff":  # a byte of a file's name, which is in no encoding
        return bytes([ord(character) - 0xDC00]), after
    return _STAND_INS.get(character) or ascii(character)[1:-1], after


codecs.register_error(STAND_IN, _stand_in)


def open_outlets() -> None:
    """Let nothing that is printed from here on raise ``UnicodeEncodeError``."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=STAND_IN)


def say(text: str, *, nl: bool = True) -> None:
    """Print for a person, in the encoding of standard output as Python has it."""
    click.echo(text, file=sys.stdout, nl=nl)
