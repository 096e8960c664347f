"""What a run has come to, as figures with documented keys; the page and the tables show these.

Node-hours are nodes times hours; times are seconds since the epoch. Null: not known, or none.

====================  =============================================================================
key                   meaning
====================  =============================================================================
``name``              the campaign's name; ``run_dir``: the run directory; ``mode``
``state``             ``running``, ``done``, ``failed`` or ``stopped``; ``reason``: why it ended
``objective``         ``name``, and ``target`` and ``tolerance`` or ``direction``
``best``              the best observation: ``candidate``, ``content`` (its hash), ``value``,
                      ``round``, ``slot``, ``disposition``, ``incomplete``; or null
``surrogate``         ``optimum`` and ``at_best``, what it believes at its own optimum and at the
                      best observation: ``candidate``, ``mean``, ``low``, ``high`` (95 %); learned
                      from ``used`` of ``trials``; ``unsure``: why the beliefs are null
``convergence``       every time the best was bettered: ``node_hours``, ``time``, ``value``,
                      ``round``, ``slot``, ``content``
``candidates``        ``judged``: proposed by the ``agent`` or drawn by the ``surrogate``;
                      ``answers`` without candidates
``dispositions``      number of slots by disposition
``funnel``            by ``stage``: ``layer``, ``entered``, ``rejected``, ``not_checked`` (could
                      not tell, kept out by policy), and of those stopped here ``repaired`` and
                      ``filled`` (by the surrogate) slots
``checks``            by ``check`` and ``layer``: what it stopped first, as in ``funnel``;
                      ``credited`` contents,
                      ``would_have_cost`` = what getting past it costs (``each``, the mean over
                      ``n`` candidates, 0: the worst case) summed, less what was spent all the same;
                      its own ``cost``; ``saved``, the difference
``saved``             node-hours the gate saved: ``would_have_cost`` less ``cost`` is ``saved``
``budgets``           by cap: ``limit``, ``per``, ``reserved``, ``spent``
``allocation``        node-hours ``allocated`` = ``tasks`` + ``idle`` + ``lost``, or null
``hosts``             by ``host``: ``tries``, ``busy`` and ``lost`` node-hours
``tasks``             by ``task``: ``candidates``, ``tries``, ``done``, ``failed`` by status,
                      ``rejected``, ``node_hours``, seconds ``mean``, ``median``, ``longest``
``slowest``           tries: ``task``, ``content``, ``round``, ``slot``, ``attempt``, ``status``,
                      ``seconds``, ``node_hours``, ``host``, ``reason``, ``failed`` (tries),
                      ``directory``, ``log`` and ``tail``; ``failing``: the same, most failing first
``started``           first event; ``updated``: last event
====================  =============================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from campaign.config import CampaignConfig
from campaign.ledger import uncollected
from campaign.observations import observations, unproven
from campaign.report.candidates import seen, unusable
from campaign.report.chronicle import Chronicle, chronicle, entries
from campaign.report.funnel import Stage
from campaign.report.gate import Gate, Saving, gate
from campaign.report.histories import History, histories
from campaign.report.nodes import Nodes, nodes
from campaign.report.result import Belief, Result, Step, convergence, result
from campaign.report.work import Shown, Work, work
from campaign.state import CampaignState
from campaign.status import budgets, config_of, run_state


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything a report shows; values only."""

    state: CampaignState
    config: CampaignConfig
    told: Chronicle
    run_dir: Path
    how: tuple[str, str]
    result: Result
    steps: tuple[Step, ...]
    gate: Gate
    nodes: Nodes
    work: Work
    histories: tuple[History, ...]
    candidates: int


def figures(run_dir: Path) -> Figures:
    """Read a run, which may be going on. Raises ``LedgerError`` when there is none."""
    with uncollected():  # there are many values, and none of them is garbage
        return _figures(run_dir)


