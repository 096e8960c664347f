"""Parsl's LocalProvider without its shell.

The original builds a bash line around the run directory's path unquoted, finds the block again
through ``ps`` and ``grep``, and notices its end only at a five-second poll. Here a block is a child
process: started from an argv list, in the run directory, and asked directly whether it lives.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from parsl.jobs.states import JobState, JobStatus
from parsl.providers import LocalProvider

from executors import lost, nodes, processes, slurm
from executors.holders import Allocation, NodesError

_END = 5.0  # seconds a cancelled block may take to kill what is below it
_CLEAR = 10.0  # seconds that steps of tasks may take to end after it
_log = logging.getLogger(__name__)


def end_group(leader: subprocess.Popen[bytes], seconds: float) -> None:
    """Give a process that was told to end its time, then kill what is left of its group.

    The leader is a lifeline and kills all that is below it, unless it was killed itself.
    """
    with contextlib.suppress(subprocess.TimeoutExpired):
        leader.wait(seconds)
    processes.kill_group(leader.pid)
    leader.wait()


class ChildProvider(LocalProvider):
    """One block = one child process of the driver, in the folder above ``script_dir``."""

    def __init__(
        self, prefix: Sequence[str] = (), job: str = "", allocation: Allocation | None = None
    ) -> None:
        """``prefix`` are words before a block's command.

        ``job`` is the Slurm job on whose nodes the block runs, ``""`` when it is just here.
        ``allocation`` are the whole nodes that its tasks share out among them.
        """
        super().__init__(  # type: ignore[no-untyped-call]
            nodes_per_block=1, init_blocks=1, min_blocks=0, max_blocks=1
        )
        self._prefix, self._job, self._allocation = tuple(prefix), job, allocation
        self._blocks: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def status_polling_interval(self) -> int:
        """Never polled by Parsl: its poller waits without limit for an interchange that died."""
        return 0

    def submit(self, command: str, tasks_per_node: int, job_name: str = "block") -> str:  # noqa: ARG002
        """Start ``command``; its output goes to ``JOB_NAME.out``. Answers the process id."""
        scripts = self._scripts()
        with (scripts / f"{job_name}.out").open("ab") as output:
            block = subprocess.Popen(
                [*self._prefix, *shlex.split(command)],
                cwd=scripts.parent,
                env=os.environ | (self._allocation.environment if self._allocation else {}),
                start_new_session=bool(self._prefix),  # else the command sees to that itself
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._blocks[str(block.pid)] = block
        return str(block.pid)

    def status(self, job_ids: Sequence[object]) -> list[JobStatus]:
        """The state of each block, with the exit code of those that ended."""
        return [self._status(str(job)) for job in job_ids]

    def cancel(self, job_ids: Sequence[object]) -> list[bool]:
        """End blocks; when this returns they are gone, with all they started on other nodes."""
        ending = [self._blocks[str(job)] for job in job_ids]
        for block in ending:
            block.terminate()
        for block in ending:
            end_group(block, _END)
        if self._allocation is not None:
            try:
                nodes.give_back(self._allocation, _CLEAR)
            except NodesError as error:  # then the end of the job ends them
                _log.warning("%s", error)
        return [True for _ in ending]

    @property
    def whole_nodes(self) -> bool:
        """Whether its tasks take whole nodes."""
        return self._allocation is not None

    def nodes_left(self) -> int | None:
        """How many of these nodes are not lost; None when Slurm does not say."""
        with contextlib.suppress(slurm.SlurmError):
            return 0 if self._allocation is None else len(lost.look(self._allocation))
        return None

    def exit_code(self) -> int | None:
        """Exit code of a block that ended; None while all live."""
        codes = [block.poll() for block in self._blocks.values()]
        return next((code for code in codes if code is not None), None)

    def why_lost(self, host: str) -> str:
        """What Slurm says of a host that fell silent, ``""`` for nothing."""
        return slurm.node_failure(self._job, host) if self._job and host else ""

    def how(self, came_up: bool) -> str:  # noqa: ARG002 - as asked of every provider
        """How the block that ended did."""
        code = self.exit_code() or 0
        signalled = code < 0 or code > 128
        return f"signal {code - 128 if code > 0 else -code}" if signalled else f"exit code {code}"

    def waits(self) -> str:
        """Why the block does not run yet: a child process always does."""
        return ""

    def in_vain(self) -> str:
        """Why the block can never run, ``""`` while it may."""
        return ""

    def ends_at(self) -> float:
        """When the block is ended by somebody else; 0 for never."""
        return 0.0

    def output_tail(self) -> str:
        """The end of what the blocks printed: why they ended, when they did."""
        logs = sorted(self._scripts().glob("*.out"))
        return "\n".join(log.read_text(errors="replace")[-2000:] for log in logs).strip()

    def _scripts(self) -> Path:
        """A folder of the run directory; the kernel names it before it starts anything."""
        if self.script_dir is None:
            raise RuntimeError("the provider is not part of a kernel yet")
        return Path(self.script_dir)

    def _status(self, job: str) -> JobStatus:
        code = self._blocks[job].poll()
        if code is None:
            return JobStatus(JobState.RUNNING)
        return JobStatus(JobState.COMPLETED if code == 0 else JobState.FAILED, exit_code=code)
