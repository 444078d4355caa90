"""GroundControl's episode score U, exactly as published, readable after every step (spec 8).

It starts at its worst in a healthy episode (no progress yet), so it ranks episodes; it is not the
score that controls. Darabi et al., arXiv 2606.20479.
"""

from __future__ import annotations

from math import exp, log
from typing import final

from monitor.records import Belief

IDS = ("H", "skf", "prog", "mono", "eff", "osc", "U")


def bernoulli_entropy(p: float) -> float:
    """Return the entropy in nats of a coin with probability ``p``.

    >>> round(bernoulli_entropy(0.5), 6), bernoulli_entropy(1.0)
    (0.693147, 0.0)
    """
    if p <= 0.0 or p >= 1.0:
        return 0.0
    return -p * log(p) - (1.0 - p) * log(1.0 - p)


def sigmoid(x: float) -> float:
    """Return the logistic function, without overflow."""
    if x >= 0.0:
        return 1.0 / (1.0 + exp(-x))
    e = exp(x)
    return e / (1.0 + e)


@final
class EpisodeScore:
    """Running features of one episode; O(1) per step."""

    def __init__(self, lambdas: tuple[float, float, float], weights: tuple[float, ...]) -> None:
        self._lambdas = lambdas
        self._weights = weights
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._d0: float | None = None
        self._last = 0.0
        self._path = 0.0
        self._steps = 0
        self._falls = 0
        self._pairs = 0
        self._reversals = 0
        self._top: float | None = None

    def update(
        self,
        distance: float | None,
        log_determinant: float | None,
        belief: Belief | None,
        alpha: float | None,
        reversal: bool | None,
        values: dict[str, float | None],
    ) -> None:
        """Take one step in and write ``H``, the five features and ``U`` so far into ``values``.

        Args:
            distance: measured, metres.
            log_determinant: log det(P + epsilon I) of ``belief``.
            belief: of the distance filter after this step.
            alpha: probability of the chosen action; None leaves its term out.
            reversal: whether this action reverses the last; None where there is no pair.
            values: by metric id.
        """
        h = None
        if log_determinant is not None and belief is not None:
            l1, l2, l3 = self._lambdas
            h = l1 * log_determinant
            if alpha is not None:
                h += l2 * bernoulli_entropy(alpha)
            if belief.nis is not None:
                h += l3 * belief.nis
            if self._top is None or h > self._top:
                self._top = h
        if distance is not None:
            if self._d0 is None:
                self._d0 = distance
            else:
                self._steps += 1
                self._falls += distance < self._last
                self._path += abs(distance - self._last)
            self._last = distance
        if reversal is not None:
            self._pairs += 1
            self._reversals += reversal
        values["H"] = h
        self._write(values)

    def _write(self, values: dict[str, float | None]) -> None:
        skf = None if self._top is None else sigmoid(self._top)
        prog = mono = eff = None
        if self._d0 is not None:
            gained = self._d0 - self._last
            share = gained / self._d0 if self._d0 > 0.0 else 1.0
            prog = 1.0 - min(max(share, 0.0), 1.0)
            eff = 1.0 - abs(gained) / self._path if self._path > 0.0 else 1.0
            eff = min(max(eff, 0.0), 1.0)
            if self._steps:
                mono = 1.0 - self._falls / self._steps
        osc = self._reversals / self._pairs if self._pairs else None
        total = weight = 0.0
        terms = (skf, prog, mono, eff, osc)
        for value, w in zip(terms, self._weights, strict=True):
            if value is not None:
                total += w * value
                weight += w
        values["skf"], values["prog"], values["mono"] = skf, prog, mono
        values["eff"], values["osc"] = eff, osc
        values["U"] = total / weight if weight > 0.0 else None
