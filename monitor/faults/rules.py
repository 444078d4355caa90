"""Rules over metrics and faults: AND, OR, k of n, for some steps in a row."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import final

from monitor.config import Rule


@final
class RuleCount:
    """One rule and for how many steps it has held.

    An unknown metric neither fulfils nor frees: the count stays where it is while the known
    terms alone do not decide.
    """

    __slots__ = ("_count", "rule")

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._count = 0

    def reset(self) -> None:
        """Begin an episode."""
        self._count = 0

    def holds(self, metrics: Mapping[str, float | None], faults: Set[str]) -> bool:
        """Take one step in and tell whether the rule fires."""
        met = unknown = 0
        for term in self.rule.of:
            if term.fault is not None:
                met += term.fault in faults
            elif term.metric is not None and term.above is not None:
                value = metrics.get(term.metric)
                if value is None:
                    unknown += 1
                else:
                    met += value > term.above
        total = len(self.rule.of)
        when = self.rule.when
        need = total if when == "all" else 1 if when == "any" else when
        if met >= need:
            self._count += 1
        elif met + unknown < need:
            self._count = 0
        return self._count >= self.rule.steps
