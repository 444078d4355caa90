"""Rates of episodes with their uncertainty; no rate is shown without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, sqrt
from statistics import NormalDist

from monitor.errors import ConfigError

__all__ = ["Paired", "Rate", "mcnemar_exact", "wilson"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A share of trials with its interval.

    Attributes:
        count: trials of the kind counted.
        total: trials altogether.
        value: ``count / total``; None without trials.
        low: lower end of the interval, 0 without trials.
        high: upper end, 1 without trials.
    """

    count: int
    total: int
    value: float | None
    low: float
    high: float

    def to_json(self) -> dict[str, float | int | str | None]:
        """Return it as it stands in ``summary.json``."""
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "method": "wilson",
            "count": self.count,
            "total": self.total,
        }

    def to_text(self) -> str:
        """Return it as text for people.

        >>> wilson(6, 8).to_text()
        '6/8 = 75 % (41 to 93 %)'
        >>> wilson(0, 0).to_text()
        'no data'
        """
        if self.value is None:
            return "no data"
        return (
            f"{self.count}/{self.total} = {100 * self.value:.0f} % "
            f"({100 * self.low:.0f} to {100 * self.high:.0f} %)"
        )


def wilson(count: int, total: int, confidence: float = 0.95) -> Rate:
    """Rate with the Wilson score interval (Wilson 1927, eq. 1); [0, 1] where there are no trials.

    >>> rate = wilson(11, 16)
    >>> round(rate.low, 2), round(rate.high, 2)
    (0.44, 0.86)

    Raises:
        ConfigError: ``count`` is negative or above ``total``.
    """
    if not 0 <= count <= total:
        msg = f"{count} of {total} trials: the count must lie between 0 and the total"
        raise ConfigError(msg)
    if total == 0:
        return Rate(count=0, total=0, value=None, low=0.0, high=1.0)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share = count / total
    centre = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * sqrt(share * (1 - share) / total + z * z / (4 * total**2))
    # At 0 and at all trials an end of the interval is exact; rounding must not move it.
    low = 0.0 if count == 0 else max(0.0, centre - half)
    high = 1.0 if count == total else min(1.0, centre + half)
    return Rate(count=count, total=total, value=share, low=low, high=high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """The same scenes under two conditions.

    Attributes:
        pairs: scenes with a verdict under both.
        both: solved under both.
        gained: solved only under the second condition.
        lost: solved only under the first.
        p_value: exact two-sided McNemar test.
    """

    pairs: int
    both: int
    gained: int
    lost: int
    p_value: float


def mcnemar_exact(first: Sequence[bool], second: Sequence[bool]) -> Paired:
    """Compare paired outcomes: under no effect each changed pair is a fair coin.

    >>> mcnemar_exact([True, False, False, False], [True, True, True, False]).p_value
    0.5
    """
    if len(first) != len(second):
        msg = f"{len(first)} and {len(second)} outcomes; pairs need as many of one as of the other"
        raise ConfigError(msg)
    pairs = list(zip(first, second, strict=True))
    gained = sum(b and not a for a, b in pairs)
    lost = sum(a and not b for a, b in pairs)
    changed = gained + lost
    tail = sum(comb(changed, k) for k in range(min(gained, lost) + 1)) / 2**changed
    return Paired(
        pairs=len(pairs),
        both=sum(a and b for a, b in pairs),
        gained=gained,
        lost=lost,
        p_value=min(1.0, 2 * tail),
    )
