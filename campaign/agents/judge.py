"""The model that judged rules ask: one question, one call, one completion."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from campaign.agents.base import AgentError
from campaign.agents.chat import ChatClient
from campaign.agents.wire import Completion
from checks.judge import Question

_SCHEMA = {
    "type": "object",
    "properties": {"passed": {"type": "boolean"}, "reason": {"type": "string", "maxLength": 300}},
    "required": ["passed", "reason"],
    "additionalProperties": False,
}
_FORMATS: tuple[dict[str, Any], ...] = (
    {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "vote", "strict": True, "schema": _SCHEMA},
        }
    },
    {"response_format": {"type": "json_object"}},
    {},
)
_REFUSALS = (400, 422)  # statuses of a server that does not know the format asked for
_PER_MESSAGE = 32  # tokens that a chat template may put around a message


class FormatRefusedError(AgentError):
    """The server may not take the form of answer it was asked for; the next call asks plainer."""


@dataclass(slots=True)
class JudgeModel:
    """Puts questions to a server of chat completions, and believes no format it was asked for."""

    client: ChatClient
    seed: int
    _format: int = field(init=False, default=0)

    def worst(self, question: Question) -> int:
        """Tokens that one call can use at most: no text has more of them than bytes."""
        said = len(question.prompt().encode(errors="surrogatepass")) + _PER_MESSAGE
        server = self.client.server
        around = [_SCHEMA, dict(server.body)]
        return said + sum(len(json.dumps(one)) for one in around) + server.max_tokens

    async def ask(self, question: Question, vote: int) -> Completion:
        """Make one call; ``vote`` numbers those of the same question, which differ by their seed.

        Raises :class:`AgentError` where there is no completion.
        """
        used = self._format
        body = self.client.body([{"role": "user", "content": question.prompt()}])
        body |= {"model": question.model, "seed": self._seed(question, vote), **_FORMATS[used]}
        try:
            return await self.client.complete(body)
        except AgentError as error:
            if error.status not in _REFUSALS or used + 1 == len(_FORMATS):
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
