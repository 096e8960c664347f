"""What the fields of a configuration are made of: the strict base model and the kinds of text."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
)

from campaign.problems import Loc, dotted
from executors.units import Duration, format_duration, parse_duration

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
IDENTIFIER = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
SMALL_IDENTIFIER = r"^[a-z][a-z0-9_]{0,63}$"
LABEL = r"^[A-Za-z][A-Za-z0-9_-]{0,63}$"
FUNCTION = r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_.]*$"
INSIDE = r"^[^/\\\x00]+(/[^/\\\x00]+)*$"

WORDING: Mapping[str, str] = {
    NAME: "letters, digits, '.', '_' and '-', at most 64, the first a letter or a digit",
    IDENTIFIER: "letters, digits and '_', at most 64, the first no digit",
    SMALL_IDENTIFIER: "small letters, digits and '_', at most 64, the first a letter",
    LABEL: "letters, digits, '_' and '-', at most 64, the first a letter",
    FUNCTION: "'module:function', for instance 'model:simulate'",
    INSIDE: "a relative path with '/', for instance 'data/in.txt'",
}
"""What the patterns ask for, in words."""

LARGEST = 2**63 - 1
"""Whole numbers are kept to 64 bits, so that every reader of the ledger can hold them."""

_OURS = ("candidate.json", "result.json", "stdout", "stderr")
_T = TypeVar("_T")


class Model(BaseModel):
    """Frozen, refuses unknown keys, and never converts a value into another type."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        serialize_by_alias=True,
        defer_build=True,  # the campaign's own schema holds it; building it twice costs start-up
    )


def _no_zero_byte(text: str) -> str:
    if "\0" in text:
        raise ValueError(f"found {text[:40]!r}; the system takes no text with a zero byte")
    return text


def _stays_inside(path: str) -> str:
    if any(part in ("..", ".") for part in path.split("/")):
        raise ValueError(f"found {path!r}; a path that stays inside has no '.' or '..' part")
    return path


def _not_ours(path: str) -> str:
    if path in _OURS:
        raise ValueError(f"simgate writes {path!r} itself; give the file another name")
    return path


def _free_variable(name: str) -> str:
    if name.startswith("SIMGATE_"):
        raise ValueError(f"simgate sets {name!r} itself; give the variable another name")
    return name


def only_json(arguments: object) -> object:
    """Refuse in one sentence what JSON cannot hold, wherever it is."""
    stack: list[tuple[Loc, object]] = [((), arguments)]
    while stack:
        loc, value = stack.pop()
        match value:
            case Mapping():
                stack += [((*loc, str(key)), one) for key, one in value.items()]
            case list():
                stack += [((*loc, index), one) for index, one in enumerate(value)]
            case float() if value - value != 0:
                raise ValueError(f"found {value} in {dotted(loc)}; numbers are finite")
            case int() if abs(value) > LARGEST:
                raise ValueError(f"found over 64 bits in {dotted(loc)}; write it as text")
    return arguments


def duration_text(seconds: float) -> str:
    """Seconds as text that reads back to exactly the same number."""
    return format_duration(seconds) if seconds % 1 == 0 else f"{Decimal(repr(seconds)):f}s"


def seconds_of(value: object) -> float:
    """A duration as text or as seconds; 0 for what is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    try:
        return parse_duration(value)
    except ValueError:
        return 0.0


# YAML has lists, frozen values have tuples; nothing else is converted.
Items: TypeAlias = Annotated[tuple[_T, ...], Field(strict=False)]
Seconds: TypeAlias = Annotated[
    Duration, PlainSerializer(duration_text, return_type=str, when_used="json")
]
Text: TypeAlias = Annotated[str, AfterValidator(_no_zero_byte)]
Function: TypeAlias = Annotated[str, Field(pattern=FUNCTION)]
Inside: TypeAlias = Annotated[str, Field(pattern=INSIDE), AfterValidator(_stays_inside)]
Rendered: TypeAlias = Annotated[Inside, AfterValidator(_not_ours)]
Variable: TypeAlias = Annotated[str, Field(pattern=IDENTIFIER), AfterValidator(_free_variable)]
Label: TypeAlias = Annotated[str, Field(pattern=LABEL)]
Identifier: TypeAlias = Annotated[str, Field(pattern=IDENTIFIER)]
Arguments: TypeAlias = Annotated[Mapping[str, JsonValue], BeforeValidator(only_json)]
