"""Lines about slots in bounded room: what goes first where there is too little, what is left out.

Pure, and in the same order whatever order the lines are given in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from campaign.fence import size

MOST_FINDINGS = 50
MOST_CHARACTERS = 200  # of a line
MOST_NAME = 64  # characters of an id

_SLOTS = 640  # characters of a list of slots
_SINGLY = 16  # slots that are named one by one
_MORE = 64  # bytes kept free for what says how much is left out


class Tier(IntEnum):
    """What a line is, in the order in which lines take what room there is."""

    ACCEPTED = 0
    PASSED = 1
    REJECTED = 2
    NOTED = 3
    ANSWERED = 4


_ROOM = {Tier.ACCEPTED: 1536, Tier.PASSED: 1536}  # bytes; the others take what is left


@dataclass(frozen=True, slots=True)
class Piece:
    """A line about a slot; of a tier the lower ``rank`` goes first, so that no slot starves."""

    slot: int
    tier: Tier
    rank: int
    text: Callable[[], str]

    @property
    def failed(self) -> bool:
        return self.tier in (Tier.REJECTED, Tier.NOTED)


def listing(pieces: Iterable[Piece], room: int) -> list[str]:
    """The lines that fit ``room`` bytes, in the order of the slots, and how many did not.

    A tier ends at its first line that does not fit, so that no short line jumps the queue.
    """
    ordered = sorted(pieces, key=lambda one: one.slot)
    kept: dict[int, str] = {}
    room -= _MORE
    left = dict.fromkeys(Tier, room) | _ROOM
    findings = 0
    for at in sorted(range(len(ordered)), key=lambda i: (ordered[i].tier, ordered[i].rank, i)):
        piece = ordered[at]
        if left[piece.tier] <= 0 or (piece.failed and findings == MOST_FINDINGS):
            continue
        text = piece.text()
        took = size(text) + 1
        if took > min(room, left[piece.tier]):
            left[piece.tier] = 0
            continue
        kept[at] = text
        room, findings = room - took, findings + piece.failed
        left[piece.tier] -= took
    more = sum(one.failed for one in ordered) - findings
    listed = [kept[at] for at in sorted(kept)]
    return [*listed, f"+{more} more are not listed"] if more else listed


def numbered(slots: Sequence[int]) -> str:
    """Slots by number, in bounded space; of many, runs by their ends."""
    if not slots:
        return "none"
    each = runs(slots) if len(slots) > _SINGLY else [[slot] for slot in slots]
    ends = ["-".join(map(str, run)) for run in each]
    return joined("slot" if len(slots) == 1 else "slots", ends, _SLOTS, " ")


def runs(slots: Sequence[int]) -> list[list[int]]:
    """Each run of numbers that follow one another, by its ends; of a single one just that."""
    found: list[list[int]] = []
    for slot in slots:
        if found and slot == found[-1][-1] + 1:
            found[-1][1:] = [slot]
        else:
            found.append([slot])
    return found


def joined(head: str, names: Sequence[str], limit: int = MOST_CHARACTERS, sign: str = ": ") -> str:
    """``head: a, b, +3 more`` in at most ``limit`` characters."""
    text = head + sign
    for at, name in enumerate(names):
        part = name + (", " if at + 1 < len(names) else "")
        if len(text) + len(part) > limit - len(", +10000 more"):
            return f"{text}+{len(names) - at} more"
        text += part
    return text
