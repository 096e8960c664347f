"""The report on a run's rules: what is counted where, and when its exit code is not 0."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import campaign.rulereport
import running
from campaign.drive import creation
from campaign.events import RuleRecord
from campaign.ledger import Ledger
from campaign.rulereport import RuleReport, Tally, as_data, rule_report
from campaign.status import load
from folders import simgate
from running import agent, run
from square import GOOD, LEVEL, STEEP

OUTSIDE = {"x": 0.1, "y": 1.5}
NARROW = {"id": "narrow", "type": "expression", "params": {"condition": "x < 0.25"}}
WARN = NARROW | {"severity": "warn"}
OF_Y = NARROW | {"id": "of_y", "params": {"condition": "y < 0.5", "row_condition": "x < 0.15"}}
NEVER = NARROW | {"params": {"condition": "y < 0.5", "row_condition": "x > 0.9"}}
CHECK = """
from checks import check


@check("picky")
def picky(value, params):
    raise RuntimeError("no idea")
"""
AGENT = {"kind": "replay", "file": "none.yaml"}  # stands for the scripted one


def ran(directory: Path, script: Sequence[object], *rules: object, **changes: Any) -> running.Ran:
    """A run of one round and three slots without verifiers, unless ``changes`` say otherwise."""
    directory.mkdir(exist_ok=True)
    expect = {"expect": {"expectations": list(rules)}} if rules else {}
    plain = {"rounds": 1, "verifiers": [], "agent": AGENT} | expect | changes
    return run(directory, running.config(**plain), proposer=agent(*script))


def reported(of: running.Ran) -> RuleReport:
    return rule_report(*load(of.run_dir))


def line(report: RuleReport, rule: str) -> Tally:
    (found,) = [one.total() for one in report.rules if one.id == rule]
    return found


def test_a_rule_is_counted_once_for_each_candidate_of_each_generation(tmp_path: Path) -> None:
    report = reported(ran(tmp_path, [[GOOD[0], STEEP, OUTSIDE], GOOD[1:]], LEVEL))
    assert line(report, "level") == Tally(passed=3, failed=1, not_checked=1)
    assert line(report, "level").pass_rate == 75
    assert (report.agents["replay"].candidates, report.agents["replay"].passed) == (5, 3)


def test_what_was_waived_is_no_pass_and_no_failure(tmp_path: Path) -> None:
    report = reported(ran(tmp_path, [GOOD], OF_Y))
    assert line(report, "of_y") == Tally(passed=1, waived=2)
    assert report.agents["replay"].passed == 3


def test_a_check_that_raised_did_not_check(tmp_path: Path) -> None:
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "mine.py").write_text(CHECK)
    picky = {"id": "picky_x", "type": "picky", "field": "x"}
    changes = {"policy": {"check_error": "warn_continue"}}
    report = reported(ran(tmp_path, [GOOD], picky, **changes))
    assert line(report, "picky_x") == Tally(not_checked=3)
    assert report.agents["replay"].passed == 0
    assert not report.checked


def test_a_warning_is_counted_as_failed_and_its_candidate_as_passed(tmp_path: Path) -> None:
    report = reported(ran(tmp_path, [GOOD], WARN))
    assert line(report, "narrow") == Tally(passed=2, failed=1)
    assert report.agents["replay"].passed == 3


def test_rules_that_only_watch_are_counted_all_the_same(tmp_path: Path) -> None:
    expect = {"repair": "none", "expectations": [NARROW]}
    report = reported(ran(tmp_path, [GOOD], expect=expect))
    assert line(report, "narrow") == Tally(passed=2, failed=1)
    assert report.agents["replay"].passed == 2


def test_the_rule_that_fails_most_comes_first(tmp_path: Path) -> None:
    tight = NARROW | {"id": "tight", "params": {"condition": "x < 0.15"}, "severity": "warn"}
    report = reported(ran(tmp_path, [GOOD], LEVEL, WARN, tight))
    assert [rule.id for rule in report.rules] == ["tight", "narrow", "level"]
    assert report.most_failing((1, "replay")) == "tight"


def test_a_rule_that_judged_nothing_is_named_too(tmp_path: Path) -> None:
    soft = {"type": "not_null", "field": "x", "severity": "info"}
    (rule,) = rule_report(*load(begun(tmp_path, soft))).rules
    assert (rule.type, rule.severity, rule.total()) == ("not_null", "info", Tally())
    assert rule.id.startswith("not_null_")


def test_what_the_surrogate_draws_is_reported_as_its_own(tmp_path: Path) -> None:
    script = [[GOOD[0], GOOD[1], STEEP], [STEEP | {"y": 0.9}]]
    report = reported(ran(tmp_path, script, LEVEL))
    assert report.agents["replay"].candidates == 4
    assert report.agents["surrogate"].passed == report.agents["surrogate"].candidates == 1
    (rule,) = report.rules
    assert rule.total("surrogate").failed == 0
    assert rule.total("replay") + rule.total("surrogate") == rule.total()


def test_rounds_are_told_apart(tmp_path: Path) -> None:
    later = [{"x": 0.15, "y": 0.95}, {"x": 0.5, "y": 0.3}, {"x": 0.6, "y": 0.2}]
    changes = {"rounds": 2, "expect": {"expectations": [LEVEL, NARROW], "max_iterations": 1}}
    report = reported(ran(tmp_path, [GOOD, later], **changes))
    assert [report.most_failing((n, "replay")) for n in (1, 2)] == ["narrow", "narrow"]
    assert [report.shares[n, "replay"].passed for n in (1, 2)] == [2, 0]
    assert report.most_failing((1, "surrogate")) is None


def test_answers_that_hold_no_candidates_are_counted(tmp_path: Path) -> None:
    report = reported(ran(tmp_path, [GOOD[:2]], LEVEL))  # two where three were asked for
    share = report.agents["replay"]
    assert (share.candidates, share.no_candidates, share.percent) == (0, 2, None)
    assert report.agents["surrogate"].candidates == 3


def test_a_report_reads_a_run_that_another_process_writes(tmp_path: Path) -> None:
    of = ran(tmp_path, [GOOD], LEVEL)
    with Ledger(of.run_dir):
        found = simgate("report", of.run_dir, "--rules")
    assert found.exit_code == 0, found.output
    assert "level" in found.output


def begun(directory: Path, *rules: dict[str, Any]) -> Path:
    """A run of which nothing has happened yet."""
    with Ledger(directory) as ledger:
        records = [RuleRecord(one, "expect") for one in rules]
        ledger.append(creation(running.config(agent=AGENT), directory, records))
    return directory


def made(directory: Path, what: str) -> Path:
    match what:
        case "some fail":
            return ran(directory, [[GOOD[0], STEEP, GOOD[1]], [GOOD[2]]], LEVEL).run_dir
        case "no rules":
            return ran(directory, [GOOD]).run_dir
        case "nothing yet":
            return begun(directory, LEVEL)
        case "all waived":
            return ran(directory, [GOOD], NEVER).run_dir
        case "only the surrogate":
            return ran(directory, [], LEVEL).run_dir
    return directory


@pytest.mark.parametrize(
    ("what", "words", "code", "said"),
    [
        ("some fail", "--rules", 0, "75%"),
        ("some fail", "--rules --fail-under 75", 0, "level"),
        ("some fail", "--rules --fail-under 0", 0, "level"),
        (
            "some fail", "--rules --fail-under 95", 1,
            "simgate: agent replay: 3 of 4 candidates passed (75%); at least 95% must",
        ),
        ("no rules", "--rules", 1, "nothing was checked: the run has no rules"),
        ("nothing yet", "--rules", 1, "nothing was checked: no candidate has been judged"),
        ("all waived", "--rules", 1, "none of 1 rules passed or failed any of 3 candidates"),
        ("only the surrogate", "--rules", 0, "surrogate"),
        (
            "only the surrogate", "--rules --fail-under 0", 1,
            "simgate: agent replay: no candidate was judged; at least 0% must pass",
        ),
        ("nothing yet", "--fail-under 95", 2, "give --rules as well"),
        ("nothing yet", "--rules --fail-under nan", 2, "nan is no number"),
        ("nothing yet", "--rules --fail-under 101", 2, "--fail-under"),
        ("no run", "--rules", 2, "holds no run"),
    ],
)  # fmt: skip
def test_the_exit_code_says_whether_all_is_well(
    tmp_path: Path, what: str, words: str, code: int, said: str
) -> None:
    found = simgate("report", made(tmp_path, what), *words.split())
    assert (found.exit_code, said in found.output) == (code, True), found.output
    assert "Traceback" not in found.output


def test_json_is_whole_also_where_the_exit_code_is_not_0(tmp_path: Path) -> None:
    directory = made(tmp_path, "some fail")
    found = simgate("report", directory, "--rules", "--json", "--fail-under", "95")
    data = json.loads(found.stdout)
    assert found.exit_code == 1
    assert found.stderr.startswith("simgate: agent replay: 3 of 4")
    assert (data["run_dir"], data["fail_under"], len(data["missed"])) == (str(directory), 95, 1)
    assert data["rules"][0]["rounds"] == [
        {"round": 1, "agent": "replay", "judged": 4, "passed": 3, "failed": 1, "waived": 0,
         "not_checked": 0, "pass_rate": 75}
    ]  # fmt: skip
    assert data["rounds"] == [
        {"round": 1, "agent": "replay", "candidates": 4, "passed": 3, "share": 75,
         "no_candidates": 0, "most_failing": "level"}
    ]  # fmt: skip


def test_every_key_is_documented(tmp_path: Path) -> None:
    data = as_data(reported(ran(tmp_path, [GOOD], LEVEL)))
    documented = set(re.findall(r"``(\w+)``", inspect.getdoc(campaign.rulereport) or ""))
    nested = [data, data["rules"][0], data["agents"][0], data["rounds"][0]]
    used = {"name", "run_dir"} | {key for one in nested for key in one}
    assert used <= documented, used - documented


def test_a_rule_may_be_called_anything(tmp_path: Path) -> None:
    odd = LEVEL | {"id": "[bold]x[/]"}
    found = simgate("report", ran(tmp_path, [GOOD], odd).run_dir, "--rules")
    assert "[bold]x[/]" in found.output


def test_help_costs_no_imports() -> None:
    code = "import sys, campaign.reportcommands as m; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pydantic", "msgspec", "rich", "yaml", "numpy"} & set(ran.stdout.split())
