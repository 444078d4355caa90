"""Distance filter and GroundControl's score of N environments: the same formulas, on arrays."""

from __future__ import annotations

from typing import final

import numpy as np

from monitor.belief.kalman import KalmanModel
from monitor.config import BeliefConfig
from monitor.records import FloatArray
from monitor.vector.history import Mask


@final
class VectorBelief:
    """NaN distance = no belief yet."""

    def __init__(self, config: BeliefConfig, model: KalmanModel, n: int) -> None:
        self._config, self._model = config, model
        self._state = np.full((5, n), np.nan)
        self._first, self._last, self._top = (np.full(n, np.nan) for _ in range(3))
        self._path, self._steps, self._falls, self._pairs, self._turns = np.zeros((5, n))

    @property
    def distance(self) -> FloatArray:
        """Filtered distance, ``(N,)``."""
        distance: FloatArray = self._state[0]
        return distance

    def reset(self, which: Mask) -> None:
        """Begin an episode in some environments."""
        self._state[:, which] = np.nan
        for state in (self._first, self._last, self._top):
            state[which] = np.nan
        for total in (self._path, self._steps, self._falls, self._pairs, self._turns):
            total[which] = 0.0

    def update(
        self, z: FloatArray, alpha: FloatArray, reversal: FloatArray, out: dict[str, FloatArray]
    ) -> None:
        """Take the measured distances ``(N,)`` in and write NIS, H, the features and U."""
        nis = self._filter(z)
        out["NIS"] = nis
        config = self._config
        a, c = self._state[2] + config.epsilon, self._state[4] + config.epsilon
        l1, l2, l3 = config.entropy_weights
        h = l1 * np.log(a * c - self._state[3] ** 2)
        inside = (alpha > 0.0) & (alpha < 1.0)
        p = np.where(inside, alpha, 0.5)
        coin = np.where(inside, -p * np.log(p) - (1.0 - p) * np.log(1.0 - p), 0.0)
        h = h + l2 * np.where(np.isnan(alpha), 0.0, coin) + l3 * np.where(np.isnan(nis), 0.0, nis)
        out["H"] = h
        self._top = np.fmax(self._top, h)
        self._count(z, reversal)
        self._write(out)

    def _filter(self, z: FloatArray) -> FloatArray:
        model, state = self._model, self._state
        known = ~np.isnan(z)
        d, v, a, b, c = state
        new = np.isnan(d) & known
        # x' = F x, P' = F P F^T + Q
        d, a = d + v, a + 2.0 * b + c + model.q_distance
        b, c = b + c, c + model.q_velocity
        nu, s = z - d, a + model.r
        k0, k1 = a / s, b / s
        i0 = 1.0 - k0
        after = np.stack(
            [
                d + k0 * nu,
                v + k1 * nu,
                i0 * i0 * a + k0 * k0 * model.r,
                i0 * (b - k1 * a) + k0 * k1 * model.r,
                c - 2.0 * k1 * b + k1 * k1 * a + k1 * k1 * model.r,
            ]
        )
        self._state = np.where(known, after, np.stack([d, v, a, b, c]))
        zero = np.zeros(int(new.sum()))
        start = [z[new], zero, zero + model.initial_distance, zero, zero + model.initial_velocity]
        self._state[:, new] = start
        return np.where(known & ~new, nu * nu / s, np.nan)

    def _count(self, z: FloatArray, reversal: FloatArray) -> None:
        known = ~np.isnan(z)
        first = known & np.isnan(self._first)
        later = known & ~first
        self._first[first] = z[first]
        change = np.where(later, z - self._last, 0.0)
        self._steps += later
        self._falls += change < 0.0
        self._path += np.abs(change)
        self._last[known] = z[known]
        pair = ~np.isnan(reversal)
        self._pairs += pair
        self._turns += np.where(pair, reversal, 0.0)

    def _write(self, out: dict[str, FloatArray]) -> None:
        d0, gained = self._first, self._first - self._last
        # The plain formula overflows quietly to the right limit below -700.
        skf = np.where(
            np.isnan(self._top), np.nan, 1.0 / (1.0 + np.exp(-np.maximum(self._top, -700.0)))
        )
        share = np.where(d0 > 0.0, gained / np.where(d0 > 0.0, d0, 1.0), 1.0)
        prog = np.where(np.isnan(d0), np.nan, 1.0 - np.clip(share, 0.0, 1.0))
        some = self._path > 0.0
        eff = np.where(some, 1.0 - np.abs(gained) / np.where(some, self._path, 1.0), 1.0)
        eff = np.where(np.isnan(d0), np.nan, np.clip(eff, 0.0, 1.0))
        steps, pairs = self._steps, self._pairs
        mono = np.where(steps > 0.0, 1.0 - self._falls / np.maximum(steps, 1.0), np.nan)
        osc = np.where(pairs > 0.0, self._turns / np.maximum(pairs, 1.0), np.nan)
        total = weight = np.zeros(len(d0))
        names = ("skf", "prog", "mono", "eff", "osc")
        terms = (skf, prog, mono, eff, osc)
        for name, term, w in zip(names, terms, self._config.u_weights, strict=True):
            out[name] = term
            known = ~np.isnan(term)
            total = total + np.where(known, w * term, 0.0)
            weight = weight + w * known
        out["U"] = np.where(weight > 0.0, total / np.where(weight > 0.0, weight, 1.0), np.nan)
