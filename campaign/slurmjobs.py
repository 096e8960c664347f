"""What a ledger knows of a run's jobs at Slurm; a part of the state, changed by its fold alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from campaign.events import JobStarted, Submitted, Submitting, Withdrawn


@dataclass(slots=True)
class SlurmJobs:
    """The jobs of the driver, by Slurm's id, and how far each got.

    ``idle`` counts the jobs in a row, the present one included, that have ended no task and no
    round; a person's submit starts the count anew.
    """

    open: Submitting | None = None  # nobody wrote down what Slurm said
    all: dict[str, Submitting] = field(default_factory=dict)
    ahead: list[str] = field(default_factory=list)  # submitted, not begun as far as is known
    refused: str = ""  # Slurm's words, when it did not take the last one
    withdrawn: str = ""  # why the last one was taken back, if nothing has happened since
    idle: int = 0

    def started(self, event: JobStarted) -> None:
        self.idle += 1
        self.withdrawn = ""
        if event.slurm in self.ahead:
            self.ahead.remove(event.slurm)

    def submitting(self, event: Submitting) -> None:
        self.open, self.refused, self.withdrawn = event, "", ""
        if event.link == 1:
            self.idle = 0

    def submitted(self, event: Submitted) -> None:
        asked, self.open, self.refused = self.open, None, event.refused
        if event.job and asked is not None:
            self.all[event.job] = asked
            self.ahead.append(event.job)

    def taken_back(self, event: Withdrawn) -> None:
        self.withdrawn = event.reason
        self.ahead = [job for job in self.ahead if job not in event.jobs]

    def ended(self) -> None:
        self.withdrawn = ""

    def progressed(self) -> None:
        self.idle = 0
