"""The campaign: propose, gate, simulate, observe, round after round."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from campaign.agents.base import AgentError
    from campaign.configfile import LoadedConfig, load_config
    from campaign.drive import RunDirError
    from campaign.ledger import LedgerError, read
    from campaign.loop import Ending
    from campaign.model import JobOutcome
    from campaign.problems import ConfigError
    from campaign.report.export import candidates, observed
    from campaign.running import resume, run
    from campaign.state import CampaignState, fold

__all__ = [
    "AgentError",
    "CampaignState",
    "ConfigError",
    "Ending",
    "JobOutcome",
    "LedgerError",
    "LoadedConfig",
    "RunDirError",
    "candidates",
    "fold",
    "load_config",
    "observed",
    "read",
    "resume",
    "run",
]

# Imported when first used: the command line and a reader of a ledger need few of them.
_HOME = {
    "AgentError": "campaign.agents.base",
    "CampaignState": "campaign.state",
    "ConfigError": "campaign.problems",
    "Ending": "campaign.loop",
    "JobOutcome": "campaign.model",
    "LedgerError": "campaign.ledger",
    "LoadedConfig": "campaign.configfile",
    "RunDirError": "campaign.drive",
    "candidates": "campaign.report.export",
    "fold": "campaign.state",
    "load_config": "campaign.configfile",
    "observed": "campaign.report.export",
    "read": "campaign.ledger",
    "resume": "campaign.running",
    "run": "campaign.running",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
