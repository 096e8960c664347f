"""The shipped campaigns, submitted to a real Slurm as a user does it, to their published ends.

A campaign's simulation has one size, so that a batch of simulations on one, two and four nodes is
shown twice: as tasks of one executor, and in a campaign whose verifiers differ in their nodes and
follow each other, so that all sizes of one batch run at once.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import browser
import otlp
from campaign.events import JobEnded, TaskEnded, TaskStarted
from campaign.ledger import NoLedgerError, read
from campaign.model import SIMULATION
from campaign.report.figures import as_data, figures
from folders import process
from minicluster import Minicluster, minicluster, on_node, until

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "configs"
DRIVER = ROOT / "tests" / "support" / "planned_driver.py"
NIST_DENSITY, NIST_PRESSURE = 0.820, 0.55355  # T* = 0.85, cut at 3 sigma with tail corrections
SIZES = {"one": 1, "two": 2, "four": 4}
LONG = 600.0  # seconds a campaign may take on a machine that is busy


@pytest.fixture(scope="module")
def wide() -> Iterator[Minicluster]:
    """One, two and four nodes, which are seven; at the end nothing of it may be left."""
    with minicluster("--nodes", sum(SIZES.values())) as cluster:
        yield cluster


@dataclass(frozen=True)
class Ran:
    """A campaign that was submitted and has left Slurm: what it says of itself."""

    status: Mapping[str, Any]
    events: Sequence[object]

    def started(self, task: str) -> list[TaskStarted]:
        return [one for one in self.events if isinstance(one, TaskStarted) and one.task == task]

    def assert_each_slot_ended_once(self, batch: int) -> None:
        places = [(slot["round"], slot["slot"]) for slot in self.status["slots"]]
        assert len(places) == len(set(places)) == self.status["rounds"] * batch
        assert sum(self.status["dispositions"].values()) == len(places)

    def assert_nothing_failed(self) -> None:
        ends = [one for one in self.events if isinstance(one, TaskEnded)]
        assert {one.status for one in ends} == {"done"}, [one.reason for one in ends]
        assert self.status["budgets"]["node_hours"]["reserved"] == 0


def submitted(cluster: Minicluster, config: Path, run_dir: Path, *overrides: str) -> Ran:
    """``simgate submit``, and its campaign's end: done, the queue empty, no process left."""
    sets = [word for one in overrides for word in ("--set", one)]
    ran = process("submit", config, "--run-dir", run_dir, *sets, env=dict(cluster.env))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    until(lambda: not queue(cluster), "the queue is empty", LONG)
    (ended,) = [one for one in _events(run_dir) if isinstance(one, JobEnded)]
    assert ended.outcome == "done", (ended.reason, (run_dir / "slurm.log").read_text())
    assert_clear(cluster)
    told = process("status", run_dir, "--json", env=dict(cluster.env))
    found = json.loads(told.stdout)
    assert (found["state"], found["queued"]) == ("done", [])
    return Ran(found, _events(run_dir))


def queue(cluster: Minicluster) -> list[str]:
    return cluster.run("squeue", "-h", "-o", "%i %j %T").stdout.splitlines()


def assert_clear(cluster: Minicluster) -> None:
    """Nothing waits or runs, and no process of a job is left on any node."""
    assert queue(cluster) == []
    until(lambda: not any(map(on_node, cluster.nodes)), "no process is left", 20)


def _events(run_dir: Path) -> list[object]:
    try:
        return [entry.event for entry in read(run_dir)]
    except NoLedgerError:
        return []


# The quickstart

PILOTS = (
    "executors.default={kind: slurm, nodes: 2, workers_per_node: 2, address: 127.0.0.1, "
    "pilot: {walltime: 10m}}"
)
SINGLE = {
    "slurm": (PILOTS, "job={walltime: 10m}"),
    "allocation": (
        "executors.default={kind: allocation, workers_per_node: 2, address: 127.0.0.1}",
        "job={walltime: 10m, nodes: 2}",
    ),
}


@pytest.mark.parametrize("kind", SINGLE)
def test_the_quickstart_comes_out_the_same_with_single_processes(
    wide: Minicluster, tmp_path: Path, kind: str
) -> None:
    ran = submitted(wide, CONFIGS / "quickstart", tmp_path / "run", *SINGLE[kind])
    assert_as_published(ran)
    hosts = {_result(tmp_path / "run", one)["owner"]["host"] for one in ran.started(SIMULATION)}
    assert len(hosts) == (1 if wide.flat else 2)


