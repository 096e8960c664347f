"""What is known of one candidate, told to a person line by line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from campaign.lines import number, plain, point_text
from campaign.listing import numbered
from campaign.report.units import moment

_ANSWER = 200  # characters of an answer that are shown


def why_lines(data: dict[str, Any]) -> Iterator[str]:
    """Without control characters of anybody's, and each line by itself."""
    asked = [(one["generation"], _ask(one, data["slot"])) for one in data["asks"]]
    # What the surrogate drew comes after all that was asked for.
    told = [(one["generation"] or sys.maxsize, _candidate(one)) for one in data["candidates"]]
    by_place = sorted((*asked, *told), key=lambda each: each[0]) if asked else told
    for _, lines in by_place:
        yield from lines
    if not told and not asked:
        yield f"{plain(data['asked'])}: no candidate has been judged there"
        yield f"  slot        {_slot(data['slot'])}"


def _ask(one: dict[str, Any], end: dict[str, Any] | None) -> Iterator[str]:
    yield f"r{one['round']} s{one['slot']}, generation {one['generation']}: {_stage(one)}"
    yield f"  asked       {moment(one['asked_at'] or 0.0)} for {_asked(one)}"
    if one["ended_at"]:
        yield f"  ended       {moment(one['ended_at'])}"
    calls = "1 call" if one["calls"] == 1 else f"{one['calls']} calls"
    failed = f", {one['failed']} without an answer" if one["failed"] else ""
    spent = f", {one['tokens']:,} tokens" if one["tokens"] else ""
    if one["calls"]:
        yield f"  calls       {calls}{failed}{spent}"
    if one["finish_reason"]:
        yield f"  finished    {plain(one['finish_reason'])}, by the word of the server"
    yield f"  slot        {_slot(end)}"


def _stage(one: dict[str, Any]) -> str:
    reason = f": {plain(one['reason'])}" if one["reason"] else ""
    words = {
        "open": "no candidate yet, the agent has not answered",
        "judging": "its candidate has not been judged yet",
        "transport": "no candidate, no call brought an answer",
        "budget": "no candidate, a cap forbade the call",
    }
    rejected = f"no candidate, the answer was rejected at {plain(one['stage'])}"
    return words.get(one["stage"], rejected) + reason


def _asked(one: dict[str, Any]) -> str:
    repair = f", a repair told as {one['repair']}" if one["repair"] else ""
    return f"{numbered(one['slots'])}{repair}"


def _candidate(one: dict[str, Any]) -> Iterator[str]:
    drawn = (
        f"draw {one['draw']} of the surrogate" if one["draw"] else f"generation {one['generation']}"
    )
    yield f"r{one['round']} s{one['slot']}, {drawn}: {_fate(one)}"
    point = one["parameters"]
    yield f"  candidate   {point_text(point) if isinstance(point, dict) else plain(repr(point))}"
    yield f"  content     {one['content'] or 'none: it is no mapping'}"
    yield f"  proposed    {_proposed(one)}"
    if one["value"] is not None:
        yield f"  value       {number(one['value'])}"
    yield f"  node-hours  {one['node_hours']:.4g}"
    for said in one["findings"]:
        detail = f": {plain(said['detail'])}" if said["detail"] else ""
        yield f"  {said['layer']:<11} {plain(said['check'])} {said['status']}{detail}"
    for each in one["tries"]:
        yield from _try(each)
    yield f"  slot        {_slot(one['slot_ended'])}"


def _fate(one: dict[str, Any]) -> str:
    word = str(one["fate"]).replace("_", " ")
    by = f" by {plain(one['stopped_by'])}" if one["stopped_by"] else ""
    return f"{word}{by}" + (f": {plain(one['reason'])}" if one["reason"] else "")


def _proposed(one: dict[str, Any]) -> str:
    when = moment(one["proposed_at"] or 0.0) or "no one knows when"
    if one["draw"]:
        return f"{when}, drawn for {numbered(one['slots'])}"
    return f"{when}, asked {moment(one['asked_at'] or 0.0)} for {_asked(one)}"


def _try(one: dict[str, Any]) -> Iterator[str]:
    head = f"  {one['task']}, try {one['attempt']}: {one['status']}"
    if one["seconds"] is not None:
        head += f" after {one['seconds']:.4g} s, {one['node_hours']:.4g} node-hours"
    nodes = "1 node" if one["nodes"] == 1 else f"{one['nodes']} nodes"
    yield f"{head}, {nodes}" + (f", on {plain(one['host'])}" if one["host"] else "")
    yield f"    submitted {moment(one['began'])}" + (
        f", ended {moment(one['ended'])}" if one["ended"] else ""
    )
    if one["exit_code"] is not None:
        yield f"    exit code {one['exit_code']}"
    if one["reason"]:
        yield f"    {plain(one['reason'])}"
    if one["answer"] is not None:
        yield f"    answer {plain(repr(one['answer']))[:_ANSWER]}"
    files = ", ".join(f"{plain(file['name'])} ({file['bytes']:,} bytes)" for file in one["files"])
    yield f"    {one['directory']}: {files or 'no longer there'}"


def _slot(end: dict[str, Any] | None) -> str:
    if end is None:
        return "open"
    return f"ended {end['disposition']}, {_ended_with(end)}" + (
        f": {plain(end['reason'])}" if end["reason"] else ""
    )


def _ended_with(end: dict[str, Any]) -> str:
    if end["disposition"] == "tombstone":
        return "nothing runs"
    if end["mine"]:
        return "with this candidate"
    name = f"with another one, {end['content']}"
    return f"{name}, that the surrogate drew" if end["disposition"] == "fallback" else name
