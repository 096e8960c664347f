"""Claims of nodes, and the words that start a step on them. Slurm's commands are small scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from executors import lost, nodes, slurm
from executors.holders import Allocation, NodesError, Owner
from executors.nodes import claim, clear
from executors.step import Refused, Request, command, environment, parse

NAMES = ("n1", "n2", "n3", "n4")
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class Job:
    """A job whose running steps are the lines of a file; ``scancel`` removes them."""

    folder: Path
    allocation: Allocation

    def runs(self, *steps: str) -> None:
        (self.folder / "steps").write_text("".join(f"{step}\n" for step in steps))

    def running(self) -> list[str]:
        return (self.folder / "steps").read_text().split()

    def loses(self, *, down: str = "", taken: str = "", silent: str = "") -> None:
        """What Slurm and srun say of the nodes from now on."""
        states = {name: "down*" if name in down else "allocated" for name in NAMES}
        self._says("states", "".join(f"{name}|{state}\n" for name, state in states.items()))
        self._says("inside", ",".join(name for name in NAMES if name not in taken))
        self._says("silent", SILENT.format(silent) if silent else "")

    def _says(self, file: str, text: str) -> None:
        (self.folder / file).write_text(text)

    def claimed(self) -> list[str]:
        folder = self.allocation.folder
        return sorted(f.name for f in folder.iterdir() if not f.name.startswith("."))

    def hold(self, name: str, owner: Owner) -> None:
        fields = {part: getattr(owner, part) for part in Owner.__dataclass_fields__}
        self.allocation.folder.mkdir(parents=True, exist_ok=True)
        (self.allocation.folder / name).write_text(json.dumps(fields))


SCRIPTS = {
    "squeue": 'cat "{folder}/steps"',
    "scancel": 'if test -e "{folder}/deaf"; then exit 0; fi\n'
    'grep -v "^$1|" "{folder}/steps" > "{folder}/left"; mv "{folder}/left" "{folder}/steps"',
    "scontrol": 'echo "JobId=7 JobState=RUNNING NodeList=$(cat "{folder}/inside")"',
    "sinfo": 'cat "{folder}/states"',
    "srun": 'cat "{folder}/silent" >&2; test ! -s "{folder}/silent"',
}
SILENT = "srun: error: Task launch for StepId=7.9 failed on node {}: Communication failure"


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    (tmp_path / "bin").mkdir()
    for name, text in SCRIPTS.items():
        script = tmp_path / "bin" / name
        script.write_text(f"#!/bin/sh\n{text.format(folder=tmp_path)}\n")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    job = Job(tmp_path, Allocation("7", NAMES, tmp_path / "claims" / "7"))
    job.runs("7.batch|batch|n1", "7.0|simgate-pool-a|n1")
    job.loses()
    return job


def dead() -> Owner:
    """Somebody who ended: a process of ours that has, as it was."""
    return Owner(os.getpid(), 1, Owner.me().boot, "/tasks/dead")


def test_nodes_are_chosen_in_the_jobs_order_and_given_back(job: Job) -> None:
    with claim(job.allocation, 2) as first, claim(job.allocation, 1) as second:
        assert (first, second) == (("n1", "n2"), ("n3",))
        assert job.claimed() == ["n1", "n2", "n3"]
    assert job.claimed() == []
    with claim(job.allocation, 4) as everything:
        assert everything == NAMES


def test_too_few_free_nodes_are_an_error_that_names_who_holds_them(job: Job) -> None:
    with claim(job.allocation, 3), pytest.raises(NodesError) as caught:  # noqa: SIM117
        with claim(job.allocation, 2, patience=0.1):
            pass
    said = str(caught.value)
    assert said.startswith("2 nodes wanted, not so many became free: n1 is held by process ")
    assert "n4 is free" in said
    assert str(os.getpid()) in said
    assert str(Path.cwd()) in said


def test_more_nodes_than_there_are_is_an_error_at_once(job: Job) -> None:
    with (
        pytest.raises(NodesError, match="5 nodes wanted; the executor has 4: n1,n2,n3,n4"),
        claim(job.allocation, 5),
    ):
        pass


def test_who_waits_gets_the_node_that_comes_free(job: Job) -> None:
    with ThreadPoolExecutor(1) as worker:
        with claim(job.allocation, 4):
            waiting = worker.submit(claim(job.allocation, 1).__enter__)
        assert waiting.result(10) == ("n1",)


def test_a_claim_left_by_an_exception_stays(job: Job) -> None:
    with pytest.raises(RuntimeError, match="not clear"), claim(job.allocation, 2):
        raise RuntimeError("not clear")
    assert job.claimed() == ["n1", "n2"]


def test_nodes_of_the_dead_come_last_and_are_cleared_first(job: Job) -> None:
    with claim(job.allocation, 1):
        pass
    job.hold("n1", dead())
    job.runs("7.0|simgate-pool-a|n1", "7.1|simgate-step|n1,n9", "7.2|orted|n3")
    with claim(job.allocation, 3) as chosen:
        assert chosen == ("n2", "n3", "n4")
        assert len(job.running()) == 3
        with claim(job.allocation, 1) as last:
            assert last == ("n1",)
            assert job.running() == ["7.0|simgate-pool-a|n1", "7.2|orted|n3"]


def test_processes_of_the_dead_on_this_host_are_killed(job: Job) -> None:
    owner = dead()
    left = subprocess.Popen(
        ["sleep", "300"], env={**os.environ, nodes.MARK: owner.mark}, start_new_session=True
    )
    job.hold("n1", owner)
    with claim(job.allocation, 4):
        assert left.wait(10) == -9


@pytest.mark.parametrize("owner", [Owner(1, 0, "another boot", "/t"), Owner(0, 0, "", "")])
def test_an_owner_of_another_boot_is_dead(owner: Owner) -> None:
    assert not owner.alive
    assert Owner.me().alive


def test_steps_that_do_not_end_are_an_error_and_their_nodes_stay_claimed(job: Job) -> None:
    with claim(job.allocation, 1):
        pass
    (job.folder / "deaf").touch()
    job.runs("7.1|simgate-step|n2")
    with pytest.raises(NodesError, match=r"steps 7\.1 still run on n1,n2 0\.2 s after"):
        clear(job.allocation, ("n1", "n2"), seconds=0.2)


def test_what_ran_before_the_first_claim_is_left_alone_but_steps_of_tasks_are_not(
    job: Job,
) -> None:
    service, left = "7.1|serve|n1", "7.2|simgate-step|n1"
    job.runs(service, left, "7.3|simgate-step|n9")
    with claim(job.allocation, 4):
        assert job.running() == [service, "7.3|simgate-step|n9"]
        clear(job.allocation, NAMES)
    assert service in job.running()


def test_a_node_out_of_reach_is_set_aside_until_slurm_has_it_again(job: Job) -> None:
    with claim(job.allocation, 3) as chosen:
        job.loses(down="n2", taken="n3")
        assert lost.set_aside(job.allocation, chosen) == ("n2", "n3")
    assert job.claimed() == ["n2", "n3"]
    with claim(job.allocation, 2) as chosen:
        assert chosen == ("n1", "n4")
    job.loses(taken="n3")
    with claim(job.allocation, 3) as chosen:
        assert chosen == ("n1", "n2", "n4")


def test_more_nodes_than_are_left_is_an_error_at_once_that_names_the_lost(job: Job) -> None:
    job.loses(down="n2", taken="n3")
    said = "3 nodes wanted; the executor has 2 left of 4: n2,n3 lost"
    with pytest.raises(NodesError, match=said), claim(job.allocation, 3):
        pass


def test_a_node_that_is_lost_while_it_is_free_is_given_to_nobody(job: Job) -> None:
    job.loses(down="n1")
    with claim(job.allocation, 3) as chosen:
        assert chosen == ("n2", "n3", "n4")
    assert job.claimed() == ["n1"]


def test_a_node_on_which_nothing_starts_is_lost_whatever_slurm_thinks(job: Job) -> None:
    job.loses(silent="n2")
    with claim(job.allocation, 2) as chosen:
        assert lost.set_aside(job.allocation, chosen) == ()
        assert lost.set_aside(job.allocation, chosen, suspected=True) == ("n2",)
    assert lost.look(job.allocation) == ("n1", "n3", "n4")
    job.loses()
    assert lost.look(job.allocation) == NAMES


def test_a_slurm_that_does_not_answer_leaves_what_was_known(job: Job) -> None:
    job.loses(down="n2")
    assert lost.look(job.allocation) == ("n1", "n3", "n4")
    (job.folder / "states").unlink()
    assert lost.set_aside(job.allocation, NAMES) == ()
    assert lost.look_now_and_then(job.allocation, 4) == ("n1", "n3", "n4")


def test_what_is_left_at_the_end_is_ended_on_held_nodes_alone(job: Job) -> None:
    with claim(job.allocation, 1):
        pass
    job.hold("n2", dead())
    job.runs("7.0|simgate-pool-a|n2", "7.1|simgate-step|n2", "7.2|orted|n2", "7.3|other|n3")
    nodes.give_back(job.allocation, 5.0)
    assert job.running() == ["7.0|simgate-pool-a|n2", "7.3|other|n3"]
    assert job.claimed() == []


def test_two_tasks_never_hold_one_node(job: Job) -> None:
    """Eight processes take one to four nodes, thirty times each."""
    body = """
