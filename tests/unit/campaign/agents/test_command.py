"""Programs that are asked: what they answer, how they fail, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from campaign.agentconfig import CommandAgent as Settings
from campaign.agents.base import AgentError
from campaign.agents.command import CommandAgent
from campaign.agents.prompt import Brief
from campaign.config import Objective
from campaign.model import Answer, Ask, Spent
from campaign.render import Place
from campaign.space import FloatParameter
from onlookers import PATIENCE, Onlookers, onlookers

BRIEF = Brief(
    {"x": FloatParameter(type="float", min=0.0, max=1.0)}, Objective(name="y", direction="minimize")
)
ASK = Ask(1, 1, (0, 1))
GOOD = """
import json, sys
ask = json.load(sys.stdin)
print(json.dumps({"candidates": [{"x": 0.25 * n} for n in range(ask["count"])]}))
"""
LINES = """
import json, sys
for number, line in enumerate(sys.stdin):
    ask = json.loads(line)
    print(json.dumps({"candidates": [{"x": number}], "rationale": str(ask["round"])}), flush=True)
"""


@pytest.fixture
def watch() -> Iterator[Onlookers]:
    with onlookers() as found:
        yield found


def agent(folder: Path, script: str, **settings: Any) -> CommandAgent:
    how = {"kind": "command", "command": ["{python}", "-c", _literal(script)], **settings}
    return CommandAgent(Settings.model_validate(how), BRIEF, Place(folder, folder / "run", 0))


def _literal(script: str) -> str:
    return script.replace("{", "{{").replace("}", "}}")


def asked(folder: Path, script: str, asks: int = 1, **settings: Any) -> list[Answer | AgentError]:
    """What came of some asks, the agent being closed after them."""

    async def main() -> list[Answer | AgentError]:
        one = agent(folder, script, **settings)
        try:
            return [await _answer(one, number) for number in range(1, asks + 1)]
        finally:
            await one.close()

    return asyncio.run(main())


async def _answer(one: CommandAgent, number: int) -> Answer | AgentError:
    try:
        return await one.propose(Ask(number, 1, (0, 1)))
    except AgentError as error:
        return error


def answer(folder: Path, script: str, **settings: Any) -> Answer:
    (found,) = asked(folder, script, **settings)
    assert isinstance(found, Answer)
    return found


def failure(folder: Path, script: str, **settings: Any) -> AgentError:
    (found,) = asked(folder, script, **settings)
    assert isinstance(found, AgentError)
    return found


def test_a_program_answers_on_its_standard_output(tmp_path: Path) -> None:
    found = answer(tmp_path, GOOD)
    assert found.candidates == ({"x": 0.0}, {"x": 0.25})
    assert found.response == '{"candidates": [{"x": 0.0}, {"x": 0.25}]}\n'
    assert found.stage == ""


def test_the_program_of_the_page_answers(tmp_path: Path) -> None:
    page = Path(__file__).parents[4] / "docs" / "reference" / "agents.md"
    (script,) = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    found = answer(tmp_path, script)
    assert [list(one) for one in found.candidates if isinstance(one, dict)] == [["x"], ["x"]]
    assert found.rationale == "by lot"


def test_the_request_of_an_answer_is_told_by_its_hash(tmp_path: Path) -> None:
    script = "import sys, pathlib; pathlib.Path('sent').write_bytes(sys.stdin.buffer.read())"
    found = answer(tmp_path, script)
    sent = (tmp_path / "sent").read_bytes()
    assert found.request == hashlib.sha256(sent).hexdigest()
    assert (sent.count(b"\n"), json.loads(sent)["slots"]) == (1, [0, 1])


def test_prose_around_the_one_object_does_no_harm(tmp_path: Path) -> None:
    script = """print('Sure!\\n```json\\n{"candidates": [{"x": 0.5}]}\\n```\\nGood luck.')"""
    assert answer(tmp_path, script).candidates == ({"x": 0.5},)


def test_what_a_program_used_is_taken_from_its_answer(tmp_path: Path) -> None:
    said = {"candidates": [], "usage": {"input_tokens": 7, "output_tokens": 5}, "id": "a-1"}
    found = answer(tmp_path, f"import json; print(json.dumps({said!r}))")
    assert (found.spent, found.response_id) == (Spent(7, 5), "a-1")


@pytest.mark.parametrize(
    ("script", "stage"),
    [
        ("", "empty"),
        ("print('I would rather not.')", "schema"),
        ("import os; os.write(1, b'\\xff\\xfe')", "schema"),
        ("""print('{"candidates": [], "finish_reason": "length"}')""", "truncation"),
        ("""print('{"candidates": [], "finish_reason": "content_filter"}')""", "filtered"),
        ("""print('{"candidates": [], "usage": 12}')""", "schema"),
        ("""print('{"candidates": [], "usage": {"input_tokens": -1, "output_tokens": 1}}')""",
         "schema"),
        ("""print('{"candidates": [], "id": 12}')""", "schema"),
        ("""print('{"candidates": [], "model": "m"}')""", "schema"),
    ],
)  # fmt: skip
def test_an_answer_without_candidates_names_its_stage(
    tmp_path: Path, script: str, stage: str
) -> None:
    found = answer(tmp_path, script)
    assert (found.stage, found.candidates) == (stage, ())
    assert found.reason


def test_an_exit_code_is_no_answer_and_tells_the_last_line_of_standard_error(
    tmp_path: Path,
) -> None:
    script = (
        "import sys; print('{}'); sys.exit('first\\nthe \\x1b[31mend ' + 'x' * 300 + '\\n \\n')"
    )
    found = failure(tmp_path, script)
    assert found.what == f"exit code 1: the [31mend {'x' * 187}…"
    assert failure(tmp_path, "import sys; sys.exit(3)").what == "exit code 3"
    assert found.retryable


def test_a_program_that_is_killed_is_no_answer(tmp_path: Path) -> None:
    found = failure(tmp_path, "import os; os.kill(os.getpid(), 9)")
    assert (found.what, found.retryable) == ("killed by SIGKILL", True)


def test_a_program_that_cannot_be_started_is_not_called_again(tmp_path: Path) -> None:
    found = failure(tmp_path, "", command=["no-such-program"])
    assert "cannot be started: 'no-such-program'" in found.what
    assert not found.retryable
    gone = failure(tmp_path / "gone", "")
    assert "No such file or directory" in gone.what
    assert not gone.retryable


@pytest.mark.slow
def test_a_program_that_hangs_is_ended_with_all_it_started(
    tmp_path: Path, watch: Onlookers
) -> None:
    script = f"{watch.daemon}\n{watch.joins}\nwatched.recv(1)"
    found = failure(tmp_path, script, timeout="5s")
    assert found.what.startswith("no answer within 5s; ")
    assert found.retryable
    watch.take_who_came()
    assert watch.all_gone()


def test_an_answer_without_an_end_is_cut_and_its_program_ended(
    tmp_path: Path, watch: Onlookers
) -> None:
    script = f"{watch.joins}\nimport sys\nwhile True: sys.stdout.write('x' * 10_000_000)"
    found = failure(tmp_path, script, max_bytes=1 << 20)
    assert found.what == "an answer of more than 1048576 bytes; max_bytes allows no more"
    watch.wait_for(1)
    assert watch.all_gone()


def test_what_a_program_leaves_behind_is_ended_with_it(tmp_path: Path, watch: Onlookers) -> None:
    assert answer(tmp_path, f"{GOOD}\n{watch.daemon}").candidates
    watch.wait_for(1)
    assert watch.all_gone()


def test_a_program_need_not_read_what_it_is_asked(tmp_path: Path) -> None:
    script = "import os; os.close(0); print('{\"candidates\": []}')"
    long = Ask(1, 1, (0,), suggestions=({"x": 0.5},) * 50_000)

    async def main() -> Answer:
        one = agent(tmp_path, script)
        found = await one.propose(long)
        await one.close()
        return found

    assert asyncio.run(main()).stage == ""


def test_a_program_that_talks_on_standard_error_is_not_held_up(tmp_path: Path) -> None:
    assert answer(tmp_path, f"import sys; sys.stderr.write('x' * 1_000_000)\n{GOOD}").candidates


def test_placeholders_and_variables_reach_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INHERITED", "yes")
    script = "import json, os, sys; print(json.dumps({'candidates': [], 'rationale': ' '.join("
    script += "[*sys.argv[1:], os.getcwd(), os.environ['OWN'], os.environ['INHERITED']])}))"
    command = ["{python}", "-c", _literal(script), "{campaign_dir}", "{run_dir}"]
    found = answer(tmp_path, "", command=command, env={"OWN": "{literal}"})
    run = tmp_path / "run"
    assert found.rationale == f"{tmp_path} {run} {tmp_path} {{literal}} yes"


@pytest.mark.slow
def test_a_cancelled_call_ends_its_program_first(tmp_path: Path, watch: Onlookers) -> None:
    script = f"{watch.daemon}\n{watch.joins}\nwatched.recv(1)"

    async def main() -> bool:
        one = agent(tmp_path, script)
        call = asyncio.ensure_future(one.propose(ASK))
        await asyncio.to_thread(watch.wait_for, 2)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert watch.all_gone()
        # It can be asked again.
        again = asyncio.ensure_future(one.propose(ASK))
        await asyncio.to_thread(watch.wait_for, 2)
        again.cancel()
        await asyncio.gather(again, return_exceptions=True)
        await one.close()
        return again.cancelled()

    assert asyncio.run(main())


def test_in_lines_one_process_answers_every_ask(tmp_path: Path) -> None:
    found = asked(tmp_path, LINES, asks=3, mode="lines")
    assert [one.candidates for one in found if isinstance(one, Answer)] == [
        ({"x": number},) for number in range(3)
    ]
    last = found[-1]
    assert isinstance(last, Answer)
    assert (last.rationale, last.response) == ("3", '{"candidates": [{"x": 2}], "rationale": "3"}')


def test_in_lines_a_process_that_dies_in_mid_answer_is_replaced_for_the_next_ask(
    tmp_path: Path,
) -> None:
    script = LINES.replace(
        "    ask = json.loads(line)\n",
        "    ask = json.loads(line)\n"
        "    if ask['round'] == 2: sys.stdout.write('{\"cand'); sys.exit('out of luck')\n",
    )
    first, died, again = asked(tmp_path, script, asks=3, mode="lines")
    assert isinstance(first, Answer)
    assert isinstance(died, AgentError)
    assert died.what == "no whole line: exit code 1: out of luck"
    assert died.retryable
    assert isinstance(again, Answer)
    assert again.candidates == ({"x": 0},)  # the first line of another process


def test_in_lines_a_process_that_ended_after_its_answer_costs_no_call(
    tmp_path: Path, watch: Onlookers
) -> None:
    # Its output ends before it is seen to be gone.
    script = f"{watch.joins}\n{LINES}    import os; os.close(1); os._exit(0)\n"

    async def main() -> list[Answer | AgentError]:
        one = agent(tmp_path, script, mode="lines")
        first = await _answer(one, 1)
        await asyncio.to_thread(watch.wait_for, 1)
        assert watch.all_gone()
        found = [first, await _answer(one, 2)]
        await one.close()
        return found

    found = asyncio.run(main())
    assert [one.candidates for one in found if isinstance(one, Answer)] == [({"x": 0},)] * 2


def test_in_lines_what_was_not_asked_for_is_no_answer(tmp_path: Path) -> None:
    script = LINES.replace("}), flush=True)", "}) + chr(10) + 'more', flush=True)")
    found = asked(tmp_path, script, asks=3, mode="lines")
    assert [one.candidates for one in found if isinstance(one, Answer)] == [({"x": 0},)] * 3


@pytest.mark.slow
def test_in_lines_a_hanging_process_is_replaced_after_its_time(
    tmp_path: Path, watch: Onlookers
) -> None:
    script = f"{watch.joins}\n" + LINES.replace(
        "    print", "    if ask['round'] == 1: watched.recv(1)\n    print"
    )
    hung, again = asked(tmp_path, script, asks=2, mode="lines", timeout="10s")
    assert isinstance(hung, AgentError)
    assert isinstance(again, Answer)
    watch.take_who_came()
    assert watch.all_gone()


def test_in_lines_an_empty_line_is_an_empty_answer(tmp_path: Path) -> None:
    (found,) = asked(tmp_path, "input(); print()", mode="lines")
    assert isinstance(found, Answer)
    assert found.stage == "empty"


def test_closing_ends_the_process_and_all_it_started(tmp_path: Path, watch: Onlookers) -> None:
    asked(tmp_path, f"{watch.daemon}\n{watch.joins}\n{LINES}", mode="lines")
    watch.wait_for(2)
    assert watch.all_gone()


@pytest.mark.slow
def test_a_killed_driver_takes_its_program_along(tmp_path: Path, watch: Onlookers) -> None:
    driver = tmp_path / "driver.py"
    script = f"{watch.daemon}\n{watch.joins}\nwatched.recv(1)"
    driver.write_text(
        "import asyncio, sys; from pathlib import Path\n"
        "from test_command import ASK, agent\n"
        f"asyncio.run(agent(Path({str(tmp_path)!r}), {script!r}, mode='lines').propose(ASK))\n"
    )
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    with subprocess.Popen([sys.executable, driver], env=os.environ | {"PYTHONPATH": path}) as one:
        watch.wait_for(2)
        one.kill()
        one.wait(PATIENCE)
    assert watch.all_gone()
