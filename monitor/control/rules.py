"""Rules over metrics and faults: AND, OR, k of n, for some steps in a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from monitor.config import Rule
from monitor.records import FloatArray


@final
class RuleCount:
    """One rule and for how many steps it has held, for N robots.

    An unavailable metric neither satisfies nor resets the rule: the count stays where it is while
    the known terms alone do not decide.
    """

    def __init__(self, rule: Rule, n: int) -> None:
        self.rule: Final = rule
        total, when = len(rule.of), rule.when
        self._need = total if when == "all" else 1 if when == "any" else when
        self._count: NDArray[np.int64] = np.zeros(n, dtype=np.int64)

    def reset(self, which: Any = None) -> None:
        """Begin an episode of the robots in a mask or index array; None means all."""
        self._count[slice(None) if which is None else which] = 0

    def update(
        self,
        metrics: Mapping[str, float | FloatArray | None],
        faults: Mapping[str, bool | NDArray[np.bool_]],
    ) -> NDArray[np.bool_]:
        """Take one step and tell where the rule fires.

        Args:
            metrics: Values by id, ``(N,)`` or one number for N = 1; None or NaN is unknown.
            faults: Presence by code, ``(N,)`` or one truth value for N = 1.

        >>> rule = Rule.model_validate({"name": "r", "of": [{"metric": "TI", "above": 1.0}]})
        >>> RuleCount(rule, 1).update({"TI": 2.0}, {}).tolist()
        [True]
        """
        met, unknown = np.zeros((2, len(self._count)), dtype=np.int64)
        for term in self.rule.of:
            if term.fault is not None:
                met += np.asarray(faults.get(term.fault, False), dtype=bool)
            elif term.metric is not None and term.above is not None:
                value = metrics.get(term.metric)
                known = np.asarray(np.nan if value is None else value, dtype=np.float64)
                met += known > term.above
                unknown += np.isnan(known)
        self._count[met >= self._need] += 1
        self._count[met + unknown < self._need] = 0
        fires: NDArray[np.bool_] = self._count >= self.rule.steps
        return fires
