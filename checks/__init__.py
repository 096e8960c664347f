"""The gate: checks on what an agent proposes, before it becomes work that costs."""

from checks.accept import Attempt, NotAccepted, Outcome, Rejected, accept
from checks.finding import Finding, Layer, Status, Verdict

__all__ = [
    "Attempt",
    "Finding",
    "Layer",
    "NotAccepted",
    "Outcome",
    "Rejected",
    "Status",
    "Verdict",
    "accept",
]
