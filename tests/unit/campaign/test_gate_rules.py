"""Rules in the gate of a round: what they say, what follows from it, what the ledger keeps."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import running
from campaign.config import CampaignConfig
from campaign.events import Answered, Filled, Judged, SlotEnded, TaskStarted
from campaign.ledger import read
from campaign.model import SIMULATION, JobOutcome
from repairing import LEVEL
from running import agent, of, run
from square import GOOD, STEEP

CHECK = """
from checks import check


@check("picky", params=("mood",))
def picky(value, params):
    if value > 0.9:
        raise RuntimeError("no idea")
    return value < 0.8, f"{value} is too much"
"""
PICKY = {"id": "picky_y", "type": "picky", "field": "y"}


def one_round(*rules: object, **changes: Any) -> CampaignConfig:
    expect = {"expectations": list(rules)} if rules else {}
    return running.config(
        **{"rounds": 1, "verifiers": [], "expect": expect | changes.pop("expect", {})} | changes
    )


def with_check(folder: Path) -> Path:
    (folder / "checks").mkdir()
    (folder / "checks" / "mine.py").write_text(CHECK)
    return folder


def simulated(ran: running.Ran) -> int:
    return sum(one.task == SIMULATION for one in of(ran, TaskStarted))


def test_what_a_rule_rejects_is_asked_for_again_with_the_rules_reason(tmp_path: Path) -> None:
    proposer = agent([GOOD[0], STEEP, GOOD[1]], [GOOD[2]])
    ran = run(tmp_path, one_round(LEVEL), proposer=proposer)
    assert ran.dispositions == ["accepted", "repaired", "accepted"]
    (rejection,) = proposer.asks[1].rejections
    (said,) = [one for one in rejection.findings if one.status == "reject"]
    assert (rejection.slot, said.check, said.kind) == (1, "level", "expression")
    assert said.reason == "condition 'x + y <= 1' is false (x=0.4, y=0.95)"


def test_the_ledger_has_the_verdict_of_every_candidate_of_every_generation(tmp_path: Path) -> None:
    outside = {"x": 0.1, "y": 1.5}
    proposer = agent([outside, STEEP, GOOD[1]], [GOOD[2], GOOD[0]])
    ran = run(tmp_path, one_round(LEVEL), proposer=proposer)
    first, second = of(ran, Judged)
    passed = {"id": "level", "type": "expression", "severity": "error", "passed": True,
              "detail": "", "skipped": False}  # fmt: skip
    good = {"overall_pass": True, "failed": [], "skipped": [], "outcomes": [passed]}
    assert [one.expect for one in second.verdicts] == [good, good]
    unreached, failed, third = first.verdicts
    assert third.expect == good
    assert (failed.expect["overall_pass"], failed.expect["failed"]) == (False, ["level"])
    assert (unreached.expect["failed"], unreached.expect["skipped"]) == (["level"], ["level"])


def test_rules_that_only_watch_block_nothing_and_their_verdict_is_kept(tmp_path: Path) -> None:
    settings = one_round(LEVEL, expect={"repair": "none"})
    proposer = agent([GOOD[0], STEEP, GOOD[1]])
    ran = run(tmp_path, settings, proposer=proposer)
    assert ran.dispositions == ["accepted"] * 3
    (judged,) = of(ran, Judged)
    assert judged.observed
    assert [one.expect["overall_pass"] for one in judged.verdicts] == [True, False, True]
    assert simulated(ran) == 3


def test_under_repair_none_nothing_is_asked_again(tmp_path: Path) -> None:
    settings = one_round(LEVEL, expect={"repair": "none"})
    proposer = agent([GOOD[0], {"x": 0.1, "y": 2.0}, GOOD[1]])
    ran = run(tmp_path, settings, proposer=proposer)
    assert len(proposer.asks) == 1
    assert ran.dispositions == ["accepted", "fallback", "accepted"]


@pytest.mark.parametrize("severity", ["warn", "info"])
def test_a_rule_that_is_no_error_rejects_nothing(tmp_path: Path, severity: str) -> None:
    ran = run(
        tmp_path, one_round(LEVEL | {"severity": severity}), proposer=agent([*GOOD[:2], STEEP])
    )
    assert ran.dispositions == ["accepted"] * 3
    (judged,) = of(ran, Judged)
    assert judged.verdicts[2].expect["outcomes"][0]["passed"] is False


def test_a_rule_that_cannot_tell_costs_no_generation_and_the_slot_is_filled(
    tmp_path: Path,
) -> None:
    proposer = agent([GOOD[0], STEEP, GOOD[1]])
    ran = run(with_check(tmp_path), one_round(PICKY), proposer=proposer)
    assert len(proposer.asks) == 1
    assert ran.dispositions == ["accepted", "fallback", "accepted"]
    judged = of(ran, Judged)[0]
    assert judged.verdicts[1].errors == ["picky_y"]
    (outcome,) = judged.verdicts[1].expect["outcomes"]
    assert outcome["detail"] == "check raised RuntimeError: no idea"


def test_what_cannot_be_told_is_never_sent_to_be_repaired(tmp_path: Path) -> None:
    both = {"x": 0.5, "y": 0.95}
    proposer = agent([GOOD[0], both, GOOD[1]], [GOOD[2]])
    run(with_check(tmp_path), one_round(PICKY, LEVEL), proposer=proposer)
    (rejection,) = proposer.asks[1].rejections
    assert [one.check for one in rejection.findings if not one.passed] == ["level"]


def test_a_rule_that_cannot_tell_may_be_passed_over(tmp_path: Path) -> None:
    settings = one_round(PICKY, policy={"check_error": "warn_continue"})
    ran = run(with_check(tmp_path), settings, proposer=agent([GOOD[0], STEEP, GOOD[1]]))
    assert ran.dispositions == ["accepted"] * 3
    assert [one.unchecked for one in of(ran, SlotEnded)] == [[], ["picky_y"], []]


def test_a_rule_that_cannot_tell_may_end_the_run(tmp_path: Path) -> None:
    settings = one_round(PICKY, policy={"check_error": "fail_run"})
    ran = run(with_check(tmp_path), settings, proposer=agent([GOOD[0], STEEP, GOOD[1]]))
    assert ran.ending.outcome is JobOutcome.FAILED
    assert "picky_y: check raised RuntimeError: no idea" in ran.ending.reason
    assert simulated(ran) == 0


def test_a_rule_of_the_batch_reads_what_is_pinned_too(tmp_path: Path) -> None:
    pair = {"id": "pair", "type": "item_count", "field": "candidates", "scope": "batch",
            "params": {"equals": 3}}  # fmt: skip
    outside = {"x": 0.1, "y": 1.5}
    proposer = agent([GOOD[0], outside, GOOD[1]], [GOOD[2], GOOD[0], GOOD[1]])
    ran = run(tmp_path, one_round(pair), proposer=proposer)
    first, second = of(ran, Judged)
    assert first.verdicts[0].expect["outcomes"][0]["detail"] == "2 items, expected exactly 3"
    assert all(one.expect["overall_pass"] for one in second.verdicts)
    assert ran.dispositions == ["repaired"] * 3


def test_rules_across_the_batch_never_blame_what_is_pinned(tmp_path: Path) -> None:
    apart = {"id": "apart", "type": "min_separation", "field": ["x", "y"],
             "params": {"distance": 0.2}}  # fmt: skip
    near = {"x": 0.21, "y": 0.41}
    proposer = agent([STEEP | {"y": 1.5}, GOOD[1], {"x": 0.9, "y": 0.9}], [near])
    ran = run(tmp_path, one_round(apart, expect={"max_iterations": 2}), proposer=proposer)
    assert ran.dispositions == ["fallback", "accepted", "accepted"]
    second = of(ran, Judged)[1]
    assert "candidate 1 of the batch" in second.verdicts[0].expect["outcomes"][0]["detail"]


def test_a_reason_names_another_candidate_by_its_slot(tmp_path: Path) -> None:
    once = {"id": "once", "type": "distinct", "field": "x"}
    outside, other = {"x": 0.5, "y": 1.5}, GOOD[1] | {"y": 0.45}
    ran = run(tmp_path, one_round(once), proposer=agent([outside, GOOD[1], other]))
    (said,) = of(ran, Judged)[0].verdicts[2].expect["outcomes"]
    assert "repeats candidate 1 of the batch" in said["detail"]


def test_a_candidate_of_an_earlier_round_is_history_to_a_rule(tmp_path: Path) -> None:
    new = {"id": "new_x", "type": "distinct_from_history", "field": "x"}
    again = {"x": 0.1, "y": 0.9}
    proposer = agent(GOOD, [again, {"x": 0.5, "y": 0.1}, {"x": 0.6, "y": 0.1}])
    settings = one_round(new, rounds=2, expect={"max_iterations": 1})
    ran = run(tmp_path, settings, proposer=proposer)
    assert ran.dispositions[3:] == ["fallback", "accepted", "accepted"]


def test_a_rule_may_read_why_the_agent_proposed_the_batch(tmp_path: Path) -> None:
    words = {"id": "why", "type": "word_count_between", "field": "rationale", "params": {"min": 2}}
    ran = run(tmp_path, one_round(words), proposer=agent(GOOD, rationale="because of y"))
    assert ran.dispositions == ["accepted"] * 3
    (other := tmp_path / "other").mkdir()
    ran = run(other, one_round(words), proposer=agent(GOOD, rationale="because"))
    assert ran.dispositions == ["fallback"] * 3
    waived = of(ran, Judged)[-1].verdicts[0].expect["outcomes"][0]
    assert (waived["passed"], waived["skipped"]) == (True, True)
    assert waived["detail"] == "waived: the surrogate gives no rationale"


def test_a_rationale_that_went_with_its_job_is_no_fault_of_the_candidate(tmp_path: Path) -> None:
    words = {"id": "why", "type": "not_null", "field": "rationale"}
    run(tmp_path, one_round(words), proposer=agent(GOOD, rationale="because of y"))
    shutil.rmtree(tmp_path / "tasks")
    ledger = tmp_path / "ledger.jsonl"
    lines = ledger.read_text().split("\n")
    end = next(at for at, line in enumerate(lines) if '"kind":"judged"' in line)
    ledger.write_text("\n".join(lines[:end]) + "\n")
    assert isinstance(read(tmp_path)[-1].event, Answered)
    ran = run(tmp_path, one_round(words), proposer=agent())
    judged = of(ran, Judged)[0]
    assert [one.errors for one in judged.verdicts] == [["why"]] * 3
    assert ran.dispositions == ["fallback"] * 3


def test_a_later_job_takes_the_word_of_an_earlier_one(tmp_path: Path) -> None:
    settings = one_round(PICKY, expect={"max_iterations": 1})
    run(with_check(tmp_path), settings, proposer=agent([GOOD[0], {"x": 0.1, "y": 0.85}, GOOD[1]]))
    (tmp_path / "checks" / "mine.py").write_text(CHECK.replace("value < 0.8", "True"))
    shutil.rmtree(tmp_path / "tasks")
    ledger = tmp_path / "ledger.jsonl"
    lines = ledger.read_text().split("\n")
    end = next(at for at, line in enumerate(lines) if '"kind":"judged"' in line)
    ledger.write_text("\n".join(lines[: end + 1]) + "\n")
    ran = run(tmp_path, settings, proposer=agent())
    assert ran.dispositions == ["accepted", "fallback", "accepted"]
    assert len([one for one in of(ran, Judged) if one.generation == 1]) == 1


def test_a_guard_keeps_what_the_rules_only_watched_from_being_simulated(tmp_path: Path) -> None:
    guard = {"condition": "expect.overall_pass == true", "on_false": "filter"}
    plain = one_round(LEVEL, expect={"repair": "none"}).model_dump(mode="json")
    settings = running.config(
        **{key: plain[key] for key in ("rounds", "verifiers", "expect")}
        | {"simulation": plain["simulation"] | {"guard": guard}}
    )
    ran = run(tmp_path, settings, proposer=agent([GOOD[0], STEEP, GOOD[1]]))
    assert ran.dispositions == ["accepted", "tombstone", "accepted"]
    (slot,) = [one for one in of(ran, SlotEnded) if one.disposition == "tombstone"]
    assert slot.parameters == STEEP
    assert slot.reason.startswith("filtered by the guard: condition 'expect.overall_pass == true'")
    assert simulated(ran) == 2


def test_a_guard_reads_the_verdict_of_what_is_run_although_it_was_rejected(tmp_path: Path) -> None:
    guard = {"condition": "expect.overall_pass == true"}
    settings = one_round(
        LEVEL,
        expect={"on_exhausted": "return_last", "max_iterations": 1},
        simulation={"kind": "python", "walltime": "10s", "function": "tests:bowl", "guard": guard},
    )
    ran = run(tmp_path, settings, proposer=agent([GOOD[0], STEEP, GOOD[1]]))
    assert ran.dispositions == ["accepted", "tombstone", "accepted"]


def test_on_exhausted_is_short_for_both_policies(tmp_path: Path) -> None:
    settings = one_round(LEVEL, expect={"on_exhausted": "fail", "max_iterations": 1})
    ran = run(tmp_path, settings, proposer=agent([GOOD[0], STEEP, GOOD[1]]))
    assert ran.dispositions == ["accepted", "tombstone", "accepted"]
    assert "level: condition" in of(ran, SlotEnded)[2].reason


def test_the_surrogate_proposes_only_what_the_rules_let_pass(tmp_path: Path) -> None:
    narrow = {"id": "narrow", "type": "expression", "params": {"condition": "x + y < 0.15"}}
    ran = run(tmp_path, one_round(narrow, rounds=5))
    assert ran.dispositions == ["accepted"] * 15
    assert not of(ran, Filled)


def test_a_check_of_ones_own_steers_the_surrogate_by_its_rejections(tmp_path: Path) -> None:
    ran = run(with_check(tmp_path), one_round(PICKY, rounds=3))
    assert set(ran.dispositions) <= {"accepted", "repaired", "fallback"}
    assert all(one.parameters["y"] < 0.8 for one in of(ran, SlotEnded))
