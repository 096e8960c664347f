"""What of an agent and a judge is refused, and noted, before anything is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from campaign.agents.base import Capabilities
from campaign.configfile import load_config
from campaign.preflight import Inspection, inspect
from folders import folder

COMMAND: dict[str, Any] = {"kind": "command", "command": ["{python}", "model.py"]}
PYTHON: dict[str, Any] = {"kind": "python", "function": "model:bowl"}
OPENAI: dict[str, Any] = {"kind": "openai", "model": "small", "url": "http://127.0.0.1:1/v1"}
JUDGE: dict[str, Any] = {"model": "large", "url": "http://127.0.0.1:1/v1"}
JUDGED: dict[str, Any] = {
    "id": "sound", "type": "llm_judge", "field": "rationale", "params": {"rule": "It is sound."},
}  # fmt: skip


def look(directory: Path, agent: dict[str, Any], **changes: Any) -> Inspection:
    return inspect(load_config(folder(directory, agent=agent, **changes)))


def said(directory: Path, agent: dict[str, Any], **changes: Any) -> list[tuple[str, str]]:
    return [(one.path, one.message) for one in look(directory, agent, **changes).problems]


@pytest.mark.parametrize("agent", [COMMAND, PYTHON, OPENAI], ids=lambda agent: str(agent["kind"]))
def test_an_agent_whose_parts_are_there_is_not_refused(
    tmp_path: Path, agent: dict[str, Any]
) -> None:
    found = look(tmp_path, agent)
    assert (found.problems, found.notes) == ((), ())


def test_a_program_is_looked_for_where_it_would_be_started(tmp_path: Path) -> None:
    assert said(tmp_path, COMMAND | {"command": ["basename_"]})[0] == (
        "agent.command",
        "'basename_': not on PATH; install it, or give its full path; did you mean 'basename'?",
    )
    for word in ("./propose", "{campaign_dir}/propose"):
        agent = COMMAND | {"command": [word]}
        assert [path for path, _ in said(tmp_path, agent)] == ["agent.command"]
    (tmp_path / "propose").write_text("#!/bin/sh\n")
    assert "is not executable" in said(tmp_path, agent)[0][1]
    (tmp_path / "propose").chmod(0o755)
    for word in ("./propose", "{campaign_dir}/propose"):
        assert said(tmp_path, COMMAND | {"command": [word]}) == []


def test_the_script_of_an_interpreter_is_looked_for_too(tmp_path: Path) -> None:
    for word in ("prpose.py", "{campaign_dir}/prpose.py"):
        agent = COMMAND | {"command": ["{python}", word]}
        ((path, message),) = said(tmp_path, agent)
        assert path == "agent.command[1]"
        assert message.endswith("does not exist; it is looked for in the campaign folder")
    assert said(tmp_path, COMMAND | {"command": ["{python}", "{run_dir}/made.py"]}) == []


def test_a_program_that_only_a_run_can_find_is_left_to_it(tmp_path: Path) -> None:
    assert said(tmp_path, COMMAND | {"command": ["{run_dir}/propose"]}) == []
    elsewhere = COMMAND | {"command": ["propose"], "env": {"PATH": "/elsewhere"}}
    assert said(tmp_path, elsewhere) == []


def test_a_function_is_imported_as_those_of_tasks_are(tmp_path: Path) -> None:
    ((path, message),) = said(tmp_path, PYTHON | {"function": "model:gone"})
    assert path == "agent.function"
    assert message.startswith("'model:gone': ")
    assert "has no attribute 'gone'" in message


def test_a_server_that_is_to_be_started_has_its_program(tmp_path: Path) -> None:
    agent = OPENAI | {"serve": {"command": ["no-such-server", "--port", "1"]}}
    ((path, message),) = said(tmp_path, agent)
    assert path == "agent.serve.command"
    assert message.startswith("'no-such-server': not on PATH; ")


def test_a_key_file_is_there_and_nobody_elses_to_read(tmp_path: Path) -> None:
    agent = OPENAI | {"key": {"file": "key"}}
    assert said(tmp_path, agent) == [
        (
            "agent.key.file",
            "key: No such file or directory; it is looked for in the campaign folder",
        )
    ]
    (tmp_path / "key").write_text("secret")
    (tmp_path / "key").chmod(0o644)
    found = look(tmp_path, agent)
    assert found.problems == ()
    assert found.notes == ("agent.key.file: others on this machine can read key; chmod 600 it",)
    (tmp_path / "key").chmod(0o600)
    assert look(tmp_path, agent).notes == ()


def test_a_key_that_is_not_set_here_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MODEL_KEY", raising=False)
    agent = OPENAI | {"key": {"env": "MODEL_KEY"}}
    assert look(tmp_path, agent).notes == (
        "agent.key.env: MODEL_KEY is not set here; a run needs it",
    )
    monkeypatch.setenv("MODEL_KEY", "secret")
    assert look(tmp_path, agent).notes == ()


def test_the_path_of_a_socket_fits_the_system(tmp_path: Path) -> None:
    agent = {"kind": "openai", "model": "small", "socket": f"{'long/' * 30}llm.sock"}
    ((path, message),) = said(tmp_path, agent)
    assert path == "agent.socket"
    assert "the system takes at most 107" in message


def test_a_prompt_is_text_whose_placeholders_are_known(tmp_path: Path) -> None:
    agent = OPENAI | {"prompt": "ask.txt"}
    assert said(tmp_path, agent)[0] == (
        "agent.prompt",
        "ask.txt: No such file or directory; it is looked for in the campaign folder",
    )
    (tmp_path / "ask.txt").write_bytes(b"\xff")
    assert "not UTF-8" in said(tmp_path, agent)[0][1]
    (tmp_path / "ask.txt").write_text("Give {count} of {parameter}.")
    ((path, message),) = said(tmp_path, agent)
    assert (path, "parameter" in message) == ("agent.prompt", True)
    (tmp_path / "ask.txt").write_text("Give {count} of {parameters}.\n{shape}")
    assert said(tmp_path, agent) == []


def test_a_judges_endpoint_is_looked_at_too(tmp_path: Path) -> None:
    judge = JUDGE | {"key": {"file": "key"}}
    found = said(tmp_path, PYTHON, judge=judge, expectations=[JUDGED])
    assert [path for path, _ in found] == ["judge.key.file"]


def test_a_run_that_one_models_opinion_gates_is_noted(tmp_path: Path) -> None:
    hard = [JUDGED | {"severity": "error"}]
    assert look(tmp_path, OPENAI, expectations=[JUDGED]).notes == ()
    assert look(tmp_path, OPENAI, expectations=hard).notes == (
        "sound: severity error of a judged rule, so an unattended run is gated by one model's "
        "opinion; severity warn records it",
    )
    watched = {"repair": "none", "expectations": hard}
    assert look(tmp_path, OPENAI, expect=watched).notes == ()


def test_a_cap_on_tokens_that_lets_nobody_be_asked_is_refused(tmp_path: Path) -> None:
    ((path, message),) = said(tmp_path, OPENAI, budgets={"tokens": 500})
    assert path == "budgets.tokens"
    assert message.startswith("500 tokens; the first call of the agent reserves ")
    assert message.endswith("raise the cap or lower agent.max_tokens")


def test_a_cap_on_tokens_needs_to_know_what_a_call_of_an_own_agent_can_use(tmp_path: Path) -> None:
    ((path, message),) = said(tmp_path, PYTHON, budgets={"tokens": 500})
    assert path == "agent.tokens_per_call"
    assert message == (
        "not given, so the cap budgets.tokens could not be kept; give the most tokens one call of "
        "this agent can use (0 where it asks no model)"
    )
    for most in (0, 500):
        assert said(tmp_path, PYTHON | {"tokens_per_call": most}, budgets={"tokens": 500}) == []
    ((path, message),) = said(tmp_path, PYTHON | {"tokens_per_call": 501}, budgets={"tokens": 500})
    assert path == "budgets.tokens"
    assert message == (
        "500 tokens; the first call of the agent reserves 501: raise the cap or lower "
        "agent.tokens_per_call"
    )


def test_what_the_agent_declares_is_part_of_the_inspection(tmp_path: Path) -> None:
    assert look(tmp_path, OPENAI).agent == Capabilities(True, True, True, True)
    plain = look(tmp_path, OPENAI | {"structured": "none"}).agent
    assert plain == Capabilities(single_response_v1=True, seed=True, usage=True)
    assert look(tmp_path, PYTHON).agent == Capabilities(single_response_v1=True, usage=True)
    assert look(tmp_path, {"kind": "surrogate"}).agent == Capabilities()


def test_the_bill_has_calls_tokens_and_votes(tmp_path: Path) -> None:
    expect = {"expectations": [JUDGED], "max_iterations": 3, "structural_budget": 2}
    found = look(tmp_path, OPENAI | {"retries": 1}, judge=JUDGE, expect=expect, rounds=2)
    bill = {cost.what: cost for cost in found.costs}
    assert bill["generations"].most == 2 * (3 + 2)
    assert (bill["calls of the agent"].least, bill["calls of the agent"].most) == (2, 20)
    assert bill["tokens of the agent"].most > 20 * 2048
    assert bill["votes of the judge"].most > 0
