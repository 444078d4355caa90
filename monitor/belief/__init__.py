"""Belief over the goal distance, and GroundControl's episode score."""
