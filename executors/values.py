"""Task answers as JSON text, and why something is not one. Standard library only."""

from __future__ import annotations

import importlib
import json
import math
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

MAX_BYTES = 1 << 20
"""Longest answer taken, as JSON text: it goes into the ledger. Fields belong into files."""


class NotAnAnswer(Exception):
    """The text says what was found where the contract wants a JSON value."""


def encode(value: object) -> bytes:
    """``value`` as JSON. NumPy scalars and arrays count as numbers and lists.

    Raises :class:`NotAnAnswer` naming the place and the type of what JSON cannot hold.
    """
    try:
        text = json.dumps(value, allow_nan=False, default=jsonable)
    except RecursionError:
        raise NotAnAnswer("value: nested too deeply, or it contains itself") from None
    except (TypeError, ValueError) as error:
        _explain("value", value, 0)
        raise NotAnAnswer(f"value: {error}") from None
    return _bounded(text.encode("utf-8", "surrogatepass"), "value")


def read_file(path: Path) -> bytes:
    """The JSON a task left in ``path``, checked and compact. Raises :class:`NotAnAnswer`."""
    name = path.name
    try:
        size, raw = _plain_file(path)
    except FileNotFoundError:
        beside = sorted(entry.name for entry in path.parent.glob("*"))[:10]
        raise NotAnAnswer(f"{name}: not there; the task left {', '.join(beside)}") from None
    except OSError as error:
        raise NotAnAnswer(f"{name}: {error.strerror}") from None
    if size > MAX_BYTES:
        raise NotAnAnswer(f"{name}: {size} bytes; an answer has at most {MAX_BYTES}")
    try:
        value = json.loads(raw, parse_constant=_refuse_constant)
    except NotAnAnswer as error:
        raise NotAnAnswer(f"{name}: {error}") from None
    except RecursionError:
        raise NotAnAnswer(f"{name}: nested too deeply") from None
    except ValueError as error:
        start = raw[:60].decode(errors="replace")
        raise NotAnAnswer(f"{name}: not JSON ({error}); it starts with {start!r}") from None
    return encode(value)


def _plain_file(path: Path) -> tuple[int, bytes]:
    """How long a file is, and what is in it if that is not too much.

    Raises :class:`NotAnAnswer` for what is no plain file: reading it might never end.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise NotAnAnswer(f"{path.name}: no plain file; an answer is JSON in a plain file")
        return found.st_size, file.read(MAX_BYTES + 1) if found.st_size <= MAX_BYTES else b""


def resolve(name: str) -> Callable[..., object]:
    """The function ``module:function`` names; whatever its import raises comes through."""
    module, _, attribute = name.partition(":")
    importlib.invalidate_caches()
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"{name!r} is {type(found).__name__}, not a function")
    return found  # type: ignore[no-any-return]


def describe(error: BaseException) -> str:
    """``Type: message`` on one line, also for exceptions that cannot say what they are."""
    try:
        message = " ".join(str(error).split())
    except Exception:  # its own __str__ may be broken
        message = "(its message cannot be shown)"
    name = type(error).__name__
    return f"{name}: {message}"[:1000] if message else name


def jsonable(value: Any) -> object:
    """What ``json.dumps`` may take instead; NumPy is recognised by its methods, never imported.

    Raises ``TypeError`` where there is no such thing.
    """
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        return value.tolist()
    raise TypeError


def _explain(place: str, value: object, depth: int) -> None:
    """Raise for the first thing below ``value`` that JSON cannot hold."""
    if isinstance(value, float) and not math.isfinite(value):
        raise NotAnAnswer(f"{place}: {value!r}; JSON has no NaN or infinity")
    if value is None or isinstance(value, str | int | float):
        return
    if depth > 100:
        raise NotAnAnswer(f"{place[:200]}: nested too deeply, or it contains itself")
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str | int | float | None):
                raise NotAnAnswer(f"{place}: a key is {type(key).__name__}; keys are text")
            _explain(f"{place}.{key}", item, depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _explain(f"{place}[{index}]", item, depth + 1)
    elif hasattr(value, "tolist") and hasattr(value, "dtype"):
        _explain(place, value.tolist(), depth + 1)
    else:
        kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        raise NotAnAnswer(
            f"{place}: {kind} is not JSON; return numbers, text, lists and mappings of them"
        )


def _bounded(text: bytes, name: str) -> bytes:
    if len(text) > MAX_BYTES:
        raise NotAnAnswer(f"{name}: {len(text)} bytes as JSON; an answer has at most {MAX_BYTES}")
    return text


def _refuse_constant(name: str) -> NoReturn:
    raise NotAnAnswer(f"it holds {name}; JSON has no NaN or infinity")
