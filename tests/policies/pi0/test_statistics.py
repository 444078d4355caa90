"""Statistics of every published form, and the small numbers each upstream adds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from monitor.errors import ConfigError
from policies.pi0.config import Layout, read_config
from policies.pi0.statistics import affine, read_statistics

Write = Callable[..., Path]
X = np.array([[0.2, -3.0, 7.0]])
GIVEN = {
    "mean": [0.0, 1.0, 7.0],
    "std": [0.5, 2.0, 0.0],
    "q01": [-1.0, -4.0, 7.0],
    "q99": [1.0, 0.0, 7.0],
    "min": [-2.0, -5.0, 7.0],
    "max": [2.0, 5.0, 7.0],
}


@pytest.mark.parametrize(
    ("mode", "layout", "formula"),
    [
        ("MEAN_STD", Layout.LEROBOT, lambda x, m, s: (x - m) / (s + 1e-8)),
        ("MEAN_STD", Layout.OPENPI, lambda x, m, s: (x - m) / (s + 1e-6)),
        ("QUANTILES", Layout.OPENPI, lambda x, a, b: (x - a) / (b - a + 1e-6) * 2 - 1),
        (
            "QUANTILES",
            Layout.LEROBOT,
            lambda x, a, b: 2 * (x - a) / np.where(b == a, 1e-8, b - a) - 1,
        ),
        ("MIN_MAX", Layout.LEROBOT_V1, lambda x, a, b: (x - a) / (b - a + 1e-8) * 2 - 1),
    ],
)
def test_formulas_and_their_inverses(mode: str, layout: Layout, formula: Any) -> None:
    names = {"MEAN_STD": ("mean", "std"), "QUANTILES": ("q01", "q99"), "MIN_MAX": ("min", "max")}
    low, high = (np.array(GIVEN[name]) for name in names[mode])
    one = affine(mode, GIVEN, layout=layout)
    np.testing.assert_allclose(one.normalize(X), formula(X, low, high), rtol=1e-6)
    np.testing.assert_allclose(one.unnormalize(one.normalize(X)), X, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("layout", list(Layout))
def test_the_largest_usual_value(layout: Layout) -> None:
    mean, std = np.array(GIVEN["mean"]), np.array(GIVEN["std"])
    largest: Any = affine("MEAN_STD", GIVEN, layout=layout).largest
    np.testing.assert_allclose(largest, np.abs(mean) + 3.0 * std)
    for mode, low, high in (("QUANTILES", "q01", "q99"), ("MIN_MAX", "min", "max")):
        ends = np.abs([GIVEN[low], GIVEN[high]]).max(axis=0)
        largest = affine(mode, GIVEN, layout=layout).largest
        np.testing.assert_allclose(largest, ends)


def test_lerobot_adds_nothing_on_the_way_out() -> None:
    one = affine("MEAN_STD", GIVEN, layout=Layout.LEROBOT)
    np.testing.assert_array_equal(one.unnormalize([2.0, 2.0, 2.0]), [1.0, 5.0, 7.0])


def test_lerobot_processors_are_read(checkpoint: Path, tiny: Any) -> None:
    scaling = read_statistics(checkpoint, read_config(checkpoint), {})
    top = np.add(tiny.mean["action"], tiny.std["action"])
    np.testing.assert_allclose(scaling.action.unnormalize(np.ones(7)), top, rtol=1e-6)
    np.testing.assert_allclose(scaling.state.normalize(np.full(8, 0.3)), np.ones(8), rtol=1e-6)


def test_statistics_beside_the_weights_are_read(tiny: Any, tmp_path: Path) -> None:
    tensors = tiny.published("lerobot-v1")
    buffers = {
        "normalize_inputs.buffer_observation_state": "observation.state",
        "normalize_targets.buffer_action": "action",
        "unnormalize_outputs.buffer_action": "action",
    }
    for buffer, name in buffers.items():
        tensors[f"{buffer}.mean"] = torch.tensor(tiny.mean[name])
        tensors[f"{buffer}.std"] = torch.tensor(tiny.std[name])
    tiny.write(tmp_path, tensors, num_steps=10)
    for pipeline in tmp_path.glob("policy_*"):
        pipeline.unlink()
    from policies.pi0.options import PI0Options
    from policies.pi0.policy import PI0Policy

    policy = PI0Policy(PI0Options(checkpoint=tmp_path))
    assert policy.config.layout is Layout.LEROBOT_V1
    np.testing.assert_allclose(policy.statistics.action.factor, tiny.std["action"], rtol=1e-6)
    np.testing.assert_allclose(policy.statistics.state.center, [0.1] * 8, rtol=1e-6)


def openpi(folder: Path, *names: str) -> Any:
    """An openpi folder with statistics under these names."""
    (folder / "config.json").write_text(json.dumps({"action_horizon": 4, "action_dim": 32}))
    for number, name in enumerate(names):
        place = folder / "assets" / name
        place.mkdir(parents=True)
        one = {"mean": [float(number)] * 7, "std": [1.0] * 7}
        (place / "norm_stats.json").write_text(
            json.dumps({"norm_stats": {"state": one, "actions": one}})
        )
    return read_config(folder)


def test_openpi_assets_are_chosen_by_name(tmp_path: Path) -> None:
    config = openpi(tmp_path, "bridge", "droid")
    scaling = read_statistics(tmp_path, config, {}, unnorm_key="droid")
    assert scaling.action.center.tolist() == [1.0] * 7
    with pytest.raises(ConfigError, match=r"one of \['bridge', 'droid'\]"):
        read_statistics(tmp_path, config, {})
    with pytest.raises(ConfigError, match="bridge"):
        read_statistics(tmp_path, config, {}, unnorm_key="brigde")


def test_a_single_asset_needs_no_name(tmp_path: Path) -> None:
    assert read_statistics(tmp_path, openpi(tmp_path, "a"), {}).action.size == 7


def test_without_statistics_nothing_starts(write_checkpoint: Write, tiny: Any) -> None:
    folder = write_checkpoint()
    config = read_config(folder)
    with pytest.raises(ConfigError, match="leave the key out"):
        read_statistics(folder, config, {}, unnorm_key="bridge")
    for pipeline in folder.glob("policy_*.json"):
        pipeline.unlink()
    with pytest.raises(ConfigError, match="carries no statistics"):
        read_statistics(folder, config, {})
    plain = read_statistics(folder, config, {}, norm_stats="none")
    assert plain.action.unnormalize([0.5]).tolist() == [0.5]
    given = folder / "stats.json"
    given.write_text(json.dumps({k: {"mean": tiny.mean[k], "std": tiny.std[k]} for k in tiny.mean}))
    assert read_statistics(folder, config, {}, norm_stats=given).action.size == 7
    with pytest.raises(ConfigError, match="is not a file"):
        read_statistics(folder, config, {}, norm_stats=folder / "none.json")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mean": [0.0]}, "but no 'std'"),
        ({"mean": [float("inf")], "std": [1.0]}, "'mean' is not finite"),
    ],
)
def test_broken_statistics_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        affine("MEAN_STD", given, layout=Layout.LEROBOT)
