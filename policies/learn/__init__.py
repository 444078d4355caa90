"""Learning the small policies from demonstrations in simulation."""
