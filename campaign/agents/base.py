"""The contract of an agent."""

from __future__ import annotations

from typing import Protocol

from campaign.model import Answer, Ask


class Agent(Protocol):
    """Proposes candidates for the open slots of a batch.

    ``propose`` answers once for each ask. An answer that exists but cannot be used is
    ``checks.Rejected`` naming its stage (``empty``, ``schema`` …) and costs a generation; any
    other exception means that there is no answer, and ends the run by its message.
    """

    async def propose(self, ask: Ask) -> Answer: ...
