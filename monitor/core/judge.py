"""The shipped families of faults, and the score of one step (spec 9 and 10).

All that an environment remembers is one row of numbers; NaN stands for unknown. Unknown input may
raise a fault, it never ends one. What is found becomes records in :mod:`monitor.core.core`.
Whatever is compiled together stands in this file, because numba sees a change of no other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import isnan, nan, sqrt
from typing import Any, Final

import numpy as np

from monitor.metrics.compiled import compile_for, within
from monitor.records import FloatArray

STILL, MASS, OUTSIDE, DISTANCE, GRIPPER, LATENCY, SUCCESS = 0, 1, 2, 3, 4, 5, 6
IMAGE, IMAGE_STD, LOGITS, PLACE, ACTION = 7, 8, 9, 10, 13
"""Columns of what is given: three metrics, then what the detectors look at (prints of the picture
and the logits are whole numbers), position (3), action (D), and the score's signals (S)."""

STEP, SUCCEEDED, PAUSE = 0, 1, 2
STALLED, FIRST_SUCCESS, LOST, LATE = 3, 4, 5, 6
CLOSING, TOLD, START, ASKED = 7, 8, 9, 10
KIND, SEEN_LOGITS, SEEN_IMAGE, BLIND = 11, 12, 13, 14
PICTURE, SAME, MOVED, SAW_FROM = 15, 16, 17, 18
OVER_COUNT: Final = 21
REMEMBERED: Final = 22
"""Columns of the state before its windows; see :func:`windows`."""

HAS_DATA, HAS_BYPASS, HAS_CAMERA, HAS_STALL, HAS_DROP, HAS_GRIPPER = 0, 1, 2, 3, 4, 5
HAS_VOCABULARY, HAS_UNNORMALISATION, HAS_LATENCY = 6, 7, 8
STALL_STEPS, STALL_GOAL, STILL_PATH, GRIP_INDEX, OPENS, CLOSES, RELATIVE = 9, 10, 11, 12, 13, 14, 15
GRIP_STEPS, GRIP_CHANGE, BIN_MASS, LIMIT_COUNT, SHARE = 16, 17, 18, 19, 20
DEADLINE, LATE_STEPS, BLIND_STEPS, BLACK_STD, FROZEN_STEPS, COMBINE = 21, 22, 23, 24, 25, 26
ENDS: Final = 27
"""Columns of the setting; low and high of the action with slack follow, and its limits (3 D),
then per signal weight, whether success mutes it, whether a retreat moves it, and where its table
ends (4 S)."""

SCORE, FOUND, IN_RANGE, BYPASS, BLACK, FROZEN, PATH = 0, 1, 2, 3, 4, 5, 6
STALL, DROP, CLOSED, GRIP, GRIP_START, VOCABULARY, OVER, LATELY = 7, 8, 9, 10, 11, 12, 13, 14
COLUMNS: Final = 15
"""Columns of what comes out: the score, how many faults there are, and each one's own number,
which is zero where there is no such fault (IN_RANGE is one where the action leaves its space)."""

Row = Any
"""A row of numbers: an array where this is compiled, a list of floats where it is not."""

NO_OUTPUT, OF_ACTION, OF_LOGITS = 0.0, 1.0, 2.0
MAX, MEAN_TOP2, BY_WEIGHT = 0.0, 1.0, 2.0


@within
def windows(dim: int, signals: int, window: int) -> tuple[int, int, int, int, int]:
    """Return where the windows begin in the state, and how long the state is.

    In turn: the action of the last answer (D), translations beyond their limits (W), per signal
    the pooled surprise, values in the pool, its oldest, whether it is stale (4 S), the pools
    (S W).
    """
    answer = REMEMBERED
    over = answer + dim
    pooled = over + window
    pools = pooled + 4 * signals
    return answer, over, pooled, pools, pools + signals * window


def blank_state(dim: int, signals: int, window: int) -> FloatArray:
    """Return the state of an episode that has not begun, one row."""
    _, _, pooled, _, size = windows(dim, signals, window)
    state = np.zeros(size)
    for unknown in (FIRST_SUCCESS, CLOSING, TOLD, START, SEEN_IMAGE, PICTURE, SAW_FROM):
        state[unknown] = nan
    state[BLIND] = state[SAME] = 1.0
    state[pooled : pooled + signals] = nan
    return state


