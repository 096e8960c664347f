"""What the agent and the judge say in more than one place; plain data, see `campaign.crossing`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from campaign.agentconfig import OURS
from campaign.problems import Loc, clip
from campaign.template import unknown_placeholders

if TYPE_CHECKING:
    from campaign.crossing import Found, Plain

PLACEHOLDERS = ("campaign_dir", "run_dir", "python")
"""What is replaced in the arguments of a program that is asked, or that serves a model."""


def asked(data: Plain) -> Iterator[Found]:
    """What contradicts itself in who is asked, and where."""
    agent, judge = data.get("agent"), data.get("judge")
    if isinstance(agent, Mapping) and agent.get("kind") == "openai":
        yield from _endpoint("agent", agent)
        if isinstance(serve := agent.get("serve"), Mapping):
            yield from _words(("agent", "serve", "command"), serve.get("command"))
    if isinstance(agent, Mapping) and agent.get("kind") == "command":
        yield from _words(("agent", "command"), agent.get("command"))
    if isinstance(judge, Mapping):
        yield from _endpoint("judge", judge)


def _endpoint(key: str, server: Plain) -> Iterator[Found]:
    url, socket = server.get("url"), server.get("socket")
    yield from _one_of((key,), server, ("url", "socket"))
    if isinstance(url, str):
        from campaign.agents.chat import url_problems  # only who asks a server pays for it

        yield from (((key, "url"), one.removeprefix("url: ")) for one in url_problems(url))
    if isinstance(socket, str):
        yield from (((key, "socket"), one) for one in unknown_placeholders(socket, ("run_dir",)))
    if isinstance(where := server.get("key"), Mapping):
        yield from _one_of((key, "key"), where, ("env", "file"))
    body = server.get("body")
    for name in body if isinstance(body, Mapping) else ():
        if name in OURS:
            ours = f"{clip(name)} is written by simgate itself; leave it out of body"
            yield (key, "body", str(name)), ours


def _one_of(loc: Loc, given: Plain, keys: tuple[str, str]) -> Iterator[Found]:
    found = [name for name in keys if given.get(name) is not None]
    if len(found) != 1:
        what = "both given" if found else "neither given"
        yield loc, f"{keys[0]} or {keys[1]}: {what}; give exactly one of the two"


def _words(loc: Loc, words: object) -> Iterator[Found]:
    for index, word in enumerate(words if isinstance(words, list | tuple) else ()):
        if isinstance(word, str):
            yield from (((*loc, index), one) for one in unknown_placeholders(word, PLACEHOLDERS))
