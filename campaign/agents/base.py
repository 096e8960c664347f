"""The contract of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from campaign.model import Answer, Ask
from campaign.space import Point

if TYPE_CHECKING:
    from campaign.agentconfig import OwnAgent


class AgentError(Exception):
    """There is no answer: what an agent raises in its place.

    ``retryable`` says whether another call may bring one. ``status`` and ``request_id`` are the
    server's where there is one, ``retry_after`` the seconds it asks to wait. ``unspent`` means
    that nothing was generated for sure. The message never holds what the agent wrote, nor a key.
    """

    def __init__(
        self,
        what: str,
        *,
        retryable: bool = True,
        status: int = 0,
        request_id: str = "",
        retry_after: float = 0.0,
        unspent: bool = False,
    ) -> None:
        super().__init__(what)
        self.what, self.retryable, self.unspent = what, retryable, unspent
        self.status, self.request_id, self.retry_after = status, request_id, retry_after


class LoadingError(AgentError):
    """The server is not up yet: while it is waited for, a call uses up no retry."""


class FormatRefusedError(AgentError):
    """The server refused the form of a request: the next one asks in a plainer form.

    That is another request rather than the same again, so it uses up no retry.
    """


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an agent declares of itself; :func:`campaign.costs.declared` has it shown.

    ``single_response_v1``: its answers come with the one response each was read in, and it takes
    a correction of that; without it a repair can only ask again. ``structured_outputs``: it can
    be held to a schema. ``seed``: an ask comes with a seed. ``usage``: it can say what it used.
    """

    single_response_v1: bool = False
    structured_outputs: bool = False
    seed: bool = False
    usage: bool = False


class Agent(Protocol):
    """Proposes candidates for the open slots of a batch.

    ``propose`` answers once for each ask, by one call. An answer that exists but cannot be used
    names its stage (``empty``, ``schema`` …) and costs a generation; :class:`AgentError` means
    that there is no answer, and costs a retry. Any other exception ends the run by its message.
    An agent without a response to show may raise ``checks.Rejected`` with the stage instead.
    Cancelling ``propose`` ends the call.
    """

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def examples(self) -> tuple[Point, ...]:
        """Candidates that stand in every request; a copy of one is no new candidate."""
        ...

    def worst(self, ask: Ask) -> int:
        """Tokens that answering can use at most, what is read included; 0 where none are."""
        ...

    async def propose(self, ask: Ask) -> Answer: ...

    async def close(self) -> None:
        """End what the agent keeps open."""
        ...


class Plain:
    """What holds for an agent that declares nothing, uses no tokens and keeps nothing open."""

    __slots__ = ()

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    @property
    def examples(self) -> tuple[Point, ...]:
        return ()

    def worst(self, ask: Ask) -> int:  # noqa: ARG002
        return 0

    async def close(self) -> None:
        return None


class Own(Plain):
    """What holds for a program or a function of the user's own: it takes a correction."""

    _settings: OwnAgent

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(single_response_v1=True, usage=True)

    def worst(self, ask: Ask) -> int:  # noqa: ARG002
        """Tokens one call can use at most, as the configuration says."""
        return self._settings.tokens_per_call or 0