@pytest.mark.mpi
def test_the_quickstart_comes_out_the_same_with_verifiers_on_two_nodes_of_two_ranks(
    wide: Minicluster, tmp_path: Path
) -> None:
    ran = submitted(
        wide,
        CONFIGS / "quickstart" / "mpi.yaml",
        tmp_path / "run",
        "executors.default={kind: mpi}",
        "verifiers[0].nodes=2",
        "verifiers[0].ranks=4",
        "job={walltime: 10m, nodes: 2}",
    )
    assert_as_published(ran)
    verified, simulated = ran.started("coarse_solve"), ran.started(SIMULATION)
    assert {one.nodes for one in verified} == {2}
    assert {one.nodes for one in simulated} == {1}
    assert {_input(tmp_path / "run", one)["ranks"] for one in verified} == {4}


def assert_as_published(ran: Ran) -> None:
    """What configs/quickstart/README.md says, whatever the campaign ran on."""
    ran.assert_each_slot_ended_once(4)
    ran.assert_nothing_failed()
    assert ran.status["rounds"] == 4
    assert 40 < ran.status["best"]["value"] < 41.5
    counts = ran.status["dispositions"]
    assert (counts["returned"], counts["tombstone"]) == (0, 0)
    assert (counts["accepted"], counts["repaired"], counts["fallback"]) == (8, 3, 5)


def _directory(run_dir: Path, try_: TaskStarted) -> Path:
    return run_dir / "tasks" / f"{try_.task}-{try_.candidate}" / f"try-{try_.attempt}"


def _result(run_dir: Path, try_: TaskStarted) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((_directory(run_dir, try_) / "result.json").read_text())
    return found


def _input(run_dir: Path, try_: TaskStarted) -> dict[str, Any]:
    """What the ranks of an mpi task were told; more or fewer of them would have refused it."""
    found: dict[str, Any] = json.loads((_directory(run_dir, try_) / "mpi.json").read_text())
    return found


# The published density


@pytest.mark.browser
@pytest.mark.lammps
def test_the_lennard_jones_campaign_for_slurm_finds_the_published_density(
    wide: Minicluster, tmp_path: Path
) -> None:
    ran = submitted(wide, CONFIGS / "lennard-jones" / "slurm.yaml", tmp_path / "run")
    best = ran.status["best"]
    assert abs(best["candidate"]["density"] - NIST_DENSITY) <= 0.005
    assert abs(best["value"] - NIST_PRESSURE) <= 0.03
    ran.assert_each_slot_ended_once(4)
    ran.assert_nothing_failed()
    hours = ran.status["budgets"]["node_hours"]
    assert 0 < hours["spent"] <= hours["limit"]
    assert {one.nodes for one in ran.started(SIMULATION)} == {2}
    assert_traced(tmp_path / "run", ran)
    assert_reported(tmp_path / "run", ran)


def assert_traced(run_dir: Path, ran: Ran) -> None:
    """One tree from the campaign to every worker, on whatever node it was."""
    tree = otlp.tree(run_dir)
    assert [root.name for root in tree.roots] == [f"campaign {ran.status['name']}"]
    assert tree.orphans == []
    assert len({span.trace_id for span in tree.spans.values()}) == 1
    workers = [path for path in tree.paths if path[-1].startswith("worker ")]
    assert len(workers) == sum(isinstance(one, TaskEnded) for one in ran.events)


def assert_reported(run_dir: Path, ran: Ran) -> None:
    """The page, looked at; and what its verifier saved, reckoned again from the ledger."""
    out = run_dir / "report.html"
    wrote = process("report", run_dir, "--html", out)
    assert wrote.returncode == 0, wrote.stderr
    shown = browser.dom(out, 1400)
    assert ran.status["name"] in shown
    for width in (390, 820, 1400):
        browser.picture(out, run_dir / f"{width}.png", width, dark=False)
        assert (run_dir / f"{width}.png").stat().st_size > 20_000
    (said,) = (one for one in as_data(figures(run_dir))["checks"] if one["check"] == "short_run")
    spent: dict[str, dict[str, float]] = {"short_run": {}, SIMULATION: {}}
    for one in ran.events:
        if isinstance(one, TaskEnded):
            by = spent[one.task]
            by[one.candidate] = by.get(one.candidate, 0.0) + one.spent
    rejected = sum(
        isinstance(one, TaskEnded)
        and one.task == "short_run"
        and one.value.get("verdict") == "reject"
        for one in ran.events
    )
    each = sum(spent[SIMULATION].values()) / len(spent[SIMULATION])
    assert said["rejected"] == rejected
    assert said["each"] == pytest.approx(each, abs=1e-9)
    cost = sum(spent["short_run"].values())
    assert said["cost"] == pytest.approx(cost, abs=1e-9)
    assert said["saved"] == pytest.approx(rejected * each - cost, abs=1e-9)


# One, two and four nodes at once

