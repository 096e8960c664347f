"""The promises of ``accept``: control flow, naming, pickling and failures."""

from __future__ import annotations

import asyncio
import functools
import pickle
import subprocess
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import FrozenInstanceError

import pytest
from pydantic import BaseModel, ValidationError

from checks import Attempt, NotAccepted, Outcome, Rejected, accept


class Plan(BaseModel):
    """What the scripted agents propose."""

    rates: list[float]


class Scripted:
    """A producer that gives its answers in order; an exception among them is raised."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[Attempt[object], ...]] = []

    async def __call__(self, previous: tuple[Attempt[object], ...]) -> object:
        self.asked.append(previous)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def positive(value: object) -> None:
    if not isinstance(value, int) or value <= 0:
        raise Rejected(f"{value} is not positive")


def never(value: object) -> None:
    raise AssertionError(f"a check saw {value!r}, which must not reach it")


def a_validation_error() -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        Plan.model_validate({"rates": "fast"})
    return caught.value


def run(
    producer: Callable[[tuple[Attempt[object], ...]], object],
    *,
    checks: Iterable[Callable[[object], Awaitable[None] | None]] = (positive,),
    attempts: int = 1,
    fallback: Callable[[], object] | None = None,
) -> Outcome[object]:
    return asyncio.run(
        accept(producer, checks=checks, attempts=attempts, fallback=fallback, name="planner")
    )


# Control flow


def test_an_output_that_passes_at_once_is_returned_as_the_same_object() -> None:
    plan = Plan(rates=[1.0])
    outcome = run(Scripted(plan), checks=[lambda _: None])
    assert outcome.value is plan
    assert outcome == Outcome(plan, "accepted", (Attempt(plan, None, None),))


def test_by_default_one_rejection_ends_in_not_accepted() -> None:
    producer = Scripted(-1, 1)
    with pytest.raises(NotAccepted):
        run(producer)
    assert len(producer.asked) == 1


def test_every_further_call_receives_all_rejected_attempts_in_order() -> None:
    producer = Scripted(-1, -2, 3)
    first = Attempt(-1, "positive", "-1 is not positive")
    second = Attempt(-2, "positive", "-2 is not positive")
    assert run(producer, attempts=3).attempts == (first, second, Attempt(3))
    assert producer.asked == [(), (first,), (first, second)]


@pytest.mark.parametrize("budget", [1, 2, 5])
def test_the_producer_is_never_called_more_often_than_the_budget_says(budget: int) -> None:
    producer = Scripted(*[-1] * 10)
    with pytest.raises(NotAccepted):
        run(producer, attempts=budget)
    assert len(producer.asked) == budget


def test_the_first_accepted_attempt_ends_the_asking() -> None:
    producer = Scripted(-1, 2, 3)
    assert run(producer, attempts=5).value == 2
    assert len(producer.asked) == 2


def test_checks_run_in_order_and_a_rejection_stops_the_later_ones() -> None:
    ran: list[str] = []

    def cheap(_: object) -> None:
        ran.append("cheap")

    def strict(_: object) -> None:
        ran.append("strict")
        raise Rejected("no")

    with pytest.raises(NotAccepted):
        run(Scripted(1), checks=[cheap, strict, never])
    assert ran == ["cheap", "strict"]


def test_an_async_check_ends_before_the_next_check_starts() -> None:
    trace: list[str] = []

    def sync(_: object) -> None:
        trace.append("sync")

    async def verifier(_: object) -> None:
        trace.append("verifier starts")
        await asyncio.sleep(0)
        trace.append("verifier ends")

    run(Scripted(1), checks=[sync, verifier, sync, verifier])
    assert trace == ["sync", "verifier starts", "verifier ends"] * 2


def test_an_async_check_rejects_as_a_sync_one_does() -> None:
    async def verifier(_: object) -> None:
        await asyncio.sleep(0)
        raise Rejected("the energy drifts by 3 %")

    outcome = run(Scripted(1), checks=[verifier], fallback=lambda: 0)
    assert outcome.attempts == (Attempt(1, "verifier", "the energy drifts by 3 %"),)


def test_checks_may_be_any_iterable_and_run_on_every_attempt() -> None:
    outcome = run(Scripted(-1, -2, 3), checks=(check for check in [positive]), attempts=3)
    assert [attempt.rejected_by for attempt in outcome.attempts] == ["positive", "positive", None]


def test_a_rejection_by_a_check_carries_its_name_and_its_reason() -> None:
    with pytest.raises(NotAccepted) as caught:
        run(Scripted(-1))
    assert caught.value.attempts == (Attempt(-1, "positive", "-1 is not positive"),)


def test_a_validation_error_from_a_check_is_a_rejection_by_that_check() -> None:
    error = a_validation_error()

    def schema(value: object) -> None:
        if value == 1:
            raise error

    outcome = run(Scripted(1, 2), checks=[schema], attempts=2)
    assert outcome.attempts == (Attempt(1, "schema", str(error)), Attempt(2))


def test_a_plain_value_error_from_a_check_is_a_failure_though_validation_errors_are_not() -> None:
    error = ValueError("not a rejection")

    def broken(_: object) -> None:
        raise error

    with pytest.raises(ValueError, match="not a rejection") as caught:
        run(Scripted(1, 2), checks=[broken], attempts=2)
    assert caught.value is error


def test_a_producer_that_rejects_its_own_output_names_the_stage_and_skips_the_checks() -> None:
    producer = Scripted(Rejected("I cannot help with that", check="refusal"))
    outcome = run(producer, checks=[never], fallback=lambda: 0)
    assert outcome.attempts == (Attempt(None, "refusal", "I cannot help with that"),)


def test_a_producer_that_names_no_stage_is_the_stage_itself() -> None:
    outcome = run(Scripted(Rejected("no")), fallback=lambda: 0)
    assert outcome.attempts == (Attempt(None, "producer", "no"),)


def test_a_producer_may_hand_on_what_it_rejected() -> None:
    producer = Scripted(Rejected("cut off", check="truncation", value='{"rates": [0.'), 1)
    outcome = run(producer, attempts=2)
    assert outcome.attempts[0] == Attempt('{"rates": [0.', "truncation", "cut off")
    assert producer.asked[1] == outcome.attempts[:1]


def test_a_validation_error_from_the_producer_is_a_rejection_by_the_schema() -> None:
    error = a_validation_error()
    outcome = run(Scripted(error, 1), attempts=2)
    assert outcome.attempts == (Attempt(None, "schema", str(error)), Attempt(1))


def test_a_failing_producer_ends_everything_with_its_own_exception() -> None:
    failure = ConnectionError("the provider is down")
    producer = Scripted(-1, failure, 1)
    with pytest.raises(ConnectionError) as caught:
        run(producer, attempts=5, fallback=lambda: pytest.fail("the fallback hid a failure"))
    assert caught.value is failure
    assert len(producer.asked) == 2


def test_a_failing_check_ends_everything_with_its_own_exception() -> None:
    failure = OSError("no node left")

    def verifier(value: object) -> None:
        if value == 1:
            raise failure

    producer = Scripted(-1, 1, 2)
    with pytest.raises(OSError, match="no node left") as caught:
        run(
            producer,
            checks=[positive, verifier],
            attempts=5,
            fallback=lambda: pytest.fail("the fallback hid a failure"),
        )
    assert caught.value is failure
    assert len(producer.asked) == 2


@pytest.mark.parametrize(
    "failure",
    [TimeoutError(), asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(3)],
    ids=lambda failure: type(failure).__name__,
)
def test_timeouts_cancellation_and_interrupts_are_never_swallowed(failure: BaseException) -> None:
    producer = Scripted(failure, 1)
    coroutine: Coroutine[None, None, Outcome[object]] = accept(
        producer, checks=[], attempts=5, fallback=lambda: 0, name="planner"
    )
    with pytest.raises(type(failure)) as caught:
        coroutine.send(None)  # no event loop in between, which treats some of these on its own
    assert caught.value is failure
    assert len(producer.asked) == 1


@pytest.mark.parametrize("where", ["producer", "check", "fallback"])
def test_cancelling_the_task_cancels_what_accept_waits_for(where: str) -> None:
    cancelled: list[str] = []

    async def scene() -> None:
        waiting = asyncio.Event()

        async def wait(value: object = None) -> object:
            waiting.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(where)
                raise
            return value

        async def check(value: object) -> None:
            if where == "fallback":
                raise Rejected("no")
            await wait(value)

        async def producer(_: tuple[Attempt[object], ...]) -> object:
            return await wait() if where == "producer" else 1

        task = asyncio.ensure_future(
            accept(producer, checks=[check], attempts=1, fallback=wait, name="planner")
        )
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scene())
    assert cancelled == [where]


def test_the_fallback_fills_in_after_the_last_rejection() -> None:
    safe = Plan(rates=[0.5])
    outcome = run(Scripted(-1, -2), attempts=2, fallback=lambda: safe)
    assert outcome.value is safe
    assert outcome.disposition == "fallback"
    assert [attempt.value for attempt in outcome.attempts] == [-1, -2]
    assert all(attempt.rejected_by == "positive" for attempt in outcome.attempts)


def test_the_fallback_may_be_async() -> None:
    async def fallback() -> object:
        await asyncio.sleep(0)
        return "safe"

    assert run(Scripted(-1), fallback=fallback).value == "safe"


def test_the_fallbacks_value_is_not_checked() -> None:
    assert run(Scripted(-1), fallback=lambda: -5).value == -5


def test_the_fallback_is_not_called_when_an_attempt_is_accepted() -> None:
    outcome = run(Scripted(-1, 1), attempts=2, fallback=lambda: pytest.fail("it was called"))
    assert outcome.disposition == "accepted"


@pytest.mark.parametrize("failure", [ValueError("the bounds are too narrow"), Rejected("no")])
def test_a_failing_fallback_propagates_as_it_is(failure: Exception) -> None:
    def fallback() -> object:
        raise failure

    producer = Scripted(-1, 1)
    with pytest.raises(type(failure)) as caught:
        run(producer, fallback=fallback)
    assert caught.value is failure
    assert len(producer.asked) == 1


def test_not_accepted_has_every_attempt_in_order() -> None:
    with pytest.raises(NotAccepted) as caught:
        run(Scripted(-1, Rejected("no", check="refusal"), -3), attempts=3)
    assert caught.value.attempts == (
        Attempt(-1, "positive", "-1 is not positive"),
        Attempt(None, "refusal", "no"),
        Attempt(-3, "positive", "-3 is not positive"),
    )


def test_concurrent_calls_keep_their_attempts_apart() -> None:
    async def one(offset: int) -> Outcome[int]:
        async def producer(previous: tuple[Attempt[int], ...]) -> int:
            await asyncio.sleep(0)
            return offset + len(previous)

        async def third(value: int) -> None:
            await asyncio.sleep(0)
            if value < offset + 2:
                raise Rejected(f"{value} comes before {offset + 2}")

        return await accept(producer, checks=[third], attempts=3, name=f"planner {offset}")

    async def scene() -> list[Outcome[int]]:
        return await asyncio.gather(*(one(offset) for offset in (100, 200, 300)))

    for offset, outcome in zip((100, 200, 300), asyncio.run(scene()), strict=True):
        assert [attempt.value for attempt in outcome.attempts] == [offset, offset + 1, offset + 2]


# What is ours: the points the contract leaves open


def test_a_sync_producer_is_as_good_as_an_async_one() -> None:
    assert run(lambda previous: len(previous), attempts=2).value == 1


@pytest.mark.parametrize("attempts", [0, -1])
def test_a_budget_below_one_is_refused_before_anything_is_called(attempts: int) -> None:
    producer = Scripted(1)
    with pytest.raises(ValueError, match=rf"attempts: {attempts}; at least 1"):
        run(producer, attempts=attempts)
    assert producer.asked == []


@pytest.mark.parametrize("answer", [False, True, 0, "bad"])
def test_a_check_that_returns_something_is_a_failure(answer: object) -> None:
    def predicate(_: object) -> object:
        return answer

    async def async_predicate(_: object) -> object:
        return answer

    for check in (predicate, async_predicate):
        with pytest.raises(TypeError, match=rf"check {check.__name__}: returned {answer!r}"):
            run(Scripted(1, 2), checks=[check], attempts=2, fallback=lambda: 0)  # type: ignore[list-item]


class WithinBudget:
    """A check with state, as an object and as a bound method."""

    def __call__(self, value: object) -> None:
        raise Rejected(f"{value} is too dear")

    def of_the_round(self, value: object) -> None:
        self(value)


def too_dear(value: object, *, limit: float) -> None:
    raise Rejected(f"{value} costs more than {limit}")


@pytest.mark.parametrize(
    ("check", "name"),
    [
        (positive, "positive"),
        (WithinBudget(), "WithinBudget"),
        (WithinBudget().of_the_round, "of_the_round"),
        (functools.partial(too_dear, limit=3.0), "too_dear"),
        (functools.partial(functools.partial(too_dear), limit=3.0), "too_dear"),
        (functools.partial(WithinBudget()), "WithinBudget"),
        (lambda value: positive(value), "<lambda>"),
    ],
)
def test_a_check_is_named_after_what_it_is(check: Callable[[object], None], name: str) -> None:
    outcome = run(Scripted(-1), checks=[check], fallback=lambda: 0)
    assert outcome.attempts[0].rejected_by == name


def test_the_name_a_check_gives_its_rejection_wins_over_its_own() -> None:
    def everything(_: object) -> None:
        raise Rejected("outside", check="bounds")

    outcome = run(Scripted(1), checks=[everything], fallback=lambda: 0)
    assert outcome.attempts[0].rejected_by == "bounds"


def test_attempts_and_outcomes_are_frozen() -> None:
    outcome = run(Scripted(1))
    with pytest.raises(FrozenInstanceError):
        outcome.value = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        outcome.attempts[0].value = 2  # type: ignore[misc]


def test_attempts_can_be_built_in_their_parametrised_form() -> None:
    assert Attempt[int](1) == Attempt(1)
    assert Outcome[int](1, "accepted", ()).value == 1


def test_everything_raised_or_returned_survives_pickling() -> None:
    outcome = run(Scripted(-1, 1), attempts=2)
    assert pickle.loads(pickle.dumps(outcome)) == outcome
    with pytest.raises(NotAccepted) as caught:
        run(Scripted(-1))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.name, copy.attempts, str(copy)) == (
        "planner",
        caught.value.attempts,
        str(caught.value),
    )
    rejection = pickle.loads(pickle.dumps(Rejected("no", check="refusal", value=3)))
    assert (rejection.reason, rejection.check, rejection.value, str(rejection)) == (
        "no",
        "refusal",
        3,
        "no",
    )


def test_not_accepted_says_in_a_batch_log_what_was_wrong_with_each_attempt() -> None:
    long = Rejected("the answer\nwas " + "very " * 100 + "long", check="length")
    with pytest.raises(NotAccepted) as caught:
        run(Scripted(-1, long), attempts=2)
    head, first, second = str(caught.value).splitlines()
    assert head == "planner: no proposal accepted in 2 attempts"
    assert first == "  attempt 1: positive: -1 is not positive"
    assert second.startswith("  attempt 2: length: the answer was very very")
    assert second.endswith("…")
    assert len(second) < 250


def test_nan_is_a_value_like_any_other() -> None:
    nan = float("nan")

    def within(value: object) -> None:
        if not (isinstance(value, float) and 0 <= value <= 1):
            raise Rejected(f"{value} lies outside [0, 1]")

    outcome = run(Scripted(nan), checks=[within], fallback=lambda: 0.5)
    assert outcome.attempts[0].value is nan
    assert outcome.attempts[0].reason == "nan lies outside [0, 1]"


# Without an OpenTelemetry SDK every test above runs as well; this one looks at the output, too.

_WITHOUT_SDK = """
import asyncio
from checks import NotAccepted, Rejected, accept

def positive(value):
    if value <= 0:
        raise Rejected("not positive")

async def scene():
    await accept(lambda _: 1, checks=[positive], name="a")
    await accept(lambda _: -1, checks=[positive], fallback=lambda: 0, name="b")
    try:
        await accept(lambda _: -1, checks=[positive], name="c")
    except NotAccepted:
        pass
    try:
        await accept(lambda _: 1 / 0, checks=[positive], name="d")
    except ZeroDivisionError:
        pass

asyncio.run(scene())
import sys
assert not [name for name in sys.modules if name.startswith("opentelemetry.sdk")]
"""


def test_without_a_telemetry_sdk_nothing_is_printed_and_nothing_breaks() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _WITHOUT_SDK],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
