"""Time the monitor and the public replication code of the uncertainty metrics in one run.

    python scripts/yardstick.py FOLDER    # a clone of pablovalle/VLA_UQ

Absolute times differ between machines, and on a shared one over time; the ratio of the two does
not. Theirs computes the motion and token metrics of a step over a window of 8. Ours also reads the
step's arrays, filters, checks for faults, scores and decides.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np
import torch

from monitor import Monitor, Step
from monitor.bench.overhead import batched_steps, made_up_steps
from monitor.vector import VectorMonitor

WINDOW = 8
WARM, CALLS = 10, 20
"""Warm-up and timed calls of a row before the next row's turn."""
ENVS = 1024
"""Environments of the VectorMonitor; it makes fewer calls, as each takes long."""
SCALE = {"motion": 123.0, "tokens 7×256": 33.0, "tokens 7×32064": 750.0}
"""Microseconds of theirs on the machine on which our limits were set."""


def theirs(folder: Path) -> dict[str, Callable[[int], object]]:
    """Return their metrics as calls by number."""
    sys.path.insert(0, str(folder))
    motion = importlib.import_module("uncertainty.uncertainty_metrics")
    fast = importlib.import_module("uncertainty.token_based_metrics_fast")
    steps = made_up_steps(400, vocabulary=None)
    actions = [
        {"world_vector": a[:3], "rot_axangle": a[3:6], "gripper": a[6:]}
        for a in (step.action for step in steps)
    ]
    poses = [[*step.tcp_position, 0.0, 0.0, 0.0] for step in steps]
    of_actions = [
        getattr(motion, f"compute_{name}_instability")
        for name in ("position", "velocity", "acceleration")
    ]
    of_poses = [
        getattr(motion, f"compute_TCP_{name}")
        for name in (
            "position_instability",
            "velocity_instability",
            "acceleration_instability",
            "jerk_instability_gradient",
        )
    ]

    def windowed(number: int) -> None:
        begin = number % (len(steps) - WINDOW)
        for metric in of_actions:
            metric(actions[begin : begin + WINDOW])
        for metric in of_poses:
            metric(poses[begin : begin + WINDOW])

    calls: dict[str, Callable[[int], object]] = {"motion": windowed}
    metrics = fast.TokenMetricsFast()
    for v in (256, 32064):
        pool = [torch.from_numpy(s.token_logits) for s in made_up_steps(16, vocabulary=v)]
        calls[f"tokens 7×{v}"] = partial(_tokens, metrics, pool)
    return calls


def _tokens(metrics: Any, pool: list[torch.Tensor], number: int) -> None:
    metrics.compute_norm_inv_token_metrics(pool[number % len(pool)])


def ours() -> dict[str, Callable[[int], object]]:
    """Return our updates as calls by number; each begins with a reset."""
    high = np.ones(7)
    calls: dict[str, Callable[[int], object]] = {}
    plain = made_up_steps(400, vocabulary=None)
    first = Monitor(action_low=-high, action_high=high)
    evidence = [first.update(step).evidence for step in plain]
    again = Monitor(action_low=-high, action_high=high)

    def replay(number: int) -> None:
        if number == 0:
            again.reset()
        again.replay(evidence[number % len(evidence)])

    calls["of evidence"] = replay
    for v in (None, 256, 32064):
        steps = plain if v is None else made_up_steps(64, vocabulary=v)
        monitor = Monitor(action_low=-high, action_high=high)
        calls["without logits" if v is None else f"7×{v}"] = partial(_update, monitor, steps)
    many = VectorMonitor(num_envs=ENVS, action_low=-high, action_high=high)
    calls["VectorMonitor"] = partial(_update_many, many, batched_steps(ENVS))
    return calls


def _softmax(pool: list[torch.Tensor], number: int) -> None:
    torch.softmax(pool[number % len(pool)], dim=-1)


def _update_many(monitor: VectorMonitor, steps: list[Step], number: int) -> None:
    monitor.update(steps[number % len(steps)])


def _update(monitor: Monitor, steps: list[Step], number: int) -> None:
    if number == 0:
        monitor.reset()
    monitor.update(steps[number % len(steps)])


def main() -> None:
    """Print medians, and ours scaled to the machine on which theirs was first timed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="a clone of pablovalle/VLA_UQ")
    parser.add_argument("--rounds", type=int, default=50)
    given = parser.parse_args()
    torch.set_num_threads(1)
    reference, own = theirs(given.folder), ours()
    v = 32064
    pool = [torch.from_numpy(s.token_logits) for s in made_up_steps(16, vocabulary=v)]
    rows: dict[str, Callable[[int], object]] = {
        **{f"theirs, {name}": call for name, call in reference.items()},
        **{f"ours, {name}": call for name, call in own.items()},
        f"torch.softmax 7×{v}": partial(_softmax, pool),
    }
    times: dict[str, list[float]] = {name: [] for name in rows}
    gc.disable()
    for _ in range(given.rounds):
        for name, call in rows.items():
            many = ENVS if "Vector" in name else 1
            warm, calls = (WARM, CALLS) if many == 1 else (1, 2)
            for number in range(warm + calls):
                began = perf_counter_ns()
                call(number)
                if number >= warm:
                    times[name].append((perf_counter_ns() - began) / 1e3 / many)
    medians = {name: float(np.median(row)) for name, row in times.items()}
    for name, median_us in medians.items():
        print(f"{name:24s} {median_us:9.1f} µs")
    motion, small = medians["theirs, motion"], medians["theirs, tokens 7×256"]
    by_motion = SCALE["motion"] / motion
    by_both = (SCALE["motion"] + SCALE["tokens 7×256"]) / (motion + small)
    print("\non the scale of a machine where theirs takes 123 µs for motion and 33 for 7×256:")
    print(f"  ours, of evidence    {medians['ours, of evidence'] * by_motion:6.1f} µs (bar 40)")
    print(f"  ours, without logits {medians['ours, without logits'] * by_motion:6.1f} µs")
    print(f"  ours, 7×256          {medians['ours, 7×256'] * by_both:6.1f} µs (bar 80)")
    each = medians["ours, VectorMonitor"] * by_both
    print(f"  ours, VectorMonitor of {ENVS} at 7×256, per environment {each:6.1f} µs (bar 6)")
    ratio = medians[f"ours, 7×{v}"] / medians[f"torch.softmax 7×{v}"]
    print(f"at 7×{v} ours takes {ratio:.2f} times torch.softmax (bar 2.5)")


if __name__ == "__main__":
    main()
