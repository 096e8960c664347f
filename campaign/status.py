"""What a run is doing or has come to, as data with documented keys.

============================  =====================================================================
key                           meaning
============================  =====================================================================
``name``, ``run_dir``         the campaign's name; the run directory
``mode``                      ``campaign``, ``surrogate_only`` or ``dry_run``
``state``                     ``running``, ``done``, ``failed``, ``stopped`` (resumable) or
                              ``queued`` (a Slurm job that goes on with it waits or starts)
``reason``                    why it ended or why it waits, "" while it runs
``rounds``, ``rounds_max``    rounds that have ended; rounds configured
``dispositions``              number of slots by disposition, every name present
``best``                      ``candidate``, ``value``, ``round``, ``slot``, ``incomplete``
                              (verifiers that never answered for it), or null
``objective``                 ``name``, and ``target`` and ``tolerance`` or ``direction``
``agent``                     of a model, program or function that is asked: ``answers``, ``calls``,
                              ``failed`` (calls without an answer), ``input_tokens`` and
                              ``output_tokens`` of the answers; null for other agents
``budgets``                   by cap: ``limit`` (null: none), ``per``, ``reserved``, ``spent``
``allocation``                node-hours of Slurm's jobs, ``allocated`` = ``tasks`` + ``idle`` +
                              ``lost``, with how many are not over (``open``); null without any
``slots``                     every slot: ``round``, ``slot``, ``disposition``, ``generation``,
                              ``candidate``, ``value``, ``incomplete``, ``reason``
``tasks``                     ``running``, ``done``, ``failed`` (tries), ``seconds``
``queued``                    jobs of the run that wait in Slurm's queue: ``job`` (Slurm's id),
                              ``what`` (``driver`` or ``pilot``), ``state`` and ``reason`` (Slurm's
                              own words), ``why`` (in ours), ``start`` (expected, "" unknown);
                              null when Slurm does not say
``started``, ``updated``      seconds since the epoch: first and last event
============================  =====================================================================
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from campaign.budget import counted_by
from campaign.config import CampaignConfig
from campaign.configfile import config_from_mapping
from campaign.events import RunCreated
from campaign.ledger import LedgerError, created, read
from campaign.lock import alive_holder
from campaign.model import ONCE
from campaign.observations import best, observations, unproven
from campaign.state import CampaignState, fold
from campaign.talks import talks
from campaign.waiting import look, standing
from executors.base import TaskStatus

CAPS = ("node_hours", "verifier_node_hours", "generations", "tokens", "judge_calls")
KILLED = "its driver ended without a word; resume goes on"


def load(run_dir: Path) -> tuple[CampaignState, CampaignConfig]:
    """The state and config of a run; ``LedgerError`` when there is none."""
    state = fold(read(run_dir))
    return state, config_of(state, run_dir)


def config_of(state: CampaignState, run_dir: Path) -> CampaignConfig:
    """The config a run was created with; ``LedgerError`` when the ledger is empty."""
    return _config(state.run, run_dir)


def config_at(run_dir: Path) -> CampaignConfig:
    """The config of the run in ``run_dir``, without reading what happened since."""
    return _config(created(run_dir), run_dir)


def _config(run: RunCreated | None, run_dir: Path) -> CampaignConfig:
    if run is None:
        raise LedgerError(f"{run_dir}: the ledger is empty; start it with simgate run --run-dir")
    return config_from_mapping(run.config, f"{run_dir}: the config of this run")


def run_state(state: CampaignState, run_dir: Path) -> tuple[str, str]:
    """``(state, reason)``: a job without an end is running if its driver lives, else stopped."""
    ended = state.job_ended is not None
    return stands(state, alive=not ended and alive_holder(run_dir) is not None)


def stands(state: CampaignState, *, alive: bool) -> tuple[str, str]:
    """The same for a driver that is known to live, or not to."""
    if state.job_ended is not None:
        return state.job_ended.outcome, state.job_ended.reason
    if alive:
        return "running", ""
    if state.dry_run:
        return "failed", f"its driver ended without a word; {ONCE}"
    return "stopped", KILLED


def status(run_dir: Path) -> dict[str, Any]:
    """Read a run from its ledger alone; it may be running."""
    state, config = load(run_dir)
    queue = look(run_dir, state, config)
    name, reason = standing(run_state(state, run_dir), state, queue)
    return {
        "name": config.name,
        "run_dir": str(run_dir),
        "mode": state.run.mode if state.run else "",
        "state": name,
        "reason": reason,
        "rounds": sum(rounds.ended for rounds in state.rounds.values()),
        "rounds_max": config.rounds,
        "dispositions": state.dispositions(),
        "best": _best(state, config),
        "objective": config.objective.model_dump(mode="json", exclude_none=True),
        "agent": _agent(state),
        "budgets": budgets(state, config),
        "allocation": _allocation(state),
        "slots": _slots(state, config),
        "tasks": _tasks(state),
        "queued": queue.as_data(),
        "started": state.started_at,
        "updated": state.changed_at,
    }


def _best(state: CampaignState, config: CampaignConfig) -> dict[str, Any] | None:
    found = best(state, config)
    if found is None:
        return None
    return {
        "candidate": found.slot.parameters,
        "value": found.value,
        "round": found.round,
        "slot": found.slot.slot,
        "incomplete": list(unproven(state, found.slot)),
    }


def budgets(state: CampaignState, config: CampaignConfig) -> dict[str, dict[str, Any]]:
    """What was spent of what, by cap."""
    shown = {}
    for name in CAPS:
        cap = config.budgets.cap(name)
        counter = state.usage.counter(counted_by(name, cap))
        per = "campaign" if cap is None else cap.per
        shown[name] = {
            "limit": None if cap is None else cap.limit,
            "per": per,
            "reserved": counter.reserved,
            "spent": counter.used(per),
        }
    return shown


def _agent(state: CampaignState) -> dict[str, int] | None:
    found = talks(state)
    return None if found is None else asdict(found)


def _allocation(state: CampaignState) -> dict[str, Any] | None:
    bill = state.allocations.bill(state.changed_at)
    if bill is None:
        return None
    return {
        "allocated": bill.allocated,
        "tasks": bill.tasks,
        "idle": bill.idle,
        "lost": bill.lost,
        "open": bill.open,
    }


def _slots(state: CampaignState, config: CampaignConfig) -> list[dict[str, Any]]:
    values = {(seen.round, seen.slot.slot): seen.value for seen in observations(state, config)}
    return [
        {
            "round": number,
            "slot": slot.slot,
            "disposition": slot.disposition,
            "generation": slot.generation,
            "candidate": slot.parameters or None,
            "value": values.get((number, slot.slot)),
            "incomplete": list(unproven(state, slot)),
            "reason": slot.reason,
        }
        for number, rounds in sorted(state.rounds.items())
        for _, slot in sorted(rounds.slots.items())
    ]


def _tasks(state: CampaignState) -> dict[str, Any]:
    ended = [end for task in state.tasks.values() for end in task.ended]
    return {
        "running": sum(task.open is not None for task in state.tasks.values()),
        "done": sum(end.status == TaskStatus.DONE for end in ended),
        "failed": sum(end.status not in (TaskStatus.DONE, TaskStatus.CANCELLED) for end in ended),
        "seconds": sum(end.seconds for end in ended),
    }
