"""A provider of Parsl's whose block is a pilot job of Slurm's.

Parsl's own asks Slurm once a minute, takes every job it does not find for completed, and asks
again for none that ended. Here a thread of ours watches the one job of this provider, and why it
ended is Slurm's own word.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from parsl.jobs.states import JobState, JobStatus
from parsl.providers import LocalProvider

from executors import ran, slurm, waits
from executors.pilot import PilotJob, script
from executors.ran import Ran

_log = logging.getLogger(__name__)
POLL = 2.0
"""Seconds between two looks at a pilot job."""
_GONE = 60.0  # seconds a cancelled job may take to leave
_FORGOTTEN = 3  # looks in a row at a job Slurm does not know, before it counts as ended
_IN_VAIN = 3  # looks in a row at a job that can never start, before that is believed
_SOON = 0.3  # seconds between two looks at a pilot that is being taken down
_LAST = 2.0  # seconds before its end at which its time counts as over
_TAIL = 2000


class PilotProvider(LocalProvider):
    """One block = one pilot job; its command is put in when Parsl has written it."""

    def __init__(self, job: PilotJob) -> None:
        super().__init__(  # type: ignore[no-untyped-call]
            nodes_per_block=1, init_blocks=1, min_blocks=0, max_blocks=1
        )
        self._job = job
        self._seen: slurm.Job | None = None
        self._id = ""
        self._asked = False  # Slurm was asked for the pilot, and may have taken it
        self._unknown = 0
        self._vain = 0
        self._over = threading.Event()
        self._watcher: threading.Thread | None = None

    @property
    def status_polling_interval(self) -> int:
        """Never polled by Parsl: our own thread looks."""
        return 0

    @property
    def job_id(self) -> str:
        """Slurm's number for the pilot, ``""`` before it is queued."""
        return self._id

    def submit(self, command: str, tasks_per_node: int, job_name: str = "block") -> str:  # noqa: ARG002
        """Queue the pilot. Raises :class:`executors.slurm.SlurmError` with Slurm's words.

        A controller that does not answer is asked again for ``slurm.PATIENCE`` seconds.
        """
        assert self.script_dir is not None  # the kernel names it before it starts anything
        folder = Path(self.script_dir).parent
        self._job = replace(self._job, command=command, folder=folder)
        self._id = self._queue(script(self._job))
        self._watcher = threading.Thread(target=self._watch, name="pilot", daemon=True)
        self._watcher.start()
        return self._id

    def status(self, job_ids: Sequence[object]) -> list[JobStatus]:
        """What Parsl wants to know of the block."""
        seen = self._seen
        state = JobState.PENDING if seen is None or seen.waits else JobState.RUNNING
        if self._ended():
            state = JobState.FAILED
        return [JobStatus(state) for _ in job_ids]

    def cancel(self, job_ids: Sequence[object]) -> list[bool]:
        """End the pilot; when this returns Slurm no longer runs it, or a minute has passed."""
        self._over.set()
        deadline = time.monotonic() + _GONE
        while self._id and not self._ended():
            try:
                slurm.cancel([self._id])
                self._wait_for_its_end(deadline)
            except slurm.SlurmError as error:  # then the pools end by themselves, without a driver
                _log.warning("pilot job %s: %s", self._id, error)
            if time.monotonic() > deadline:
                break
            time.sleep(_SOON)
        return [True for _ in job_ids]

    def ends_at(self) -> float:
        """Seconds since the epoch at which Slurm ends the pilot; 0 while that is not known."""
        seen = self._seen
        return 0.0 if seen is None or seen.waits else seen.end

    def waits(self) -> str:
        """Why the pilot does not run yet, in Slurm's word; ``""`` once it does."""
        seen = self._seen
        if seen is None:
            return "submitted"
        return (seen.reason or seen.state) if seen.waits else ""

    def began(self) -> float:
        """Seconds since the epoch at which the pilot started, 0 for not yet. Asks Slurm."""
        if self.waits():
            self._look()
        seen = self._seen
        return 0.0 if seen is None or seen.waits else seen.start

    def leaves(self) -> bool:
        """Whether its time is over; Slurm may take a minute longer to end it, which costs."""
        seen = self._seen
        return seen is not None and seen.runs and 0 < seen.end < time.time() + _LAST

    def ran(self, name: str) -> Ran | None:
        """How long the job ``name`` had its nodes, None when nobody can tell. May ask Slurm.

        To be asked once it is over. A job of another name is none that was ever submitted here.
        """
        if name != self._job.name:
            return ran.NEVER
        if not self._id:
            return None if self._asked else ran.NEVER
        seen = self._seen
        if seen is not None and seen.ending is not None:
            return ran.of(seen, time.time())
        try:
            told = ran.of_number(self._id, self._job.name)
        except slurm.SlurmError as error:
            _log.warning("pilot job %s: %s", self._id, error)
            told = None
        unknown = told is None and seen is not None and not seen.waits
        return ran.of(seen, time.time()) if unknown and seen is not None else told

    @property
    def whole_nodes(self) -> bool:
        """Whether its tasks take whole nodes."""
        return self._job.whole_nodes

    def nodes_left(self) -> int | None:
        """How many nodes of the pilot are not lost; None when Slurm does not say."""
        with contextlib.suppress(slurm.SlurmError):
            found = slurm.job(self._id)
            names = slurm.host_names(found.node_list) if found is not None else ()
            return len(names) - len(slurm.unusable(self._id, names)) if names else None
        return None

    def in_vain(self) -> str:
        """Why the pilot can never start, in Slurm's word; ``""`` while it may."""
        return self.waits() if self._vain >= _IN_VAIN else ""

    def exit_code(self) -> int | None:
        """Something once the pilot has ended; None while it waits or runs."""
        return 1 if self._ended() else None

    def how(self, came_up: bool) -> str:
        """Why it ended, in the words reports use; ``came_up``: its workers once did."""
        seen = self._seen
        ending = None if seen is None else seen.ending
        if seen is None or ending is None:
            return "it is gone from the queue"
        code = seen.exit_code.split(":")[0] or "0"
        if not came_up and ending in (slurm.Ending.FAILED, slurm.Ending.COMPLETED):
            bad = slurm.Ending.BAD_ENVIRONMENT.value
            return f"{bad}: exit code {code} before its workers came up"
        failed = ending is slurm.Ending.FAILED and code != "0"
        return f"{ending.value}, exit code {code}" if failed else ending.value

    def why_lost(self, host: str) -> str:
        """What Slurm says of a worker that was lost, with its ``host`` if that is known.

        A pilot that is just being taken down is waited for: then we know why.
        """
        deadline = time.monotonic() + _GONE
        self._look()
        while self._taken_down() and time.monotonic() < deadline and not self._over.wait(_SOON):
            self._look()
        return slurm.node_failure(self._id, host) if host and not self._ended() else ""

    def output_tail(self) -> str:
        """The end of what the pilot printed."""
        try:
            with Path(self._job.log).open("rb") as log:
                size = log.seek(0, 2)
                log.seek(max(0, size - _TAIL))
                return log.read().decode(errors="replace").strip()
        except OSError:
            return ""

    def _queue(self, text: str) -> str:
        """The new job's number."""
        deadline = time.monotonic() + slurm.PATIENCE
        self._asked = True
        unsure = False  # whether Slurm took a job without our learning of it
        while True:
            try:
                taken = slurm.named(self._job.name) if unsure else {}
                number = next(iter(taken), "") or slurm.submit(text, folder=str(self._job.folder))
                break
            except slurm.NoAnswerError as error:
                _log.warning("%s: %s", self._job.name, error)
                unsure = True
                if time.monotonic() > deadline or self._over.wait(POLL):
                    raise
            except slurm.SlurmError:
                self._asked = unsure
                raise
        if self._over.is_set():  # nobody wants it any more
            self._id = number
            slurm.cancel([number])
            raise slurm.SlurmError("cancelled while it was submitted")
        return number

    def _taken_down(self) -> bool:
        seen = self._seen
        return seen is not None and not (seen.waits or seen.runs or self._ended())

    def _ended(self) -> bool:
        seen = self._seen
        return self._unknown >= _FORGOTTEN or (seen is not None and seen.ending is not None)

    def _wait_for_its_end(self, deadline: float) -> None:
        while time.monotonic() < deadline:
            found = slurm.job(self._id)
            self._seen = found or self._seen
            self._unknown = _FORGOTTEN if found is None else 0
            if self._ended():
                return
            time.sleep(_SOON)

    def _watch(self) -> None:
        while not self._ended() and not self._over.wait(POLL):
            self._look()

    def _look(self) -> None:
        try:
            found = slurm.job(self._id)
        except slurm.SlurmError as error:
            _log.debug("pilot job %s: %s", self._id, error)  # a controller that restarts
            return
        if found is None:
            self._unknown += 1
            return
        if found.waits and waits.unusual(found.reason) and found.reason != self.waits():
            _log.warning("pilot job %s waits: %s", self._id, found.reason)
        self._seen, self._unknown = found, 0
        self._vain = self._vain + 1 if found.waits and waits.in_vain(found.reason) else 0


def end_leftovers(run_dir: Path) -> None:
    """Cancel the pilots that earlier drivers of this run left, and wait until none runs.

    What still waits in the queue would start to serve nobody. Bounded by a minute or so; a Slurm
    that does not answer is none to wait for. Pilots alone: a driver's own job has a colon in its
    name.
    """
    try:
        named = slurm.named(slurm.job_prefix(run_dir))
        left = [number for number, name in named.items() if ":" not in name]
        if not left:
            return
        _log.warning("cancelling pilot jobs of an earlier driver: %s", ", ".join(left))
        slurm.cancel(left)
        deadline = time.monotonic() + _GONE
        while time.monotonic() < deadline and not all(map(slurm.is_over, left)):
            time.sleep(_SOON)
    except slurm.SlurmError as error:
        _log.warning("pilot jobs of an earlier driver: %s", error)
