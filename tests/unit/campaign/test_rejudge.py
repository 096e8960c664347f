"""A run judged again under other rules: what would have changed, and what it would have cost."""

from __future__ import annotations

import inspect
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import campaign.replayreport
import running
from campaign.config import CampaignConfig
from campaign.configfile import LoadedConfig
from campaign.expectations import resolve
from campaign.fates import Fate
from campaign.ledger import NAME
from campaign.limits import worst_case
from campaign.model import SIMULATION, Disposition
from campaign.problems import ConfigError
from campaign.rejudge import Case
from campaign.replayreport import Comparison, as_data, compare
from campaign.space import content_hash
from campaign.state import fold
from campaign.status import load
from folders import folder, plain, simgate
from running import agent, run, verifier
from square import GOOD, STEEP

RIGHT = {"x": 0.6, "y": 0.1}  # the verifier rejects it
OUTSIDE = {"x": 0.1, "y": 1.5}
AGENT = {"kind": "replay", "file": "none.yaml"}  # stands for the scripted one
STABLE = [verifier("stable", "tests:rejects")]


def rule(condition: str, id: str = "level", **more: Any) -> dict[str, Any]:
    return {"id": id, "type": "expression", "params": {"condition": condition}} | more


LEVEL = rule("x + y <= 1")
FLAT = rule("y <= 0.5")
APART = {"id": "apart", "type": "min_separation", "field": ["x", "y"], "params": {"distance": 0.2}}
NEW = {"id": "new", "type": "distinct_from_history", "field": "x"}
WHY = {"id": "why", "type": "word_count_between", "field": "rationale", "params": {"min": 2}}
PAIR = {"id": "pair", "type": "item_count", "field": "candidates", "scope": "batch",
        "params": {"min": 2}}  # fmt: skip
PICKY = {"id": "picky_y", "type": "picky", "field": "y"}
GUARD = {"condition": "expect.overall_pass == true", "on_false": "filter"}
GUARDED = {"kind": "python", "walltime": "10s", "function": "tests:bowl", "guard": GUARD}
CHECK = """
from checks import check


@check("picky")
def picky(value, params):
    if value > 0.9:
        raise RuntimeError("no idea")
    return value < 0.7, f"{value} is too much"
"""


def expecting(*rules: object, **changes: Any) -> CampaignConfig:
    """One round of three slots without verifiers, unless ``changes`` say otherwise."""
    expect = {"expectations": list(rules)} if rules else {}
    whole: dict[str, Any] = {"rounds": 1, "verifiers": [], "agent": AGENT}
    return running.config(**whole | {"expect": expect | changes.pop("expect", {})} | changes)


def loaded(config: CampaignConfig, folder: Path) -> LoadedConfig:
    expect, refused = resolve(config.model_dump(exclude_defaults=True), folder)
    assert not refused, refused
    return LoadedConfig(config, folder / "campaign.yaml", folder, {}, expect)


def again(of: running.Ran, other: CampaignConfig) -> Comparison:
    state, config = load(of.run_dir)
    return compare(state, config, loaded(other, of.run_dir))


def ran(
    directory: Path, config: CampaignConfig, *script: object, rationale: str = ""
) -> running.Ran:
    return run(directory, config, proposer=agent(*script, rationale=rationale))


def fates(cases: Sequence[Case]) -> list[tuple[int, int, str, str, str]]:
    return [(c.slot, c.generation, c.ended.fate.value, c.now.fate.value, c.now.by) for c in cases]


def hours(of: running.Ran, *tasks: tuple[str, dict[str, float]]) -> float:
    """What the tries of some tasks took."""
    ends = [of.state.tasks[task, content_hash(point)].ended for task, point in tasks]
    return sum(one.spent for tries in ends for one in tries)


