"""What the agent of a run was asked and what it used, from the run's state."""

from __future__ import annotations

from dataclasses import dataclass

from campaign.state import CampaignState


@dataclass(frozen=True, slots=True)
class Talks:
    """Over a whole run. ``calls`` is how often it was called, ``failed`` how often without answer.

    The tokens are those of its answers, as its server counted them.
    """

    answers: int
    calls: int
    failed: int
    input_tokens: int
    output_tokens: int

    def __str__(self) -> str:
        lost = f", {self.failed} of them without an answer" if self.failed else ""
        tokens = self.input_tokens + self.output_tokens
        told = f"{self.input_tokens:,} read, {self.output_tokens:,} written"
        return f"{self.answers:,} answers in {self.calls:,} calls{lost}; {tokens:,} tokens ({told})"


def talks(state: CampaignState) -> Talks | None:
    """None for a run whose agent is not called: the surrogate, a recording."""
    rounds = state.rounds.values()
    calls = [one for each in rounds for one in each.calls.values()]
    answers = [one for each in rounds for one in each.answers.values()]
    if not calls:
        return None
    return Talks(
        answers=len(answers),
        calls=sum(one.made for one in calls),
        failed=sum(one.made for one in calls) - len(answers),
        input_tokens=sum(one.input_tokens for one in answers),
        output_tokens=sum(one.output_tokens for one in answers),
    )
