"""configs/local-model: a bad model, and the published density all the same."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import fakeserver as fake
from campaign.events import Answered, Called
from campaign.ledger import read
from campaign.state import fold
from folders import argv

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "configs" / "local-model"
MODEL = CONFIG / "model" / "llama-server"
RECORDED = ROOT / "tests" / "data" / "local-model" / "answers.json"
NIST_DENSITY = 0.820  # T* = 0.85, cut at 3 sigma with tail corrections

pytestmark = [pytest.mark.lammps, pytest.mark.slow]


def run(run_dir: Path, *changes: str) -> str:
    """Run the campaign as a user does; what it says."""
    words = [word for change in changes for word in ("--set", change)]
    command = argv("run", CONFIG, "--run-dir", run_dir, *words)
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check(run_dir: Path, said: str) -> None:
    state = fold(read(run_dir))
    (density,) = re.findall(r"Result: pressure = \S+ at density=(\S+)", said)
    assert float(density) == pytest.approx(NIST_DENSITY, abs=0.005)
    counts = state.dispositions()
    assert sum(counts.values()) == 4 * len(state.rounds)
    for name in ("accepted", "repaired", "fallback"):
        assert re.search(rf"{name}\s+│\s+{counts[name]} │", said), "the table says how slots ended"
    for rounds in state.rounds.values():
        for slot in rounds.slots.values():
            steps = slot.parameters["density"] * 1000
            assert steps == pytest.approx(round(steps), abs=1e-9), "on the grid that was asked for"


def events(run_dir: Path, kind: type) -> list[Any]:
    return [entry.event for entry in read(run_dir) if isinstance(entry.event, kind)]


def test_the_recorded_model_ends_at_the_published_density(tmp_path: Path) -> None:
    answers = json.loads(RECORDED.read_text())
    script = [fake.canned(one["body"], one["status"]) for one in answers]
    with fake.FakeServer(*script) as server:
        changes = ["agent.serve=null", "agent.socket=null", f"agent.url={server.url}"]
        said = run(tmp_path / "run", *changes)
        sent = server.bodies
    check(tmp_path / "run", said)
    # The requests are those that the model was recorded with, to the last byte of each message.
    assert [one["messages"] for one in sent] == [one["request"]["messages"] for one in answers]
    assert [one["max_tokens"] for one in sent] == [one["request"]["max_tokens"] for one in answers]
    told = [json.loads(one["body"])["usage"] for one in answers]
    found = events(tmp_path / "run", Answered)
    assert [one.input_tokens for one in found] == [one["prompt_tokens"] for one in told]
    assert [one.output_tokens for one in found] == [one["completion_tokens"] for one in told]


@pytest.mark.llm
@pytest.mark.skipif(not MODEL.exists(), reason="no model: configs/local-model/get-model.sh")
def test_the_real_model_ends_at_the_published_density(tmp_path: Path) -> None:
    run_dir = Path(os.path.realpath(tmp_path)) / "r"
    # A socket's path is short, that of a test's folder is not.
    socket = f"/tmp/simgate-test-{os.getpid()}.sock"
    command = json.dumps(
        ["{campaign_dir}/model/llama-server", "--model", "{campaign_dir}/model/smollm2.gguf",
         "--host", socket, "--alias", "smollm2-135m", "--ctx-size", "4096", "--parallel", "1",
         "--threads", "1", "--no-webui", "--offline", "--metrics"]
    )  # fmt: skip
    said = run(run_dir, f"agent.socket={socket}", f"agent.serve.command={command}")
    check(run_dir, said)
    answered, called = events(run_dir, Answered), events(run_dir, Called)
    log = (run_dir / "server.log").read_text(errors="replace")
    # The server's own count: a line of timings for each task it finished.
    read_, written = (
        [int(one) for one in re.findall(rf"{what} eval time =.*?/\s+(\d+) tokens", log)]
        for what in ("prompt", r"[^t]\s+")
    )
    assert len(called) == len(answered) == len(read_)
    assert sum(one.input_tokens for one in answered) == sum(read_)
    assert sum(one.output_tokens for one in answered) == sum(written)
    assert not Path(socket).exists() or not _alive(run_dir), "the server is gone with the run"


def _alive(run_dir: Path) -> bool:
    found = subprocess.run(["pgrep", "-f", str(run_dir)], capture_output=True, check=False)
    return found.returncode == 0
