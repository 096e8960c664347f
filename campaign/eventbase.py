"""What every event of a ledger is; the events are in :mod:`campaign.events`."""

from __future__ import annotations

import msgspec


class LedgerEvent(msgspec.Struct, frozen=True, tag_field="kind", omit_defaults=True, kw_only=True):
    """One fact. ``kind`` tells events apart, and fields that have their default are left out."""
