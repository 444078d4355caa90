"""Policies: from a picture and an instruction to an action."""
