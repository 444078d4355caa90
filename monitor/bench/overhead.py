"""Benchmark of the monitor on one thread, with synthetic steps.

Seven dimensions as in published policies: seven tokens, of 256 bins or a whole vocabulary.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter_ns
from typing import Any, Final

import numpy as np

from monitor.config import MonitorConfig
from monitor.errors import MonitorError
from monitor.pipeline import Monitor
from monitor.records import Step
from monitor.rollout.records import EpisodeResult, EpisodeStart, StepRecord
from monitor.vector import VectorMonitor

__all__ = [
    "BenchError",
    "StepTimes",
    "Timing",
    "batched_steps",
    "made_up_steps",
    "overhead_table",
    "softmax_ratio",
    "time_calls",
]

WARM: Final = 64
DIMENSIONS: Final = 7
SMALL_V: Final = 256
LARGE_V: Final = 32064
BATCHED: Final = 40
"""Number of batched steps, which are used repeatedly."""
BATCHED_FIELDS: Final = (
    "action",
    "tcp_position",
    "tcp_quaternion",
    "goal_distance",
    "gripper",
    "latency_s",
    "success",
)


class BenchError(MonitorError, RuntimeError):
    """The run to be timed fails at its first step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Time of one call, microseconds.

    Attributes:
        what: name of the call.
        median_us: median time.
        p99_us: 99th percentile.
        calls: number of timed calls.
    """

    what: str
    median_us: float
    p99_us: float
    calls: int


class StepTimes:
    """Observer that times the policy and the monitor of a real run, step by step."""

    def __init__(self) -> None:
        self._policy_us: list[float] = []
        self._monitor_us: list[float] = []

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self._monitor_us)

    def on_start(self, start: EpisodeStart) -> None:
        """Nothing to time."""

    def on_step(self, record: StepRecord) -> None:
        """Add one step."""
        self._policy_us.append(record.policy_ms * 1e3)
        self._monitor_us.append(record.overhead_us)

    def on_end(self, result: EpisodeResult) -> None:
        """Raise an error if the episode failed before its first step, or the bench never ends."""
        if result.outcome == "error" and result.steps <= 1:
            raise BenchError(result.message)

    def table(self) -> list[Timing]:
        """Return the rows of policy and monitor."""
        return [
            _timing("policy, per step", self._policy_us),
            _timing("monitor, per step", self._monitor_us),
        ]


def _timing(what: str, times_us: Sequence[float]) -> Timing:
    return Timing(
        what=what,
        median_us=float(np.median(times_us)),
        p99_us=float(np.percentile(times_us, 99)),
        calls=len(times_us),
    )


def time_calls(
    what: str, call: Callable[[int], Any], *, calls: int, each: Callable[[], Any] | None = None
) -> Timing:
    """Time ``call(i)`` for i = 0, 1, …, after a warm-up.

    Args:
        what: name of the row.
        call: timed function of the number of the call.
        calls: number of timed calls.
        each: untimed function called before every 80 calls: an episode's reset.
    """
    (timing,) = time_in_turn({what: call}, calls=calls, each=each)
    return timing


def time_in_turn(
    these: Mapping[str, Callable[[int], Any]],
    *,
    calls: int,
    each: Callable[[], Any] | None = None,
) -> list[Timing]:
    """Time several functions call by call in turn, so that a busy machine affects all alike."""
    times = np.empty((calls, len(these)))
    collecting = gc.isenabled()
    gc.disable()  # a collection would be timed with an arbitrary call
    try:
        for number in range(-WARM, calls):
            if each is not None and number % 80 == 0:
                each()
            for column, call in enumerate(these.values()):
                began = perf_counter_ns()
                call(number % calls)
                if number >= 0:
                    times[number, column] = perf_counter_ns() - began
    finally:
        if collecting:
            gc.enable()
    columns = (times / 1e3).T.tolist()
    return [_timing(what, column) for what, column in zip(these, columns, strict=True)]


def made_up_steps(
    count: int, *, vocabulary: int | None, dimensions: int = DIMENSIONS, seed: int = 0
) -> list[Step]:
    """Make steps of an arm that approaches its goal with some jitter.

    Args:
        count: number of steps.
        vocabulary: V of float32 logits ``(D, V)``; None leaves the tokens out.
        dimensions: D of the actions.
        seed: random seed of the jitter.
    """
    rng = np.random.default_rng(seed)
    steps = []
    # A few different logits are enough: 2000 of 7 x 32064 would be 1.8 GB.
    pool = [] if vocabulary is None else _logits(rng, 16, dimensions, vocabulary)
    position = np.array([0.3, 0.0, 0.2])
    for number in range(count):
        action = 0.02 * rng.standard_normal(dimensions)
        position = position + 0.2 * action[:3]
        tokens: dict[str, Any] = {}
        if pool:
            logits = pool[number % len(pool)]
            tokens = {"token_logits": logits, "token_ids": logits.argmax(axis=1)}
            if vocabulary == LARGE_V:
                tokens["action_token_range"] = (31744, 32000)
        steps.append(
            Step(
                action=action,
                tcp_position=position,
                tcp_quaternion=np.array([1.0, 0.0, 0.0, 0.0]),
                goal_distance=0.3 * np.exp(-(number % 80) / 40.0) + 0.002 * rng.standard_normal(),
                gripper=1.0,
                latency_s=0.05,
                success=False,
                **tokens,
            )
        )
    return steps


def _logits(
    rng: np.random.Generator, count: int, tokens: int, vocabulary: int
) -> list[np.ndarray[Any, Any]]:
    return [
        (4.0 * rng.standard_normal((tokens, vocabulary))).astype(np.float32) for _ in range(count)
    ]


def overhead_table(*, quick: bool = False, config: MonitorConfig | None = None) -> list[Timing]:
    """Time the whole update, its motion part and torch's softmax, and their growth with size.

    Args:
        quick: whether to make fewer calls, for tests.
        config: configuration of the monitor; None for the defaults: all metrics and faults.
    """
    config = MonitorConfig() if config is None else config
    calls = 80 if quick else 2000
    rows = [
        _decide("motion + filter + faults + score + controller, of evidence", config, calls),
        _update("update without logits", config, calls, vocabulary=None),
    ]
    for vocabulary in (SMALL_V, LARGE_V):
        many = calls if vocabulary == SMALL_V else max(80, calls // 4)
        rows.extend(_update_and_softmax(config, many, vocabulary))
    rows.extend(_vector(config, calls))
    for window in (8, 16, 32, 64):
        wider = config.model_copy(
            update={"metrics": config.metrics.model_copy(update={"window": window})}
        )
        rows.append(_update(f"update, window {window}", wider, calls, vocabulary=SMALL_V))
    rows.extend(
        _update(f"update, D = {size}", config, calls, vocabulary=SMALL_V, dimensions=size)
        for size in (7, 14, 28)
    )
    rows.extend(
        _update(f"update, V = {size}", config, calls, vocabulary=size) for size in (256, 1024, 4096)
    )
    return rows


def softmax_ratio(rows: Sequence[Timing]) -> float | None:
    """Return the time of an update at 7×32064 over that of torch's softmax; None without torch."""
    medians = {row.what: row.median_us for row in rows}
    softmax = medians.get(_softmax_row(LARGE_V))
    return None if softmax is None else medians[_update_row(LARGE_V)] / softmax


