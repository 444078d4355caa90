"""Feed one monitor random steps, most of them malformed, and check its output and memory.

    python scripts/fuzz.py                        # a million steps, a new episode now and then
    python scripts/fuzz.py --clean --reset 0      # a million healthy steps of one endless episode

Ends with an error at the first exception or the first number that is not finite.
"""

from __future__ import annotations

import argparse
import pickle
import random
import sys
from math import isfinite
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from monitor import Decision, Mode, Monitor, MonitorConfig, Step

LOW = np.array([-0.05] * 3 + [-0.25] * 3 + [-1.0])
RESPONSES = dict.fromkeys(
    (
        "NONFINITE_ACTION",
        "ACTION_SHAPE",
        "ACTION_MISSING",
        "POLICY_ERROR",
        "ENV_ERROR",
        "UNNORM_MISMATCH",
    ),
    "alert",
)
"""Faults that would halt at once, so that recoveries are fuzzed too."""
POOL = 64
"""Precomputed values per field: drawing is cheap, generating is not."""


def healthy(rng: np.random.Generator) -> dict[str, list[Any]]:
    """Return valid values of every field."""
    logits = [
        rng.normal(size=(7, 64)).astype(np.float32) * rng.choice([0.3, 3.0, 12.0])
        for _ in range(POOL)
    ]
    quaternions = rng.normal(size=(POOL, 4)) * 0.1 + [1.0, 0.0, 0.0, 0.0]
    return {
        "action": list(rng.uniform(LOW, -LOW, size=(POOL, 7))),
        "token_logits": logits,
        "token_ids": [rng.integers(0, 64, 7) for _ in range(POOL)],
        "action_token_range": [None, (0, 64), (16, 48)],
        "tcp_position": list(rng.normal(size=(POOL, 3)) * 0.1),
        "tcp_quaternion": list(quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)),
        "goal_distance": rng.uniform(0.0, 0.5, POOL).tolist(),
        "samples": [None, *rng.uniform(LOW, -LOW, size=(POOL, 3, 7))],
        "chunk": [None, *rng.uniform(LOW, -LOW, size=(POOL, 4, 7))],
        "image": list(rng.integers(0, 256, (POOL, 8, 8, 3), dtype=np.uint8)),
        "gripper": rng.uniform(size=POOL).tolist(),
        "latency_s": [0.05, 0.05, 0.05, 0.3],
        "success": [None, False, False, False, False, False, False, True],
    }


def broken(rng: np.random.Generator, value: Any) -> Any:
    """Return an invalid value for the field that holds ``value``."""
    kind = rng.integers(7)
    if isinstance(value, np.ndarray) and kind < 5:
        if kind == 0:
            return value[:-1]
        if kind == 1:
            return value.astype(np.float16)
        wild = value.astype(np.float64)
        if kind == 2:
            return wild * 10.0 ** rng.integers(-320, 300)
        where = rng.uniform(size=wild.shape) < rng.choice([0.05, 0.5, 1.0])
        wild[where] = rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e308])
        return wild if kind == 3 else wild.tolist()
    odd: list[Any] = [None, "x", b"", {}, (), [[1], [1, 2]], object(), 1j, True, lambda: None]
    odd += [-1, 10**400, float("nan"), float("inf"), -float("inf"), 1e308, np.float16(3)]
    odd += [np.array([]), np.array(["a"]), np.zeros((2, 2, 2)), np.ma.masked]
    return odd[rng.integers(len(odd))]


def check(decision: Decision, number: int) -> None:
    """Exit if a number is not finite or an action is sent that must not be."""
    numbers = [x for x in decision.metrics.values() if x is not None]
    numbers += [x for x in decision.evidence.signals.values() if x is not None]
    belief = decision.belief
    if belief is not None:
        numbers += [belief.distance, belief.velocity, belief.var_distance, belief.var_velocity]
    bad = not all(map(isfinite, numbers))
    bad |= decision.score is not None and not 0.0 <= decision.score <= 1.0
    bad |= decision.action is not None and not np.isfinite(decision.action).all()
    bad |= decision.mode is Mode.HALT and decision.action is not None
    if bad:
        sys.exit(f"step {number}: {decision}")


def resident_mib() -> float:
    """Return the resident memory of this process, MiB; 0 if it is not available."""
    path = Path("/proc/self/statm")
    return int(path.read_text().split()[1]) * 4096 / 2**20 if path.is_file() else 0.0


def main() -> None:
    """Run and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--clean", action="store_true", help="healthy values only")
    parser.add_argument("--reset", type=int, default=200, help="steps per episode; 0 = one episode")
    args = parser.parse_args()
    rng, draw = np.random.default_rng(args.seed), random.Random(args.seed)
    good = healthy(rng)
    bad = {k: [broken(rng, draw.choice(v)) for _ in range(4 * POOL)] for k, v in good.items()}
    config = MonitorConfig.model_validate(
        {
            "faults": {"respond": RESPONSES},
            "controller": {"tau_halt": 1.5, "budget": 8},
            "metrics": {"info_window": 32, "peaks": ("TB-E", "TI")},
        }
    )
    monitor = Monitor(config, action_low=LOW, action_high=-LOW)
    modes: dict[str, int] = {}
    codes: dict[str, int] = {}
    print("    steps  monitor bytes  resident MiB  seconds")
    began = perf_counter()
    for number in range(args.steps + 1):
        if number % max(args.steps // 10, 1) == 0:
            size, seconds = len(pickle.dumps(monitor)), perf_counter() - began
            print(f"{number:9d}  {size:13d}  {resident_mib():12.1f}  {seconds:7.0f}", flush=True)
        if args.reset and number % args.reset == 0:
            monitor.reset()
        given = {name: draw.choice(values) for name, values in good.items()}
        if not args.clean:
            # From no broken field to all of them.
            share = draw.random() ** 3
            given |= {name: draw.choice(bad[name]) for name in given if draw.random() < share}
            if draw.random() < 0.01:
                given[draw.choice(("policy_error", "env_error"))] = "boom"
        decision = monitor.update(Step(**given, decode_ok=draw.random() > 0.01 * (not args.clean)))
        check(decision, number)
        modes[decision.mode.value] = modes.get(decision.mode.value, 0) + 1
        for fault in decision.faults:
            codes[fault.code] = codes.get(fault.code, 0) + 1
    print("modes", modes)
    print("faults", dict(sorted(codes.items())))
    print(f"{args.steps} steps: no exception, every number finite")


if __name__ == "__main__":
    main()
