"""Metrics of one step: motion, progress, the distance filter, the episode score (spec 2 to 8).

Valle et al., arXiv 2507.17049, and Darabi et al., arXiv 2606.20479; the definitions over a whole
window are in :mod:`monitor.metrics.instability` and :mod:`monitor.belief.kalman`. All that an
environment remembers is one row of numbers; NaN stands for unknown. Whatever is compiled together stands in this file, because numba
sees a change of no other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import atan2, exp, isnan, log, nan, sqrt
from typing import Any, Final

import numpy as np

from monitor.metrics.compiled import compile_for, within
from monitor.records import FloatArray

DISTANCE, GRIPPER, ALPHA, PLACE, TURN, ACTION = 0, 1, 2, 3, 6, 10
"""Columns of what is given: goal distance, opening, probability of the chosen tokens, position
(3), quaternion (4), action (D)."""

RUN_ACTION, RUN_PLACE, RUN_TURN, STEPS, SLOT = 0, 1, 2, 3, 4
LAST_PLACE, LAST_TURN = 5, 8
TURNS, GOALS, FIRST_GOAL, LAST_GOAL, FILTER = 12, 13, 14, 15, 16
D0, LAST_D, PATH_D, D_STEPS, FALLS, PAIRS, REVERSALS, TOP = 21, 22, 23, 24, 25, 26, 27, 28
REMEMBERED: Final = 29
"""Columns of the state before the windows; see :func:`windows`."""

FLOOR, GRIPPER_CHANGE, GRIPPER_INDEX, TURN_FLOOR, TURN_COSINE, SCALE, ZEROS = 0, 1, 2, 3, 4, 5, 6
Q_DISTANCE, Q_VELOCITY, R, INITIAL_DISTANCE, INITIAL_VELOCITY, EPSILON = 7, 8, 9, 10, 11, 12
LAMBDAS, WEIGHTS, JERK = 13, 16, 21
"""Columns of the setting; the jerk's weights are W, low, high and span of the action 3 D."""

INSTABILITY, TI, STILL, PATH, NET, REV, PROG, OT = 0, 18, 19, 20, 21, 22, 23, 24
NIS, H, SKF, BELIEF, REVERSAL = 25, 26, 27, 33, 40
COLUMNS: Final = 41
"""Columns of what comes out: the metrics, then the belief, then whether the action turns back."""

TOOL: Final = 6

Row = Any
"""A row of numbers: an array where this is compiled, a list of floats where it is not."""


@within
def windows(dim: int, window: int) -> tuple[int, ...]:
    """Return where the windows begin in the state, and how long the state is.

    In turn: normalised action (D), first and second differences of the step before (2 (D + 6)),
    first differences of the tool (6), absolute differences ((W - 3) 3 (D + 6)), places (3 W),
    lengths of path (W), openings (W), commands (W), goal distances (W), lengths of their path
    (W), reversals (W), actions (D W), sums over the absolute differences (3 (D + 6)).
    """
    width = dim + TOOL
    normal = REMEMBERED
    last = normal + dim
    tool = last + 2 * width
    absolute = tool + TOOL
    places = absolute + (window - 3) * 3 * width
    paths = places + 3 * window
    openings = paths + window
    commands = openings + window
    goals = commands + window
    goal_paths = goals + window
    turns = goal_paths + window
    actions = turns + window
    sums = actions + dim * window
    return (
        normal, last, tool, absolute, places, paths, openings, commands, goals, goal_paths,
        turns, actions, sums, sums + 3 * width,
    )  # fmt: skip


def blank_state(dim: int, window: int) -> FloatArray:
    """Return the state of an episode that has not begun, one row."""
    *_, size = windows(dim, window)
    state = np.zeros(size)
    for unknown in (LAST_PLACE, LAST_TURN, FIRST_GOAL, LAST_GOAL, FILTER, D0, TOP):
        state[unknown] = nan
    openings, goals, actions, sums = (windows(dim, window)[i] for i in (6, 8, 11, 12))
    state[openings:goals] = nan
    state[actions:sums] = nan
    return state


