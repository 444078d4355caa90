"""The online score, signal by signal (spec 10)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import final

from monitor.score import Scoring


def combine(pooled: Mapping[str, float], weights: Mapping[str, float], how: str) -> float | None:
    """Return the score of the known signals' surprises, None where nothing is known.

    >>> combine({"a": 0.8, "b": 0.4, "c": 0.0}, {}, "mean_top2")
    0.6000000000000001
    """
    if not pooled:
        return None
    if how == "max":
        return max(pooled.values())
    if how == "mean_top2":
        top = sorted(pooled.values())[-2:]
        return sum(top) / len(top)
    # In the weights' order, whatever came first, and from left to right: the same on every Python.
    total = weight = 0.0
    for name, w in weights.items():
        if name in pooled:
            total += w * pooled[name]
            weight += w
    return total / weight


@final
class Score:
    """The online score of one episode."""

    def __init__(self, scoring: Scoring, window: int) -> None:
        self._weights = dict(scoring.weights)
        self._surprise = scoring.surprises
        self._how = scoring.combine
        self._window = window
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._pools: dict[str, deque[float]] = {
            name: deque(maxlen=self._window) for name in self._weights
        }
        self._stale: set[str] = set()
        self._moved: frozenset[str] = frozenset()
        self._pause = 0
        self._pooled: dict[str, float] = {}

    def forget(self, moved: frozenset[str]) -> None:
        """Start the pools afresh after a retreat.

        Args:
            moved: signals whose window now holds the retreat's own motion; they are left out
                until the window has passed it. The others keep their peak until they are seen
                again.
        """
        for name in moved & self._pools.keys():
            self._pools[name].clear()
            self._pooled.pop(name, None)
        self._moved = moved
        self._pause = self._window
        self._stale = {name for name, pool in self._pools.items() if pool}

    def update(
        self, values: Mapping[str, float | None], muted: frozenset[str] = frozenset()
    ) -> float | None:
        """Take the metrics of one step in and return the score.

        Args:
            values: by metric id.
            muted: signals that mean nothing now; unlike the unknown they do not linger.
        """
        if self._pause:
            self._pause -= 1
            muted |= self._moved
        pooled, stale, pools = self._pooled, self._stale, self._pools
        for name, surprise in self._surprise.items():
            x = values.get(name)
            if muted and name in muted:
                pooled.pop(name, None)
                continue
            if x is None:
                continue
            pool = pools[name]
            if stale and name in stale:
                pool.clear()
                stale.discard(name)
            s = surprise(x)
            top = pooled.get(name) if pool else None
            leaving = pool[0] if len(pool) == self._window else None
            pool.append(s)
            # The largest is looked for again only where it may just have fallen out.
            if top is None or top == leaving:
                pooled[name] = max(pool)
            elif s > top:
                pooled[name] = s
        return combine(pooled, self._weights, self._how)

    @property
    def pooled(self) -> Mapping[str, float]:
        """Peak surprise over the window by signal."""
        return dict(self._pooled)
