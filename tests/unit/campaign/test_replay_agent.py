"""Recorded answers: read with every problem named, given for the ask they were recorded for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from campaign.agents.replay import load_recording
from campaign.model import Answer, Ask
from campaign.problems import ConfigError
from checks import Rejected

GOOD = """
version: 1
answers:
  - round: 2
    candidates: [{x: 1e-3}, text, null]
  - {round: 1, generation: 2, rationale: because, candidates: []}
"""


def write(directory: Path, text: str) -> Path:
    path = directory / "answers.yaml"
    path.write_text(text)
    return path


def test_an_answer_is_given_for_its_round_and_generation(tmp_path: Path) -> None:
    agent = load_recording(write(tmp_path, GOOD))
    ask = Ask(round=2, generation=1, slots=(0, 1, 2))
    assert asyncio.run(agent.propose(ask)) == Answer(({"x": 0.001}, "text", None))
    repair = Ask(round=1, generation=2, slots=(0,))
    assert asyncio.run(agent.propose(repair)) == Answer((), "because")


def test_what_was_never_answered_is_an_empty_answer(tmp_path: Path) -> None:
    agent = load_recording(write(tmp_path, GOOD))
    with pytest.raises(Rejected, match="round 1, generation 1") as refused:
        asyncio.run(agent.propose(Ask(round=1, generation=1, slots=(0,))))
    assert refused.value.check == "empty"


def test_every_problem_of_the_file_is_named_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "version: 2\nanswers:\n  - {round: 0, candidates: []}\n  - {rond: 1, candidates: 5}\n",
    )
    with pytest.raises(ConfigError) as refused:
        load_recording(path)
    said = str(refused.value)
    assert str(path) in said
    for part in ("version", "answers[0].round", "answers[1].rond", "answers[1].candidates"):
        assert part in said


@pytest.mark.parametrize(
    "text", ["", "[1, 2]", "answers: {a: 1", "a: &a [*a]", "x: 1\nx: 2", "\0", "version: 1\n"]
)
def test_whatever_the_file_holds_the_problem_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="problem"):
        load_recording(write(tmp_path, text))


def test_a_file_that_is_missing_or_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_recording(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="Is a directory"):
        load_recording(tmp_path)
    path = tmp_path / "answers.yaml"
    path.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ConfigError, match="problem"):
        load_recording(path)


def test_the_same_ask_answered_twice_is_refused(tmp_path: Path) -> None:
    twice = "version: 1\nanswers:\n" + "  - {round: 1, candidates: []}\n" * 2
    with pytest.raises(ConfigError, match=r"answers\[1\]: .*round 1, generation 1.*answers\[0\]"):
        load_recording(write(tmp_path, twice))
