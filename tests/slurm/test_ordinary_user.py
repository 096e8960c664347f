"""A user without rights submits the quickstart to a private Slurm of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import minicluster as support
from minicluster import Minicluster, until

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
PILOTS = (
    "executors.default={kind: slurm, nodes: 2, address: 127.0.0.1, "
    "pilot: {walltime: 10m, memory: 100M}}"
)


@pytest.fixture
def theirs() -> Iterator[Minicluster]:
    """A cluster of three nodes, brought up and used by somebody who is not root."""
    # Not in the tests' own folder, which only its user can enter.
    directory = Path(tempfile.mkdtemp(prefix="so", dir="/tmp"))
    prefix: tuple[str, ...] = ()
    user = f"so{os.getpid()}"
    if os.geteuid() == 0:
        subprocess.run(["useradd", "--no-create-home", "--shell", "/bin/sh", user], check=True)
        shutil.chown(directory, user)
        # The checkout and its environment may lie where only root looks: that much they may, too.
        caps = ("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search")
        prefix = ("setpriv", "--reuid", user, "--regid", user, "--clear-groups", *caps, "--")
    env = support.outside() | {"HOME": str(directory), "TMPDIR": str(directory)}
    env["SLURM_CONF"] = str(directory / "c" / "etc" / "slurm.conf")
    cluster = Minicluster(directory / "c", env, prefix)
    script = str(support.SCRIPT)
    try:
        cluster.run("bash", script, "up", "--dir", cluster.dir, "--nodes", 3)
        yield cluster
    finally:
        cluster.run("bash", script, "down", "--dir", cluster.dir, check=False)
        if prefix:
            subprocess.run(["pkill", "-KILL", "-u", user], check=False)
            subprocess.run(["userdel", user], check=True)
        shutil.rmtree(directory)


def simgate(cluster: Minicluster, *words: object) -> str:
    program = "from campaign.cli import main; main()"
    return cluster.run(sys.executable, "-c", program, *words, timeout=120).stdout


def test_pilots_and_a_submitted_driver_need_no_rights(theirs: Minicluster) -> None:
    run_dir = theirs.dir.parent / "run"
    changes = ("--set", PILOTS, "--set", "job={walltime: 10m}", "--set", "rounds=2")
    said = simgate(
        theirs, "submit", ROOT / "configs" / "quickstart", "--run-dir", run_dir, *changes
    )
    assert str(run_dir) in said
    until(lambda: not theirs.run("squeue", "-h").stdout.strip(), "the queue is empty", 300)
    found = json.loads(simgate(theirs, "status", run_dir, "--json"))
    assert found["state"] == "done", found["reason"]
    assert sum(found["dispositions"].values()) == 8
    assert found["best"]["value"] < 60
    assert theirs.run("id", "-u").stdout.strip() != "0"