def _update_row(vocabulary: int) -> str:
    return f"update, logits 7×{vocabulary}"


def _softmax_row(vocabulary: int) -> str:
    return f"torch.softmax alone, logits 7×{vocabulary}"


def _update(
    what: str,
    config: MonitorConfig,
    calls: int,
    *,
    vocabulary: int | None,
    dimensions: int = DIMENSIONS,
) -> Timing:
    update, reset = _updating(config, calls, vocabulary, dimensions)
    return time_calls(what, update, calls=calls, each=reset)


def _updating(
    config: MonitorConfig, calls: int, vocabulary: int | None, dimensions: int = DIMENSIONS
) -> tuple[Callable[[int], Any], Callable[[], Any]]:
    """Return a monitor's update as a function of the number of the call, and its reset."""
    steps = made_up_steps(min(calls, 400), vocabulary=vocabulary, dimensions=dimensions)
    high = np.full(dimensions, 1.0)
    monitor = Monitor(config, action_low=-high, action_high=high)
    return (lambda number: monitor.update(steps[number % len(steps)])), monitor.reset


def _decide(what: str, config: MonitorConfig, calls: int) -> Timing:
    """Time what follows the reading of the step's arrays, as in a replay."""
    high = np.full(DIMENSIONS, 1.0)
    monitor, again = (Monitor(config, action_low=-high, action_high=high) for _ in range(2))
    steps = made_up_steps(min(calls, 400), vocabulary=None)
    evidence = [monitor.update(step).evidence for step in steps]
    return time_calls(
        what,
        lambda number: again.replay(evidence[number % len(evidence)]),
        calls=calls,
        each=again.reset,
    )