def test_a_stricter_rule_names_what_it_would_have_stopped_and_saved(tmp_path: Path) -> None:
    of = ran(tmp_path, expecting(LEVEL, verifiers=STABLE), GOOD)
    found = again(of, expecting(FLAT))
    assert fates(found.changes) == [(2, 1, "accepted", "rejected", "level")]
    (case,) = found.changes
    assert case.now.detail == "condition 'y <= 0.5' is false (y=0.6)"
    assert found.counts == {"same": 2, "would_pass": 0, "would_fail": 1, "unknown": 0}
    saved = found.bill.saved
    assert saved.total == pytest.approx(hours(of, ("stable", GOOD[2]), (SIMULATION, GOOD[2])))
    assert (saved.candidates, {*saved.by_task}) == (1, {"stable", SIMULATION})
    assert (found.bill.reopened, found.bill.more.total) == (1, 0)


def test_a_looser_rule_names_what_would_pass_and_estimates_its_cost(tmp_path: Path) -> None:
    of = ran(tmp_path, expecting(LEVEL, verifiers=STABLE), [GOOD[0], STEEP, GOOD[1]], [GOOD[2]])
    found = again(of, expecting(rule("x + y <= 2")))
    assert fates(found.changes) == [(1, 1, "rejected", "passed", "")]
    (case,) = found.changes
    assert (case.was.by, case.was.detail) == (
        "level",
        "condition 'x + y <= 1' is false (x=0.4, y=0.95)",
    )
    bases = {one.task: one for one in found.bill.bases}
    assert (bases["stable"].n, bases[SIMULATION].n) == (3, 3)
    mean = hours(of, *((SIMULATION, point) for point in GOOD)) / 3
    assert found.bill.more.by_task[SIMULATION] == pytest.approx(mean)
    assert found.bill.more.total == pytest.approx(sum(one.node_hours for one in bases.values()))
    assert found.bill.saved.total == 0


def test_what_came_later_for_a_slot_that_now_passes_is_displaced(tmp_path: Path) -> None:
    of = ran(tmp_path, expecting(LEVEL), [GOOD[0], STEEP, GOOD[1]], [GOOD[2]])
    found = again(of, expecting())
    assert found.bill.displaced.total == pytest.approx(hours(of, (SIMULATION, GOOD[2])))
    assert (found.bill.displaced.candidates, found.bill.reopened) == (1, 0)
    both = [{"x": 0.45, "y": 0.95}]
    (tmp_path / "b").mkdir()
    of = ran(tmp_path / "b", expecting(LEVEL), [GOOD[0], STEEP, GOOD[1]], both)
    found = again(of, expecting())
    assert len(found.changes) == 2
    assert found.bill.more.candidates == 1  # the second would not have been proposed


def test_a_slot_that_an_earlier_candidate_now_ends_is_not_open_again(tmp_path: Path) -> None:
    of = ran(tmp_path, expecting(LEVEL), [GOOD[0], STEEP, GOOD[1]], [GOOD[2]])
    found = again(of, expecting(rule("y > 0.9 or y < 0.5")))
    assert fates(found.changes) == [
        (1, 1, "rejected", "passed", ""),
        (1, 2, "repaired", "rejected", "level"),
    ]
    assert found.bill.saved.total == pytest.approx(hours(of, (SIMULATION, GOOD[2])))
    assert (found.bill.displaced.total, found.bill.reopened) == (0, 0)


def test_what_was_proposed_again_and_passed_costs_nothing_more(tmp_path: Path) -> None:
    again_ = {"x": 0.3, "y": 0.5}  # at first too near to what is rejected beside it
    script = [[GOOD[2], again_, GOOD[0]], [{"x": 0.8, "y": 0.1}, again_]]
    of = ran(tmp_path, expecting(FLAT, APART), *script)
    found = again(of, expecting(FLAT))
    assert fates(found.changes) == [(1, 1, "rejected", "passed", "")]
    assert found.replay.cases[4].ended.fate is Disposition.REPAIRED
    assert found.bill.more.total == found.bill.displaced.total == 0


