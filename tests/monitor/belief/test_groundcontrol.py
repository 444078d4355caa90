from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from monitor import Monitor, Step


def test_u_and_its_terms_equal_the_batch_formula_on_every_prefix(
    make_monitor: Callable[..., Monitor],
) -> None:
    rng = np.random.default_rng(2)
    monitor = make_monitor()
    n = 25
    d = np.abs(np.linspace(0.4, 0.05, n) + 0.02 * rng.normal(size=n))
    actions = rng.uniform(-0.05, 0.05, size=(n, 7))
    logits = rng.normal(size=(n, 7, 32)) * 2
    b = monitor.config.belief
    # The textbook's filter, in matrices.
    f, h = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    q = np.diag([b.process_std_m**2, b.process_std_velocity**2])
    x, cov, nis, hs, turns = np.array([d[0], 0.0]), np.diag([0.01, 1.0]), 0.0, [], []
    for t in range(n):
        got = monitor.update(
            Step(
                action=actions[t],
                goal_distance=d[t],
                token_logits=logits[t],
                token_ids=logits[t].argmax(axis=1),
            )
        ).metrics
        if t:
            x, cov = f @ x, f @ cov @ f.T + q
            nu, s = d[t] - (h @ x)[0], (h @ cov @ h.T)[0, 0] + b.measurement_std_m**2
            gain = (cov @ h.T)[:, 0] / s
            x, cov, nis = x + gain * nu, cov - np.outer(gain, h @ cov), nu**2 / s
            u, v = actions[t - 1, :3], actions[t, :3]
            lengths = np.linalg.norm(u), np.linalg.norm(v)
            turns.append(min(lengths) >= 0.002 and u @ v / (lengths[0] * lengths[1]) < -0.5)
        p = np.exp(logits[t]) / np.exp(logits[t]).sum(axis=1, keepdims=True)
        alpha = np.exp(np.log(p.max(axis=1)).mean())
        coin = -alpha * np.log(alpha) - (1 - alpha) * np.log(1 - alpha)
        spread = np.linalg.slogdet(cov + b.epsilon * np.eye(2))[1]
        hs.append(spread + 0.5 * coin + 0.8 * nis)
        seen = d[: t + 1]
        path = np.abs(np.diff(seen)).sum()
        expected = {
            "skf": 1 / (1 + np.exp(-max(hs))),
            "prog": 1 - np.clip((d[0] - d[t]) / d[0], 0, 1),
            "mono": 1 - np.mean(np.diff(seen) < 0) if t else None,
            "eff": 1 - abs(d[0] - d[t]) / path if path else 1.0,
            "osc": np.mean(turns) if t else None,
        }
        known = {k: x for k, x in expected.items() if x is not None}
        weights = dict(zip(expected, (0.30, 0.25, 0.20, 0.15, 0.10), strict=True))
        expected["U"] = sum(weights[k] * x for k, x in known.items()) / sum(
            weights[k] for k in known
        )
        assert got["alpha"] == pytest.approx(alpha, abs=1e-12)
        for name, value in expected.items():
            assert got[name] == (None if value is None else pytest.approx(value, abs=1e-9)), name