def _figures(run_dir: Path) -> Figures:
    state, told = chronicle(entries(run_dir))
    config = config_of(state, run_dir)
    candidates = list(seen(state, config))
    observed = observations(state, config)
    return Figures(
        state,
        config,
        told,
        run_dir,
        run_state(state, run_dir),
        result(state, config, observed),
        convergence(config, observed, told),
        gate(state, config, candidates, list(unusable(state))),
        nodes(state, told),
        work(state, config, run_dir),
        histories(state, config, candidates),
        len(candidates),
    )


def as_data(found: Figures) -> dict[str, Any]:
    """The report as JSON holds it."""
    state, config = found.state, found.config
    return {
        "name": config.name,
        "run_dir": str(found.run_dir),
        "mode": state.run.mode if state.run else "",
        "state": found.how[0],
        "reason": found.how[1],
        "objective": config.objective.model_dump(mode="json", exclude_none=True),
        "best": _best(found),
        "surrogate": {
            "optimum": _belief(found.result.optimum),
            "at_best": _belief(found.result.at_best),
            "used": found.result.used,
            "trials": found.result.trials,
            "unsure": found.result.unsure,
        },
        "convergence": [_step(one) for one in found.steps if one.best],
        "candidates": {
            "judged": found.candidates,
            "agent": found.gate.agent,
            "surrogate": found.gate.surrogate,
            "answers": len(found.gate.answers),
        },
        "dispositions": state.dispositions(),
        "funnel": [_stage(one) for one in found.gate.stages],
        "checks": [_saving(one) for one in found.gate.savings],
        "saved": {
            "would_have_cost": found.gate.would_have_cost,
            "cost": found.gate.cost,
            "saved": found.gate.saved,
        },
        "budgets": budgets(state, config),
        "allocation": found.nodes.bill,
        "hosts": [
            {"host": one.name, "tries": one.tries, "busy": one.busy, "lost": one.lost}
            for one in found.nodes.hosts
        ],
        "tasks": [asdict(one) for one in found.work.kinds],
        "slowest": [_shown(one) for one in found.work.slowest],
        "failing": [_shown(one) for one in found.work.failing],
        "started": state.started_at,
        "updated": state.changed_at,
    }


def _best(found: Figures) -> dict[str, Any] | None:
    best = found.result.best
    if best is None:
        return None
    return {
        "candidate": best.slot.parameters,
        "content": best.slot.candidate,
        "value": best.value,
        "round": best.round,
        "slot": best.slot.slot,
        "disposition": best.slot.disposition,
        "incomplete": list(unproven(found.state, best.slot)),
    }


def _belief(one: Belief | None) -> dict[str, Any] | None:
    return None if one is None else _renamed(asdict(one), point="candidate")


def _step(one: Step) -> dict[str, Any]:
    keys = ("node_hours", "time", "value", "round", "slot")
    return {key: getattr(one, key) for key in keys} | {"content": one.candidate}


def _stage(one: Stage) -> dict[str, Any]:
    return {
        "stage": one.name,
        "layer": one.layer,
        "entered": one.entered,
        **asdict(one.stopped),
    }


def _saving(one: Saving) -> dict[str, Any]:
    return {
        "check": one.check,
        "layer": one.layer,
        **asdict(one.stopped),
        "credited": one.credited,
        "each": one.basis.node_hours,
        "n": one.basis.n,
        "would_have_cost": one.would_have_cost,
        "cost": one.cost,
        "saved": one.saved,
    }


def _shown(one: Shown) -> dict[str, Any]:
    return {
        "task": one.task,
        "content": one.candidate,
        "round": one.round,
        "slot": one.slot,
        "attempt": one.ended.attempt,
        "status": one.ended.status,
        "seconds": one.ended.seconds,
        "node_hours": one.ended.spent,
        "host": one.ended.host,
        "reason": one.ended.reason,
        "failed": one.failed,
        "directory": str(one.directory),
        "log": one.log,
        "tail": one.tail,
    }


def _renamed(data: Mapping[str, Any], **names: str) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in data.items()}