def test_where_nothing_ran_the_estimate_is_the_worst_case(tmp_path: Path) -> None:
    changes = {"expect": {"on_exhausted": "fail", "max_iterations": 1}}
    of = ran(tmp_path, expecting(rule("x > 0.9"), verifiers=STABLE, **changes), GOOD)
    found = again(of, expecting())
    bases = {one.task: one for one in found.bill.bases}
    _, config = load(of.run_dir)
    assert bases[SIMULATION].n == 0
    assert bases[SIMULATION].node_hours == worst_case(config.simulation)
    whole = worst_case(config.simulation) + worst_case(config.verifiers[0])
    assert found.bill.more.total == pytest.approx(3 * whole)


def test_a_rule_that_finds_what_a_verifier_found_saves_the_verifier(tmp_path: Path) -> None:
    of = ran(tmp_path, expecting(verifiers=STABLE), [GOOD[0], RIGHT, GOOD[1]], [GOOD[2]])
    found = again(of, expecting(rule("x <= 0.5", "left")))
    assert fates(found.changes) == [(1, 1, "rejected", "rejected", "left")]
    assert (found.changes[0].ended.by, found.changes[0].was.fate) == ("stable", Fate.PASSED)
    assert found.bill.saved.by_task == {"stable": pytest.approx(hours(of, ("stable", RIGHT)))}
    assert found.bill.reopened == 0


def test_the_same_content_counts_once(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"expect": {"on_exhausted": "return_last", "max_iterations": 1}}
    config = expecting(rule("y <= 0.5"), rounds=2, **changes)
    twice = [GOOD[2], GOOD[2], GOOD[0]]
    of = ran(tmp_path, config, twice, [GOOD[2], {"x": 0.5, "y": 0.1}, {"x": 0.4, "y": 0.1}])
    assert of.dispositions.count("returned") == 3
    found = again(of, expecting(verifiers=[]))
    assert [c.content for c in found.changes] == [found.changes[0].content]
    assert found.bill.more.total == 0  # its simulation has been paid for
    found = again(of, expecting(rule("x < 0.05")))
    assert GOOD[2] not in [case.parameters for case in found.changes]  # it was run by policy


def test_a_severity_of_warn_lets_pass_what_an_error_stopped(tmp_path: Path) -> None:
    of = ran(tmp_path, expecting(LEVEL), [GOOD[0], STEEP, GOOD[1]], [GOOD[2]])
    found = again(of, expecting(LEVEL | {"severity": "warn"}))
    assert fates(found.changes) == [(1, 1, "rejected", "passed", "")]
    (counts,) = found.replay.checks
    assert (counts.run, counts.reworded) == (counts.now, True)
    assert counts.now is not None
    assert counts.now.failed == 1


def test_repair_none_lets_everything_pass_that_only_rules_stopped(tmp_path: Path) -> None:
    of = ran(tmp_path, expecting(LEVEL), [GOOD[0], STEEP, OUTSIDE], [GOOD[1], GOOD[2]])
    found = again(of, expecting(LEVEL, expect={"repair": "none"}))
    assert fates(found.changes) == [(1, 1, "rejected", "passed", "")]
    assert any(note.startswith("repair: none") for note in as_data(found)["notes"])


def test_narrower_bounds_are_checked_before_any_rule(tmp_path: Path) -> None:
    of = ran(tmp_path, expecting(LEVEL), GOOD)
    space = {
        "x": {"type": "float", "min": 0.0, "max": 0.25},
        "y": {"type": "float", "min": 0.0, "max": 1.0},
    }
    found = again(of, expecting(LEVEL, parameters=space))
    assert fates(found.changes) == [(2, 1, "accepted", "rejected", "bounds")]
    counts = {one.check: one for one in found.replay.checks}
    assert counts["level"].now is not None
    assert counts["level"].now.not_checked == 1
    assert counts["bounds"].now is not None
    assert counts["bounds"].now.failed == 1


