"""Metrics: pure formulas, and the windows that feed them."""