def _update_and_softmax(config: MonitorConfig, calls: int, vocabulary: int) -> list[Timing]:
    """Time the update in turn with a softmax of other such logits, if torch is installed."""
    update, reset = _updating(config, calls, vocabulary)
    these = {_update_row(vocabulary): update}
    try:
        import torch
    except ModuleNotFoundError:
        return time_in_turn(these, calls=calls, each=reset)
    torch.set_num_threads(1)
    rng = np.random.default_rng(1)
    pool = [torch.from_numpy(one) for one in _logits(rng, 16, DIMENSIONS, vocabulary)]
    these[_softmax_row(vocabulary)] = lambda number: torch.softmax(pool[number % 16], dim=-1)
    return time_in_turn(these, calls=calls, each=reset)


def _vector(config: MonitorConfig, calls: int) -> Sequence[Timing]:
    """Time VectorMonitor per environment and step."""
    rows = []
    for count in (16, 256, 1024):
        many = max(20, min(calls, 60_000 // count))
        steps = batched_steps(count)
        high = np.full(DIMENSIONS, 1.0)
        monitor = VectorMonitor(config, num_envs=count, action_low=-high, action_high=high)
        call = partial(_update_vector, monitor, steps)
        whole = time_calls("", call, calls=many, each=monitor.reset)
        rows.append(
            Timing(
                what=f"VectorMonitor of {count}, per environment",
                median_us=whole.median_us / count,
                p99_us=whole.p99_us / count,
                calls=many,
            )
        )
    return rows


def _update_vector(monitor: Any, steps: list[Step], number: int) -> None:
    monitor.update(steps[number % len(steps)])


def batched_steps(count: int) -> list[Step]:
    """Make steps of ``count`` arms that approach their goals, with logits of 7×256 each."""
    arms = [made_up_steps(BATCHED, vocabulary=None, seed=seed) for seed in range(min(count, 32))]
    rng = np.random.default_rng(0)
    shape = (count, DIMENSIONS, SMALL_V)
    # Two in turn: as with a policy's own, they are not in the cache.
    logits = [(4.0 * rng.standard_normal(shape)).astype(np.float32) for _ in range(2)]
    steps = []
    for number, at_once in enumerate(zip(*arms, strict=True)):
        fields: dict[str, Any] = {
            name: np.stack([getattr(at_once[i % len(arms)], name) for i in range(count)])
            for name in BATCHED_FIELDS
        }
        tokens = logits[number % 2]
        steps.append(Step(token_logits=tokens, token_ids=tokens.argmax(axis=-1), **fields))
    return steps