def test_candidates_are_judged_beside_what_had_passed(tmp_path: Path) -> None:
    near = {"x": 0.21, "y": 0.41}
    of = ran(tmp_path, expecting(LEVEL), [STEEP, GOOD[1], {"x": 0.9, "y": 0.05}], [near])
    found = again(of, expecting(LEVEL, APART))
    assert fates(found.changes) == [(0, 2, "repaired", "rejected", "apart")]


def test_what_filled_a_slot_later_is_no_company_of_what_came_before(tmp_path: Path) -> None:
    few = PAIR | {"params": {"max": 2}, "severity": "warn"}
    config = expecting(PICKY, few)
    of = ran(with_check(tmp_path), config, [GOOD[0], STEEP, OUTSIDE], [GOOD[1]])
    assert of.dispositions == ["accepted", "fallback", "repaired"]
    counts = {one.check: one for one in again(of, config).replay.checks}
    assert counts["pair"].run == counts["pair"].now


def test_candidates_are_judged_after_what_came_before(tmp_path: Path) -> None:
    later = [{"x": 0.1, "y": 0.9}, {"x": 0.5, "y": 0.1}, {"x": 0.6, "y": 0.1}]
    of = ran(tmp_path, expecting(LEVEL, rounds=2), GOOD, later)
    found = again(of, expecting(NEW))
    assert [(c.round, c.slot, c.now.by) for c in found.changes] == [(2, 0, "new")]


def test_a_rule_that_reads_the_rationale_keeps_its_word(tmp_path: Path) -> None:
    of = ran(tmp_path, expecting(WHY, expect={"max_iterations": 1}), GOOD, rationale="because")
    assert of.dispositions == ["fallback"] * 3
    found = again(of, expecting(WHY, rule("x <= 1")))
    assert found.changes == found.unknown == []
    assert found.replay.recalled == ("why",)
    assert any("why" in note and "not judged again" in note for note in as_data(found)["notes"])


@pytest.mark.parametrize("before", [(LEVEL,), (LEVEL, WHY | {"params": {"min": 1}})])
def test_a_new_or_reworded_rule_on_the_rationale_leaves_it_open(
    tmp_path: Path, before: tuple[object, ...]
) -> None:
    of = ran(tmp_path, expecting(*before), [GOOD[0], GOOD[1], STEEP], [GOOD[2]], rationale="as is")
    found = again(of, expecting(LEVEL, WHY))
    assert found.replay.unknown == ("why",)
    assert {case.now.by for case in found.unknown} == {"why"}
    assert [(c.slot, c.generation) for c in found.unknown] == [(0, 1), (1, 1), (2, 2)]
    assert found.changes == []  # what another rule rejects is rejected all the same
    assert found.bill.saved.total == found.bill.more.total == 0


def test_a_rationale_that_went_with_its_job_is_lost_to_a_replay_too(tmp_path: Path) -> None:
    config = expecting(WHY)
    ran(tmp_path, config, GOOD, rationale="because of y")
    shutil.rmtree(tmp_path / "tasks")
    lines = (tmp_path / NAME).read_text().split("\n")
    end = next(at for at, line in enumerate(lines) if '"kind":"judged"' in line)
    (tmp_path / NAME).write_text("\n".join(lines[:end]) + "\n")
    of = ran(tmp_path, config)  # which goes on with what it was answered
    assert of.dispositions == ["fallback"] * 3
    found = again(of, config)
    assert found.changes == found.unknown == []
    assert found.replay.cases[0].now.fate is Fate.NOT_CHECKED


def test_what_fills_a_slot_has_no_rationale_to_be_judged(tmp_path: Path) -> None:
    of = ran(tmp_path, expecting(LEVEL, expect={"max_iterations": 1}), [*GOOD[:2], STEEP])
    assert of.dispositions == ["accepted", "accepted", "fallback"]
    found = again(of, expecting(LEVEL, WHY))
    assert [(c.slot, c.generation) for c in found.unknown] == [(0, 1), (1, 1)]


