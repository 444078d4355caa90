"""The fault detectors of N environments, as masks by code (see monitor.faults)."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from monitor.faults import Setting
from monitor.faults.data import ACTIONLESS, error_code
from monitor.metrics.arrays import to_array
from monitor.records import FloatArray, Step
from monitor.vector.evidence import Batch, note
from monitor.vector.history import Mask, OwnPace


@final
class VectorFaults:
    """All shipped families but the camera's format, which a batch shares."""

    def __init__(self, setting: Setting, n: int) -> None:
        config = setting.config
        self._config, self._setting, self._n = config, setting, n
        slack = config.action_tolerance * (setting.action_high - setting.action_low)
        self._low, self._high = setting.action_low - slack, setting.action_high + slack
        limits = config.unnorm_limits
        space = np.maximum(np.abs(setting.action_low), np.abs(setting.action_high))[:3]
        self._limits = np.asarray(limits if limits else space)
        self._over = OwnPace(setting.window, n)
        self._off = set(config.off)
        self._blind, self._still, self._late = (np.zeros(n, dtype=np.int64) for _ in range(3))
        self._same, self._asked = (np.zeros(n, dtype=np.int64) for _ in range(2))
        self._first_success, self._image = np.full((2, n), np.nan)
        self._seen_image = np.full(n, np.nan)
        self._closing, self._start, self._told = np.full((3, n), np.nan)
        self._lost = np.zeros(n, dtype=np.int64)
        self._moved = np.zeros(n)
        self._place = np.full((n, 3), np.nan)
        self._prints: FloatArray = np.full((n, 0), np.nan)
        self._moves = np.full((n, len(setting.action_low)), np.nan)
        self._worded = np.zeros(n, dtype=bool)
        self.reset(np.ones(n, dtype=bool))

    def reset(self, which: Mask) -> None:
        """Begin an episode in some environments."""
        self._over.clear(which)
        self._blind[which] = self._same[which] = 1
        self._still[which] = self._late[which] = self._asked[which] = 0
        for state in (self._first_success, self._image, self._seen_image, self._closing):
            state[which] = np.nan
        self._start[which] = self._told[which] = self._place[which] = np.nan
        self._lost[which] = 0
        self._moved[which] = 0.0
        self._prints[which] = self._moves[which] = np.nan
        self._worded[which] = False

    def check(
        self, batch: Batch, step: Step, values: dict[str, FloatArray], index: FloatArray,
        succeeded: Mask, pictures: tuple[FloatArray, FloatArray] | None,
    ) -> dict[str, Mask]:  # fmt: skip
        """Return the masks of the faults present at this step."""
        faults: dict[str, Mask] = {}
        if "data" not in self._off:
            faults.update(batch.faults)
            self._data(batch, step, faults)
        if "vision_bypass" not in self._off:
            self._bypass(batch, pictures, faults)
        if "camera" not in self._off:
            unknown = np.full(self._n, np.nan)
            self._camera(batch, (unknown, unknown) if pictures is None else pictures, faults)
        if "stall" not in self._off:
            self._stall(batch, values["STILL"], succeeded, faults)
        if "drop" not in self._off:
            self._drop(batch.success, index, faults)
        if "gripper" not in self._off:
            self._gripper(batch, faults)
        if "vocabulary" not in self._off and "action_mass" in values:
            mass, outside = values["action_mass"], values["tokens_outside"]
            note(faults, "OFF_VOCAB_TOKEN", (mass < self._config.bin_mass) | (outside > 0.0))
        if "unnormalisation" not in self._off:
            self._unnorm(batch.action, faults)
        if "latency" not in self._off:
            deadline = self._config.deadline_s or self._setting.control_dt_s
            known = ~np.isnan(batch.latency)
            self._late = np.where(
                known, np.where(batch.latency > deadline, self._late + 1, 0), self._late
            )
            note(faults, "LATENCY", self._late >= self._config.late_steps)
        return faults

    def _data(self, batch: Batch, step: Step, faults: dict[str, Mask]) -> None:
        for code, where in errors(step.policy_error, self._n).items():
            note(faults, code, where)
        note(faults, "ENV_ERROR", texts(step.env_error, self._n))
        told = to_array(step.decode_ok)
        if told is not None and told.size in (1, self._n):
            note(faults, "MALFORMED_TOKENS", np.broadcast_to(told.reshape(-1) <= 0.5, (self._n,)))
        action = batch.action
        absent = np.isnan(action[:, 0])
        for code in ACTIONLESS & faults.keys():
            absent = absent & ~faults[code]
        note(faults, "ACTION_MISSING", absent)
        wide: Mask = np.asarray(((action < self._low) | (action > self._high)).any(axis=1))
        note(faults, "ACTION_RANGE", wide)

    def _bypass(
        self, batch: Batch, pictures: tuple[FloatArray, FloatArray] | None, faults: dict[str, Mask]
    ) -> None:
        images = np.full(self._n, np.nan) if pictures is None else pictures[0]
        prints, action = batch.print_of_logits, batch.action
        if prints is None:
            prints = np.full(self._prints.shape, np.nan)
        elif prints.shape != self._prints.shape:
            self._prints = np.full_like(prints, np.nan)
        worded = ~np.isnan(prints).any(axis=1) & (prints.shape[1] > 0)
        self._worded |= worded
        # Without logits, to stay may be the right answer to every picture; see the single one.
        moved = ~self._worded & ~np.isnan(action[:, 0])
        resting = moved & (np.sqrt((action[:, :3] ** 2).sum(axis=1)) <= self._setting.still_path_m)
        equal = np.where(
            worded, (prints == self._prints).all(axis=1), (action == self._moves).all(axis=1)
        )
        usable = ~np.isnan(images) & (worded | (moved & ~resting))
        count = np.where(equal, self._blind + (images != self._seen_image), 1)
        self._blind = np.where(resting, 1, np.where(usable, count, self._blind))
        self._seen_image = np.where(usable, images, self._seen_image)
        self._prints = np.where((usable & worded)[:, None], prints, self._prints)
        moves = np.where((usable & ~worded)[:, None], action, self._moves)
        self._moves = np.where(resting[:, None], np.nan, moves)
        note(faults, "VISION_BYPASS", self._blind >= self._config.blind_steps)

    def _camera(
        self, batch: Batch, pictures: tuple[FloatArray, FloatArray], faults: dict[str, Mask]
    ) -> None:
        ids, deviations = pictures
        note(faults, "CAMERA_BLACK", deviations < self._config.black_std)
        known = ~np.isnan(ids)
        fresh = known & (ids != self._image)
        step = np.sqrt(((batch.place - self._place) ** 2).sum(axis=1))
        self._moved = np.where(fresh, 0.0, self._moved + np.where(np.isnan(step), 0.0, step))
        self._same = np.where(fresh, 1, self._same + known)
        keep = ~fresh & np.isnan(batch.place[:, 0])
        self._place = np.where(keep[:, None], self._place, batch.place)
        self._image = np.where(known, ids, self._image)
        frozen: Mask = (self._same >= self._config.frozen_steps) & (
            self._moved > self._setting.still_path_m
        )
        note(faults, "CAMERA_FROZEN", frozen & ~fresh)

    def _stall(
        self, batch: Batch, still: FloatArray, succeeded: Mask, faults: dict[str, Mask]
    ) -> None:
        over = succeeded | (batch.goal <= self._config.stall_goal_m)
        count = np.where(still > 0.5, self._still + 1, 0)
        self._still = np.where(over, 0, np.where(np.isnan(still), self._still, count))
        note(faults, "STALL", self._still >= self._config.stall_steps)

    def _drop(self, success: FloatArray, index: FloatArray, faults: dict[str, Mask]) -> None:
        known, now = ~np.isnan(success), success > 0.5
        first = known & now & np.isnan(self._first_success)
        self._first_success[first] = index[first]
        gone = ~np.isnan(self._first_success) & ~now & (known | (self._lost > 0))
        self._lost = np.where(gone, self._lost + 1, 0)
        note(faults, "DROP", self._lost >= self._setting.window)

    def _gripper(self, batch: Batch, faults: dict[str, Mask]) -> None:
        commands = self._setting.gripper
        change = self._setting.gripper_change
        if batch.action.shape[1] > 3:
            grip, opening = batch.action[:, commands.index], batch.gripper
            known = ~np.isnan(grip) & ~np.isnan(opening)
            closing = np.where(known, commands.closing_each(grip, self._told), np.nan)
            says = ~np.isnan(closing)
            self._told = np.where(says, grip, self._told)
            new = says & (closing != self._closing)
            self._closing = np.where(new, closing, self._closing)
            self._start = np.where(new, opening, self._start)
            self._asked = np.where(new, 0, self._asked)
            asks = known & ~np.isnan(self._start) & (says | (not commands.relative))
            there = np.where(self._closing > 0.5, opening <= change, opening >= 1.0 - change)
            there = there | (np.abs(opening - self._start) > change)
            asked = np.where(self._asked >= 0, self._asked + 1, self._asked)
            self._asked = np.where(asks, np.where(there, -1, asked), self._asked)
        note(faults, "GRIPPER_NO_RESPONSE", self._asked >= self._config.gripper_steps)

    def _unnorm(self, action: FloatArray, faults: dict[str, Mask]) -> None:
        count = min(action.shape[1], len(self._limits))
        if count == 0:
            return
        beyond = np.abs(action[:, :count]) > self._limits[:count]
        # Counts, not shares: thirds would not add up to a half.
        self._over.push(np.where(np.isnan(action[:, 0]), np.nan, beyond.sum(axis=1)))
        share = self._over.rows.sum(axis=0) / (self._setting.window * count)
        note(faults, "UNNORM_MISMATCH", share > self._config.unnorm_share)


def errors(given: Any, n: int) -> dict[str, Mask]:
    """Return where the policy raised what, by code."""
    where = texts(given, n)
    found: dict[str, Mask] = {}
    for i in np.flatnonzero(where):
        code = error_code(str(given[i] if _each(given, n) else given))
        note(found, code, np.arange(n) == i)
    return found


def texts(given: Any, n: int) -> NDArray[np.bool_]:
    """Return where an error is given: None, a sequence of N, or anything else for all."""
    if given is None:
        return np.zeros(n, dtype=bool)
    if not _each(given, n):
        return np.ones(n, dtype=bool)
    return np.array([one is not None for one in given], dtype=bool)


def _each(given: Any, n: int) -> bool:
    """Tell whether there is one for each environment."""
    return isinstance(given, (list, tuple, np.ndarray)) and np.shape(given)[:1] == (n,)
