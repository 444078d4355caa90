"""Measure the version of vlawatch that comes first on the path; started by compare_commits.py.

Uses only names that both versions have: a question is a line of stdin, ``NAME CALLS``, and its
answer a line of stdout, the median time of one call in microseconds. ``start`` instead measures
one start of the process and ends.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

EPISODE = 80
"""Steps between two resets."""
WARM = 10
"""Calls before the timed ones."""
ROBOTS = 1024
DIM = 7
WHOLE_VOCABULARY = 32064
ACTION_TOKENS = (31744, 32000)


def start(*, cached: bool) -> dict[str, float]:
    """Measure imports and the first decisions of a process, in seconds."""
    began = perf_counter()
    importlib.import_module("monitor")
    imported = perf_counter()
    one = _monitor()
    constructed = perf_counter()
    times = {"import": imported - began, "start": constructed - began}
    if not cached:
        one.update(_steps(1, None)[0])
        times["compile"] = perf_counter() - imported
        one.update(_steps(1, 256)[0])
        _vector_monitor().update(_batches(1)[0])
        times["compile all"] = perf_counter() - imported
    return times


def serve() -> None:
    """Answer questions until stdin ends."""
    measures: dict[str, Callable[[int], float]] = {
        "update": Updates(_monitor(), _steps(400, None)),
        "update 256": Updates(_monitor(), _steps(400, 256)),
        "update 32064": Updates(_monitor(), _steps(400, WHOLE_VOCABULARY)),
        "vector": Updates(_vector_monitor(), _batches(EPISODE)),
        "line": trace_line,
    }
    gc.disable()
    for question in sys.stdin:
        name, calls = question.rsplit(maxsplit=1)
        measures[name](WARM)  # the other version's turn has emptied the caches
        print(measures[name](int(calls)), flush=True)
        gc.collect()


class Updates:
    """Time updates of one monitor.

    Args:
        monitor: one robot's or many robots'.
        steps: used again and again.
    """

    def __init__(self, monitor: Any, steps: list[Any]) -> None:
        self._monitor = monitor
        self._steps = steps

    def __call__(self, calls: int) -> float:
        """Return the median time of an update in microseconds."""
        times = []
        for number in range(calls):
            if number % EPISODE == 0:
                self._monitor.reset()
            step = self._steps[number % len(self._steps)]
            began = perf_counter()
            self._monitor.update(step)
            times.append(perf_counter() - began)
        return median(times) * 1e6


def trace_line(calls: int) -> float:
    """Return the median time in microseconds to write one step of an episode to its trace."""
    rollout = importlib.import_module("monitor.rollout")
    trace = importlib.import_module("monitor.trace")
    config = importlib.import_module("monitor").MonitorConfig(controller={"enforce": False})
    monitor, steps = _monitor(config), _steps(calls, 256)
    with tempfile.TemporaryDirectory() as folder, trace.RunWriter(folder, {}) as writer:
        recorder = Recorder(rollout.TraceRecorder(writer))
        rollout.run_episode(ReplayEnv(steps), ReplayPolicy(steps), monitor, (recorder,))
        lines = (Path(folder) / "steps.jsonl").read_text(encoding="utf-8").splitlines()
    if len(lines) != calls:
        msg = f"expected {calls} steps in the trace, found {len(lines)}"
        raise RuntimeError(msg)
    return median(recorder.times) * 1e6


class Recorder:
    """An observer that times another one's steps."""

    def __init__(self, inner: Any) -> None:
        self.times: list[float] = []
        self.on_start, self.on_end, self._inner = inner.on_start, inner.on_end, inner

    def on_step(self, record: Any) -> None:
        """Time one step."""
        began = perf_counter()
        self._inner.on_step(record)
        self.times.append(perf_counter() - began)


class ReplayEnv:
    """An environment that returns what was sensed in a list of steps."""

    def __init__(self, steps: list[Any]) -> None:
        self._steps = steps
        self._now = 0

    def reset(self, **_: Any) -> Any:
        """Return the first observation."""
        self._now = 0
        return self._observation()

    def step(self, _: Any) -> Any:
        """Return the next observation; the last step truncates the episode."""
        self._now += 1
        ended = self._now == len(self._steps)
        self._now -= ended
        observation, info = self._observation()
        return observation, 0.0, False, ended, info

    def _observation(self) -> tuple[dict[str, Any], dict[str, Any]]:
        step = self._steps[self._now]
        names = ("tcp_position", "tcp_quaternion", "gripper")
        info = {"success": False, "goal_distance": step.goal_distance, "instruction": "go there"}
        return {name: getattr(step, name) for name in names}, info


class ReplayPolicy:
    """A policy that answers with the actions and logits of a list of steps."""

    name = "replay"
    signals = frozenset({"token_logits"})

    def __init__(self, steps: list[Any]) -> None:
        self._steps = iter(steps)

    def reset(self, _: str) -> None:
        """Nothing to forget: it serves one episode."""

    def act(self, _: Any) -> Any:
        """Return the next step's output."""
        from policies import PolicyOutput

        step = next(self._steps)
        return PolicyOutput(
            action=step.action, token_logits=step.token_logits, token_ids=step.token_ids
        )


def _monitor(config: Any = None) -> Any:
    from monitor import Monitor

    return Monitor(config, action_low=[-1.0] * DIM, action_high=[1.0] * DIM)


def _vector_monitor() -> Any:
    import monitor

    if (made := getattr(monitor, "VectorMonitor", None)) is None:
        made = importlib.import_module("monitor.vector").VectorMonitor
    return made(num_envs=ROBOTS, action_low=[-1.0] * DIM, action_high=[1.0] * DIM)


def _arm(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield steps of an arm that nears its goal with some jitter."""
    import numpy as np

    rng = np.random.default_rng(seed)
    position = np.array([0.3, 0.0, 0.2])
    for number in range(count):
        action = 0.02 * rng.standard_normal(DIM)
        position = position + 0.2 * action[:3]
        distance = 0.3 * np.exp(-(number % EPISODE) / 40.0) + 0.002 * rng.standard_normal()
        yield {
            "action": action,
            "tcp_position": position,
            "tcp_quaternion": np.array([1.0, 0.0, 0.0, 0.0]),
            "goal_distance": distance,
            "gripper": 1.0,
            "latency_s": 0.05,
            "success": False,
        }


def _steps(count: int, vocabulary: int | None) -> list[Any]:
    import numpy as np

    from monitor import Step

    if vocabulary is None:
        return [Step(**fields) for fields in _arm(count, 0)]
    rng = np.random.default_rng(1)
    pool = [(4.0 * rng.standard_normal((DIM, vocabulary))).astype("float32") for _ in range(16)]
    steps = []
    bins = ACTION_TOKENS if vocabulary == WHOLE_VOCABULARY else None
    for number, fields in enumerate(_arm(count, 0)):
        logits = pool[number % len(pool)]
        ids = logits.argmax(axis=1)
        steps.append(Step(**fields, token_logits=logits, token_ids=ids, action_token_range=bins))
    return steps


def _batches(count: int) -> list[Any]:
    import numpy as np

    from monitor import Step

    arms = [list(_arm(count, seed)) for seed in range(32)]
    steps = []
    for number in range(count):
        rows = [arms[robot % len(arms)][number] for robot in range(ROBOTS)]
        fields: dict[str, Any] = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
        steps.append(Step(**fields))
    return steps


if __name__ == "__main__":
    if sys.argv[1:2] == ["start"]:
        print(json.dumps(start(cached="--cached" in sys.argv)))
    else:
        serve()
