"""Why a job of Slurm's waits, and whether it waits in vain. Pure."""

from __future__ import annotations

import re

_NEVER = frozenset(
    {
        "BadConstraints",
        "DeadLine",
        "DependencyNeverSatisfied",
        "InvalidAccount",
        "InvalidQOS",
        "PartitionNodeLimit",
        "PartitionTimeLimit",
    }
)
# Slurm has a sentence in place of a word where a partition does not take an account, a quality of
# service or a user; scontrol writes it with underscores.
_NOT_TAKEN = re.compile(r"not[_ ](known|permitted|in[_ ]group|allowed)|AccountNotAllowed")
_USUAL = frozenset({"", "Priority", "Resources", "Prolog"})


def in_vain(reason: str) -> bool:
    """Whether a job with this reason of Slurm's can never start as it is.

    A wait for nodes, for other jobs or for an administrator is no such reason, however long.
    """
    return reason in _NEVER or _NOT_TAKEN.search(reason) is not None


def unusual(reason: str) -> bool:
    """Whether a person wants to hear of it: it is more than that others go first."""
    return reason not in _USUAL