def judge(
    states: Any, given: Any, out: Any, setting: Any, values: Any, knots: Any, slopes: Any,
    dim: int, signals: int, window: int,
) -> None:  # fmt: skip
    """Take one step of each environment in and write its score and what is wrong.

    Args:
        states: ``(N, Q)`` what is remembered; written to. All are arrays, or lists of the same.
        given: ``(N, 13 + D + S)``.
        out: ``(N, 15)`` written to.
        setting: ``(27 + 3 D + 4 S,)``.
        values: ``(K + S,)`` tail tables of all signals, one behind the other; the first value of
            each is not looked at.
        knots: of the same.
        slopes: of the same.
        dim: D.
        signals: S.
        window: W.
    """
    at = windows(dim, signals, window)
    for i in range(len(states)):
        s, g, o = states[i], given[i], out[i]
        for j in range(COLUMNS):
            o[j] = 0.0
        if g[SUCCESS] > 0.5:
            s[SUCCEEDED] = 1.0
        if setting[HAS_DATA] > 0.0:
            _range(g, o, setting, dim)
        if setting[HAS_BYPASS] > 0.0:
            _bypass(s, g, o, setting, dim, at[0])
        if setting[HAS_CAMERA] > 0.0:
            _camera(s, g, o, setting)
        if setting[HAS_STALL] > 0.0:
            _stall(s, g, o, setting)
        if setting[HAS_DROP] > 0.0:
            _drop(s, g, o, window)
        if setting[HAS_GRIPPER] > 0.0:
            _grip(s, g, o, setting, dim)
        if setting[HAS_VOCABULARY] > 0.0:
            _off_vocabulary(g, o, setting)
        if setting[HAS_UNNORMALISATION] > 0.0:
            _unnormalised(s, g, o, setting, dim, window, at[1])
        if setting[HAS_LATENCY] > 0.0:
            _late(s, g, o, setting)
        s[STEP] += 1.0
        o[SCORE] = _score(s, g, setting, values, knots, slopes, dim, signals, window, at[2], at[3])


@within
def _range(g: Row, o: Row, c: Row, dim: int) -> None:
    """ACTION_RANGE: the action leaves its space by more than the tolerance."""
    for j in range(dim):
        x = g[ACTION + j]
        if x < c[ENDS + j] or x > c[ENDS + dim + j]:
            o[IN_RANGE] = 1.0
    o[FOUND] += o[IN_RANGE]


@within
def _bypass(s: Row, g: Row, o: Row, c: Row, dim: int, answer: int) -> None:
    """VISION_BYPASS: equal logits (or, without logits, equal moves) under changing pictures.

    Without logits an arm that is told to stay where it is proves nothing: pictures change by
    light and noise alone, and staying may be the right answer to all of them.
    """
    kind = NO_OUTPUT
    if not isnan(g[LOGITS]):
        s[SEEN_LOGITS] = 1.0
        kind = OF_LOGITS
    elif s[SEEN_LOGITS] == 0.0 and not isnan(g[ACTION]):
        # Where there have been logits, a step without them says nothing.
        kind = OF_ACTION
        squares = 0.0
        for j in range(min(dim, 3)):
            squares += g[ACTION + j] * g[ACTION + j]
        if sqrt(squares) <= c[STILL_PATH]:
            s[KIND], s[BLIND] = NO_OUTPUT, 1.0
            return
    if kind != NO_OUTPUT and not isnan(g[IMAGE]):
        same = s[KIND] == kind
        if kind == OF_LOGITS:
            same = same and s[answer] == g[LOGITS]
            s[answer] = g[LOGITS]
        else:
            for j in range(dim):
                same = same and s[answer + j] == g[ACTION + j]
                s[answer + j] = g[ACTION + j]
        if not same:
            s[BLIND] = 1.0
        elif g[IMAGE] != s[SEEN_IMAGE]:
            s[BLIND] += 1.0
        s[KIND], s[SEEN_IMAGE] = kind, g[IMAGE]
    if s[BLIND] >= c[BLIND_STEPS]:
        o[BYPASS] = s[BLIND]
        o[FOUND] += 1.0


