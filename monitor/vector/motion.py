"""A-*, TCP-*, TI, stillness, reversals and progress of N environments (see monitor.metrics)."""

from __future__ import annotations

from typing import final

import numpy as np

from monitor.config import MetricsConfig
from monitor.metrics.instability import DIVISORS, jerk_weights
from monitor.metrics.motion import ACTION_IDS, POSE, TCP_IDS
from monitor.records import FloatArray
from monitor.vector.history import Ints, Mask, Turns, count_on

Values = dict[str, FloatArray]


def rotations(q0: FloatArray, q1: FloatArray) -> FloatArray:
    """Return Log(q0^-1 q1), ``(N, 3)``, of unit quaternions ``(N, 4)``."""
    w0, v0, w1, v1 = q0[:, 0], q0[:, 1:], q1[:, 0], q1[:, 1:]
    w = w0 * w1 + (v0 * v1).sum(axis=1)
    v = w0[:, None] * v1 - w1[:, None] * v0 - np.cross(v0, v1)
    v = np.where((w < 0.0)[:, None], -v, v)
    sine = np.sqrt((v * v).sum(axis=1))
    small = ~(sine > 1e-12)
    angle = 2.0 * np.arctan2(sine, np.abs(w))
    factor = np.where(small, 2.0, angle / np.where(small, 1.0, sine))
    turned: FloatArray = factor[:, None] * v
    return turned


@final
class VectorMotion:
    """As :class:`monitor.metrics.motion.Motion`, with NaN for unknown."""

    def __init__(self, low: FloatArray, high: FloatArray, n: int, config: MetricsConfig) -> None:
        self._low, self._high = low, high
        self._span = np.where(high > low, high - low, 1.0)
        self._dim, self._window = len(low), config.window
        self._zeros = config.warmup == "zeros"
        self._steps = np.zeros(n, dtype=np.int64)
        width = self._dim + POSE
        parts = [at for at in (0, 3, 6) if at < self._dim] + [self._dim, self._dim + 3]
        self._starts = np.array([k * width + at for k in range(3) for at in parts])
        self._parts = len(parts)
        self._rows = Turns(config.window - 3, (n, 3 * self._parts))
        self._last = np.full((n, 2 * width), np.nan)
        self._row = np.full((n, 3 * width), np.nan)
        self._before = np.full((n, self._dim + 7), np.nan)
        self._places = [np.full((n, 3), np.nan) for _ in range(config.window)]
        self._jerk = (jerk_weights(config.window) / config.ti_dt_s**3).tolist()
        self._runs: list[Ints] = [np.zeros(n, dtype=np.int64) for _ in range(3)]

    def reset(self, which: Mask) -> None:
        """Begin an episode in some environments."""
        self._rows.clear(which)
        self._last[which] = self._row[which] = self._before[which] = np.nan
        for place in self._places:
            place[which] = np.nan
        for run in (*self._runs, self._steps):
            run[which] = 0

    def update(self, action: FloatArray, place: FloatArray, turn: FloatArray, out: Values) -> None:
        """Take one step in: ``(N, D)``, ``(N, 3)`` and ``(N, 4)``, NaN rows where unknown."""
        dim, row, last, before = self._dim, self._row, self._last, self._before
        width = dim + POSE
        normal = (np.minimum(np.maximum(action, self._low), self._high) - self._low) / self._span
        row[:, :dim] = normal - before[:, :dim]
        row[:, dim : dim + 3] = place - before[:, dim : dim + 3]
        row[:, dim + 3 : width] = rotations(before[:, dim + 3 :], turn)
        row[:, width : 2 * width] = row[:, :width] - last[:, :width]
        row[:, 2 * width :] = row[:, width : 2 * width] - last[:, width:]
        last[:] = row[:, : 2 * width]
        before[:, :dim], before[:, dim : dim + 3], before[:, dim + 3 :] = normal, place, turn
        self._steps += 1
        for run, given in zip(self._runs, (action, place, turn), strict=True):
            count_on(run, ~np.isnan(given[:, 0]))
        self._rows.push(np.add.reduceat(np.abs(row), self._starts, axis=1))
        self._places = [*self._places[1:], place]
        self._write(out)

    def _write(self, out: Values) -> None:
        sums = np.add.reduce(self._rows.rows, axis=0).T.copy()
        acts, places, turns = self._runs
        start = 0
        for (a, ap, ao), (t, tp, to), divisor in zip(ACTION_IDS, TCP_IDS, DIVISORS, strict=True):
            end = start + self._parts
            scale = 1.0 / ((self._window - 3) * divisor)
            out[a] = self._known(acts, sums[start : end - 2].sum(axis=0) * (scale / self._dim))
            if self._dim >= 3:
                out[ap] = self._known(acts, sums[start] * (scale / 3.0))
            if self._dim >= 6:
                out[ao] = self._known(acts, sums[start + 1] * (scale / 3.0))
            out[tp] = self._known(places, sums[end - 2] * (scale / 3.0))
            out[to] = self._known(turns, sums[end - 1] * (scale / 3.0))
            out[t] = (out[tp] + out[to]) / 2.0
            start = end
        jerk = sum(w * p for w, p in zip(self._jerk, self._places, strict=True) if w != 0.0)
        out["TI"] = self._known(places, np.sqrt((np.asarray(jerk) ** 2).sum(axis=1)))

    def _known(self, run: Ints, values: FloatArray) -> FloatArray:
        blank = np.where(run == self._steps, 0.0, np.nan) if self._zeros else np.nan
        return np.where(run >= self._window, values, blank)