def test_a_guard_on_a_verdict_that_is_not_whole_leaves_it_open(tmp_path: Path) -> None:
    watching: dict[str, Any] = {"expect": {"repair": "none"}, "simulation": GUARDED}
    of = ran(tmp_path, expecting(LEVEL, **watching), GOOD)
    found = again(of, expecting(LEVEL, WHY, **watching))
    assert found.counts == {"same": 0, "would_pass": 0, "would_fail": 0, "unknown": 3}


def test_a_warning_about_the_rationale_leaves_nothing_open(tmp_path: Path) -> None:
    of = ran(tmp_path, expecting(LEVEL), GOOD)
    found = again(of, expecting(LEVEL, WHY | {"severity": "warn"}))
    assert found.counts == {"same": 3, "would_pass": 0, "would_fail": 0, "unknown": 0}


def test_a_rule_is_waived_for_the_surrogate_that_gives_no_rationale(tmp_path: Path) -> None:
    of = run(tmp_path, expecting(LEVEL, agent={"kind": "surrogate"}))
    found = again(of, expecting(LEVEL, WHY))
    assert found.counts["same"] == len(found.replay.cases) == 3
    assert found.replay.unknown == ()


def with_check(directory: Path, text: str = CHECK) -> Path:
    (directory / "checks").mkdir(exist_ok=True)
    (directory / "checks" / "mine.py").write_text(text)
    return directory


def test_a_check_that_raises_is_no_rejection(tmp_path: Path) -> None:
    of = ran(with_check(tmp_path), expecting(), [GOOD[0], STEEP, GOOD[1]])
    found = again(of, expecting(PICKY))
    assert fates(found.changes) == [(1, 1, "accepted", "not_checked", "picky_y")]
    passing = again(of, expecting(PICKY, policy={"check_error": "warn_continue"}))
    assert passing.changes == []
    failing = again(of, expecting(PICKY, policy={"check_error": "fail_run"}))
    assert any("would have failed in round 1" in note for note in as_data(failing)["notes"])


def test_a_check_of_a_whole_record_is_shown_none_of_the_rationale(tmp_path: Path) -> None:
    text = (
        CHECK.replace('@check("picky")', '@check("picky", scope="record")')
        .replace("value > 0.9", 'value["rationale"] == ""')
        .replace("value < 0.7", "True")
    )
    of = ran(with_check(tmp_path, text), expecting(LEVEL), GOOD, rationale="so")
    found = again(of, expecting(LEVEL, {"id": "all", "type": "picky"}))
    assert (found.replay.blind, found.replay.unknown) == (("all",), ("all",))
    assert found.counts["unknown"] == 3


def test_a_guard_that_reads_the_verdict_filters_again(tmp_path: Path) -> None:
    watching: dict[str, Any] = {"expect": {"repair": "none"}, "simulation": GUARDED}
    of = ran(tmp_path, expecting(LEVEL, verifiers=STABLE, **watching), [GOOD[0], STEEP, GOOD[2]])
    assert of.dispositions == ["accepted", "tombstone", "accepted"]
    assert again(of, expecting(LEVEL, **watching)).changes == []
    found = again(of, expecting(rule("y <= 0.5"), **watching))
    assert fates(found.changes) == [(2, 1, "accepted", "filtered", "guard")]
    assert {*found.bill.saved.by_task} == {SIMULATION}
    found = again(of, expecting(rule("x <= 1"), **watching))
    assert fates(found.changes) == [(1, 1, "filtered", "passed", "")]
    assert {*found.bill.more.by_task} == {SIMULATION}


