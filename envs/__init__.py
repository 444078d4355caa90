"""Simulation environments behind one contract."""