def measure(states: Any, given: Any, out: Any, setting: Any, dim: int, window: int) -> None:
    """Take one step of each environment in and write its metrics.

    Args:
        states: ``(N, S)`` what is remembered; written to. All are arrays, or lists of the same.
        given: ``(N, 10 + D)``.
        out: ``(N, 41)`` written to.
        setting: ``(21 + W + 3 D,)``.
        dim: D.
        window: W.
    """
    at = windows(dim, window)
    for i in range(len(states)):
        _one(states[i], given[i], out[i], setting, dim, window, at)


@within
def _one(
    s: Row, g: Row, o: Row, c: Row, dim: int, window: int,
    at: tuple[int, ...],
) -> None:  # fmt: skip
    _move(s, g, o, c, dim, window, at)
    _turn_back(s, g, o, c, dim, window, at)
    _approach(s, g, o, c, window, at)
    _rest(s, g, o, c, dim, window, at)
    # The last action that was seen is read above and kept for the next step here.
    actions, slot = at[11], int(s[STEPS]) % window
    for j in range(dim):
        s[actions + slot * dim + j] = g[ACTION + j]
    s[STEPS] += 1.0
    log_det = _filter(s, g, o, c)
    _episode(s, g, o, c, log_det)


@within
def _move(
    s: Row, g: Row, o: Row, c: Row, dim: int, window: int,
    at: tuple[int, ...],
) -> None:  # fmt: skip
    """Instability of actions and tool, TI."""
    normal, last, tool, absolute, places, sums = at[0], at[1], at[2], at[3], at[4], at[12]
    width = dim + TOOL
    acts, placed, turned = not isnan(g[ACTION]), not isnan(g[PLACE]), not isnan(g[TURN])
    s[RUN_ACTION] = s[RUN_ACTION] + 1.0 if acts else 0.0
    if placed:
        if not isnan(s[LAST_PLACE]):
            for j in range(3):
                s[tool + j] = g[PLACE + j] - s[LAST_PLACE + j]
        s[RUN_PLACE] += 1.0
    else:
        s[RUN_PLACE] = 0.0
    if turned:
        if not isnan(s[LAST_TURN]):
            _rotate(s, g, tool + 3)
        s[RUN_TURN] += 1.0
    else:
        s[RUN_TURN] = 0.0
    steps, count = s[STEPS] + 1.0, window - 3
    slot = int(s[SLOT])
    begin = absolute + slot * 3 * width
    low = JERK + window
    for j in range(width):
        if j >= dim:
            first = s[tool + j - dim]
        elif acts:
            lowest, highest = c[low + j], c[low + dim + j]
            x = g[ACTION + j]
            x = lowest if x < lowest else x
            x = highest if x > highest else x
            now = (x - lowest) / c[low + 2 * dim + j]
            first = now - s[normal + j]
            s[normal + j] = now
        else:
            first = 0.0
        second = first - s[last + j]
        third = second - s[last + width + j]
        s[last + j], s[last + width + j] = first, second
        s[begin + j], s[begin + width + j] = abs(first), abs(second)
        s[begin + 2 * width + j] = abs(third)
    s[SLOT] = (slot + 1) % count
    full = float(window)
    action, place, turn = s[RUN_ACTION] >= full, s[RUN_PLACE] >= full, s[RUN_TURN] >= full
    zeros = c[ZEROS] > 0.0
    # As published, the warm-up of an input that is there may count as calm; a hole never.
    no_action = 0.0 if zeros and s[RUN_ACTION] == steps else nan
    no_place = 0.0 if zeros and s[RUN_PLACE] == steps else nan
    no_turn = 0.0 if zeros and s[RUN_TURN] == steps else nan
    if action or place or turn:
        for j in range(3 * width):
            s[sums + j] = s[absolute + j]
        for k in range(1, count):
            for j in range(3 * width):
                s[sums + j] += s[absolute + 3 * width * k + j]
    divisor = 1.0
    for k in range(3):
        row, base = sums + k * width, INSTABILITY + 6 * k
        o[base] = _mean(s, row, dim, count, divisor) if action else no_action
        o[base + 1] = o[base + 2] = nan
        # Parts that so short an action lacks stay unknown.
        if dim >= 3:
            o[base + 1] = _mean(s, row, 3, count, divisor) if action else no_action
        if dim >= 6:
            o[base + 2] = _mean(s, row + 3, 3, count, divisor) if action else no_action
        shift = _mean(s, row + dim, 3, count, divisor) if place else no_place
        twist = _mean(s, row + dim + 3, 3, count, divisor) if turn else no_turn
        o[base + 3], o[base + 4], o[base + 5] = (shift + twist) / 2.0, shift, twist
        divisor *= 2.0
    now_at = int(s[STEPS]) % window
    x, y, z = g[PLACE], g[PLACE + 1], g[PLACE + 2]
    s[at[5] + now_at] = _length(x - s[LAST_PLACE], y - s[LAST_PLACE + 1], z - s[LAST_PLACE + 2])
    for j in range(3):
        s[LAST_PLACE + j] = s[places + 3 * now_at + j] = g[PLACE + j]
    for j in range(4):
        s[LAST_TURN + j] = g[TURN + j]
    o[TI] = no_place
    if place:
        x = y = z = 0.0
        for j in range(window):
            from_ = places + 3 * _wrapped(now_at + 1 + j, window)
            weight = c[JERK + j]
            x += weight * s[from_]
            y += weight * s[from_ + 1]
            z += weight * s[from_ + 2]
        o[TI] = _length(x, y, z)


