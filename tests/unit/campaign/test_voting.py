"""The judge of a run: whom it is asked about, what that costs, and what the ledger has of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fakeserver
import running
from campaign.agentconfig import JudgeConfig, OpenAIAgent
from campaign.config import CampaignConfig
from campaign.drive import assemble, creation
from campaign.events import Filled, JobStarted, Judged, VoteAsked, Voted
from campaign.expectations import kept, resolve
from campaign.ledger import Ledger, read
from campaign.loop import Ending, run_campaign
from campaign.recorder import Recorder
from campaign.render import Place
from campaign.state import fold
from campaign.stop import Stop
from campaign.voting import server_of
from fakeserver import Behaviour, FakeServer, says
from inline import InlineExecutor
from running import agent, of, run
from square import GOOD, LEVEL, STEEP

CANARY = "zanzibar"
YES = says(json.dumps({"passed": True, "reason": f"it says {CANARY}"}))
NO = says(json.dumps({"passed": False, "reason": f"it says {CANARY}"}))


def judged(field: Any = "x", votes: int = 1, severity: str = "info", **more: Any) -> dict[str, Any]:
    rule = {"id": "sound", "type": "llm_judge", "field": field, "severity": severity}
    params = {"rule": "It is sound.", "votes": votes, **more.pop("params", {})}
    return rule | {"params": params} | more


def one_round(server: FakeServer, *rules: object, **changes: Any) -> CampaignConfig:
    """One round of three candidates, judged by the server's model."""
    judge = {"model": "small", "url": server.url, "retries": 0, "backoff": "0.001s"}
    expect = {"expectations": list(rules)} | changes.pop("expect", {})
    judge |= changes.pop("judge", {})
    return running.config(
        **{"rounds": 1, "verifiers": [], "expect": expect, "judge": judge} | changes
    )


def outcomes(ran: running.Ran, rule: str = "sound") -> list[dict[str, Any]]:
    """What the ledger has of a rule, by candidate."""
    return [
        outcome
        for one in of(ran, Judged)
        for verdict in one.verdicts
        for outcome in verdict.expect["outcomes"]
        if outcome["id"] == rule
    ]


@pytest.fixture
def serve() -> Iterator[Callable[..., FakeServer]]:
    opened: list[FakeServer] = []

    def make(*script: Behaviour) -> FakeServer:
        opened.append(FakeServer(*script))
        return opened[-1].__enter__()

    yield make
    for server in opened:
        server.__exit__(None, None, None)


Serve = Callable[..., FakeServer]


def test_each_vote_is_a_call_in_the_ledger_with_its_tokens(tmp_path: Path, serve: Serve) -> None:
    server = serve(YES, NO, YES)
    ran = run(tmp_path, one_round(server, judged(votes=3)), proposer=agent(GOOD))
    asked, voted = of(ran, VoteAsked), of(ran, Voted)
    assert server.calls == len(asked) == len(voted) == 9
    assert [one.vote for one in asked] == [1, 2, 3] * 3
    assert len({one.key for one in asked}) == 3
    assert sum(one.tokens for one in voted) == server.input_tokens + server.output_tokens
    counters = ran.state.usage.counters
    assert (counters["judge_calls"].spent, counters["judge_calls"].reserved) == (9, 0)
    assert counters["tokens"].reserved == 0
    assert all(a.tokens >= b.tokens for a, b in zip(asked, voted, strict=True))


