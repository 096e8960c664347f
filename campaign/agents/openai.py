"""A language model behind a server that speaks OpenAI's format, as an agent."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from campaign.agentconfig import OpenAIAgent as Settings
from campaign.agents import prompt
from campaign.agents.base import AgentError, Capabilities, FormatRefusedError
from campaign.agents.chat import ChatClient
from campaign.agents.formats import FORMATS, REFUSALS, Format, most_tokens, response_format
from campaign.agents.reading import read
from campaign.agents.wire import Completion
from campaign.grid import decode
from campaign.model import Answer, Ask
from campaign.problems import ConfigError, Problem
from campaign.space import Point
from checks import Rejected

if TYPE_CHECKING:
    from campaign.agents.serving import ModelServer
    from campaign.config import CampaignConfig
    from campaign.render import Place
    from checks.suite import Suite

_MOST_DOUBLINGS = 6


@dataclass(slots=True)
class OpenAIAgent:
    """Asks a model once for each ask. It trusts nothing that the answer says, whatever the format.

    With ``structured: auto`` a server that refuses a format is asked in the next one from then
    on, which is a further call.
    """

    settings: Settings
    brief: prompt.Brief
    seed: int
    client: ChatClient
    server: ModelServer | None = None
    _formats: tuple[Format, ...] = field(init=False)
    _format: int = field(init=False, default=0)
    _worked: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        chosen = self.settings.structured
        self._formats = FORMATS if chosen == "auto" else (chosen,)

    @property
    def capabilities(self) -> Capabilities:
        schema = self.settings.structured in ("auto", "json_schema")
        return Capabilities(
            single_response_v1=True, structured_outputs=schema, seed=True, usage=True
        )

    @property
    def examples(self) -> tuple[Point, ...]:
        template = self.brief.template
        return () if template is None else prompt.examples(template, self.brief.space)

    def worst(self, ask: Ask) -> int:
        """Tokens one call can use at most."""
        texts = [message["content"] for message in prompt.messages(self.brief, ask)]
        read = most_tokens(texts, self._schema(ask), dict(self.settings.body))
        return read + self._max_tokens(ask)

    async def propose(self, ask: Ask) -> Answer:
        """One call. Raises :class:`AgentError` where no answer came of it."""
        body = self.client.body(prompt.messages(self.brief, ask), self._max_tokens(ask))
        body["seed"] = request_seed(self.seed, ask.round, ask.generation)
        body |= response_format(self._formats[self._format], "proposal", self._schema(ask))
        used = self._format
        if self.server is not None:
            await self.server.there()
        try:
            completion = await self.client.complete(body)
        except AgentError as error:
            self._step_down(error, used)
            raise
        self._worked = used
        return self._answer(completion)

    async def close(self) -> None:
        """Nothing is kept open between two calls."""

    def _answer(self, completion: Completion) -> Answer:
        """What was said, read; an answer that holds no candidates names its stage."""
        candidates: tuple[object, ...] = ()
        rationale = stage = reason = ""
        try:
            reading = read(
                completion.content,
                finish_reason=completion.finish_reason,
                refusal=completion.refusal,
            )
        except Rejected as rejected:
            stage, reason = rejected.check or "schema", rejected.reason
        else:
            candidates = tuple(decode(self.brief.space, one) for one in reading.candidates)
            rationale = reading.rationale
        return Answer(
            candidates,
            rationale,
            stage=stage,
            reason=reason,
            response=completion.text,
            spent=completion.spent,
            response_id=completion.response_id,
            finish_reason=completion.finish_reason,
            request=completion.request,
        )

    def _max_tokens(self, ask: Ask) -> int:
        return self.settings.max_tokens << min(ask.cut_off, _MOST_DOUBLINGS)

    def _schema(self, ask: Ask) -> dict[str, object]:
        return prompt.schema(self.brief.space, len(ask.slots))

    def _step_down(self, error: AgentError, used: int) -> None:
        """Take the next format where the server may have refused the one of this request.

        Raises the error that asks for the further call. Where no format is left it was not the
        format: the next ask begins again with the last one that worked.
        """
        if error.status not in REFUSALS:
            return
        if used + 1 == len(self._formats):
            self._format = self._worked
            return
        self._format = used + 1
        raise FormatRefusedError(
            f"{error.what}; asked again without {self._formats[used]}",
            status=error.status,
            request_id=error.request_id,
            unspent=True,
        ) from None


def agent(
    settings: Settings,
    config: CampaignConfig,
    place: Place,
    suite: Suite | None,
    server: ModelServer | None = None,
) -> OpenAIAgent:
    """The agent of a campaign; ``ConfigError`` where its words cannot be used any more.

    ``server`` is the one of this job, if it started one: while that is down nothing is asked.
    """
    text = None if settings.prompt is None else _words(place.folder / settings.prompt)
    client = ChatClient(settings, place.folder, place.run_dir)
    return OpenAIAgent(settings, prompt.brief(config, suite, text), place.seed, client, server)


def _words(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        found = [f"cannot be read: {error.strerror}"]
    except UnicodeDecodeError:
        found = ["holds other than UTF-8; save it as UTF-8"]
    else:
        found = prompt.check_template(text)
        if not found:
            return text
    raise ConfigError([Problem("", one) for one in found], str(path))


def request_seed(seed: int, round_number: int, generation: int) -> int:
    """The seed of a request, in 0 … 2**31 - 1, so that no two asks of a campaign are alike."""
    digest = hashlib.sha256(f"{seed}:ask:{round_number}:{generation}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