@within
def _mean(s: Row, begin: int, length: int, count: int, divisor: float) -> float:
    """Return the mean of ``length`` columns' sums over ``count`` steps."""
    total = 0.0
    for j in range(begin, begin + length):
        total += s[j]
    return total / (count * length) / divisor


@within
def _rotate(s: Row, g: Row, to: int) -> None:
    w0, x0, y0, z0 = s[LAST_TURN], s[LAST_TURN + 1], s[LAST_TURN + 2], s[LAST_TURN + 3]
    w1, x1, y1, z1 = g[TURN], g[TURN + 1], g[TURN + 2], g[TURN + 3]
    w = w0 * w1 + x0 * x1 + y0 * y1 + z0 * z1
    x = w0 * x1 - x0 * w1 - y0 * z1 + z0 * y1
    y = w0 * y1 - y0 * w1 - z0 * x1 + x0 * z1
    z = w0 * z1 - z0 * w1 - x0 * y1 + y0 * x1
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    sine = sqrt(x * x + y * y + z * z)
    factor = 2.0 * atan2(sine, w) / sine if sine > 1e-12 else 2.0
    s[to], s[to + 1], s[to + 2] = factor * x + 0.0, factor * y + 0.0, factor * z + 0.0


@within
def _length(x: float, y: float, z: float) -> float:
    return sqrt(x * x + y * y + z * z)


@within
def _turn_back(
    s: Row, g: Row, o: Row, c: Row, dim: int, window: int,
    at: tuple[int, ...],
) -> None:  # fmt: skip
    """REV, and whether this action turns back on the last."""
    turns, actions = at[10], at[11]
    step = int(s[STEPS])
    o[REVERSAL] = nan
    if isnan(g[ACTION]) or dim < 3:
        s[TURNS] = 0.0
    else:
        last = actions + (step + window - 1) % window * dim
        if not isnan(s[last]):
            na = nb = dot = 0.0
            for j in range(3):
                na += s[last + j] * s[last + j]
                nb += g[ACTION + j] * g[ACTION + j]
                dot += s[last + j] * g[ACTION + j]
            floor = c[TURN_FLOOR]
            back = 0.0
            if na >= floor * floor and nb >= floor * floor:
                back = 1.0 if dot < c[TURN_COSINE] * sqrt(na) * sqrt(nb) else 0.0
            o[REVERSAL] = s[turns + step % window] = back
            s[TURNS] += 1.0
    o[REV] = nan
    now = step % window
    if s[TURNS] >= window - 1:
        count = 0.0
        for j in range(window - 1):
            count += s[turns + _wrapped(now + window - j, window)]
        o[REV] = count / (window - 1)


