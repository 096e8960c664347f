"""The campaign: propose, gate, simulate, observe, round after round."""
