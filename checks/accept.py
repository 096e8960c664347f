"""Ask for a value, check it, ask again with the reasons, or fall back: the gate.

A *rejection* is an answer that is not acceptable: it costs an attempt and is shown to the
producer. A *failure* is the absence of an answer: it propagates at once, and neither a further
attempt nor the fallback hides it. Retrying a failed call belongs to whoever can tell whether it
was transient, so :func:`accept` must not run inside something that retries, too.

Exceptions raised here::

    Rejected       by the application: this output is not acceptable
    NotAccepted    by accept: the attempts are spent and there is no fallback
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar, cast

from pydantic_core import ValidationError

from checks import _telemetry

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Check: TypeAlias = Callable[[T], Awaitable[None] | None]

_LINE = 200  # characters of a reason in NotAccepted's message


class Rejected(Exception):
    """An output is not acceptable, for a ``reason`` the producer can act on.

    A check raises it, or the producer itself, naming in ``check`` the stage that rejected
    (``"refusal"``, ``"truncation"``). ``value`` is what a producer rejected, if the next
    attempt or the record shall see it; for a check's rejection the value is known already.
    The reason is always recorded: put nothing into it that must stay private.
    """

    def __init__(self, reason: str, check: str | None = None, value: object = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.check = check
        self.value = value


# Attempt and Outcome have no slots: on Python 3.11 a frozen generic dataclass with slots cannot
# be built through its parametrised form, as in Attempt[Plan](...).


@dataclass(frozen=True)
class Attempt(Generic[T_co]):
    """One call of the producer, and what rejected its output.

    ``rejected_by`` and ``reason`` are ``None`` when the attempt was accepted. ``value`` is the
    producer's own object, not a copy; ``None`` when the producer rejected its own output
    without handing it on.
    """

    value: T_co | None
    rejected_by: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Outcome(Generic[T_co]):
    """The value to use, where it came from, and every attempt in order."""

    value: T_co
    disposition: Literal["accepted", "fallback"]
    attempts: tuple[Attempt[T_co], ...]


class NotAccepted(Exception):
    """Every attempt was rejected and there is no fallback; ``attempts`` has them all, in order."""

    def __init__(self, name: str, attempts: tuple[Attempt[object], ...]) -> None:
        super().__init__(name, attempts)  # both in args, so that it survives pickling
        self.name = name
        self.attempts = attempts

    def __str__(self) -> str:
        """The name, the count and one clipped line per attempt: all that a batch log shows."""
        lines = [
            f"  attempt {number}: {attempt.rejected_by}: {_one_line(attempt.reason or '')}"
            for number, attempt in enumerate(self.attempts, start=1)
        ]
        count = len(self.attempts)
        head = f"{self.name}: no proposal accepted in {count} attempt{'s' * (count != 1)}"
        return "\n".join([head, *lines])


async def accept(
    producer: Callable[[tuple[Attempt[T], ...]], T | Awaitable[T]],
    *,
    checks: Iterable[Check[T]],
    attempts: int = 1,
    fallback: Callable[[], T | Awaitable[T]] | None = None,
    name: str,
) -> Outcome[T]:
    """Return the first output of ``producer`` that every check lets pass, or the fallback's.

    ``producer`` is called with the earlier attempts, ``()`` at first, at most ``attempts``
    times. ``checks`` run on its output in the order given and stop at the first rejection; a
    check returns ``None`` or raises. All three callables may be sync or async. The fallback's
    value is not checked: it has to be valid by construction.

    Raises :class:`NotAccepted` when the attempts are spent and there is no ``fallback``,
    ``ValueError`` for ``attempts`` below 1, ``TypeError`` for a check that returns anything but
    ``None``. Whatever else a callable raises is a failure and propagates as it is.
    """
    if attempts < 1:
        raise ValueError(f"attempts: {attempts!r}; at least 1")
    in_order = tuple(checks)
    made: tuple[Attempt[T], ...] = ()
    about: dict[str, str | int] = {_telemetry.NAME: name, _telemetry.ATTEMPTS_MAX: attempts}
    with _telemetry.span(f"accept {name}", about) as span:
        while len(made) < attempts:
            span.set_attribute(_telemetry.ATTEMPTS_USED, len(made) + 1)
            last = await _attempt(producer, in_order, made, name)
            made += (last,)
            if last.rejected_by is None:
                span.set_attribute(_telemetry.DISPOSITION, "accepted")
                return Outcome(cast("T", last.value), "accepted", made)
        if fallback is None:
            span.set_attribute(_telemetry.DISPOSITION, "not_accepted")
            raise NotAccepted(name, made)
        value = await _result(fallback())
        span.set_attribute(_telemetry.DISPOSITION, "fallback")
        return Outcome(value, "fallback", made)


async def _attempt(
    producer: Callable[[tuple[Attempt[T], ...]], T | Awaitable[T]],
    checks: tuple[Check[T], ...],
    earlier: tuple[Attempt[T], ...],
    name: str,
) -> Attempt[T]:
    about = {_telemetry.ATTEMPT: len(earlier) + 1}
    with _telemetry.span(f"accept.attempt {name}", about) as span:
        try:
            value = await _result(producer(earlier))
        except Rejected as exc:
            attempt = _rejection(cast("T | None", exc.value), "producer", exc)
        except ValidationError as exc:
            attempt = _rejection(None, "schema", exc)
        else:
            attempt = await _judge(value, checks)
        if attempt.rejected_by is not None:
            _telemetry.rejected_value(span, attempt.value)
        return attempt


async def _judge(value: T, checks: tuple[Check[T], ...]) -> Attempt[T]:
    for check in checks:
        name = _name_of(check)
        try:
            answer: object = await _result(check(value))
            if answer is not None:
                # A check written as a predicate must not let everything pass.
                found = _one_line(repr(answer))
                raise TypeError(f"check {name}: returned {found}; return None or raise Rejected")
        except (Rejected, ValidationError) as exc:
            return _rejection(value, name, exc)
        except Exception as exc:
            _telemetry.errored(name, exc, value)
            raise
        _telemetry.passed(name, value)
    return Attempt(value)


def _rejection(value: T | None, stage: str, exc: Rejected | ValidationError) -> Attempt[T]:
    reason = str(exc)
    if isinstance(exc, Rejected):
        reason = exc.reason
        stage = stage if exc.check is None else exc.check
    _telemetry.rejected(stage, reason, value)
    return Attempt(value, stage, reason)


async def _result(returned: T | Awaitable[T]) -> T:
    return await returned if inspect.isawaitable(returned) else returned


def _name_of(check: Callable[..., object]) -> str:
    while isinstance(check, functools.partial):
        check = check.func
    # A callable object has no __name__ of its own.
    return getattr(check, "__name__", type(check).__name__)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LINE else f"{line[: _LINE - 1]}…"