@within
def _approach(s: Row, g: Row, o: Row, c: Row, window: int, at: tuple[int, ...]) -> None:
    """PROG and OT."""
    goals, paths = at[8], at[9]
    o[PROG] = o[OT] = nan
    d, now_at = g[DISTANCE], int(s[STEPS]) % window
    if isnan(d):
        s[GOALS], s[LAST_GOAL] = 0.0, nan
        return
    if isnan(s[FIRST_GOAL]):
        s[FIRST_GOAL] = d
        o[OT] = 0.5
    if not isnan(s[LAST_GOAL]):
        s[paths + now_at] = abs(d - s[LAST_GOAL])
        scale = s[FIRST_GOAL] if isnan(c[SCALE]) else c[SCALE]
        if scale > 0.0:
            change = (d - s[LAST_GOAL]) / scale
            change = -1.0 if change < -1.0 else change
            change = 1.0 if change > 1.0 else change
            o[OT] = (change + 1.0) / 2.0
    s[LAST_GOAL] = s[goals + now_at] = d
    s[GOALS] += 1.0
    if s[GOALS] >= window:
        path = _path(s, paths, now_at, window)
        o[PROG] = 0.5
        if path > c[FLOOR]:
            gain = s[goals + (now_at + 1) % window] - d
            value = (1.0 - gain / path) / 2.0
            value = 0.0 if value < 0.0 else value
            o[PROG] = 1.0 if value > 1.0 else value


@within
def _path(s: Row, begin: int, now_at: int, window: int) -> float:
    """Return the sum of the window's W - 1 newest lengths, oldest first."""
    path = 0.0
    for j in range(2, window + 1):
        path += s[begin + _wrapped(now_at + j, window)]
    return path


@within
def _wrapped(place: int, window: int) -> int:
    """Return ``place % window`` of a place below ``2 * window``, without the division."""
    return place - window if place >= window else place


@within
def _rest(
    s: Row, g: Row, o: Row, c: Row, dim: int, window: int,
    at: tuple[int, ...],
) -> None:  # fmt: skip
    """STILL, TCP-path and TCP-net."""
    places, openings, commands = at[4], at[6], at[7]
    now_at = int(s[STEPS]) % window
    s[openings + now_at] = g[GRIPPER]
    # What is commanded stands in for what is not measured, on a scale of its own.
    index = int(c[GRIPPER_INDEX])
    told = isnan(g[GRIPPER]) and 0 <= index < dim
    s[commands + now_at] = g[ACTION + index] if told else nan
    o[STILL] = o[PATH] = o[NET] = path = nan
    if s[RUN_PLACE] >= window:
        path = o[PATH] = _path(s, at[5], now_at, window)
        first, last = places + 3 * ((now_at + 1) % window), places + 3 * now_at
        o[NET] = _length(s[last] - s[first], s[last + 1] - s[first + 1], s[last + 2] - s[first + 2])
    elif isnan(g[PLACE]) and s[GOALS] >= window:
        # Without a pose, a goal distance that does not change says the same.
        path = _path(s, at[9], now_at, window)
    if not isnan(path):
        most = max(_spread(s, openings, window), _spread(s, commands, window))
        o[STILL] = 0.0 if most > c[GRIPPER_CHANGE] else c[FLOOR] / (c[FLOOR] + path)


@within
def _spread(s: Row, begin: int, window: int) -> float:
    """Return largest minus least of what is known, 0 where little is."""
    low = high = nan
    for j in range(begin, begin + window):
        x = s[j]
        if not isnan(x):
            low = x if isnan(low) or x < low else low
            high = x if isnan(high) or x > high else high
    return 0.0 if isnan(low) else high - low


