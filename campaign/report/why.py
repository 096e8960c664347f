"""Everything a run knows about one candidate.

A candidate is named by its content hash or an unmistakable beginning of it, which is everything of
that content wherever it stood, or by its place, ``r3 s2``: everything that was proposed for it,
and every ask for it that brought no candidate.

==============  ===================================================================================
key             meaning
==============  ===================================================================================
``name``        the campaign's name; ``run_dir``: the run directory; ``asked``: what was looked for
``candidates``  one for each time it was proposed or drawn: ``round``, ``slot``, ``generation``
                (0: drawn), ``draw``, ``repair`` (how a repair was told), ``slots`` (of that ask),
                ``asked_at``, ``proposed_at`` (seconds since the epoch), ``parameters``,
                ``content``, ``fate``, ``stopped_by``, ``layer``, ``reason``, ``value``,
                ``node_hours``, and the next three
``findings``    of the checks in the driver: ``check``, ``layer``, ``status``, ``detail``
``tries``       ``task``, ``attempt``, ``status`` (``running`` without an end), ``began``,
                ``ended``, ``seconds``, ``node_hours``, ``nodes``, ``host``, ``exit_code``,
                ``reason``, ``adopted``, ``answer``, ``directory``, ``files`` (``name``, ``bytes``)
``slot_ended``  how its slot ended: ``disposition``, ``generation``, ``reason``, ``content`` of the
                candidate it ended with, and whether that is this one (``mine``); null while open
``asks``        of a place, one for each ask that brought it no candidate: ``round``, ``slot``,
                ``generation``, ``repair``, ``slots``, ``asked_at``, ``ended_at``, ``stage`` (where
                the answer was rejected, ``transport`` or ``budget`` without one, ``open`` or
                ``judging`` while it goes on), ``reason``, ``calls``, ``failed`` (of them),
                ``tokens``, ``finish_reason``
``slot``        of a place: how that slot ended, as ``slot_ended``; null while it is open
==============  ===================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign.config import CampaignConfig
from campaign.events import Entry, TaskEnded, TaskStarted
from campaign.report.asks import fruitless
from campaign.report.candidates import Seen, seen
from campaign.report.chronicle import Chronicle, chronicle, entries
from campaign.report.histories import findings, history
from campaign.report.work import try_directory
from campaign.roundstate import RoundState
from campaign.state import CampaignState
from campaign.status import config_of

_PLACE = re.compile(r"r(?:ound )?(\d{1,9})[\s.,/-]*s(?:lot )?(\d{1,9})", re.IGNORECASE)
_ROUND = re.compile(r"r(?:ound )?(\d{1,9})(?:\s*g\d{1,9})?", re.IGNORECASE)
_DIRECTORY = re.compile(
    r".*-([0-9a-f]{16})(?:/.*)?", re.DOTALL
)  # of a task, or of one of its tries
_HASH = re.compile(r"[0-9a-f]{1,16}", re.IGNORECASE)
_SHOWN = 5


class UnknownCandidateError(Exception):
    """No candidate of the run is meant; the message says what is known."""


@dataclass(slots=True)
class Try:
    """A try as the ledger has it; ``ended`` is None while it runs."""

    started: TaskStarted
    began: float
    ended: TaskEnded | None = None
    ended_at: float = 0.0


def why(run_dir: Path, asked: str) -> dict[str, Any]:
    """What there is to say. Raises ``LedgerError`` and :class:`UnknownCandidateError`."""
    state, told = chronicle(entries(run_dir))
    config = config_of(state, run_dir)
    place, found = _meant(state, config, asked)
    tries = _tries(entries(run_dir), {one.content for one in found})
    run = _Run(state, config, told, run_dir, tries)
    return {
        "name": config.name,
        "run_dir": str(run_dir),
        "asked": asked,
        "candidates": [run.tell(one) for one in found],
        "asks": list(fruitless(state, told, *place)) if place else [],
        "slot": run.end(*place) if place else None,
    }


def _meant(
    state: CampaignState, config: CampaignConfig, asked: str
) -> tuple[tuple[int, int] | None, list[Seen]]:
    """The place that is named, if it is one, and the candidates."""
    word = asked.strip()
    every = list(seen(state, config))
    if found := _PLACE.fullmatch(word):
        number, slot = place = int(found[1]), int(found[2])
        if slot not in _slots(state, number):
            raise UnknownCandidateError(f"r{number} s{slot}: {_nowhere(state, number)}")
        return place, [one for one in every if (one.round, one.slot) == place]
    if directory := _DIRECTORY.fullmatch(word):
        word = directory[1]
    if not _HASH.fullmatch(word):
        raise UnknownCandidateError(f"{asked!r}: {_unnamed(state, word)}")
    return None, _of_content(every, word)


def _of_content(every: Sequence[Seen], word: str) -> list[Seen]:
    contents = sorted({one.content for one in every if one.content.startswith(word.lower())})
    if len(contents) == 1:
        return [one for one in every if one.content == contents[0]]
    if contents:
        more = f" and {len(contents) - _SHOWN} more" if len(contents) > _SHOWN else ""
        listed = ", ".join(contents[:_SHOWN])
        raise UnknownCandidateError(f"{word}: several begin so: {listed}{more}; give more of it")
    raise UnknownCandidateError(f"{word}: no candidate of this content; {_nearest(every, word)}")


def _slots(state: CampaignState, number: int) -> list[int]:
    """The slots of a round for which anything was asked, drawn or decided."""
    rounds = state.rounds.get(number, RoundState())
    asked = (slot for one in rounds.asked.values() for slot in one.slots)
    drawn = (slot for one in rounds.fills.values() for slot in one.slots)
    return sorted({*rounds.slots, *asked, *drawn})


def _nowhere(state: CampaignState, number: int) -> str:
    if slots := _slots(state, number):
        return f"nothing was asked there; round {number} has {_span('slot', slots)}"
    rounds = [one for one in sorted(state.rounds) if _slots(state, one)]
    return f"nothing was asked there; {_span('round', rounds)} so far"


def _span(what: str, numbers: Sequence[int]) -> str:
    if not numbers:
        return f"no {what}"
    first, last = numbers[0], numbers[-1]
    return f"{what} {first} only" if first == last else f"{what}s {first} to {last}"


def _unnamed(state: CampaignState, word: str) -> str:
    """Why a word names no candidate, and what would."""
    if found := _ROUND.fullmatch(word):
        number = int(found[1])
        if slots := _slots(state, number):
            which = f"name one of its slots, as in r{number} s{slots[0]}"
            return f"a round has many candidates; {which}; it has {_span('slot', slots)}"
    wanted = "give a content hash, the beginning of one, or a place such as r3 s2"
    return f"no candidate has such a name; {wanted}"


def _nearest(every: Iterable[Seen], word: str) -> str:
    """Those that begin alike, the longest common beginning first."""
    contents = {one.content for one in every if one.content}
    if not contents:
        return "no candidate has been judged yet"

    def common(content: str) -> tuple[int, str]:
        same = next((i for i, (a, b) in enumerate(zip(word, content, strict=False)) if a != b), 16)
        return -same, content

    near = sorted(contents, key=common)[:_SHOWN]
    return f"{len(contents)} are known, nearest: {', '.join(near)}"


def _tries(entries: Iterable[Entry], contents: set[str]) -> dict[str, list[Try]]:
    found: dict[str, list[Try]] = {one: [] for one in contents if one}
    for entry in entries:
        event = entry.event
        if isinstance(event, TaskStarted) and event.candidate in found:
            found[event.candidate].append(Try(event, entry.t))
        elif isinstance(event, TaskEnded) and event.candidate in found:
            for one in found[event.candidate]:
                mine = (one.started.task, one.started.attempt)
                if mine == (event.task, event.attempt):
                    one.ended, one.ended_at = event, entry.t
    return found


@dataclass(frozen=True, slots=True)
class _Run:
    """What there is to look things up in."""

    state: CampaignState
    config: CampaignConfig
    told: Chronicle
    run_dir: Path
    tries: dict[str, list[Try]]

    def tell(self, one: Seen) -> dict[str, Any]:
        kept, stopped = history(self.state, self.config, one), one.stopped
        return {
            "round": one.round,
            "slot": one.slot,
            "generation": one.generation,
            "draw": one.draw,
            **self._ask(one),
            "parameters": one.parameters,
            "content": one.content,
            "fate": one.fate,
            "stopped_by": stopped.by if stopped else "",
            "layer": stopped.layer if stopped else "",
            "reason": stopped.reason if stopped else "",
            "value": kept.value,
            "node_hours": kept.node_hours,
            "findings": [
                {"check": it.by, "layer": it.layer, "status": it.status, "detail": it.detail}
                for it in findings(self.state, one, passes=True)
            ],
            "tries": [_try(each, self.run_dir) for each in self.tries.get(one.content, ())],
            "slot_ended": self.end(one.round, one.slot, one.content),
        }

    def _ask(self, one: Seen) -> dict[str, Any]:
        rounds, place = self.state.rounds[one.round], (one.round, one.generation)
        if one.draw:
            slots, at = rounds.fills[one.draw].slots, self.told.drawn.get((one.round, one.draw))
            return {"repair": "", "slots": slots, "asked_at": None, "proposed_at": at}
        ask = rounds.asked[one.generation]
        return {
            "repair": ask.repair,
            "slots": ask.slots,
            "asked_at": self.told.asked.get(place),
            "proposed_at": self.told.answered.get(place),
        }

    def end(self, number: int, slot: int, content: str = "") -> dict[str, Any] | None:
        """How a slot ended, and whether with the candidate of that content."""
        end = self.state.rounds[number].slots.get(slot)
        if end is None:
            return None
        return {
            "disposition": end.disposition,
            "generation": end.generation,
            "reason": end.reason,
            "content": end.candidate,
            "mine": bool(content) and end.candidate == content,
        }


def _try(one: Try, run_dir: Path) -> dict[str, Any]:
    started, ended = one.started, one.ended
    directory = try_directory(run_dir, started.task, started.candidate, started.attempt)
    return {
        "task": started.task,
        "attempt": started.attempt,
        "status": ended.status if ended else "running",
        "began": one.began,
        "ended": one.ended_at if ended else None,
        "seconds": ended.seconds if ended else None,
        "node_hours": ended.spent if ended else None,
        "nodes": started.nodes,
        "host": ended.host if ended else "",
        "exit_code": ended.exit_code if ended else None,
        "reason": ended.reason if ended else "",
        "adopted": ended.adopted if ended else False,
        "answer": ended.value if ended else None,
        "directory": str(directory),
        "files": [{"name": name, "bytes": size} for name, size in _files(directory)],
    }


def _files(directory: Path) -> Iterator[tuple[str, int]]:
    """What is in a try's directory, as long as nobody removed it."""
    try:
        found = sorted(one for one in directory.rglob("*") if one.is_file())
    except OSError:
        return
    for one in found:
        yield str(one.relative_to(directory)), one.stat().st_size
