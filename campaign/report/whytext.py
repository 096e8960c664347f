"""What is known of one candidate, told to a person line by line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from campaign.lines import number, plain, point_text
from campaign.report.units import moment

_ANSWER = 200  # characters of an answer that are shown


def why_lines(data: dict[str, Any]) -> Iterator[str]:
    """Without control characters of anybody's, and each line by itself."""
    for one in data["candidates"]:
        yield from _candidate(one)


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
    slots = ", ".join(map(str, one["slots"]))
    when = moment(one["proposed_at"] or 0.0) or "no one knows when"
    if one["draw"]:
        return f"{when}, drawn for slots {slots}"
    repair = f", a repair told as {one['repair']}" if one["repair"] else ""
    return f"{when}, asked {moment(one['asked_at'] or 0.0)} for slots {slots}{repair}"


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
    with_it = "with this candidate" if end["mine"] else "with another one"
    if end["disposition"] == "tombstone":
        with_it = "nothing runs"
    return f"ended {end['disposition']}, {with_it}" + (
        f": {plain(end['reason'])}" if end["reason"] else ""
    )
