"""The model that judged rules ask: one question, one call, one completion."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from campaign.agents.base import AgentError, FormatRefusedError
from campaign.agents.chat import ChatClient
from campaign.agents.formats import FORMATS, REFUSALS, most_tokens, response_format
from campaign.agents.wire import Completion
from checks.judge import Question

_SCHEMA = {
    "type": "object",
    "properties": {"passed": {"type": "boolean"}, "reason": {"type": "string", "maxLength": 300}},
    "required": ["passed", "reason"],
    "additionalProperties": False,
}


@dataclass(slots=True)
class JudgeModel:
    """Puts questions to a server of chat completions, and believes no format it was asked for."""

    client: ChatClient
    seed: int
    _format: int = field(init=False, default=0)

    def worst(self, question: Question) -> int:
        """Tokens that one call can use at most."""
        server = self.client.server
        return most_tokens([question.prompt()], _SCHEMA, dict(server.body)) + server.max_tokens

    async def ask(self, question: Question, vote: int) -> Completion:
        """Make one call; ``vote`` numbers those of the same question, which differ by their seed.

        Raises :class:`AgentError` where there is no completion.
        """
        used = self._format
        body = self.client.body([{"role": "user", "content": question.prompt()}])
        body |= {"model": question.model, "seed": self._seed(question, vote)}
        body |= response_format(FORMATS[used], "vote", _SCHEMA)
        try:
            return await self.client.complete(body)
        except AgentError as error:
            if error.status not in REFUSALS or used + 1 == len(FORMATS):
                raise
            self._format = max(self._format, used + 1)
            raise FormatRefusedError(
                f"{error.what}; asked again in a plainer form",
                status=error.status,
                request_id=error.request_id,
                unspent=True,
            ) from None

    def _seed(self, question: Question, vote: int) -> int:
        digest = hashlib.sha256(f"{self.seed}:vote:{question.key}:{vote}".encode()).digest()
        return int.from_bytes(digest[:4], "big") >> 1