def test_a_policy_that_runs_what_is_rejected_saves_no_simulation(tmp_path: Path) -> None:
    of = ran(tmp_path, expecting(LEVEL, verifiers=STABLE), GOOD)
    found = again(of, expecting(FLAT, expect={"on_exhausted": "return_last"}))
    assert len(found.changes) == 1
    assert {*found.bill.saved.by_task} == {"stable"}
    assert any("return_last" in note for note in as_data(found)["notes"])


def test_it_says_when_the_best_candidate_would_be_gone(tmp_path: Path) -> None:
    of = ran(tmp_path, expecting(LEVEL), GOOD)  # the last is the least there is
    lost = as_data(again(of, expecting(FLAT)))
    assert (lost["best"], lost["changes"][0]["value"]) == (False, 0)
    assert lost["notes"][0] == (
        "the best candidate of the run would not have passed: rejected by level"
    )
    assert as_data(again(of, expecting(LEVEL)))["best"] is True


def test_an_answer_that_was_never_judged_is_passed_over(tmp_path: Path) -> None:
    of = ran(tmp_path, expecting(LEVEL), GOOD[:2], GOOD)
    found = again(of, expecting(FLAT))
    assert [case.generation for case in found.replay.cases] == [2, 2, 2]


def test_other_parameters_are_refused_by_name(tmp_path: Path) -> None:
    of = ran(tmp_path, expecting(LEVEL), GOOD)
    space = {name: {"type": "float", "min": 0.0, "max": 1.0} for name in ("x", "z")}
    with pytest.raises(ConfigError) as refused:
        again(of, expecting(parameters=space))
    assert "only here 'z', only in the run 'y'" in str(refused.value)


def test_every_key_is_documented(tmp_path: Path) -> None:
    of = ran(tmp_path, expecting(LEVEL), [GOOD[0], STEEP, GOOD[1]], [GOOD[2]])
    data = as_data(again(of, expecting(FLAT)))
    documented = set(re.findall(r"``…?(\w+)``", inspect.getdoc(campaign.replayreport) or ""))
    nested = [data, data["counts"], data["changes"][0], data["rules"][0], data["rules"][0]["run"]]
    nested += [data["node_hours"], data["node_hours"]["saved"], data["estimates"][SIMULATION]]
    used = {key for one in nested for key in one} | {"name", "run_dir", "config", "state"}
    said = {one.replace("was_", "_").replace("now_", "_") for one in used}
    assert said <= documented, said - documented


values = st.sampled_from([0.1, 0.2, 0.3, 0.45, 0.6, 0.95, 1.5])
points = st.fixed_dictionaries({"x": values, "y": values})
odd = st.sampled_from([{"x": 0.1}, "no candidate", {"x": float("nan"), "y": 0.2}, {"x": 1, "y": 0}])
answers = st.lists(st.lists(points | odd, min_size=2, max_size=4), max_size=6)
WHEN = rule("", "when", params={"condition": "y < 0.9", "row_condition": "x > 0.2"})
SOFT = FLAT | {"id": "flat", "severity": "warn"}
FEW = PAIR | {"id": "few", "params": {"max": 2}, "severity": "warn"}
vocabulary = (LEVEL, SOFT, APART, NEW, WHY, PAIR, FEW, PICKY, WHEN)
suites = st.lists(st.sampled_from(vocabulary), unique_by=lambda one: str(one["id"]), max_size=4)
blocks = st.sampled_from(
    [
        {"repair": "none"},
        {"max_iterations": 3},
        {"on_exhausted": "return_last"},
        {"on_exhausted": "fail", "max_iterations": 1},
    ]
)
errors = st.sampled_from(["reject", "warn_continue"])


