"""Functions that are asked: what they return, how they fail, and that no two calls meet."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

import executors.sites  # noqa: F401 - Parsl, whose import is no part of any time below
from campaign.agentconfig import PythonAgent as Settings
from campaign.agents.base import AgentError
from campaign.agents.prompt import Brief
from campaign.agents.python import PythonAgent
from campaign.config import Objective
from campaign.model import Answer, Ask, Spent
from campaign.space import FloatParameter

BRIEF = Brief(
    {"x": FloatParameter(type="float", min=0.0, max=1.0)}, Objective(name="y", direction="minimize")
)
ASK = Ask(3, 1, (0, 1))
_T = TypeVar("_T")


@pytest.fixture
def mine(request: pytest.FixtureRequest) -> str:
    """A module's name that no other test has: modules stay imported."""
    return f"mine_{abs(hash(request.node.nodeid))}"


def with_agent(
    folder: Path, name: str, script: str, use: Callable[[PythonAgent], Awaitable[_T]], **more: Any
) -> _T:
    (folder / f"{name}.py").write_text(script)
    how = {"kind": "python", "function": f"{name}:propose", **more}

    async def main() -> _T:
        agent = PythonAgent(Settings.model_validate(how), BRIEF, folder)
        try:
            return await use(agent)
        finally:
            await agent.close()

    return asyncio.run(main())


def asked(folder: Path, name: str, body: str, **more: Any) -> Answer:
    script = f"def propose(ask):\n    {body}\n"
    return with_agent(folder, name, script, lambda agent: agent.propose(ASK), **more)


def failure(folder: Path, name: str, body: str, **more: Any) -> AgentError:
    with pytest.raises(AgentError) as caught:
        asked(folder, name, body, **more)
    return caught.value


def test_a_mapping_is_an_answer_and_its_json_the_response(tmp_path: Path, mine: str) -> None:
    body = "return {'usage': {'input_tokens': 1, 'output_tokens': 2}, 'rationale': 'é',"
    body += " 'candidates': [{'x': 0.5}], 'id': 'one', 'finish_reason': 'stop'}"
    found = asked(tmp_path, mine, body)
    assert found.candidates == ({"x": 0.5},)
    assert found.response == '{"candidates": [{"x": 0.5}], "rationale": "\\u00e9"}'
    assert (found.spent, found.response_id, found.finish_reason) == (Spent(1, 2), "one", "stop")
    assert found.rationale == "é"
    assert len(found.request) == 64


def test_text_is_read_as_a_model_would_be(tmp_path: Path, mine: str) -> None:
    body = """return 'Here: {"candidates": [{"x": 0.5}], "id": "two"}'"""
    found = asked(tmp_path, mine, body)
    assert (found.candidates, found.response_id) == (({"x": 0.5},), "two")
    assert found.response == 'Here: {"candidates": [{"x": 0.5}], "id": "two"}'


def test_numbers_of_numpy_are_numbers(tmp_path: Path, mine: str) -> None:
    body = "import numpy; return {'candidates': [{'x': numpy.float64(0.5), 'y': numpy.arange(2)}]}"
    assert asked(tmp_path, mine, body).candidates == ({"x": 0.5, "y": [0, 1]},)


@pytest.mark.parametrize(
    ("value", "stage"),
    [
        ("None", "empty"),
        ("''", "empty"),
        ("[{'x': 1}]", "schema"),
        ("{'candidates': [{'x': float('nan')}]}", "schema"),
        ("{'candidates': [{'x': object()}]}", "schema"),
        ("{'candidates': {'x': 1}}", "schema"),
        ("{'candidates': [], 'usage': {'input_tokens': True, 'output_tokens': 1}}", "schema"),
        ("{'candidates': [], 'more': 1}", "schema"),
        ("{'candidates': [], 'finish_reason': 'length'}", "truncation"),
        ("ask", "schema"),
    ],
)
def test_what_holds_no_candidates_names_its_stage(
    tmp_path: Path, mine: str, value: str, stage: str
) -> None:
    found = asked(tmp_path, mine, f"return {value}")
    assert (found.stage, found.candidates, bool(found.reason)) == (stage, (), True)


def test_what_holds_itself_is_no_answer(tmp_path: Path, mine: str) -> None:
    body = "found = {'candidates': []}; found['candidates'].append(found); return found"
    assert asked(tmp_path, mine, body).stage == "schema"


def test_a_function_may_be_async(tmp_path: Path, mine: str) -> None:
    script = "import asyncio\nasync def propose(ask):\n"
    script += "    await asyncio.sleep(0)\n    return {'candidates': [{'x': ask['count']}]}\n"
    found = with_agent(tmp_path, mine, script, lambda agent: agent.propose(ASK))
    assert found.candidates == ({"x": 2},)


