from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from monitor.config import parse_config
from monitor.pipeline import Monitor
from monitor.rollout import EpisodeSpec, RunFiles, run_episodes
from monitor.rollout.recorders.hidden import HiddenRecorder
from monitor.rollout.recorders.npz import episode_path


def test_features_are_kept_exactly_and_anything_else_is_left_out(
    fake_env: Callable[..., Any], reacher: Callable[..., Any], watcher: Any, tmp_path: Path
) -> None:
    row = np.arange(5, dtype=np.float32) / 3
    given = {0: row, 1: None, 2: row[:4], 3: "none", 4: row + 1, 5: row * np.nan}
    changed = {
        at: lambda output, value=value: replace(output, hidden=value) for at, value in given.items()
    }
    env, out = fake_env(horizon_steps=6), tmp_path / "run"
    config = parse_config({"controller": {"enforce": False}})
    monitor = Monitor(config, action_low=env.action_space.low, action_high=env.action_space.high)
    observers = [HiddenRecorder(out), watcher]
    specs = [EpisodeSpec(scene=0)]
    files = RunFiles(folder=out)
    run_episodes(env, reacher(changed), monitor, specs, files=files, observers=observers)
    path = episode_path(out / "hidden", 0, 1)
    with np.load(path, allow_pickle=False) as kept:
        assert kept["step"].tolist() == [0, 4, 5]
        assert kept["hidden"].dtype == np.float32
        np.testing.assert_array_equal(kept["hidden"], np.stack([row, row + 1, row * np.nan]))
    assert not list(out.rglob("*.part"))


def test_a_policy_without_features_leaves_no_folder(
    fake_env: Callable[..., Any], reacher: Callable[..., Any], monitor: Monitor, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    env, specs = fake_env(horizon_steps=3), [EpisodeSpec(scene=0)]
    files = RunFiles(folder=out)
    run_episodes(env, reacher(), monitor, specs, files=files, observers=[HiddenRecorder(out)])
    assert not (out / "hidden").exists()
