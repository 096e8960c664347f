"""Agents: whatever proposes candidates."""
