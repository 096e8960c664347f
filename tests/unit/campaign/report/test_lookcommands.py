"""What ``simgate report``, ``why`` and ``export`` print, and their exit codes."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest

import running
from campaign import events
from campaign.drive import creation
from campaign.ledger import Ledger
from campaign.report.export import candidates, observed
from checks.accept import Rejected
from folders import simgate
from longrun import write
from running import agent, run
from square import GOOD

UNSTABLE = {"x": 0.9, "y": 0.1}


@pytest.fixture
def repaired(tmp_path: Path) -> Path:
    """One round: two candidates accepted, one rejected by its verifier and repaired."""
    changes = {
        "rounds": 1,
        "agent": {"kind": "replay", "file": "none.yaml"},
        "expect": {"max_iterations": 2, "repair": "retry"},
    }
    script = agent([*GOOD[:2], UNSTABLE], [GOOD[2]])
    return run(tmp_path / "r", running.config(**changes), proposer=script).run_dir


def test_why_tells_a_slot_from_its_first_ask_to_its_end(repaired: Path) -> None:
    found = simgate("why", repaired, "r1", "s2")
    assert found.exit_code == 0
    rejected, passed = found.output.split("r1 s2, generation 2: ")
    assert rejected.startswith("r1 s2, generation 1: rejected by stable: x: 0.9; at most 0.5")
    assert "stable, try 1: done after" in rejected
    assert "slot        ended repaired, with another one, " in rejected
    assert passed.startswith("repaired")
    assert "for slot 2, a repair told as retry" in passed
    assert "simulation, try 1: done after" in passed
    assert "ended repaired, with this candidate" in passed


@pytest.mark.parametrize("name", ["r1 s2", "r1s2", "R1.S2", "round 1, slot 2"])
def test_a_place_may_be_written_in_several_ways(repaired: Path, name: str) -> None:
    data = json.loads(simgate("why", repaired, name, "--json").stdout)
    assert [one["fate"] for one in data["candidates"]] == ["rejected", "repaired"]


def test_a_beginning_of_a_hash_is_enough(repaired: Path) -> None:
    whole = json.loads(simgate("why", repaired, "r1 s0", "--json").stdout)["candidates"][0]
    found = json.loads(simgate("why", repaired, whole["content"][:6], "--json").stdout)
    assert found["candidates"] == [whole]
    assert whole["proposed_at"] >= whole["asked_at"]
    assert [one["task"] for one in whole["tries"]] == ["stable", "simulation"]
    assert whole["node_hours"] == pytest.approx(sum(one["node_hours"] for one in whole["tries"]))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ffffffffffffffff", "4 are known, nearest: "),
        ("r7 s0", "nothing was asked there; round 1 only so far"),
        ("r1 s9", "nothing was asked there; round 1 has slots 0 to 2"),
        ("r1 g2", "a round has many candidates; name one of its slots, as in r1 s0; it has slots"),
        ("best", "give a content hash, the beginning of one, or a place such as r3 s2"),
    ],
)
def test_an_unknown_candidate_is_refused_with_what_is_known(
    repaired: Path, name: str, said: str
) -> None:
    found = simgate("why", repaired, name)
    assert (found.exit_code, said in found.output) == (2, True), found.output


def test_the_directory_of_a_task_names_its_candidate(repaired: Path) -> None:
    place = json.loads(simgate("why", repaired, "r1 s0", "--json").stdout)["candidates"]
    directory = place[0]["tries"][0]["directory"]
    for name in (directory, Path(directory).parent.name):
        found = json.loads(simgate("why", repaired, name, "--json").stdout)
        assert found["candidates"] == place


def test_a_slot_whose_answers_held_no_candidate_tells_each_ask_and_what_filled_it(
    tmp_path: Path,
) -> None:
    changes = {
        "rounds": 1,
        "agent": {"kind": "replay", "file": "none.yaml"},
        "expect": {"max_iterations": 3, "repair": "retry"},
    }
    few = agent(Rejected("I would rather not", check="refusal"), GOOD[:2], [UNSTABLE, *GOOD[:2]])
    ran = run(tmp_path / "r", running.config(**changes), proposer=few)
    said = simgate("why", ran.run_dir, "r1 s0").output
    refused, few_, rejected, *drawn = said.split("r1 s0, ")[1:]
    wanted = "generation 1: no candidate, the answer was rejected at refusal: I would rather not"
    assert refused.startswith(wanted)
    assert "for slots 0, 1, 2\n" in refused
    assert few_.startswith("generation 2: no candidate, the answer was rejected at count: 2 cand")
    assert "a repair told as retry" in few_
    assert rejected.startswith("generation 3: rejected by stable")
    assert drawn[0].startswith("draw 1 of the surrogate: rejected by stable")
    assert drawn[-1].startswith("draw 2 of the surrogate: fallback")
    filled = ran.state.rounds[1].slots[0].candidate
    for one in (refused, few_, rejected):
        assert f"ended fallback, with another one, {filled}, that the surrogate drew" in one
    data = json.loads(simgate("why", ran.run_dir, "r1 s0", "--json").stdout)
    assert [(one["generation"], one["stage"]) for one in data["asks"]] == [
        (1, "refusal"),
        (2, "count"),
    ]
    assert (data["slot"]["disposition"], data["slot"]["content"]) == ("fallback", filled)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "no candidate yet, the agent has not answered"),
        (
            (events.Unanswered(round=1, generation=1, reason="HTTP 503"),),
            "no candidate, no call brought an answer: HTTP 503",
        ),
        (
            (events.Unanswered(round=1, generation=1, reason="tokens", stage="budget"),),
            "no candidate, a cap forbade the call: tokens",
        ),
        (
            (events.Answered(round=1, generation=1, candidates=[*GOOD]),),
            "its candidate has not been judged yet",
        ),
    ],
)
def test_an_ask_that_is_not_over_or_was_never_answered_says_so(
    tmp_path: Path, more: tuple[events.Event, ...], said: str
) -> None:
    asked = events.Asked(round=1, generation=1, slots=[0, 1, 2])
    with Ledger(tmp_path) as ledger:
        ledger.append(creation(running.config(), tmp_path), asked, *more)
    found = simgate("why", tmp_path, "r1 s2").output
    assert f"r1 s2, generation 1: {said}" in found
    assert found.endswith("  slot        open\n")


def test_a_slot_that_nobody_was_asked_for_says_how_it_ended(tmp_path: Path) -> None:
    end = events.SlotEnded(round=1, slot=0, disposition="tombstone", generation=0, reason="cap")
    with Ledger(tmp_path) as ledger:
        ledger.append(creation(running.config(), tmp_path), end)
    assert simgate("why", tmp_path, "r1 s0").output == (
        "r1 s0: no candidate has been judged there\n"
        "  slot        ended tombstone, nothing runs: cap\n"
    )


def test_the_slots_of_a_large_ask_are_told_in_short(tmp_path: Path) -> None:
    write(tmp_path, 200)
    assert "for slots 0-49\n" in simgate("why", tmp_path, "r1 s0").output


def test_a_beginning_of_several_names_them(tmp_path: Path) -> None:
    write(tmp_path, 200)
    found = simgate("why", tmp_path, "a")
    assert found.exit_code == 2
    assert "several begin so: a" in found.output


def test_control_characters_of_a_reason_do_not_reach_the_terminal(tmp_path: Path) -> None:
    functions = running.FUNCTIONS | {
        "tests:rejects": lambda _: {"verdict": "reject", "reason": "\x1b[31mred\x07"}
    }
    changes = {
        "rounds": 1,
        "agent": {"kind": "replay", "file": "none.yaml"},
        "policy": {"semantic_rejection": "tombstone"},
        "expect": {"max_iterations": 1},
    }
    config = running.config(**changes)
    ran = run(tmp_path / "r", config, proposer=agent(GOOD), functions=functions)
    for words in (("why", ran.run_dir, "r1 s0"), ("report", ran.run_dir)):
        assert not {"\x1b", "\x07"} & set(simgate(*words).output)


def test_every_command_names_a_directory_that_holds_no_run(tmp_path: Path) -> None:
    for words in (("report", tmp_path), ("why", tmp_path, "r1 s1"), ("export", tmp_path)):
        found = simgate(*words)
        assert (found.exit_code, "holds no run" in found.output) == (2, True), found.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--fail-under", "90"), "--fail-under is about the rules; give --rules as well"),
        (("--rules", "--csv"), "leave out the other"),
        (("--rules", "--html", "x.html"), "leave out the other"),
        (("--csv", "--json"), "give one of them"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    repaired: Path, words: tuple[str, ...], said: str
) -> None:
    found = simgate("report", repaired, *words)
    assert (found.exit_code, said in found.output) == (2, True), found.output


def test_a_page_that_cannot_be_written_is_named(repaired: Path, tmp_path: Path) -> None:
    found = simgate("report", repaired, "--html", tmp_path / "none" / "page.html")
    assert (found.exit_code, "cannot be written" in found.output) == (2, True)


def test_csv_has_every_figure_in_a_row_of_its_own(repaired: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(simgate("report", repaired, "--csv").stdout)))
    found = {(one["table"], one["row"], one["figure"]): one["value"] for one in rows}
    assert len(found) == len(rows)
    assert found["name", "", ""] == "bowl"
    assert found["checks", "stable", "rejected"] == "1"
    assert found["funnel", "stable", "entered"] == "4"
    assert float(found["saved", "", "saved"]) == pytest.approx(
        float(found["saved", "", "would_have_cost"]) - float(found["saved", "", "cost"])
    )


def test_observations_are_exported_with_where_they_come_from(repaired: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(simgate("export", repaired).stdout)))
    assert [(one["slot"], one["disposition"], one["generation"]) for one in rows] == [
        ("0", "accepted", "1"), ("1", "accepted", "1"), ("2", "repaired", "2"),
    ]  # fmt: skip
    assert [float(one["parameters.x"]) for one in rows] == [0.1, 0.2, 0.3]
    assert [one["value"] for one in rows] == [one["outputs.loss"] for one in rows]
    assert {one["status"] for one in rows} == {"done"}


def test_jsonl_has_the_same_rows_and_candidates_the_rejected_too(repaired: Path) -> None:
    told = simgate("export", repaired, "--format", "jsonl").stdout
    assert [json.loads(line) for line in told.splitlines()] == observed(repaired)
    told = simgate("export", repaired, "--format", "jsonl", "--what", "candidates").stdout
    rows = [json.loads(line) for line in told.splitlines()]
    assert rows == candidates(repaired)
    assert [one["stopped_by"] for one in rows] == ["", "", "stable", ""]


def test_parquet_keeps_the_types(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write(tmp_path, 200)
    out = tmp_path / "rows.parquet"
    assert simgate("export", tmp_path, "--format", "parquet", "--out", out).exit_code == 0
    table = parquet.read_table(out)
    kinds = {one.name: str(one.type) for one in table.schema}
    assert kinds["round"] == "int64"
    assert kinds["parameters.x"] == kinds["outputs.loss"] == kinds["value"] == "double"
    assert table.to_pylist() == observed(tmp_path)


def test_parquet_without_its_library_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 50)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    found = simgate("export", tmp_path, "--format", "parquet", "--out", tmp_path / "x")
    assert found.exit_code == 2
    assert "pyarrow is not installed; pip install 'simgate[parquet]'" in found.output
    assert not (tmp_path / "x").exists()
