"""INFO-A, INFO-AA, INFO-SA: Tri-Info over a long window of discretised actions and positions.

H(A_t), I(A_t; A_{t+1}) and I(S_t, S_{t+1}; A_t) in bits, after Tri-Info, arXiv 2606.19998. Plug-in
estimates: with few samples mutual information is biased upwards, so compare like with like.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable
from math import floor, log2
from typing import Final, final

import numpy as np

from monitor.records import Evidence, Numbers
from monitor.stage import MetricInfo, Setup
from monitor.stage.info import TRI_INFO

INFOS: Final = tuple(
    MetricInfo(
        id=name,
        meaning=f"{meaning} over ``info_window``; a report, off by default",
        unit="bit",
        high=None,
        warmup=3,
        needs=needs,
        source=TRI_INFO,
    )
    for name, meaning, needs in (
        ("INFO-A", "entropy of the action's direction", ("action",)),
        ("INFO-AA", "mutual information of consecutive actions", ("action",)),
        ("INFO-SA", "mutual information of a move and its action", ("action", "tcp_position")),
    )
)
IDS: Final = tuple(info.id for info in INFOS)
CELL_M: Final = 0.02
"""Edge of a cell of the discretised position."""
FLOOR: Final = 0.1
"""Share of a dimension's limit below which a translation counts as none in it."""


@final
class WindowEntropy:
    """Plug-in entropy in bits of the last ``capacity`` symbols, O(1) per symbol.

    >>> entropy = WindowEntropy(2)
    >>> for symbol in "aab":
    ...     entropy.push(symbol)
    >>> entropy.bits
    1.0
    """

    def __init__(self, capacity: int) -> None:
        self._terms = [0.0, *(n * log2(n) for n in range(1, capacity + 1))]
        self._symbols: deque[Hashable] = deque(maxlen=capacity)
        self._counts: Counter[Hashable] = Counter()
        self._sum = 0.0

    def push(self, symbol: Hashable) -> None:
        """Take a symbol; the oldest falls out when full."""
        counts, terms = self._counts, self._terms
        if len(self._symbols) == self._symbols.maxlen:
            old = self._symbols[0]
            n = counts[old]
            self._sum += terms[n - 1] - terms[n]
            if n == 1:
                del counts[old]
            else:
                counts[old] = n - 1
        self._symbols.append(symbol)
        n = counts[symbol]
        self._sum += terms[n + 1] - terms[n]
        counts[symbol] = n + 1

    @property
    def full(self) -> bool:
        """Whether the window is full."""
        return len(self._symbols) == self._symbols.maxlen

    @property
    def bits(self) -> float:
        """Entropy of what is in the window."""
        n = len(self._symbols)
        return max(log2(n) - self._sum / n, 0.0) if n else 0.0


def action_symbol(action: Numbers, limits: Numbers) -> tuple[int, ...]:
    """Return the direction of the translation: -1, 0 or 1 per dimension."""
    return tuple([(x > FLOOR * m) - (x < -FLOOR * m) for x, m in zip(action, limits, strict=False)])


def position_symbol(position: Numbers) -> tuple[int, ...]:
    """Return the cell of a position."""
    return tuple([floor(x / CELL_M) for x in position])


@final
class Information:
    """The three signals over the last ``window`` transitions, unknown before."""

    def __init__(self, window: int, limits: Numbers) -> None:
        self._window = window
        self._limits = limits
        self.reset()

    @classmethod
    def of(cls, setup: Setup) -> Information | None:
        """Return the signals of a setup, None where they are left out."""
        window = setup.config.metrics.info_window
        if window is None:
            return None
        ends = np.maximum(np.abs(setup.action_low), np.abs(setup.action_high))[:3]
        return cls(window, tuple(ends.tolist()))

    def reset(self) -> None:
        """Begin an episode."""
        w = self._window
        self._a, self._next, self._pairs = (WindowEntropy(w) for _ in range(3))
        self._from, self._moves, self._joint = (WindowEntropy(w) for _ in range(3))
        self._last_action: Hashable = None
        self._last_position: Hashable = None

    def update(self, evidence: Evidence, values: dict[str, float | None]) -> None:
        """Take one step and write the signals into ``values``."""
        action = None if evidence.action is None else action_symbol(evidence.action, self._limits)
        tcp = evidence.tcp_position
        position = None if tcp is None else position_symbol(tcp)
        before, where = self._last_action, self._last_position
        if before is not None and action is not None:
            self._a.push(before)
            self._next.push(action)
            self._pairs.push((before, action))
        if before is not None and position is not None and where is not None:
            self._from.push(before)
            self._moves.push((where, position))
            self._joint.push((where, position, before))
        self._last_action, self._last_position = action, position
        if self._pairs.full:
            values["INFO-A"] = self._a.bits
            both = self._a.bits + self._next.bits - self._pairs.bits
            values["INFO-AA"] = max(both, 0.0)
        if self._joint.full:
            shared = self._from.bits + self._moves.bits - self._joint.bits
            values["INFO-SA"] = max(shared, 0.0)