def test_the_ledger_has_the_count_of_votes_and_never_what_the_model_said(
    tmp_path: Path, serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    server = serve(NO, says(f"{CANARY}!"), YES)
    rules = (judged(votes=3), judged("y", id="also", votes=1))
    # One candidate: whose votes come first among several is not known.
    ran = run(tmp_path, one_round(server, *rules, batch_size=1), proposer=agent(GOOD[:1]))
    (detail,) = [one["detail"] for one in outcomes(ran)]
    assert detail == "1/2 judge votes passed: the reply is no verdict"
    assert {one["detail"] for one in outcomes(ran, "also")} == {"1/1 judge votes passed"}
    assert CANARY.encode() not in (tmp_path / "ledger.jsonl").read_bytes()
    assert CANARY not in caplog.text


def test_an_agent_that_repairs_is_told_what_the_model_said(tmp_path: Path, serve: Serve) -> None:
    server = serve(YES, NO, YES)
    proposer = agent(GOOD, [{"x": 0.15, "y": 0.2}])
    ran = run(tmp_path, one_round(server, judged(severity="error")), proposer=proposer)
    assert sorted(ran.dispositions) == ["accepted", "accepted", "repaired"]
    (rejection,) = proposer.asks[1].rejections
    (said,) = [one for one in rejection.findings if not one.passed]
    assert (said.reason, said.words) == ("0/1 judge votes passed", f"it says {CANARY}")
    assert CANARY not in repr(rejection)


def test_a_model_is_asked_only_about_what_everything_else_lets_pass(
    tmp_path: Path, serve: Serve
) -> None:
    server = serve(YES)
    outside = {"x": 0.11, "y": 7.0}
    settings = one_round(server, LEVEL, judged(["x", "y"]), expect={"max_iterations": 1})
    ran = run(tmp_path, settings, proposer=agent([GOOD[0], STEEP, outside]))
    prompts = [body["messages"][0]["content"] for body in server.bodies]
    assert not [text for text in prompts if "0.95" in text or "7.0" in text]
    first, steep, third = outcomes(ran)[:3]
    assert first["passed"]
    assert (steep["skipped"], steep["passed"]) == (third["skipped"], third["passed"])
    assert (steep["skipped"], steep["passed"]) == (True, False)


def test_the_same_question_is_asked_once(tmp_path: Path, serve: Serve) -> None:
    server = serve(YES)
    same = [{"x": 0.1, "y": y} for y in (0.2, 0.3, 0.4)]
    ran = run(tmp_path, one_round(server, judged(votes=2)), proposer=agent(same))
    assert server.calls == len(of(ran, VoteAsked)) == 2
    assert [one["passed"] for one in outcomes(ran)] == [True] * 3


@pytest.mark.parametrize("where", ["expect", "calls", "tokens"])
def test_a_budget_that_does_not_suffice_leaves_the_rule_open_and_says_so(
    tmp_path: Path, serve: Serve, where: str
) -> None:
    server = serve(YES)
    caps: dict[str, dict[str, Any]] = {
        "expect": {"expect": {"judge_budget": 5}},
        "calls": {"budgets": {"judge_calls": 5}},
        "tokens": {"budgets": {"tokens": 5}},
    }
    ran = run(tmp_path, one_round(server, judged(votes=2), **caps[where]), proposer=agent(GOOD))
    said = outcomes(ran)
    assert server.calls == (0 if where == "tokens" else 4)
    assert (said[2]["skipped"], said[2]["passed"]) == (True, False)
    assert "judge budget" in said[2]["detail"]
    assert "exhausted" in said[2]["detail"]
    assert ran.dispositions == ["accepted"] * 3  # it only informs


def test_a_gating_rule_left_open_is_not_sent_to_be_repaired(tmp_path: Path, serve: Serve) -> None:
    settings = one_round(
        server := serve(YES),
        judged(severity="error"),
        expect={"judge_budget": 1, "max_iterations": 3},
        policy={"semantic_rejection": "tombstone"},
    )
    proposer = agent(GOOD)
    ran = run(tmp_path, settings, proposer=proposer)
    assert (server.calls, len(proposer.asks)) == (1, 1)
    assert ran.dispositions == ["accepted", "tombstone", "tombstone"]
    verdict = of(ran, Judged)[0].verdicts[1].expect
    assert verdict["failed"] == verdict["skipped"] == ["sound"]


def test_a_call_that_fails_is_an_error_of_that_outcome_alone(tmp_path: Path, serve: Serve) -> None:
    server = serve(fakeserver.fails(500, message=CANARY), YES)
    ran = run(tmp_path, one_round(server, judged()), proposer=agent(GOOD))
    assert ran.dispositions == ["accepted"] * 3
    errors = [one.errors for one in of(ran, Judged)[0].verdicts]
    assert sorted(map(len, errors)) == [0, 0, 1]
    (failed,) = [one for one in outcomes(ran) if not one["passed"]]
    assert "the call failed" in failed["detail"]
    assert "HTTP 500" in failed["detail"]
    assert CANARY.encode() not in (tmp_path / "ledger.jsonl").read_bytes()


def test_a_call_is_made_again_and_every_one_counts(tmp_path: Path, serve: Serve) -> None:
    server = serve(fakeserver.busy(), fakeserver.drops(), YES)
    settings = one_round(server, judged(), judge={"retries": 2}, batch_size=1)
    ran = run(tmp_path, settings, proposer=agent(GOOD[:1]))
    assert server.calls == ran.state.votes.made == 3
    assert [one.passed for one in of(ran, Voted)] == [None, None, True]
    busy, dropped, _ = of(ran, Voted)
    assert busy.tokens == 0  # nothing was generated
    assert dropped.tokens == of(ran, VoteAsked)[1].tokens
    assert outcomes(ran)[0]["passed"]


def test_further_calls_stay_within_the_budget(tmp_path: Path, serve: Serve) -> None:
    server = serve(fakeserver.busy())
    settings = one_round(
        server, judged(), judge={"retries": 9}, batch_size=1, expect={"judge_budget": 3}
    )
    ran = run(tmp_path, settings, proposer=agent(GOOD[:1]))
    assert server.calls == ran.state.votes.made == 3
    assert "judge budget of 3 calls exhausted" in outcomes(ran)[0]["detail"]


def test_a_server_that_knows_no_format_is_asked_plainly(tmp_path: Path, serve: Serve) -> None:
    server = serve(fakeserver.only_formats("json_object", then=YES))
    ran = run(tmp_path, one_round(server, judged(), batch_size=1), proposer=agent(GOOD[:1]))
    kinds = [body["response_format"]["type"] for body in server.bodies]
    assert kinds == ["json_schema", "json_object"]
    assert outcomes(ran)[0]["passed"]
    assert ran.state.votes.made == 2


def test_a_vote_is_asked_for_in_one_message_by_the_model_the_rule_names(
    tmp_path: Path, serve: Serve
) -> None:
    server = serve(YES)
    rules = [judged(votes=2), judged("y", id="other", params={"model": "large"})]
    run(tmp_path, one_round(server, *rules, batch_size=1), proposer=agent(GOOD[:1]))
    first, second, third = server.bodies
    assert [one["model"] for one in server.bodies] == ["small", "small", "large"]
    (message,) = first["messages"]
    assert message["role"] == "user"
    assert "```\n0.1\n```" in message["content"]
    assert (first["temperature"], first["max_tokens"]) == (0.0, 256)
    assert first["seed"] != second["seed"]
    assert third["response_format"]["json_schema"]["schema"]["required"] == ["passed", "reason"]


def test_without_a_judge_the_model_that_proposes_is_asked_without_its_temperature() -> None:
    plain = {"kind": "openai", "model": "m", "url": "http://h/v1", "temperature": 0.9,
             "max_tokens": 9, "timeout": "7s", "retries": 5}  # fmt: skip
    settings = running.config(agent=plain)
    assert isinstance(settings.agent, OpenAIAgent)
    judge = {"model": "m", "url": "http://h/v1", "timeout": "7s", "retries": 5}
    assert server_of(settings) == JudgeConfig.model_validate(judge)
    assert server_of(running.config()) is None


def test_a_rule_about_the_rationale_is_waived_for_what_the_surrogate_draws(
    tmp_path: Path, serve: Serve
) -> None:
    server = serve(YES)
    grounded = judged("x", id="apt", params={"context": ["proposal.rationale"]})
    settings = one_round(server, judged("rationale"), grounded, LEVEL, expect={"max_iterations": 1})
    ran = run(tmp_path, settings, proposer=agent([STEEP] * 3, rationale=f"so it {CANARY}"))
    assert ran.dispositions == ["fallback"] * 3
    assert of(ran, Filled)
    assert server.calls == 0
    for rule in ("sound", "apt"):
        drawn = outcomes(ran, rule)[-1]
        assert (drawn["passed"], drawn["skipped"]) == (True, True)


def test_a_model_is_grounded_on_the_campaign_the_reasons_and_the_candidate(
    tmp_path: Path, serve: Serve
) -> None:
    server = serve(YES)
    named = ["campaign.description", "proposal.rationale", "candidate.y"]
    settings = one_round(
        server, judged(params={"context": named}), description="Find the bowl.", batch_size=1
    )
    run(tmp_path, settings, proposer=agent(GOOD[:1], rationale="low is good"))
    (text,) = [body["messages"][0]["content"] for body in server.bodies]
    for name, value in zip(named, ("Find the bowl.", "low is good", "0.2"), strict=True):
        assert f"Grounding, {name}:\n```\n{value}\n```" in text


@pytest.mark.parametrize(
    ("scope", "known"),
    [
        ("record", "candidate.x, candidate.y, proposal.rationale"),
        ("batch", "proposal.rationale"),
    ],
)
def test_an_unknown_reference_is_refused_with_the_known_ones(
    tmp_path: Path, serve: Serve, scope: str, known: str
) -> None:
    field = "x" if scope == "record" else "candidates"
    rule = judged(field, scope=scope, params={"context": ["candidate.z"]})
    plain = one_round(serve(YES), rule).model_dump(exclude_defaults=True)
    ((loc, text),) = resolve(plain, tmp_path)[1]
    assert loc[:2] == ("expect", "expectations")
    assert text.startswith("sound: context: unknown 'candidate.z'")
    assert text.endswith(f"there are {known}")


def test_a_rule_about_the_batch_is_asked_once_about_what_passes(
    tmp_path: Path, serve: Serve
) -> None:
    server = serve(YES)
    whole = judged("candidates", scope="batch")
    settings = one_round(server, LEVEL, whole, expect={"max_iterations": 1})
    ran = run(tmp_path, settings, proposer=agent([GOOD[0], STEEP, GOOD[1]]))
    text = server.bodies[0]["messages"][0]["content"]
    assert '[{"x": 0.1, "y": 0.2}, {"x": 0.2, "y": 0.4}]' in text
    assert [one["skipped"] for one in outcomes(ran)[:3]] == [False, True, False]
    assert server.calls == 2  # once more, about the batch that the fallback filled


def test_a_gate_that_only_watches_has_every_candidate_of_the_space_judged(
    tmp_path: Path, serve: Serve
) -> None:
    server = serve(NO)
    settings = one_round(server, LEVEL, judged(severity="error"), expect={"repair": "none"})
    ran = run(tmp_path, settings, proposer=agent([GOOD[0], STEEP, GOOD[1]]))
    assert server.calls == 3
    assert ran.dispositions == ["accepted"] * 3


CAPS: dict[str, dict[str, Any]] = {
    "expect": {"expect": {"judge_budget": 7}},
    "judge_calls": {"budgets": {"judge_calls": 7}},
    "tokens": {"budgets": {"tokens": 2600}},
}


@pytest.mark.parametrize("cap", CAPS)
def test_killed_after_any_event_a_run_pays_for_no_vote_twice_and_passes_no_cap(
    tmp_path: Path, serve: Serve, cap: str
) -> None:
    def settings(server: FakeServer) -> CampaignConfig:
        rules = [judged(["x", "y"], votes=2), judged("y", id="also", params={"rule": "Better."})]
        return one_round(server, *rules, judge={"retries": 1}, **CAPS[cap])

    flaky = [YES, fakeserver.busy(), NO, YES, fakeserver.drops(), YES]
    whole = run(tmp_path / "whole", settings(serve(*flaky)), proposer=agent(GOOD))
    assert "exhausted" in str([*outcomes(whole), *outcomes(whole, "also")])
    lines = (tmp_path / "whole" / "ledger.jsonl").read_text().split("\n")
    for end in range(2, len(whole.entries)):
        run_dir = tmp_path / str(end)
        run_dir.mkdir()
        (run_dir / "ledger.jsonl").write_text("".join(f"{line}\n" for line in lines[:end]))
        before = fold(read(run_dir)).votes
        with FakeServer(YES) as server:
            ran = run(run_dir, settings(server), proposer=agent(GOOD))
        after, counters = ran.state.votes, ran.state.usage.counters
        assert before.made + server.calls == after.made == counters["judge_calls"].spent
        assert after.made <= 7 or cap == "tokens"
        assert counters["tokens"].spent <= 2600 or cap != "tokens"
        assert all(counter.reserved == 0 for counter in counters.values())
        for key, cast in after.cast.items():
            assert cast[: len(before.cast.get(key, []))] == before.cast.get(key, [])
            assert len(cast) <= 2


class Stopped:
    """A job in this process, stopped by what its server does."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir, self.stop = run_dir, Stop()
        self._loop: asyncio.AbstractEventLoop | None = None

    def soon(self, call: Callable[..., object], *args: object) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(call, *args)

    def run(self, settings: CampaignConfig, *, surrogate_only: bool = False) -> Ending:
        async def job() -> Ending:
            self._loop = asyncio.get_running_loop()
            with Ledger(self.run_dir) as ledger:
                recorder = Recorder(ledger, fold(()))
                expect, _ = resolve(settings.model_dump(exclude_defaults=True), self.run_dir)
                made = creation(settings, self.run_dir, kept(expect), surrogate_only=surrogate_only)
                await recorder.record(made)
                await recorder.record(JobStarted(job=1, host="h", pid=1, python="", numpy=""))
                place = Place(self.run_dir, self.run_dir, settings.seed)
                executor = InlineExecutor(running.FUNCTIONS)
                campaign = assemble(settings, place, executor, recorder, self.stop, agent(GOOD))
                ending = await run_campaign(campaign)
                await campaign.asking.close()
                return ending

        return asyncio.run(job())

    @property
    def events(self) -> list[Any]:
        return [entry.event for entry in read(self.run_dir)]

    @property
    def reserved(self) -> float:
        return sum(one.reserved for one in fold(read(self.run_dir)).usage.counters.values())


def test_a_run_that_stops_keeps_what_was_judged_and_leaves_the_rest_open(
    tmp_path: Path, serve: Serve
) -> None:
    job = Stopped(tmp_path)

    def stopping(exchange: fakeserver.Exchange) -> None:
        job.soon(job.stop.request, "told to stop")
        YES(exchange)

    other = judged("y", id="also", params={"rule": "It is even better."})
    assert job.run(one_round(serve(stopping), judged(), other)).reason == "told to stop"
    (one,) = [event for event in job.events if isinstance(event, Judged)]
    assert [verdict.expect["outcomes"][1]["skipped"] for verdict in one.verdicts] == [True] * 3
    assert job.reserved == 0


def test_a_gating_rule_is_judged_by_the_job_that_goes_on(tmp_path: Path, serve: Serve) -> None:
    job = Stopped(tmp_path)

    def stopping(exchange: fakeserver.Exchange) -> None:
        job.soon(job.stop.request, "told to stop")
        YES(exchange)

    rules = [judged(severity="error"), judged("y", id="also", severity="error")]
    settings = one_round(serve(stopping, YES), *rules)
    job.run(settings)
    assert not [event for event in job.events if isinstance(event, Judged)]
    ran = run(tmp_path, settings, proposer=agent())
    assert ran.dispositions == ["accepted"] * 3
    keys = [event.key for event in of(ran, VoteAsked)]
    assert len(keys) == len(set(keys))


def test_a_call_that_is_cut_off_is_charged_all_it_may_have_used(
    tmp_path: Path, serve: Serve
) -> None:
    job = Stopped(tmp_path)

    def hanging(exchange: fakeserver.Exchange) -> None:
        job.soon(job.stop.request, "told to stop")
        job.soon(job.stop.cut)
        fakeserver.hangs()(exchange)

    job.run(one_round(serve(hanging), judged(), batch_size=1))
    (asked,) = [event for event in job.events if isinstance(event, VoteAsked)]
    (voted,) = [event for event in job.events if isinstance(event, Voted)]
    assert (voted.passed, voted.tokens) == (None, asked.tokens)
    assert voted.error == "cancelled: told to stop"
    assert job.reserved == 0


def test_a_surrogate_only_run_asks_no_judge(tmp_path: Path, serve: Serve) -> None:
    server = serve(YES)
    Stopped(tmp_path).run(one_round(server, judged()), surrogate_only=True)
    assert server.calls == 0
