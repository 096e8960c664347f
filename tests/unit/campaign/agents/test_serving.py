"""A server that a job starts for itself: ready before it is asked, and gone with the job."""

from __future__ import annotations

import asyncio
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from campaign.agentconfig import OpenAIAgent
from campaign.agents.chat import ChatClient
from campaign.agents.serving import LOG, ServerError, serving
from campaign.model import CampaignFailedError
from campaign.stop import Stop, StoppedError
from fakeserver import FakeServer, fails, loading, resets, says

PROGRAM = Path(__file__).parents[3] / "support" / "fakeserver.py"
KEY = "sk-canary-0123456789abcdef"
BODY = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def place() -> Iterator[Path]:
    """A run directory whose path a socket's can be made of."""
    with tempfile.TemporaryDirectory() as short:
        yield Path(short)


def served(*options: str, command: list[str] | None = None, **more: Any) -> OpenAIAgent:
    """An agent with a server of ours on a socket in the run directory."""
    program = ["{python}", str(PROGRAM), "--socket", "{run_dir}/s", *options]
    serve = more.pop("serve", {})
    plain = {
        "kind": "openai",
        "model": "m",
        "socket": "{run_dir}/s",
        "serve": {"command": command or program, "timeout": "60s"} | serve,
    }
    return OpenAIAgent.model_validate(plain | more)


def pid_of(place: Path) -> int:
    """The process of the server that wrote the log last."""
    return int(re.findall(r"serving as process (\d+)", (place / LOG).read_text())[-1])