@within
def _camera(s: Row, g: Row, o: Row, c: Row) -> None:
    """CAMERA_BLACK, and CAMERA_FROZEN: the same picture while the tool moves."""
    if g[IMAGE_STD] < c[BLACK_STD]:
        o[BLACK] = 1.0
        o[FOUND] += 1.0
    if not isnan(g[IMAGE]) and g[IMAGE] != s[PICTURE]:
        s[PICTURE], s[SAME], s[MOVED] = g[IMAGE], 1.0, 0.0
        for j in range(3):
            s[SAW_FROM + j] = g[PLACE + j]
    elif not isnan(s[PICTURE]):
        # A picture that is not there is not the same one again.
        s[SAME] += 0.0 if isnan(g[IMAGE]) else 1.0
        if not isnan(g[PLACE]):
            if not isnan(s[SAW_FROM]):
                x, y = g[PLACE] - s[SAW_FROM], g[PLACE + 1] - s[SAW_FROM + 1]
                z = g[PLACE + 2] - s[SAW_FROM + 2]
                s[MOVED] += sqrt(x * x + y * y + z * z)
            for j in range(3):
                s[SAW_FROM + j] = g[PLACE + j]
        # A still scene under a still robot gives equal pictures by right.
        if s[SAME] >= c[FROZEN_STEPS] and s[MOVED] > c[STILL_PATH]:
            o[FROZEN], o[PATH] = s[SAME], s[MOVED]
            o[FOUND] += 1.0


@within
def _stall(s: Row, g: Row, o: Row, c: Row) -> None:
    """STALL: the arm is still, the goal is not reached and has not been."""
    if s[SUCCEEDED] > 0.0 or g[DISTANCE] <= c[STALL_GOAL]:
        s[STALLED] = 0.0
    elif not isnan(g[STILL]):
        # STILL = floor / (floor + path) is above a half when the path is below its floor.
        s[STALLED] = s[STALLED] + 1.0 if g[STILL] > 0.5 else 0.0
    if s[STALLED] >= c[STALL_STEPS]:
        o[STALL] = s[STALLED]
        o[FOUND] += 1.0


@within
def _drop(s: Row, g: Row, o: Row, window: int) -> None:
    """DROP: the task was solved and has not been for a whole window.

    A success that comes and goes while the gripper opens is no drop: fingers touch what they let
    go of.
    """
    if g[SUCCESS] > 0.5:
        if isnan(s[FIRST_SUCCESS]):
            s[FIRST_SUCCESS] = s[STEP]
        s[LOST] = 0.0
    elif not isnan(s[FIRST_SUCCESS]) and (not isnan(g[SUCCESS]) or s[LOST] > 0.0):
        s[LOST] += 1.0
    if s[LOST] >= window:
        o[DROP] = s[LOST]
        o[FOUND] += 1.0


@within
def _grip(s: Row, g: Row, o: Row, c: Row, dim: int) -> None:
    """GRIPPER_NO_RESPONSE: told to close (or open) and the measured opening stays."""
    index = int(c[GRIP_INDEX])
    if not isnan(g[ACTION]) and index >= 0 and dim > 3 and not isnan(g[GRIPPER]):
        grip, opening = g[ACTION + index], g[GRIPPER]
        closing = _closing(grip, s[TOLD], c[OPENS], c[CLOSES], c[RELATIVE] > 0.0)
        if not isnan(closing):
            s[TOLD] = grip
            if closing != s[CLOSING]:
                s[CLOSING], s[START], s[ASKED] = closing, opening, 0.0
        asks = not isnan(closing) or c[RELATIVE] == 0.0
        if asks and not isnan(s[START]):
            there = opening <= c[GRIP_CHANGE]
            if s[CLOSING] == 0.0:
                there = opening >= 1.0 - c[GRIP_CHANGE]
            if there or abs(opening - s[START]) > c[GRIP_CHANGE]:
                # It has answered; only a new command asks again.
                s[ASKED] = -1.0
            elif s[ASKED] >= 0.0:
                s[ASKED] += 1.0
    if s[ASKED] >= c[GRIP_STEPS]:
        o[CLOSED], o[GRIP], o[GRIP_START] = s[CLOSING], s[ASKED], s[START]
        o[FOUND] += 1.0


@within
def _closing(grip: float, before: float, opens: float, closes: float, relative: bool) -> float:
    """As :meth:`monitor.gripper.GripperCommands.closing`: 1 to close, 0 to open, NaN for neither."""
    quarter, half = abs(opens - closes) / 4.0, (opens + closes) / 2.0
    if abs(grip - half) >= quarter:
        return 1.0 if abs(grip - closes) < abs(grip - opens) else 0.0
    if relative or isnan(before) or abs(grip - before) < quarter:
        return nan
    return 1.0 if (grip - before) * (closes - opens) > 0.0 else 0.0


@within
def _off_vocabulary(g: Row, o: Row, c: Row) -> None:
    """OFF_VOCAB_TOKEN: a likeliest or chosen token is no bin, or the bins hold little mass."""
    if g[MASS] < c[BIN_MASS] or (not isnan(g[MASS]) and g[OUTSIDE] > 0.0):
        o[VOCABULARY] = 1.0
        o[FOUND] += 1.0


