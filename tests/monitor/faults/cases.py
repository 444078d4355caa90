"""What the tests of the cases share."""

from __future__ import annotations

from monitor import Decision, Monitor, Step


def codes(decision: Decision) -> set[str]:
    return {fault.code for fault in decision.faults}


def run(monitor: Monitor, steps: list[Step]) -> list[Decision]:
    return [monitor.update(step) for step in steps]


def first(decisions: list[Decision], code: str) -> int:
    return next(t for t, d in enumerate(decisions) if code in codes(d))