def test_a_sync_function_leaves_the_loop_free(tmp_path: Path, mine: str) -> None:
    body = "import threading; t = threading.current_thread()\n"
    body += "    return {'candidates': [], 'rationale': str(t is threading.main_thread())}"
    assert asked(tmp_path, mine, body).rationale == "False"


def test_a_function_imports_from_the_campaign_folder_even_when_it_is_called(
    tmp_path: Path, mine: str
) -> None:
    (tmp_path / f"{mine}_beside.py").write_text("X = 0.5")
    path = list(sys.path)
    body = f"import {mine}_beside as b; return {{'candidates': [{{'x': b.X}}]}}"
    assert asked(tmp_path, mine, body).candidates == ({"x": 0.5},)
    assert sys.path == path


def test_what_a_function_raises_is_no_answer(tmp_path: Path, mine: str) -> None:
    found = failure(tmp_path, mine, "raise OSError('two\\nlines' + 'x' * 300)")
    assert found.what.startswith("the function raised OSError: two linesxxx")
    assert len(found.what) < 240
    assert found.retryable


@pytest.mark.parametrize("raised", ["SystemExit(3)", "KeyboardInterrupt()", "TimeoutError('own')"])
def test_nothing_a_function_raises_ends_the_driver(tmp_path: Path, mine: str, raised: str) -> None:
    assert failure(tmp_path, mine, f"raise {raised}").what.startswith("the function raised ")


@pytest.mark.parametrize(
    "raised", ["SystemExit(3)", "asyncio.CancelledError()", "TimeoutError('own')"]
)
def test_nothing_an_async_function_raises_ends_the_driver(
    tmp_path: Path, mine: str, raised: str
) -> None:
    script = f"import asyncio\nasync def propose(ask):\n    raise {raised}\n"
    with pytest.raises(AgentError, match=r"^the function raised "):
        with_agent(tmp_path, mine, script, lambda agent: agent.propose(ASK))


def test_a_function_may_say_itself_that_no_call_will_help(tmp_path: Path, mine: str) -> None:
    body = "from campaign.agents.base import AgentError; "
    body += "raise AgentError('no licence', retryable=False)"
    found = failure(tmp_path, mine, body)
    assert (found.what, found.retryable) == ("no licence", False)


def test_a_function_that_cannot_be_imported_is_not_called_again(tmp_path: Path, mine: str) -> None:
    script = "import not_installed_here\n"
    with pytest.raises(AgentError) as caught:
        with_agent(tmp_path, mine, script, lambda agent: agent.propose(ASK))
    assert f"{mine}:propose: ModuleNotFoundError" in caught.value.what
    assert not caught.value.retryable


def test_an_answer_beyond_the_bound_is_none(tmp_path: Path, mine: str) -> None:
    found = failure(tmp_path, mine, "return 'é' * 1000", max_bytes=1024)
    assert found.what == "an answer of more than 1024 bytes; max_bytes allows no more"


def test_an_async_function_that_hangs_is_cancelled_after_its_time(
    tmp_path: Path, mine: str
) -> None:
    script = "import asyncio\nasync def propose(ask):\n    await asyncio.Event().wait()\n"
    with pytest.raises(AgentError, match=r"no answer within 0\.1s; "):
        with_agent(tmp_path, mine, script, lambda agent: agent.propose(ASK), timeout="0.1s")


@pytest.mark.slow
def test_a_call_that_was_left_behind_is_waited_for_by_the_next(tmp_path: Path, mine: str) -> None:
    script = (
        "import threading\ngate = threading.Event()\nasked = []\n"
        "def propose(ask):\n    asked.append(ask['round'])\n"
        "    gate.wait()\n    return {'candidates': [{'x': len(asked)}]}\n"
    )

    async def use(agent: PythonAgent) -> Answer:
        for _ in range(2):
            with pytest.raises(AgentError, match="no answer within 2s"):
                await agent.propose(ASK)
        gate: threading.Event = sys.modules[mine].gate
        assert sys.modules[mine].asked == [3]
        gate.set()
        return await agent.propose(ASK)

    found = with_agent(tmp_path, mine, script, use, timeout="2s")
    assert found.candidates == ({"x": 2},)


def test_cancelling_waits_for_no_function(tmp_path: Path, mine: str) -> None:
    script = (
        "import threading\nbegun, gate = threading.Event(), threading.Event()\n"
        "def propose(ask):\n    begun.set()\n    gate.wait()\n"
    )

    async def use(agent: PythonAgent) -> bool:
        call = asyncio.ensure_future(agent.propose(ASK))
        while mine not in sys.modules or not hasattr(sys.modules[mine], "begun"):
            await asyncio.sleep(0.01)
        await asyncio.to_thread(sys.modules[mine].begun.wait)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        return call.cancelled()

    assert with_agent(tmp_path, mine, script, use)
    sys.modules[mine].gate.set()
