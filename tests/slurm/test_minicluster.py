"""The private cluster does what a test relies on, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import minicluster as support
import pages
from minicluster import (
    Minicluster,
    brought_up,
    control,
    left_over,
    minicluster,
    on_node,
    short_directory,
    taken_down,
    until,
)
from pages import Block

ROOT = os.geteuid() == 0
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "minicluster.md"

slurm = pytest.mark.slurm
slow = pytest.mark.slow
as_root = pytest.mark.skipif(not ROOT, reason="only root can do this")


@pytest.fixture
def somebody() -> Iterator[str]:
    """A user without rights; only root can be somebody else."""
    name = f"mc{os.getpid()}"
    subprocess.run(["useradd", "--no-create-home", "--shell", "/bin/sh", name], check=True)
    yield name
    subprocess.run(["userdel", name], check=True)


# ---- a cluster that is up


@slurm
def test_the_status_names_every_daemon(cluster: Minicluster) -> None:
    ran = cluster.control("status")
    assert ran.returncode == 0
    for name in ("munged", "slurmctld", *cluster.nodes):
        assert re.search(rf"^{name} +runs as process {cluster.pids()[name]}$", ran.stdout, re.M)


@slurm
def test_up_leaves_alone_what_runs(cluster: Minicluster) -> None:
    before = cluster.pids()
    ran = cluster.control("up")
    assert ran.returncode == 0, ran.stderr
    assert cluster.pids() == before


@slurm
def test_options_cannot_change_while_it_is_up(cluster: Minicluster) -> None:
    ran = cluster.control("up", "--nodes", 3)
    assert ran.returncode == 1
    assert f"{cluster.dir} runs with --nodes 4; that can be changed after down" in ran.stderr


@slurm
@pytest.mark.parametrize("action", ["up", "status"])
def test_a_shell_can_evaluate_the_environment(cluster: Minicluster, action: str) -> None:
    printed = cluster.control(action, "--print-env").stdout
    assert re.fullmatch(r"(export \w+=\S+\n)+", printed)
    shell = subprocess.run(
        ["bash", "-c", f"{printed} sinfo --noheader --partition=debug --format=%D"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert shell.stdout == "4\n"


@slurm
def test_every_node_has_a_name_of_its_own(cluster: Minicluster) -> None:
    if cluster.flat:
        pytest.skip("without namespaces the nodes share the machine's name")
    names = cluster.run("srun", "-N4", "hostname").stdout.split()
    assert sorted(names) == sorted(cluster.nodes)
    found = cluster.run("srun", "-N1", "sh", "-c", "getent hosts $(hostname)").stdout
    assert found.split()[0] == "127.0.0.1"


@slurm
def test_a_node_has_the_cpus_it_claims(cluster: Minicluster) -> None:
    assert cluster.run("srun", "-N1", "-n4", "echo", "here").stdout == "here\n" * 4


@slurm
def test_the_end_of_a_job_is_recorded(cluster: Minicluster) -> None:
    job = cluster.submit("exit 3", "--job-name", "three")
    assert cluster.until_job(job, "FAILED").name == "three"
    records = cluster.dir / "log" / "jobcomp.txt"
    until(lambda: f"JobId={job} " in records.read_text(), "the record is written")
    (record,) = [line for line in records.read_text().splitlines() if f"JobId={job} " in line]
    assert "JobState=FAILED" in record
    assert "ExitCode=3:0" in record


@slurm
def test_a_second_partition_has_a_short_limit(cluster: Minicluster) -> None:
    job = cluster.submit("sleep 600", "--partition", "short")
    shown = cluster.run("scontrol", "show", "job", job).stdout
    cluster.run("scancel", job)
    assert "TimeLimit=00:01:00" in shown
    cluster.until_job(job, "CANCELLED")


@slurm
def test_a_job_can_be_interrupted(cluster: Minicluster) -> None:
    """What a shell starts in the background ignores SIGINT, and so would its children."""
    status = cluster.run("srun", "-N1", "cat", "/proc/self/status").stdout
    (ignored,) = re.findall(r"^SigIgn:\s+(\w+)$", status, re.M)
    assert int(ignored, 16) & 0b110 == 0  # SIGINT, SIGQUIT


@slurm
@as_root
def test_another_user_may_use_it(cluster: Minicluster, somebody: str) -> None:
    theirs = replace(cluster, prefix=("runuser", "-u", somebody, "--"))
    assert theirs.run("srun", "-N2", "id", "-un").stdout == f"{somebody}\n" * 2
    job = theirs.submit("true")
    theirs.until_job(job, "COMPLETED")
    refused = theirs.run("bash", support.SCRIPT, "down", "--dir", cluster.dir, check=False)
    assert refused.returncode == 1


# ---- coming up, going down


@slurm
@slow
def test_two_clusters_do_not_see_each_other(cluster: Minicluster) -> None:
    with minicluster("--nodes", 1) as other:
        mine = cluster.submit("sleep 600", "--job-name", "mine")
        theirs = other.submit("sleep 600", "--job-name", "theirs")
        assert cluster.until_job(mine, "RUNNING").name == "mine"
        assert other.until_job(theirs, "RUNNING").name == "theirs"
        assert {job.name for job in other.jobs().values()} == {"theirs"}
        assert not set(cluster.nodes) & set(other.nodes)
        taken_down(other)
        assert cluster.jobs()[mine].state == "RUNNING"
        cluster.run("scancel", mine)
        cluster.until_job(mine, "CANCELLED")


@slurm
@slow
def test_down_ends_every_process_and_keeps_the_records() -> None:
    with minicluster("--nodes", 2, "--cpus", 2) as cluster:
        job = cluster.submit("trap '' TERM; setsid sleep 600 & srun sleep 600", "-N2")
        cluster.until_job(job, "RUNNING")
        taken_down(cluster)
        again = cluster.control("down")
        assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
        status = cluster.control("status")
        assert (status.returncode, status.stdout) == (3, "")

        brought_up(cluster.dir)
        assert len(cluster.nodes) == 2
        assert cluster.jobs()[job].state == "CANCELLED"
        assert int(cluster.submit("true")) == int(job) + 1


@slurm
@slow
def test_up_replaces_the_daemons_that_died() -> None:
    with minicluster("--nodes", 2) as cluster:
        before = cluster.pids()
        dead = {"munged", "slurmctld", cluster.nodes[0]}
        cluster.kill(*dead)
        status = cluster.control("status")
        assert status.returncode == 1
        assert "slurmctld    is not running" in status.stdout
        brought_up(cluster.dir)
        now = cluster.pids()
        assert {name for name in now if now[name] != before[name]} == dead
        cluster.run("srun", "-N2", "true")


@slurm
@slow
@as_root
def test_a_node_crashes_with_all_that_runs_on_it_and_reboots() -> None:
    with minicluster("--nodes", 2, "--pid-namespace") as cluster:
        first, second = cluster.nodes
        away = cluster.submit("sleep 600", "-w", second, "--no-requeue")
        again = cluster.submit("sleep 600", "-w", second)
        stays = cluster.submit("sleep 600", "-w", first)
        for job in (away, again, stays):
            cluster.until_job(job, "RUNNING")
        until(lambda: len(on_node(second)) == 4, "both jobs sleep on the second node")
        until(lambda: len(on_node(first)) == 2, "a job sleeps on the first node")
        cluster.kill(second)
        until(lambda: not on_node(second), "what ran on it is gone")
        assert len(on_node(first)) == 2  # a shell and its sleep
        assert cluster.control("status").returncode == 1

        brought_up(cluster.dir)
        jobs = cluster.jobs()
        assert jobs[away].state == "NODE_FAIL"
        assert jobs[again].state in {"PENDING", "RUNNING"}
        assert jobs[stays].state == "RUNNING"
        assert cluster.run("srun", "-w", second, "hostname").stdout == f"{second}\n"


@slurm
@slow
def test_a_pid_file_is_not_believed_when_the_process_is_not_ours() -> None:
    with minicluster("--nodes", 1) as cluster:
        taken_down(cluster)
        for daemon in ("slurmctld", cluster.nodes[0]):
            (cluster.dir / "run" / f"{daemon}.pid").write_text(f"{os.getpid()}\n")
        (cluster.dir / "run" / "munged.pid").write_text("not a number\n")
        assert cluster.control("status").returncode == 3
        taken_down(cluster)  # and this process is still there
        brought_up(cluster.dir)
        assert os.getpid() not in cluster.pids().values()
        cluster.run("srun", "true")


@slurm
@slow
def test_down_finds_what_runs_when_the_directory_was_deleted_too_early() -> None:
    with short_directory() as directory:
        cluster = brought_up(directory / "c", "--nodes", 1)
        name = cluster.name
        cluster.until_job(cluster.submit("sleep 600"), "RUNNING")
        shutil.rmtree(cluster.dir)
        assert left_over(cluster.dir, name)
        ran = cluster.control("down")
        assert ran.returncode == 0, ran.stderr
        assert left_over(cluster.dir, name) == []
        assert not cluster.dir.exists()


@slurm
@slow
def test_without_root_it_works_with_one_host_name(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    with short_directory() as directory:
        prefix: tuple[str, ...] = ()
        if ROOT:
            user = request.getfixturevalue("somebody")
            prefix = ("runuser", "-u", user, "--")
            shutil.chown(directory, user)
        # The checkout may be where others cannot read.
        script = shutil.copytree(support.SCRIPT.parent, directory / "slurm") / "minicluster.sh"
        monkeypatch.setattr(support, "SCRIPT", script)
        cluster = Minicluster(directory / "c", support.outside(), prefix)
        here = ("--dir", cluster.dir)
        up = cluster.run("bash", script, "up", *here, "--nodes", 2)
        assert "only root can make namespaces" in up.stderr
        cluster = replace(
            cluster, env={**cluster.env, "SLURM_CONF": f"{cluster.dir}/etc/slurm.conf"}
        )
        names = cluster.run("srun", "-N2", "hostname").stdout.split()
        assert len(names) == 2
        assert len(set(names)) == 1
        job = cluster.submit("setsid sleep 600 & exit 3")
        cluster.until_job(job, "FAILED")
        refused = cluster.run(
            "bash", script, "up", "--dir", directory / "n", "--pid-namespace", check=False
        )
        assert "--pid-namespace: only root can make namespaces" in refused.stderr
        name = cluster.name
        cluster.run("bash", script, "down", *here)
        assert left_over(cluster.dir, name) == []


@slurm
@slow
@pytest.mark.usefixtures("accounting")
def test_sacct_works_with_accounting() -> None:
    with minicluster("--nodes", 1, "--accounting") as cluster:
        job = cluster.submit("exit 3")
        asked = ("sacct", "-n", "-X", "-P", "-j", job, "-o", "State,ExitCode")
        # slurmctld hands its news over every few seconds.
        until(
            lambda: cluster.run(*asked).stdout == "FAILED|3:0\n", "sacct knows the end of the job"
        )


# ---- the page


@slurm
@slow
@pages.whole(pages.blocks("docs/how-to/minicluster.md"))
def test_the_page_works_by_copy_and_paste(blocks: tuple[Block, ...]) -> None:
    _install, *shown = [one for one in blocks if ROOT or one.head != "Lose a node"]
    commands = [one.text for one in shown if not one.language]
    (sinfo,) = [one.text for one in shown if one.language]
    with short_directory() as directory:
        (directory / "slurm").symlink_to(support.SCRIPT.parent)
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "".join(commands)],
            cwd=directory,
            env=support.outside() | {"TMPDIR": str(directory)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        (cluster,) = directory.glob("minicluster-*")
        down = control("down", "--dir", cluster)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert down.returncode == 0, down.stderr
    for line in sinfo.splitlines():  # the names are those of one cluster
        assert re.search(re.escape(line.rpartition(" ")[0]) + r" \S+$", ran.stdout, re.M), line
    nodes = re.findall(r"^works on node (\d)$", ran.stdout, re.M)
    assert sorted(nodes) == ["0", "1", "2", "3"]
    assert re.search(r"^warned\n(.*\n)*saved$", ran.stdout, re.M)
    assert re.search(r"^JobId=\d+ .*Name=warned.sh JobState=COMPLETED ", ran.stdout, re.M)
    if ROOT:
        assert re.search(r" NF +\d", ran.stdout)


# ---- what is refused


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        ([], 2, "say up, status or down"),
        (["start"], 2, "say up, status or down, not start"),
        (["up", "--node", "3"], 2, "unknown option --node"),
        (["up", "--nodes"], 2, "--nodes needs a value"),
        (["up", "--nodes", "0"], 2, "--nodes 0: not a number from 1 to 999"),
        (["up", "--nodes=101"], 2, "--nodes 101: at most 100"),
        (["up", "--cpus", "two"], 2, "--cpus two: not a number from 1 to 999"),
        (["down", "--nodes", "3"], 2, "only up takes the options of a cluster"),
        (["down", "--print-env"], 2, "--print-env: not an option of down"),
        (["up", "--dir", "/tmp/a b"], 1, "--dir /tmp/a b: Slurm's files cannot hold this path"),
        (["up", "--dir", "/dev/null"], 1, "--dir /dev/null: not a directory"),
    ],
)
def test_a_wrong_call_is_refused(words: list[str], code: int, reason: str) -> None:
    ran = control(*words)
    assert ran.returncode == code
    assert reason in ran.stderr
    assert ran.stdout == ""


def test_a_directory_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    for action in ("up", "status", "down"):
        ran = control(action, "--dir", tmp_path)
        assert ran.returncode == 1
        assert "holds something else; name a directory that is new or empty" in ran.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_what_never_was_is_down(tmp_path: Path) -> None:
    never = tmp_path / "never"
    assert control("down", "--dir", never).returncode == 0
    assert control("status", "--dir", never).returncode == 3
    assert not never.exists()


@slurm
def test_a_path_too_long_for_sockets_is_refused(tmp_path: Path) -> None:
    ran = control("up", "--dir", tmp_path / ("d" * 100))
    assert ran.returncode == 1
    assert re.search(r"too long by \d+ characters for the Unix sockets in it", ran.stderr)


def test_missing_programs_are_named_with_what_installs_them(tmp_path: Path) -> None:
    """The page has the same command."""
    lacking = 'case ${2:-} in munged | slurm*) return 1;; *) builtin command "$@";; esac'
    environment = {"BASH_FUNC_command%%": f"() {{ {lacking}; }}"}
    ran = control("up", "--dir", tmp_path / "c", **environment)
    assert ran.returncode == 1
    said, command = ran.stderr.splitlines()
    assert "missing: munged slurmctld slurmd" in said
    assert command in PAGE.read_text(encoding="utf-8").splitlines()