@pytest.mark.slow
@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(
    answers, suites, blocks, errors, st.booleans(), st.sampled_from(["", "for this reason"]),
    st.floats(0, 1),
)  # fmt: skip
def test_a_runs_own_rules_change_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    script: list[list[object]],
    rules: list[dict[str, Any]],
    block: dict[str, Any],
    on_error: str,
    guarded: bool,
    rationale: str,
    upto: float,
) -> None:
    """Wherever the run was when it was looked at."""
    directory = with_check(tmp_path_factory.mktemp("run"))
    if not rules:
        block = {key: value for key, value in block.items() if key != "repair"}
    changes: dict[str, Any] = {"simulation": GUARDED} if guarded else {}
    config = expecting(
        *rules,
        rounds=2,
        verifiers=STABLE,
        expect=block,
        policy={"check_error": on_error},
        **changes,
    )
    of = ran(directory, config, *script, rationale=rationale)
    found = again(of, config)
    early = fold(of.entries[: 1 + int(upto * len(of.entries))])
    for one in (found, compare(early, config, loaded(config, directory))):
        assert one.changes == one.unknown == []
        assert one.replay.unknown == ()
        assert all(told.run == told.now and not told.reworded for told in one.replay.checks)
        cost = one.bill
        assert cost.saved.total == cost.more.total == cost.displaced.total == cost.reopened == 0
    ends = {case.ended.fate for case in found.replay.cases} & {*Disposition}
    assert ends >= {*of.dispositions} - {Disposition.TOMBSTONE}
    json.dumps(as_data(found), allow_nan=False)


@pytest.fixture
def done(tmp_path: Path) -> Path:
    """The directory of a run by ``plain()`` with a rule, whose folder is ``c`` beside it."""
    expect = {"expectations": [LEVEL]}
    folder(tmp_path / "c", expect=expect)
    (tmp_path / "run").mkdir()
    config = {key: value for key, value in plain(expect=expect).items() if key != "verifiers"}
    config["simulation"] = config["simulation"] | {"function": "tests:bowl"}
    running.run(tmp_path / "run", running.config(**config, verifiers=[]))
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("changes", "words", "code", "said"),
    [
        ({}, "", 0, "4 fare as they did"),
        ({}, "--set expect.expectations[0].params.condition=y>2", 0, "4 passed and would not"),
        ({"parameters": {"z": {"type": "float", "min": 0.0, "max": 1.0}}, "expect": {}}, "", 2,
         "line 3, parameters: not those of the run: only here 'z', only in the run 'x', 'y'"),
        ({"rounds": 0}, "", 2, "rounds"),
        ({"expect": {"expectations": [rule("x +")]}}, "", 2, "line "),
        ({}, "--set nothing", 2, "nothing"),
        ({}, "--with none.yaml", 2, "no such file"),
    ],
)  # fmt: skip
def test_the_exit_code_is_2_where_nothing_could_be_judged(
    tmp_path: Path, done: Path, changes: dict[str, Any], words: str, code: int, said: str
) -> None:
    other = folder(tmp_path / "other", **{"expect": {"expectations": [LEVEL]}} | changes)
    found = simgate("replay", done, "--with", other, *words.split())
    assert (found.exit_code, said in found.output) == (code, True), found.output
    assert "Traceback" not in found.output


def test_a_replay_needs_a_run_and_rules(tmp_path: Path, done: Path) -> None:
    assert simgate("replay", done).exit_code == 2
    assert simgate("replay", tmp_path, "--with", tmp_path / "c").exit_code == 2


def test_a_replay_is_for_people_or_for_programs(tmp_path: Path, done: Path) -> None:
    folder(tmp_path / "other", expect={"expectations": [rule("y > 2", "high")]})
    said = simgate("replay", done, "--with", tmp_path / "other")
    assert "Node-hours" in said.output
    assert "rejected by high" in said.output
    found = simgate("replay", done, "--with", tmp_path / "other", "--json")
    data = json.loads(found.stdout)
    assert (data["name"], data["state"], data["run_dir"]) == ("bowl", "done", str(done))
    assert data["config"] == str(tmp_path / "other" / "campaign.yaml")
    assert data["counts"]["would_fail"] == 4
    assert {one["now_by"] for one in data["changes"]} == {"high"}
