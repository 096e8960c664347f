"""A run as rows: observations, or every candidate, each with where it comes from.

A row is flat: the columns below, then ``parameters.NAME`` for each parameter, and for observations
``outputs.NAME`` for each number, text or boolean of the simulations' answers. Times are seconds
since the epoch; what is not known is empty.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

from campaign.config import CampaignConfig
from campaign.events import TaskEnded
from campaign.model import SIMULATION
from campaign.observations import observations, unproven
from campaign.report.candidates import Seen, seen
from campaign.report.chronicle import Chronicle, chronicle, entries
from campaign.report.histories import history
from campaign.roundstate import RoundState
from campaign.state import CampaignState, TaskState
from campaign.status import config_of

Format: TypeAlias = Literal["csv", "jsonl", "parquet"]
Row: TypeAlias = dict[str, Any]


class MissingExtraError(Exception):
    """A format needs a library that is not installed; the message names the extra."""


def observed(run_dir: Path) -> list[Row]:
    """Every observation of a run: a slot that was let through, with what its simulation answered.

    One flat row each, by round and slot, all with the same columns in the same order, ready for a
    table of any library; docs/how-to/report.md has the columns. ``value`` is None where the
    simulation failed. Raises :class:`LedgerError`; the run may be going on.
    """
    state, told = chronicle(entries(run_dir))
    config = config_of(state, run_dir)
    return _even(_observed(state, config, told))


def candidates(run_dir: Path) -> list[Row]:
    """Every candidate of a run that was judged, with what stopped it.

    Rows as those of :func:`observed`, with the columns of a candidate. Raises :class:`LedgerError`.
    """
    state, told = chronicle(entries(run_dir))
    config = config_of(state, run_dir)
    return _even(_candidate(state, config, told, one) for one in seen(state, config))


def write(rows: Iterable[Row], how: Format, file: IO[Any]) -> None:
    """Write rows of one shape; ``file`` is of text for csv and jsonl, of bytes for parquet."""
    if how == "parquet":
        _write_parquet(list(rows), file)
    elif how == "jsonl":
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        writer: csv.DictWriter[str] | None = None
        for row in rows:
            if writer is None:
                writer = csv.DictWriter(file, list(row), lineterminator="\n")
                writer.writeheader()
            writer.writerow(row)


def _write_parquet(rows: list[Row], file: IO[bytes]) -> None:
    require_parquet()
    import pyarrow
    import pyarrow.parquet

    names = list(rows[0]) if rows else []
    columns = {name: _column([row[name] for row in rows]) for name in names}
    pyarrow.parquet.write_table(pyarrow.table(columns), file)


def require_parquet() -> None:
    """Raises :class:`MissingExtraError` where Parquet cannot be written."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        wanted = "pip install 'simgate[parquet]', or take --format csv or jsonl"
        message = f"parquet: pyarrow is not installed; {wanted}"
        raise MissingExtraError(message) from error
    assert pyarrow.parquet


def _column(values: list[Any]) -> list[Any]:
    """A column has one type: numbers become floats together, and what does not go together text."""
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    if len(kinds) > 1 or any(abs(value) >= 2**63 for value in values if type(value) is int):
        return [None if value is None else str(value) for value in values]
    return values


def _observed(state: CampaignState, config: CampaignConfig, told: Chronicle) -> Iterator[Row]:
    name = state.run.name if state.run else ""
    for one in observations(state, config):
        slot, content = one.slot, one.slot.candidate
        tries = state.tasks.get((SIMULATION, content), TaskState())
        rounds = state.rounds[one.round]
        yield {
            "campaign": name,
            "round": one.round,
            "slot": slot.slot,
            "candidate": content,
            "disposition": slot.disposition,
            "generation": slot.generation,
            "proposed_by": config.agent.kind if slot.generation else "surrogate",
            "proposed_at": _proposed(told, rounds, one.round, slot.slot, slot.generation),
            "objective": config.objective.name,
            "value": one.value,
            "validation_incomplete": "; ".join(unproven(state, slot)),
            **_simulated(tries.last, told.simulated.get(content)),
            "tries": tries.tries,
            "node_hours": tries.spent,
            "verifier_node_hours": sum(
                state.tasks.get((verifier.name, content), TaskState()).spent
                for verifier in config.verifiers
            ),
            **_prefixed("parameters", slot.parameters),
            **_prefixed("outputs", tries.last.value if tries.last else None),
        }


def _simulated(last: TaskEnded | None, at: tuple[float, float] | None) -> Row:
    """How the last try of a simulation ended."""
    return {
        "simulated_at": at[0] if at else None,
        "run_node_hours": at[1] if at else None,  # of all tasks of the run by then
        "status": last.status if last else "",
        "seconds": last.seconds if last else None,
        "host": last.host if last else "",
        "reason": last.reason if last else "",
    }


def _candidate(state: CampaignState, config: CampaignConfig, told: Chronicle, one: Seen) -> Row:
    kept, stopped = history(state, config, one), one.stopped
    when = told.drawn.get((one.round, one.draw))
    return {
        "campaign": state.run.name if state.run else "",
        "round": one.round,
        "slot": one.slot,
        "generation": one.generation,
        "draw": one.draw,
        "candidate": one.content,
        "proposed_by": "surrogate" if one.draw else config.agent.kind,
        "proposed_at": when if one.draw else told.answered.get((one.round, one.generation)),
        "fate": one.fate,
        "layer": stopped.layer if stopped else "",
        "stopped_by": stopped.by if stopped else "",
        "reason": stopped.reason if stopped else "",
        "value": kept.value,
        "node_hours": kept.node_hours,
        **_prefixed("parameters", one.parameters),
    }


def _proposed(
    told: Chronicle, rounds: RoundState, number: int, slot: int, generation: int
) -> float | None:
    if generation:
        return told.answered.get((number, generation))
    draws = [draw for draw, filled in rounds.fills.items() if slot in filled.slots]
    return told.drawn.get((number, max(draws))) if draws else None


def _prefixed(prefix: str, values: object) -> Row:
    """The plain ones among some named values; what is nested is as JSON."""
    if not isinstance(values, Mapping):
        return {}
    plain = (str, int, float, bool, type(None))
    return {
        f"{prefix}.{name}": value
        if isinstance(value, plain)
        else json.dumps(value, ensure_ascii=False)
        for name, value in values.items()
    }


def _even(rows: Iterable[Row]) -> list[Row]:
    """All rows with all columns: those every row has, then the parameters, then the outputs."""
    found = list(rows)
    names = list(dict.fromkeys(name for row in found for name in row))
    names.sort(key=lambda name: 2 * name.startswith("outputs.") + name.startswith("parameters."))
    return [{name: row.get(name) for name in names} for row in found]