@within
def _filter(s: Row, g: Row, o: Row, c: Row) -> float:
    """NIS and the belief; returns log det(P + epsilon I), NaN without a belief."""
    z = g[DISTANCE]
    for j in range(BELIEF, REVERSAL):
        o[j] = nan
    o[NIS] = nan
    d, v = s[FILTER], s[FILTER + 1]
    a, b, cc = s[FILTER + 2], s[FILTER + 3], s[FILTER + 4]
    if isnan(d):
        if isnan(z):
            return nan
        d, v, a, b, cc = z, 0.0, c[INITIAL_DISTANCE], 0.0, c[INITIAL_VELOCITY]
    else:
        # x' = F x, P' = F P F^T + Q
        d, a, b, cc = d + v, a + 2.0 * b + cc + c[Q_DISTANCE], b + cc, cc + c[Q_VELOCITY]
        if not isnan(z):
            r = c[R]
            nu, innovation_var = z - d, a + r
            k0, k1 = a / innovation_var, b / innovation_var
            i0 = 1.0 - k0
            d, v = d + k0 * nu, v + k1 * nu
            before, cov = a, b
            a = i0 * i0 * before + k0 * k0 * r
            b = i0 * (cov - k1 * before) + k0 * k1 * r
            cc = cc - 2.0 * k1 * cov + k1 * k1 * before + k1 * k1 * r
            o[NIS] = nu * nu / innovation_var
            o[BELIEF + 5], o[BELIEF + 6] = nu, innovation_var
    s[FILTER], s[FILTER + 1] = d, v
    s[FILTER + 2], s[FILTER + 3], s[FILTER + 4] = a, b, cc
    for j in range(5):
        o[BELIEF + j] = s[FILTER + j]
    determinant = (a + c[EPSILON]) * (cc + c[EPSILON]) - b * b
    return log(determinant) if determinant > 0.0 else nan


@within
def _episode(s: Row, g: Row, o: Row, c: Row, log_det: float) -> None:
    """H, the features of GroundControl and U."""
    alpha, d = g[ALPHA], g[DISTANCE]
    h = nan
    if not isnan(log_det):
        h = c[LAMBDAS] * log_det
        if not isnan(alpha):
            coin = 0.0
            if 0.0 < alpha < 1.0:
                coin = -alpha * log(alpha) - (1.0 - alpha) * log(1.0 - alpha)
            h += c[LAMBDAS + 1] * coin
        if not isnan(o[NIS]):
            h += c[LAMBDAS + 2] * o[NIS]
        if isnan(s[TOP]) or h > s[TOP]:
            s[TOP] = h
    o[H] = h
    if not isnan(d):
        if isnan(s[D0]):
            s[D0] = d
        else:
            s[D_STEPS] += 1.0
            s[FALLS] += 1.0 if d < s[LAST_D] else 0.0
            s[PATH_D] += abs(d - s[LAST_D])
        s[LAST_D] = d
    if not isnan(o[REVERSAL]):
        s[PAIRS] += 1.0
        s[REVERSALS] += o[REVERSAL]
    for j in range(6):
        o[SKF + j] = nan
    top = s[TOP]
    if not isnan(top):
        if top >= 0.0:
            o[SKF] = 1.0 / (1.0 + exp(-top))
        else:
            o[SKF] = exp(top) / (1.0 + exp(top))
    if not isnan(s[D0]):
        gained = s[D0] - s[LAST_D]
        share = gained / s[D0] if s[D0] > 0.0 else 1.0
        share = 0.0 if share < 0.0 else share
        share = 1.0 if share > 1.0 else share
        o[SKF + 1] = 1.0 - share
        if s[D_STEPS] > 0.0:
            o[SKF + 2] = 1.0 - s[FALLS] / s[D_STEPS]
        eff = 1.0 - abs(gained) / s[PATH_D] if s[PATH_D] > 0.0 else 1.0
        eff = 0.0 if eff < 0.0 else eff
        o[SKF + 3] = 1.0 if eff > 1.0 else eff
    if s[PAIRS] > 0.0:
        o[SKF + 4] = s[REVERSALS] / s[PAIRS]
    total = weight = 0.0
    for j in range(5):
        if not isnan(o[SKF + j]):
            total += c[WEIGHTS + j] * o[SKF + j]
            weight += c[WEIGHTS + j]
    if weight > 0.0:
        o[SKF + 5] = total / weight


@cache
def load() -> Callable[..., None] | None:
    """Return :func:`measure` compiled, None without numba."""
    two = "f8[:,::1]"
    return compile_for(f"void({two}, {two}, {two}, f8[::1], i8, i8)", measure)