MEETING = """
import json, os, sys, time
from pathlib import Path

def meet(folder, name, others):
    \"\"\"Every rank waits until the others have begun; rank 0 notes who was where, and when.\"\"\"
    from mpi4py import MPI

    comm, began = MPI.COMM_WORLD, time.time()
    hosts = comm.gather(os.environ["SLURMD_NODENAME"])
    if comm.rank == 0:
        (folder / name).touch()
    while not all((folder / other).exists() for other in others):
        time.sleep(0.05)
    if comm.rank == 0:
        span = {"hosts": hosts, "began": began, "ended": time.time()}
        (folder / f"{name}.json").write_text(json.dumps(span))

def verify(candidate, *, name, others):
    x = str(candidate["x"])
    meet(Path(os.environ["SIMGATE_CAMPAIGN_DIR"]), f"{name}-{x}", others.get(x, ()))
    return {"verdict": "pass"}

def simulate(candidate):
    return {"loss": candidate["x"]}

if __name__ == "__main__":
    meet(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
"""
WALLTIME = 60.0  # seconds


def meeting(folder: Path) -> Path:
    folder.mkdir()
    (folder / "meeting.py").write_text(MEETING)
    return folder


def assert_at_once(folder: Path, names: Sequence[str]) -> None:
    """Tasks of one, two and four nodes, two ranks on each, ran at one moment on seven nodes."""
    spans = [json.loads((folder / f"{name}.json").read_text()) for name in names]
    assert max(one["began"] for one in spans) < min(one["ended"] for one in spans)
    sizes = [len(set(one["hosts"])) for one in spans]
    assert sizes == list(SIZES.values())
    assert [len(one["hosts"]) for one in spans] == [2 * size for size in sizes]
    assert len({host for one in spans for host in one["hosts"]}) == sum(SIZES.values())


@pytest.mark.mpi
def test_simulations_of_one_two_and_four_nodes_run_at_once_as_tasks_of_one_executor(
    wide: Minicluster, tmp_path: Path
) -> None:
    """No campaign can say this today: its simulation has one size. The executor can."""
    folder = meeting(tmp_path / "met")
    program = [sys.executable, "-m", "mpi4py", str(folder / "meeting.py"), str(folder)]
    waiting = [(name, [other for other in SIZES if other != name]) for name in SIZES]
    quick: list[tuple[str, list[str]]] = [(f"{name}-more", []) for name in SIZES]
    tasks = [
        {
            "name": name,
            "executor": "nodes",
            "argv": [*program, name, *others],
            "nodes": SIZES[name.removesuffix("-more")],
            "ranks": 2 * SIZES[name.removesuffix("-more")],
            "walltime": WALLTIME,
        }
        for name, others in (*waiting, *quick)
    ]
    plan = {"executors": {"nodes": {"kind": "mpi"}}, "tasks": tasks}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    where = ("--nodes", len(wide.nodes), "--exclusive", "--output", tmp_path / "job.out")
    argv = shlex.join([sys.executable, str(DRIVER), str(tmp_path)])
    wide.run("sbatch", "--wait", "--time=10", *where, "--wrap", f"exec {argv}", timeout=LONG)
    found = json.loads((tmp_path / "results.json").read_text())
    assert {one["status"] for one in found} == {"done"}, found
    assert_at_once(folder, list(SIZES))
    assert_clear(wide)


@pytest.mark.mpi
def test_a_campaign_runs_verifiers_of_one_two_and_four_nodes_at_once(
    wide: Minicluster, tmp_path: Path
) -> None:
    """Each of three candidates is with another verifier at the moment at which they meet.

    Their simulations follow on two nodes each, as each has passed.
    """
    met = {"one-3", "two-2", "four-1"}
    verifiers = [
        {
            "name": name,
            "kind": "mpi",
            "function": "meeting:verify",
            "arguments": {"name": name, "others": {str(x): sorted(met - {f"{name}-{x}"})}},
            "ranks": 2 * size,
            "nodes": size,
            "walltime": f"{WALLTIME:g}s",
        }
        for (name, size), x in zip(SIZES.items(), (3, 2, 1), strict=True)
    ]
    config = {
        "version": 1,
        "name": "meeting",
        "parameters": {"x": {"type": "int", "min": 1, "max": 3}},
        "objective": {"name": "loss", "direction": "minimize"},
        "rounds": 1,
        "batch_size": 3,
        "seed": 1,
        "agent": {"kind": "surrogate"},
        "verifiers": verifiers,
        "simulation": {
            "kind": "mpi",
            "function": "meeting:simulate",
            "ranks": 4,
            "nodes": 2,
            "walltime": f"{WALLTIME:g}s",
        },
        "executors": {"default": {"kind": "mpi"}},
        "job": {"nodes": len(wide.nodes), "walltime": "10m"},
    }
    folder = meeting(tmp_path / "met")
    (folder / "campaign.yaml").write_text(yaml.safe_dump(config))
    ran = submitted(wide, folder, tmp_path / "run")
    ran.assert_each_slot_ended_once(3)
    ran.assert_nothing_failed()
    assert_at_once(folder, ["one-3", "two-2", "four-1"])
    assert {one.nodes for one in ran.started(SIMULATION)} == {2}