import random, sys
from pathlib import Path
from executors.holders import Allocation
from executors.nodes import claim
allocation = Allocation("7", ("n1", "n2", "n3", "n4"), Path(sys.argv[1]))
for _ in range(30):
    with claim(allocation, random.randint(1, 4)) as names:
        for name in names:
            Path(sys.argv[2], name).touch(exist_ok=False)
        for name in names:
            Path(sys.argv[2], name).unlink()
"""
    used = job.folder / "used"
    used.mkdir()
    argv = [sys.executable, "-c", body, str(job.allocation.folder), str(used)]
    tasks = [subprocess.Popen(argv, cwd=ROOT) for _ in range(8)]
    assert [task.wait(120) for task in tasks] == [0] * 8
    assert job.claimed() == []


def test_unusable_nodes_are_those_out_of_reach_or_out_of_the_job(job: Job) -> None:
    job.loses(down="n2", taken="n3")
    assert slurm.unusable("7", NAMES) == ("n2", "n3")
    assert job.allocation.names == NAMES


def test_the_worker_pool_says_which_nodes_and_where_claims_lie() -> None:
    told = {"SIMGATE_JOB": "7", "SIMGATE_NODES": "n1,n2", "SIMGATE_NODE_CLAIMS": "/claims"}
    assert Allocation.from_environment(told) == Allocation("7", ("n1", "n2"), Path("/claims/7"))
    del told["SIMGATE_NODES"]
    with pytest.raises(NodesError, match="SIMGATE_NODES: not set"):
        Allocation.from_environment(told)


def test_words_are_read() -> None:
    words = "--nodes 2 --ranks 4 --launcher mpiexec --option --a --option -b -- prog -- --nodes"
    assert parse(words.split()) == Request(
        2, 4, "mpiexec", ("--a", "-b"), ("prog", "--", "--nodes")
    )
    assert parse(["--probe", "--nodes", "1", "--ranks", "2"]) == Request(1, 2, probe=True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--nodes 2 --ranks 3 -- a", "3 ranks on 2 nodes: give a multiple of 2"),
        ("--nodes 2 --ranks 1 -- a", "1 ranks on 2 nodes: give a multiple of 2"),
        ("--nodes 0 --ranks 3 -- a", "--nodes: '0'; give a whole number from 1"),
        ("--nodes 1 --ranks two -- a", "--ranks: 'two'; give a whole number from 1"),
        ("--nodes 1 -- a", "--ranks: ''; give a whole number from 1"),
        ("--nodes 1 --ranks 1 --launcher ssh -- a", "'ssh'; one of auto, srun, mpiexec, own"),
        ("--nodes 1 --ranks 1 --", "cannot read"),
        ("--nodes 1 --ranks 1 --what 1 -- a", "cannot read"),
        ("--nodes 1 --ranks 1 --option", "cannot read"),
    ],
)
def test_words_that_cannot_be_met_are_refused(words: str, said: str) -> None:
    with pytest.raises(Refused) as caught:
        parse(words.split())
    assert said in str(caught.value)


def test_srun_gets_the_nodes_by_name_and_the_options_last() -> None:
    request = Request(2, 4, "srun", ("--mpi=pmix",), ("prog", "-x"))
    assert command(request, "7", ("n1", "n3")) == [
        "srun",
        "--jobid=7",
        "--job-name=simgate-step",
        "--nodes=2",
        "--nodelist=n1,n3",
        "--ntasks=4",
        "--ntasks-per-node=2",
        "--overlap",
        "--kill-on-bad-exit=1",
        "--mpi=pmi2",
        "--export=ALL",
        "--mpi=pmix",
        "prog",
        "-x",
    ]


@pytest.mark.mpi
def test_mpiexec_is_told_to_start_its_daemons_through_slurm() -> None:
    argv = command(Request(2, 4, "mpiexec", ("-l",), ("prog",)), "7", ("n1", "n3"))
    assert argv[0] == str(Path(sys.executable).with_name("mpiexec"))
    assert argv[1:] == [
        "-n",
        "4",
        "-launcher",
        "slurm",
        "-ppn",
        "2",
        "-hosts",
        "n1,n3",
        "-l",
        "prog",
    ]


def test_a_launcher_of_the_tasks_own_gets_the_nodes_where_it_asks() -> None:
    program = ("mpirun", "--host", "{hostlist}", "lmp", "-var", "nodes={nodelist}", "{other}")
    request = Request(2, 6, "own", (), program)
    filled = ["mpirun", "--host", "n1:3,n3:3", "lmp", "-var", "nodes=n1,n3", "{other}"]
    assert command(request, "7", ("n1", "n3")) == filled


@pytest.mark.parametrize(
    ("launcher", "told"),
    [
        ("srun", {}),
        (
            "own",
            {
                "SLURM_JOB_ID": "7",
                "SLURM_JOBID": "7",
                "SLURM_JOB_NODELIST": "n1,n3",
                "SLURM_NODELIST": "n1,n3",
                "SLURM_JOB_NUM_NODES": "2",
                "SLURM_NNODES": "2",
                "SLURM_TASKS_PER_NODE": "2(x2)",
                "SLURM_OVERLAP": "1",
            },
        ),
    ],
)
def test_a_launcher_sees_nothing_of_the_step_around_it(
    launcher: str, told: Mapping[str, str]
) -> None:
    around = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_LABELIO": "1", "PMI_RANK": "0"}
    request = Request(2, 4, launcher, (), ("prog",))
    outer = {**around, "SLURM_CONF": "/slurm.conf", "OMP_NUM_THREADS": "3"}
    env = environment(outer, request, "7", ("n1", "n3"))
    assert {name: value for name, value in env.items() if name.startswith("SLURM_")} == {
        "SLURM_CONF": "/slurm.conf",
        **told,
    }
    assert "PMI_RANK" not in env
    assert env["OMP_NUM_THREADS"] == "3"
    assert env["SIMGATE_STEP"] == Owner.me().mark


def test_what_a_task_sets_of_slurms_is_kept() -> None:
    request = Request(1, 1, "srun", (), ("prog",))
    env = environment({"SLURM_CPU_BIND": "none"}, request, "7", ("n1",))
    assert env["SLURM_CPU_BIND"] == "none"
