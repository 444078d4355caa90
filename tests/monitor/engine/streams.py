"""Random configurations and streams of steps that reach every branch of the core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from monitor import MonitorConfig, Step
from monitor.catalogue import CATALOGUE
from monitor.faults import FAMILIES

Rng = np.random.Generator
GENTLE = ("NONFINITE_ACTION", "ACTION_MISSING", "ENV_ERROR")
"""Faults that halt as a rule, and then nothing more would happen."""


def some_config(rng: Rng, dim: int) -> MonitorConfig:
    """Return a configuration for an action of ``dim`` numbers, with short counts."""

    def one_of(*values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    chosen = {str(name): float(rng.random()) for name in rng.choice(list(CATALOGUE), 12)}
    off = rng.choice(FAMILIES, int(rng.integers(0, 3)), replace=False).tolist()
    return MonitorConfig.model_validate(
        {
            "metrics": {
                "window": one_of(4, 5, 8, 13),
                "warmup": one_of("none", "zeros"),
                "goal_scale_m": one_of(None, 0.5),
                "info_window": one_of(None, 6),
                "peaks": ["TB-E", "NIS"],
            },
            "score": {
                "combine": one_of("max", "mean_top2", "weights"),
                **one_of({}, {"signals": chosen}),
            },
            "controller": {
                "budget": 3,
                "halt_after": 1,
                "enforce": one_of(True, True, False),
                "aggregation": one_of("windowed", "windowed", "running_max"),
                "tau_halt": one_of(0.75, 2.0),
            },
            "robot": {
                "gripper": {
                    "index": one_of(-1, 6, 0) if dim > 6 else -1,
                    "relative": one_of(True, False),
                }
            },
            "faults": {
                "off": off,
                "unnorm_limits": one_of(None, (0.1,), (0.1, 0.2, 0.3), (0.1, 0.2, 0.3, 0.4)),
                "stall_steps": 3,
                "blind_steps": 3,
                "frozen_steps": 3,
                "gripper_steps": 4,
                "late_steps": 2,
                "respond": {**dict.fromkeys(GENTLE, "alert"), "POLICY_ERROR": "recover"},
            },
        }
    )


def some_steps(rng: Rng, dim: int, count: int) -> Iterator[Step]:
    """Yield steps whose habits change now and then: lively, frozen, constant, without logits."""
    place, d = np.array([0.3, 0.0, 0.2]), 0.3
    action, image = np.zeros(dim), np.zeros((4, 4, 3), np.uint8)
    logits = rng.standard_normal((dim, 16)).astype(np.float32)
    habit = rng.integers(5)
    for number in range(count):
        habit = rng.integers(5) if rng.random() < 0.05 else habit
        if habit != 1:
            action = rng.standard_normal(dim) * rng.choice([1e-3, 0.1, 1.0, 3.0])
        if habit == 3:
            action = np.full(dim, rng.choice([-1.0, 0.0, 1.0]))
        if habit != 2:
            place = place + 0.1 * rng.standard_normal(3) * rng.choice([0.0, 1e-3, 0.1])
        d = abs(d + rng.standard_normal() * rng.choice([0.0, 1e-3, 0.05]))
        turn = rng.standard_normal(4)
        if rng.random() < 0.6:
            image = rng.integers(0, 255, (4, 4, 3)).astype(np.uint8)
        if rng.random() < 0.1:
            image = np.zeros((4, 4, 3), np.uint8)
        if rng.random() < 0.5:
            logits = (3.0 * rng.standard_normal((dim, 16))).astype(np.float32)
        known = 0.3 if number % 40 == 0 else rng.choice([1.0, 0.95, 0.5])
        fields: dict[str, Any] = {
            "action": action.copy(),
            "tcp_position": place.copy(),
            "tcp_quaternion": turn / np.linalg.norm(turn),
            "goal_distance": d,
            "gripper": float(rng.random()) if habit < 3 else 0.5,
            "latency_s": 0.4 * float(rng.random()),
            "image": image,
        }
        fields = {name: value for name, value in fields.items() if rng.random() < known}
        if habit != 4 and rng.random() < known:
            fields |= {"token_logits": logits, "token_ids": logits.argmax(axis=1)}
            fields["action_token_range"] = (2, 12) if rng.random() < 0.5 else None
        rare: dict[str, Any] = {
            "action": np.full(dim, np.nan),
            "policy_error": "boom",
            "env_error": "boom",
            "decode_ok": False,
        }
        fields |= {name: value for name, value in rare.items() if rng.random() < 0.03}
        if rng.random() < 0.3:
            fields["success"] = bool(rng.random() < 0.2)
            fields["samples"] = rng.standard_normal((4, dim))
        yield Step(**fields)
