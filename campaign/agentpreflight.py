"""What of the agent and the judge can be refused before anything is asked. Nothing is contacted."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from campaign.agentconfig import CommandAgent, JudgeConfig, OpenAIAgent, ReplayAgent
from campaign.agents.replay import load_recording
from campaign.config import CampaignConfig
from campaign.configfile import LoadedConfig
from campaign.gateconfig import observes
from campaign.problems import ConfigError, Loc
from campaign.template import placeholders, render
from checks.finding import Severity
from executors.base import CommandWork
from executors.launch import check_work, script_of, unreadable

_OTHERS = stat.S_IRGRP | stat.S_IROTH


def agent_problems(config: CampaignConfig, folder: Path) -> Iterator[tuple[Loc, str]]:
    """What the agent and the judge name and is not there, or cannot be used."""
    match config.agent:
        case ReplayAgent(file=file):
            try:
                load_recording(folder / file)
            except ConfigError as error:
                yield from ((("agent", "file"), f"{file}: {one}") for one in error.problems)
        case CommandAgent(command=command, env=env):
            yield from _program(("agent", "command"), command[0], env, folder)
            yield from _script(("agent", "command", 1), command[:2], folder)
        case OpenAIAgent() as agent:
            yield from _endpoint(("agent",), agent, folder)
            if agent.serve is not None:
                loc = ("agent", "serve", "command")
                yield from _program(loc, agent.serve.command[0], agent.serve.env, folder)
            if agent.prompt is not None:
                yield from _prompt(agent.prompt, folder)
    if config.judge is not None:
        yield from _endpoint(("judge",), config.judge, folder)


def agent_notes(loaded: LoadedConfig) -> Iterator[str]:
    """What may surprise of who is asked, and of what a judge may decide."""
    config = loaded.config
    servers: Mapping[str, object] = {"agent": config.agent, "judge": config.judge}
    for name, server in servers.items():
        if isinstance(server, OpenAIAgent | JudgeConfig):
            yield from _key_notes(name, server, loaded.folder)
    rules = () if loaded.expect is None or observes(config) else loaded.expect.suite.rules
    for rule in rules:
        if rule.judged and rule.severity is Severity.ERROR:
            yield (
                f"{rule.id}: severity error of a judged rule, so an unattended run is gated by "
                "one model's opinion; severity warn records it"
            )


def _program(
    loc: Loc, word: str, env: Mapping[str, str], folder: Path
) -> Iterator[tuple[Loc, str]]:
    """Whether a program is there; it is started in the campaign folder."""
    if "run_dir" in placeholders(word) or "PATH" in env:
        return  # only a run can tell
    program = render(word, {"campaign_dir": str(folder), "python": sys.executable})
    for problem in check_work(CommandWork((program,)), (str(folder),)):
        yield loc, problem.removeprefix("command ")


def _script(loc: Loc, words: Sequence[str], folder: Path) -> Iterator[tuple[Loc, str]]:
    """Whether the script of an interpreter is there."""
    if any("run_dir" in placeholders(word) for word in words):
        return
    fixed = {"campaign_dir": str(folder), "python": sys.executable}
    script = script_of([render(word, fixed) for word in words])
    if script is not None and (why := unreadable(folder / script)):
        yield loc, f"{script!r}: {why}; it is looked for in the campaign folder"


def _endpoint(
    loc: Loc, server: OpenAIAgent | JudgeConfig, folder: Path
) -> Iterator[tuple[Loc, str]]:
    if server.socket is not None and not placeholders(server.socket):
        from campaign.agents.chat import ChatClient

        for problem in ChatClient(server, folder, folder).problems():
            yield (*loc, "socket"), problem.removeprefix("socket: ")
    if server.key is not None and server.key.file is not None:
        try:
            (folder / server.key.file).read_bytes()
        except OSError as error:
            where = "it is looked for in the campaign folder"
            yield (*loc, "key", "file"), f"{server.key.file}: {error.strerror}; {where}"


def _key_notes(name: str, server: OpenAIAgent | JudgeConfig, folder: Path) -> Iterator[str]:
    key = server.key
    if key is not None and key.env is not None and not os.environ.get(key.env):
        yield f"{name}.key.env: {key.env} is not set here; a run needs it"
    if key is None or key.file is None:
        return
    path = folder / key.file
    if path.is_file() and path.stat().st_mode & _OTHERS:
        yield f"{name}.key.file: others on this machine can read {key.file}; chmod 600 it"


def _prompt(name: str, folder: Path) -> Iterator[tuple[Loc, str]]:
    from campaign.agents.prompt import check_template

    loc = ("agent", "prompt")
    try:
        text = (folder / name).read_text(encoding="utf-8")
    except OSError as error:
        yield loc, f"{name}: {error.strerror}; it is looked for in the campaign folder"
    except UnicodeDecodeError:
        yield loc, f"{name}: not UTF-8 text; a prompt is text"
    else:
        yield from ((loc, f"{name}: {one}") for one in check_template(text))
