"""A long run's ledger, written and not run: agents that err, verifiers that reject, nodes lost.

Everything follows from a candidate's number, so that a count can be known without the ledger.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from campaign import events
from campaign.allocationevents import AllocationBegan, AllocationEnded, AllocationReserved
from campaign.config import CampaignConfig
from campaign.configfile import config_from_mapping
from campaign.drive import creation
from campaign.events import Entry, Event, FindingRecord, VerdictRecord
from campaign.ledger import NAME
from campaign.space import Point, content_hash
from square import square

BATCH, NODES = 50, 32
START = 1_790_000_000.0
_CHECKS = ("unknown", "missing", "type", "finite", "bounds", "distinct")
_RULE = {"id": "level", "type": "expression", "params": {"condition": "x + y <= 1.6"}}


def settings(candidates: int, **changes: Any) -> CampaignConfig:
    """A campaign of two parameters with one rule, two verifiers and caps."""
    task = {"kind": "python", "walltime": "10m"}
    plain: dict[str, Any] = {
        "version": 1,
        "name": "long",
        "parameters": square(),
        "objective": {"name": "loss", "direction": "minimize"},
        "rounds": -(-candidates // BATCH),
        "batch_size": BATCH,
        "agent": {"kind": "replay", "file": "answers.yaml"},
        "expect": {"expectations": [_RULE]},
        "verifiers": [
            task | {"name": "coarse", "function": "model:coarse", "retries": 1},
            task | {"name": "energy", "function": "model:energy"},
        ],
        "simulation": task | {"function": "model:run", "retries": 1},
        "executors": {"default": {"kind": "threads", "workers": 2}},
        "budgets": {"node_hours": candidates / 20, "generations": candidates},
    }
    return config_from_mapping(plain | changes)


def write(directory: Path, candidates: int) -> CampaignConfig:
    """The ledger of a run that judged so many candidates, as its driver would have left it."""
    config = settings(candidates)
    rules = [events.RuleRecord(_RULE, "campaign.yaml")]
    encoder = msgspec.json.Encoder()
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / NAME).open("wb") as file:
        first = [(0.0, creation(config, directory, rules))]
        history = itertools.chain(first, _history(candidates))
        for number, (at, event) in enumerate(history, start=1):
            file.write(encoder.encode(Entry(number, START + at, event)) + b"\n")
    return config


def _history(candidates: int) -> Iterator[tuple[float, Event]]:
    yield 1.0, events.JobStarted(job=1, host="login", pid=1, python="3.11", numpy="2.0")
    allocated = (1 - (-candidates // BATCH)) * 60.0  # seconds
    walltime = allocated + 3600
    reserved = NODES * walltime / 3600
    yield (
        2.0,
        AllocationReserved(
            allocation=1, what="pilot", name="p", nodes=NODES, walltime=walltime, reserved=reserved
        ),
    )
    yield 3.0, AllocationBegan(allocation=1, since=START + 3)
    for number in range(-(-candidates // BATCH)):
        told = _round(number + 1, min(BATCH, candidates - number * BATCH))
        yield from sorted(told, key=lambda item: item[0])
    spent = NODES * allocated / 3600
    ended = AllocationEnded(allocation=1, seconds=allocated, spent=spent, source="slurm", job="7")
    yield allocated + 10, ended
    yield allocated + 11, events.JobEnded(job=1, outcome="done", reason="all rounds are done")


def _round(number: int, batch: int) -> Iterator[tuple[float, Event]]:
    at = number * 60.0
    points = [_point((number - 1) * BATCH + slot) for slot in range(batch)]
    yield at, events.RoundStarted(round=number)
    yield at, events.Asked(round=number, generation=1, slots=list(range(batch)))
    yield at + 1, events.Answered(round=number, generation=1, candidates=list(points), tokens=900)
    verdicts = [_verdict(slot, point) for slot, point in enumerate(points)]
    yield at + 1, events.Judged(round=number, generation=1, verdicts=verdicts)
    for slot, point in enumerate(points):
        yield from _candidate(at + 2, number, slot, point)
    yield at + 59, events.RoundEnded(round=number)


def _point(place: int) -> dict[str, float]:
    """Spread over the square, every value its own."""
    return {"x": place * 0.7548776662 % 1.0, "y": place * 0.5698402910 % 1.0}


def _verdict(slot: int, point: Point) -> VerdictRecord:
    findings = [FindingRecord(name, "schema", "pass") for name in _CHECKS]
    level = float(point["x"]) + float(point["y"])
    passed = level <= 1.6
    outcome = {
        "id": "level",
        "type": "expression",
        "severity": "error",
        "passed": passed,
        "detail": "" if passed else f"x + y is {level:.4g}; at most 1.6",
        "skipped": False,
    }
    failed = [] if passed else ["level"]
    expect = {"overall_pass": passed, "failed": failed, "skipped": [], "outcomes": [outcome]}
    return VerdictRecord(slot, findings, expect)


def _candidate(at: float, number: int, slot: int, point: Point) -> Iterator[tuple[float, Event]]:
    x, y = float(point["x"]), float(point["y"])
    end: dict[str, Any] = {"round": number, "slot": slot, "generation": 1}
    if x + y > 1.6:
        reason = f"slot {slot}: level: x + y is {x + y:.4g}; at most 1.6"
        yield at, events.SlotEnded(disposition="tombstone", reason=reason, **end)
        return
    content = content_hash(point)
    place = (number, slot, content)
    if x > 0.8:
        value = {"verdict": "reject", "reason": f"x: {x:.4g}; at most 0.8 is stable"}
        yield from _try(at, "coarse", place, 1, 4.0 + y, value)
        yield at + 6, events.SlotEnded(disposition="tombstone", reason="unstable", **end)
        return
    yield from _try(at, "coarse", place, 1, 4.0 + y, {"verdict": "pass"})
    yield from _try(at + 6, "energy", place, 1, 6.0 + x, {"verdict": "pass"})
    yield (
        at + 13,
        events.SlotEnded(disposition="accepted", candidate=content, parameters=dict(point), **end),
    )
    loss = (x - 0.3) ** 2 + (y - 0.6) ** 2 + 0.01 * math.sin(40 * x)
    if slot == 17:
        yield from _try(at + 14, "simulation", place, 1, 9.0, None)
    yield from _try(at + 24, "simulation", place, 1 + (slot == 17), 20.0 + 9 * x, {"loss": loss})


def _try(
    at: float, task: str, place: tuple[int, int, str], attempt: int, seconds: float, value: object
) -> Iterator[tuple[float, Event]]:
    """A try on one node; without a value it was lost."""
    number, slot, content = place
    same: dict[str, Any] = {"task": task, "candidate": content, "attempt": attempt}
    yield (
        at,
        events.TaskStarted(round=number, slot=slot, nodes=1, reserved=0.17, share=0.5, **same),
    )
    yield (
        at + seconds,
        events.TaskEnded(
            status="lost" if value is None else "done",
            reason="its node went away" if value is None else "",
            spent=seconds / 3600,
            seconds=seconds,
            value=value,
            host=f"node{(number + slot) % NODES:02}",
            **same,
        ),
    )