@final
class VectorProgress:
    """As :class:`monitor.metrics.progress.Progress`, with NaN for unknown."""

    def __init__(self, config: MetricsConfig, gripper_index: int, n: int, dim: int) -> None:
        self._config, self._index, self._dim = config, gripper_index, dim
        w = self._window = config.window
        self._places, self._goals = Turns(w, (n, 3)), Turns(w, (n,))
        self._paths, self._goal_paths = Turns(w - 1, (n,)), Turns(w - 1, (n,))
        self._reversals = Turns(w - 1, (n,))
        self._openings, self._commands = Turns(w, (n,)), Turns(w, (n,))
        self._last_action = np.full((n, 3), np.nan)
        self._last_place = np.full((n, 3), np.nan)
        self._last_goal, self._first_goal = np.full(n, np.nan), np.full(n, np.nan)
        self._place_run, self._goal_run, self._pair_run = (
            np.zeros(n, dtype=np.int64) for _ in range(3)
        )
        self.reversal = np.full(n, np.nan)

    def reset(self, which: Mask) -> None:
        """Begin an episode in some environments."""
        rings = (self._places, self._goals, self._paths, self._goal_paths, self._reversals)
        for ring in (*rings, self._openings, self._commands):
            ring.clear(which)
        for state in (self._last_action, self._last_place, self._last_goal, self._first_goal):
            state[which] = np.nan
        for run in (self._place_run, self._goal_run, self._pair_run):
            run[which] = 0

    def update(
        self,
        action: FloatArray,
        place: FloatArray,
        goal: FloatArray,
        gripper: FloatArray,
        out: Values,
    ) -> None:
        """Take one step in, NaN where unknown."""
        self._turn(action, out)
        path_to_goal = self._goal(goal, out)
        self._still(action, place, gripper, path_to_goal, out)

    def _turn(self, action: FloatArray, out: Values) -> None:
        if self._dim < 3:
            out["REV"] = np.full(len(action), np.nan)
            self.reversal[:] = np.nan
            return
        now, before = action[:, :3], self._last_action
        known = ~np.isnan(action[:, 0])
        pair = known & ~np.isnan(before[:, 0])
        floor, cosine = self._config.reversal_floor_m**2, self._config.reversal_cosine
        na, nb = (before * before).sum(axis=1), (now * now).sum(axis=1)
        dot = (before * now).sum(axis=1)
        back = (na >= floor) & (nb >= floor) & (dot < cosine * np.sqrt(na) * np.sqrt(nb))
        self.reversal = np.where(pair, back.astype(np.float64), np.nan)
        self._pair_run += pair
        self._pair_run[~known] = 0
        self._reversals.push(self.reversal)
        full = self._pair_run >= self._window - 1
        share = self._reversals.rows.sum(axis=0) / (self._window - 1)
        out["REV"] = np.where(full, share, np.nan)
        self._last_action = now.copy()

    def _goal(self, goal: FloatArray, out: Values) -> FloatArray:
        known = ~np.isnan(goal)
        first = known & np.isnan(self._first_goal)
        self._first_goal[first] = goal[first]
        change = goal - self._last_goal
        scale = self._config.goal_scale_m or self._first_goal
        positive = np.where(np.asarray(scale) > 0.0, scale, np.nan)
        trend = (np.clip(change / positive, -1.0, 1.0) + 1.0) / 2.0
        out["OT"] = np.where(first, 0.5, trend)
        self._goal_paths.push(np.abs(change))
        self._goals.push(goal)
        self._last_goal = goal.copy()
        count_on(self._goal_run, known)
        path = self._goal_paths.rows.sum(axis=0)
        # After the push the next to be overwritten is the oldest of the window.
        gain = self._goals.oldest - goal
        moved = path > self._config.still_path_m
        share = (1.0 - gain / np.where(moved, path, 1.0)) / 2.0
        full = self._goal_run >= self._window
        out["PROG"] = np.where(full, np.where(moved, np.clip(share, 0.0, 1.0), 0.5), np.nan)
        return np.where(full, path, np.nan)

    def _still(
        self,
        action: FloatArray,
        place: FloatArray,
        gripper: FloatArray,
        path_to_goal: FloatArray,
        out: Values,
    ) -> None:
        known = ~np.isnan(place[:, 0])
        step = np.sqrt(((place - self._last_place) ** 2).sum(axis=1))
        self._paths.push(step)
        self._places.push(place)
        self._last_place = place.copy()
        count_on(self._place_run, known)
        self._openings.push(gripper)
        self._commands.push(np.where(np.isnan(gripper), action[:, self._index], np.nan))
        full = self._place_run >= self._window
        path = np.where(full, self._paths.rows.sum(axis=0), np.nan)
        out["TCP-path"] = path
        net = np.sqrt(((self._places.oldest - place) ** 2).sum(axis=1))
        out["TCP-net"] = np.where(full, net, np.nan)
        path = np.where(known, path, path_to_goal)
        busy = np.zeros(len(action), dtype=bool)
        for rows in (self._openings.rows, self._commands.rows):
            spread = np.fmax.reduce(rows, axis=0) - np.fmin.reduce(rows, axis=0)
            busy |= spread > self._config.gripper_change
        floor = self._config.still_path_m
        still = np.where(busy, 0.0, floor / (floor + path))
        out["STILL"] = np.where(np.isnan(path), np.nan, still)
