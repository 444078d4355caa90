"""Checks made before a run moves anything."""
