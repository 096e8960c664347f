"""One writer per run directory, told apart from the dead by what the lock file says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from campaign.events import RoundStarted, RunCreated
from campaign.ledger import Ledger, LedgerError, read
from campaign.lock import LEASE, NAME, LockHeldError, WriterLock, alive_holder

CREATED = RunCreated(version=1, simgate="0.1.0", name="n", mode="campaign", folder="/f", config={})

HOLD = """
import sys
from pathlib import Path
from campaign.lock import WriterLock
WriterLock(Path(sys.argv[1])).acquire()
print("held", flush=True)
sys.stdin.read()
"""

RACE = """
import sys
from pathlib import Path
from campaign.lock import LockHeldError, WriterLock
for line in sys.stdin:
    lock = WriterLock(Path(line.strip()))
    try:
        lock.acquire()
        print("won", flush=True)
    except LockHeldError:
        print("lost", flush=True)
    sys.stdin.readline()
    print("held" if lock.held() else "not", flush=True)
    lock.release()
"""


def holder_of(directory: Path) -> subprocess.Popen[str]:
    process = start(HOLD, str(directory))
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def start(program: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def dead_lock(directory: Path, **changes: object) -> bytes:
    """What a holder on this host left that is no more."""
    with WriterLock(directory):
        holder = json.loads((directory / NAME).read_bytes())
    content = json.dumps(holder | {"started": "1"} | changes).encode()
    (directory / NAME).write_bytes(content)
    return content


def test_a_second_writer_is_refused_naming_host_and_process(tmp_path: Path) -> None:
    process = holder_of(tmp_path)
    try:
        with pytest.raises(LockHeldError) as refused:
            WriterLock(tmp_path).acquire()
        assert f"process {process.pid} on host '{os.uname().nodename}'" in str(refused.value)
        with pytest.raises(LockHeldError), Ledger(tmp_path):
            pass
        assert not (tmp_path / "ledger.jsonl").exists()
        assert alive_holder(tmp_path) == refused.value.holder
    finally:
        end(process)


def test_the_lock_of_a_holder_that_was_killed_is_taken_over(tmp_path: Path) -> None:
    process = holder_of(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert alive_holder(tmp_path) is None
    with WriterLock(tmp_path) as lock:
        assert lock.held()
    assert list(tmp_path.iterdir()) == []


def test_a_zombie_holds_nothing(tmp_path: Path) -> None:
    process = holder_of(tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, and not yet reaped
    try:
        assert alive_holder(tmp_path) is None
    finally:
        process.communicate()


def test_of_processes_racing_for_a_dead_holders_lock_exactly_one_wins(tmp_path: Path) -> None:
    racers = [start(RACE) for _ in range(3)]
    try:
        for number in range(60):
            directory = tmp_path / str(number)
            directory.mkdir()
            dead_lock(directory)
            for racer in racers:
                tell(racer, str(directory))
            first = [hear(racer) for racer in racers]
            assert first.count("won") == 1, first
            for racer in racers:
                tell(racer, "still?")
            later = [hear(racer) for racer in racers]
            assert [one == "won" for one in first] == [one == "held" for one in later]
    finally:
        for racer in racers:
            end(racer)


def tell(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdin is not None
    process.stdin.write(word + "\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_process_that_died_while_taking_over_is_taken_over_too(tmp_path: Path) -> None:
    import hashlib

    dead = dead_lock(tmp_path)
    turn = f"{NAME}.after.{hashlib.sha256(dead).hexdigest()[:16]}"
    (tmp_path / turn).write_bytes(dead.replace(b'"1"', b'"2"'))
    with WriterLock(tmp_path) as lock:
        assert lock.held()
    assert list(tmp_path.iterdir()) == []


def test_a_recycled_pid_is_not_the_holder(tmp_path: Path) -> None:
    dead_lock(tmp_path)  # our own pid, another start
    assert alive_holder(tmp_path) is None
    with WriterLock(tmp_path) as lock:
        assert lock.held()


def test_a_lock_of_before_the_boot_is_dead(tmp_path: Path) -> None:
    with WriterLock(tmp_path):
        holder = json.loads((tmp_path / NAME).read_bytes())
    (tmp_path / NAME).write_text(json.dumps(holder | {"boot": "another"}))
    assert alive_holder(tmp_path) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"host": 1}'])
def test_a_lock_file_that_says_nothing_is_taken_over(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    with WriterLock(tmp_path) as lock:
        assert lock.held()


def test_a_foreign_hosts_fresh_heartbeat_is_respected(tmp_path: Path) -> None:
    dead_lock(tmp_path, host="elsewhere")
    with pytest.raises(LockHeldError, match="on host 'elsewhere'"):
        WriterLock(tmp_path).acquire()
    assert sorted(path.name for path in tmp_path.iterdir()) == [NAME]


def test_a_foreign_hosts_stale_heartbeat_is_taken_over(tmp_path: Path) -> None:
    dead_lock(tmp_path, host="elsewhere")
    past = time.time() - LEASE - 1
    os.utime(tmp_path / NAME, (past, past))
    assert alive_holder(tmp_path) is None
    with WriterLock(tmp_path) as lock:
        assert lock.held()


def test_a_lock_can_be_taken_again_after_its_release(tmp_path: Path) -> None:
    lock = WriterLock(tmp_path)
    for _ in range(2):
        with lock:
            assert lock.held()
        assert not lock.held()
        assert alive_holder(tmp_path) is None


def test_what_a_driver_with_the_same_pid_left_is_never_written_into(tmp_path: Path) -> None:
    held = dead_lock(tmp_path, host="elsewhere")
    left = tmp_path / f"{NAME}.{os.uname().nodename}.{os.getpid()}"
    os.link(tmp_path / NAME, left)
    with pytest.raises(LockHeldError, match="elsewhere"):
        WriterLock(tmp_path).acquire()
    assert (tmp_path / NAME).read_bytes() == held


def test_nothing_can_be_appended_once_another_driver_took_the_run_over(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ours:
        ours.append(CREATED)
        (tmp_path / NAME).unlink()  # as one does whose clock says that our lease is over
        with Ledger(tmp_path) as theirs:
            theirs.append(RoundStarted(round=1))
            for _ in range(2):
                with pytest.raises(LedgerError, match="another driver took this run over"):
                    ours.append(RoundStarted(round=2))
    assert [entry.event for entry in read(tmp_path)] == [CREATED, RoundStarted(round=1)]


def test_leaving_a_run_that_was_taken_over_does_not_unlock_it(tmp_path: Path) -> None:
    ours = WriterLock(tmp_path)
    ours.acquire()
    (tmp_path / NAME).unlink()
    with WriterLock(tmp_path) as theirs:
        ours.release()
        assert theirs.held()


def test_the_lock_needs_no_flock() -> None:
    program = "import sys, campaign.lock, campaign.ledger; print('fcntl' in sys.modules)"
    code = "import sys; sys.modules['fcntl'] = None; " + program
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "True"  # the import that fails, and nobody tried it
    source = [Path(module).read_text() for module in _sources()]
    assert not [text for text in source if "flock" in text.replace("``flock``", "")]


def _sources() -> list[str]:
    import campaign.ledger
    import campaign.lock

    return [campaign.lock.__file__, campaign.ledger.__file__]
