from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitor.config import parse_config
from monitor.pipeline import Monitor
from monitor.rollout import EpisodeSpec, RunFiles, run_episodes
from monitor.rollout.recorders.logits import LogitsRecorder


def kept_logits(env: Any, policy: Any, monitor: Monitor, out: Path, watcher: Any) -> dict[str, Any]:
    run_episodes(
        env,
        policy,
        monitor,
        [EpisodeSpec(scene=0)],
        files=RunFiles(folder=out),
        observers=[LogitsRecorder(out), watcher],
    )
    with np.load(out / "logits" / "episode-000000-attempt-1.npz", allow_pickle=False) as file:
        return dict(file)


def test_every_logit_is_kept_exactly(
    fake_env: Callable[..., Any],
    reacher: Callable[..., Any],
    monitor: Monitor,
    watcher: Any,
    tmp_path: Path,
) -> None:
    kept = kept_logits(fake_env(horizon_steps=5), reacher(), monitor, tmp_path / "run", watcher)
    assert kept["step"].tolist() == [0, 1, 2, 3, 4]
    assert kept["token_logits"].dtype == np.float32
    for index, record in enumerate(watcher.steps):
        given = record.inputs.token_logits.astype(np.float32)
        assert np.array_equal(kept["token_logits"][index], given)
        assert np.array_equal(kept["token_ids"][index], record.inputs.token_ids)
    assert kept["action_token_range"].tolist() == [0, 16]
    assert not list((tmp_path / "run").rglob("*.part"))


def test_anything_but_logits_is_left_out(
    fake_env: Callable[..., Any],
    reacher: Callable[..., Any],
    watcher: Any,
    tmp_path: Path,
) -> None:
    torch = pytest.importorskip("torch")
    changed = {
        1: lambda output: _with(output, token_logits=None),
        2: lambda output: _with(output, token_logits=np.zeros((3, 16))),
        3: lambda output: _with(output, token_logits="none", token_ids=None),
        4: lambda output: _with(output, token_logits=torch.ones(7, 16, dtype=torch.bfloat16)),
        5: lambda output: _with(output, token_ids=None),
    }
    env = fake_env(horizon_steps=7)
    config = parse_config({"controller": {"enforce": False}})
    space = env.action_space
    monitor = Monitor(config, action_low=space.low, action_high=space.high)
    kept = kept_logits(env, reacher(changed), monitor, tmp_path / "run", watcher)
    assert kept["step"].tolist() == [0, 4, 5, 6]
    assert (kept["token_logits"][1] == 1).all()
    assert (kept["token_ids"][2] == -1).all()


def _with(output: Any, **fields: Any) -> Any:
    return replace(output, **fields)