@within
def _late(s: Row, g: Row, o: Row, c: Row) -> None:
    """LATENCY: replies later than the deadline several steps in a row."""
    if not isnan(g[LATENCY]):
        s[LATE] = s[LATE] + 1.0 if g[LATENCY] > c[DEADLINE] else 0.0
    if s[LATE] >= c[LATE_STEPS]:
        o[LATELY] = s[LATE]
        o[FOUND] += 1.0


@within
def _unnormalised(s: Row, g: Row, o: Row, c: Row, dim: int, window: int, over: int) -> None:
    """UNNORM_MISMATCH: translations larger than the training data's, most of the time."""
    limits = int(c[LIMIT_COUNT])
    if not isnan(g[ACTION]):
        beyond = 0.0
        for j in range(limits):
            beyond += 1.0 if abs(g[ACTION + j]) > c[ENDS + 2 * dim + j] else 0.0
        s[over + int(s[OVER_COUNT]) % window] = beyond
        s[OVER_COUNT] += 1.0
    if s[OVER_COUNT] >= window:
        total = 0.0
        for j in range(window):
            total += s[over + j]
        share = total / (window * limits)
        if share > c[SHARE]:
            o[OVER] = share
            o[FOUND] += 1.0


@within
def _score(
    s: Row, g: Row, c: Row, values: Row, knots: Row, slopes: Row, dim: int, signals: int,
    window: int, pooled: int, pools: int,
) -> float:  # fmt: skip
    """Return the score, NaN while nothing is known.

    A surprise is pooled by its peak over the last W known values of its signal. A signal that goes
    unknown keeps its pooled surprise: what cannot be seen does not calm.
    """
    counts, oldest, stale = pooled + signals, pooled + 2 * signals, pooled + 3 * signals
    weights = ENDS + 3 * dim
    mutes, moves, ends = weights + signals, weights + 2 * signals, weights + 3 * signals
    paused = s[PAUSE] > 0.0
    if paused:
        s[PAUSE] -= 1.0
    begin = 0
    how = c[COMBINE]
    first = second = -1.0
    known, total, weight = 0, 0.0, 0.0
    for j in range(signals):
        end = int(c[ends + j])
        x = g[ACTION + dim + j]
        if (s[SUCCEEDED] > 0.0 and c[mutes + j] > 0.0) or (paused and c[moves + j] > 0.0):
            s[pooled + j] = nan
        elif not isnan(x):
            if s[stale + j] > 0.0:
                s[stale + j] = s[counts + j] = s[oldest + j] = 0.0
            pool, count, at = pools + j * window, int(s[counts + j]), int(s[oldest + j])
            if count < window:
                s[pool + count] = _surprise(values, knots, slopes, begin, end, x)
                count += 1
                s[counts + j] = count
            else:
                s[pool + at] = _surprise(values, knots, slopes, begin, end, x)
                s[oldest + j] = (at + 1) % window
            top = s[pool]
            for k in range(1, count):
                top = s[pool + k] if s[pool + k] > top else top
            s[pooled + j] = top
        value = s[pooled + j]
        if not isnan(value):
            known += 1
            total += c[weights + j] * value
            weight += c[weights + j]
            if value > first:
                first, second = value, first
            elif value > second:
                second = value
        begin = end
    if known == 0:
        return nan
    if how == MAX or (how == MEAN_TOP2 and known == 1):
        return first
    return (second + first) / 2.0 if how == MEAN_TOP2 else total / weight


@within
def _surprise(values: Row, knots: Row, slopes: Row, begin: int, end: int, x: float) -> Any:
    """Return the surprise of ``x``; the table's values stand from ``begin + 1`` on."""
    low, high = begin + 1, end
    while low < high:  # the first value that is not below x
        middle = (low + high) // 2
        if values[middle] < x:
            low = middle + 1
        else:
            high = middle
    # Knot i belongs to the value before it; the first stands for all below the table.
    knot = low - 1
    s = knots[knot]
    if knot > begin:
        s += (x - values[knot]) * slopes[knot]
        s = 1.0 if s > 1.0 else s
    return s


@cache
def load() -> Callable[..., None] | None:
    """Return :func:`judge` compiled, None without numba."""
    two, one = "f8[:,::1]", "f8[::1]"
    return compile_for(f"void({two}, {two}, {two}, {one}, {one}, {one}, {one}, i8, i8, i8)", judge)
