"""The surrogate: from finished simulations to the candidates worth simulating next."""

from campaign.surrogate.propose import predict, suggest

__all__ = ["predict", "suggest"]