def wait_until_gone(pid: int) -> None:
    """Until the process ends, or for a minute."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([handle], [], [], 60)[0], f"{pid} still runs"
    finally:
        os.close(handle)


def run(agent: OpenAIAgent, place: Path, grace: float = 10.0) -> str | None:
    """What the server says while it is up."""

    async def job() -> str | None:
        async with serving(agent, place, place, grace=grace):
            return (await ChatClient(agent, place, place).complete(BODY)).content

    return asyncio.run(job())


def test_the_server_is_ready_inside_and_gone_with_all_it_started_after_it(place: Path) -> None:
    agent = served("--candidates", '[{{"x": 0.5}}]')
    content = run(agent, place)
    assert content is not None
    assert json.loads(content)["candidates"] == [{"x": 0.5}]
    wait_until_gone(pid_of(place))
    assert not psutil.Process().children(recursive=True)
    assert (place / LOG).stat().st_mode & 0o777 == 0o600


def test_a_model_that_takes_its_time_to_load_is_waited_for(place: Path) -> None:
    assert run(served("--loading", "3"), place)


def test_a_run_that_is_told_to_stop_does_not_wait_for_its_server(place: Path) -> None:
    never = ["{python}", "-c", "import signal; signal.pause()"]

    async def job() -> None:
        stop = Stop()
        asyncio.get_running_loop().call_later(0.3, stop.request, "SIGTERM received")
        async with serving(served(command=never), place, place, stop, 0.2):
            raise AssertionError("it is never ready")

    with pytest.raises(StoppedError, match="SIGTERM received"):
        asyncio.run(job())
    assert not psutil.Process().children(recursive=True)


def test_without_a_server_to_start_nothing_is_started_and_nothing_asked(place: Path) -> None:
    agent = OpenAIAgent(kind="openai", model="m", url="http://127.0.0.1:1/v1")

    async def job() -> list[psutil.Process]:
        async with serving(agent, place, place):
            return psutil.Process().children()

    assert asyncio.run(job()) == []
    assert not (place / LOG).exists()


def test_a_socket_that_a_killed_server_left_behind_is_no_obstacle(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(place / "s"))
    assert run(served(), place)


def test_what_is_no_socket_is_not_removed(place: Path) -> None:
    (place / "s").write_text("precious")
    with pytest.raises(ServerError, match="ended with exit code 1"):
        run(served(), place)
    assert (place / "s").read_text() == "precious"


def test_a_server_that_ends_before_it_is_ready_is_named_with_its_last_words(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    agent = served("--fails", f"no model\x1b[31m\n\nwith key {KEY}", key={"env": "THE_KEY"})
    (place / LOG).write_text("an earlier job\n")
    with pytest.raises(ServerError) as caught:
        run(agent, place)
    assert isinstance(caught.value, CampaignFailedError)
    assert str(caught.value) == (
        "server: ended with exit code 3 before it was ready; "
        "server.log ends: no model [31m | with key ***"
    )
    assert (place / LOG).read_text().startswith("an earlier job\n")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["./no-such-server"], r"exit code 127 .*cannot be started: '\./no-such-server'"),
        (["{nonsense}"], r"cannot be started: unknown placeholder '\{nonsense\}'"),
    ],
)
def test_a_server_that_cannot_be_started_is_named(
    place: Path, command: list[str], said: str
) -> None:
    with pytest.raises(ServerError, match=said):
        run(served(command=command), place)


def test_a_server_without_the_key_it_needs_is_not_started(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("THE_KEY", raising=False)
    with pytest.raises(ServerError, match="'THE_KEY' is not there"):
        run(served(key={"env": "THE_KEY"}), place)
    assert not (place / LOG).exists()


def test_a_server_that_is_never_ready_is_ended_and_what_it_answers_is_said(place: Path) -> None:
    idle = ["{python}", "-c", "import signal; signal.pause()"]
    with FakeServer(says("no"), gets=[resets(), loading()]) as stand_in:
        agent = served(socket=None, url=stand_in.url, command=idle, serve={"timeout": "0.3s"})
        with pytest.raises(ServerError, match=r"/health answers 503 after 0.3 s; see `serve"):
            run(agent, place)
    assert not psutil.Process().children(recursive=True)


def test_a_server_that_never_listens_is_ended(place: Path) -> None:
    idle = ["{python}", "-c", "import signal; signal.pause()"]
    with pytest.raises(ServerError, match=r"/health does not answer after 0.3 s.*log is empty"):
        run(served(command=idle, serve={"timeout": "0.3s"}), place)
    assert not psutil.Process().children(recursive=True)


@pytest.mark.slow
def test_a_place_that_something_else_answers_at_is_refused(place: Path) -> None:
    with FakeServer(says("not yours"), gets=[fails(404)]) as other:
        agent = served(socket=None, url=other.url)
        with pytest.raises(ServerError, match=f"{other.address} is taken by another process"):
            run(agent, place)
    assert not (place / LOG).exists()


def test_a_server_that_does_not_end_when_asked_is_killed(place: Path) -> None:
    assert run(served("--stubborn"), place, grace=0.2)
    wait_until_gone(pid_of(place))


def killed(
    agent: OpenAIAgent, place: Path, caplog: pytest.LogCaptureFixture, times: int = 1
) -> list[int]:
    """The status of the server after each time it was killed, once a call may be made again."""

    async def job() -> list[int]:
        found = []
        async with serving(agent, place, place) as server:
            assert server is not None
            client = ChatClient(agent, place, place)
            for number in range(1, times + 1):
                os.kill(pid_of(place), signal.SIGKILL)
                while caplog.text.count("ended by signal 9") < number:
                    await client.status("/health")
                await server.there()
                found.append(await client.status("/health"))
        return found

    return asyncio.run(asyncio.wait_for(job(), 60))


def test_a_server_that_ends_while_it_is_needed_is_started_again_so_often_and_no_more(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert killed(served(serve={"restarts": 2}), place, caplog, 3) == [200, 200, 0]
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        f"the agent's server: ended by signal 9; {then}; see {place / LOG}"
        for then in (
            "it is started again (1 of 2)",
            "it is started again (2 of 2)",
            "it is not started again",
        )
    ]
    assert not psutil.Process().children(recursive=True)


def test_a_server_that_does_not_come_up_again_is_tried_and_given_up(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    once = 'if [ -e been ]; then echo broken; exit 3; fi; touch been; exec "$@"'
    program = ["sh", "-c", once, "sh", "{python}", str(PROGRAM), "--socket", "{run_dir}/s"]
    assert killed(served(command=program, serve={"restarts": 2}), place, caplog) == [0]
    assert [record.getMessage() for record in caplog.records] == [
        f"the agent's server: ended by signal 9; it is started again (1 of 2); see {place / LOG}",
        *["the agent's server: ended with exit code 3 before it was ready; server.log ends: broken"]
        * 2,
    ]


def test_a_stop_ends_the_wait_for_a_server_that_is_started_again(place: Path) -> None:
    once = '[ -e been ] && exec sleep 600; touch been; exec "$@"'
    program = ["sh", "-c", once, "sh", "{python}", str(PROGRAM), "--socket", "{run_dir}/s"]
    agent = served(command=program, serve={"restarts": 1, "timeout": "600s"})

    async def job() -> None:
        stop = Stop()
        async with serving(agent, place, place, stop, 0.2) as server:
            assert server is not None
            os.kill(pid_of(place), signal.SIGKILL)
            asyncio.get_running_loop().call_later(0.3, stop.request, "SIGTERM received")
            while not stop.requested.is_set():
                await asyncio.sleep(0)
            await server.there()

    asyncio.run(asyncio.wait_for(job(), 60))
    assert not psutil.Process().children(recursive=True)


def test_a_job_that_is_cancelled_takes_the_server_along(place: Path) -> None:
    agent = served()

    async def job() -> None:
        ready = asyncio.Event()

        async def inside() -> None:
            async with serving(agent, place, place):
                ready.set()
                await asyncio.Event().wait()

        task = asyncio.ensure_future(inside())
        await asyncio.wait_for(ready.wait(), 60)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    asyncio.run(job())
    wait_until_gone(pid_of(place))


def test_the_environment_of_the_server_is_the_drivers_and_what_is_added(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_DRIVER", "a")
    says_it = "import os; print(os.environ['OF_THE_DRIVER'], os.environ['ADDED'], os.getcwd())"
    agent = served(command=["{python}", "-c", says_it], serve={"env": {"ADDED": "b"}})
    with pytest.raises(ServerError, match=f"ends: a b {place}$"):
        run(agent, place)


DRIVER = """
import asyncio, sys
from pathlib import Path
from campaign.agentconfig import OpenAIAgent
from campaign.agents.serving import serving

async def job():
    place = Path(sys.argv[1])
    agent = OpenAIAgent.model_validate_json(sys.argv[2])
    async with serving(agent, place, place):
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(job())
"""


@pytest.mark.slow
def test_the_server_of_a_killed_job_ends_and_the_next_job_starts_its_own(place: Path) -> None:
    agent = served("--stubborn")
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(place), agent.model_dump_json()], stdout=subprocess.PIPE
    )
    with driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"ready\n"
        first = pid_of(place)
        driver.kill()
    assert run(agent, place, grace=0.2)
    assert pid_of(place) != first
    wait_until_gone(first)
