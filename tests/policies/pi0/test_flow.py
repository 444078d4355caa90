"""The flow against transformers' own sampling, and against numbers from LeRobot's code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from policies.pi0.flow import encode_prefix, integrate
from policies.pi0.options import PI0Options
from policies.pi0.policy import PI0Policy
from policies.sampling import normal_noise

LEROBOT = np.array(
    [
        [
            [0.495198, 0.405807, -1.753116],
            [1.702763, 1.993939, -1.699002],
            [1.524554, -0.038357, -1.310610],
            [0.127169, 1.757650, -0.311880],
        ],
        [
            [-0.062969, -1.094776, -0.752518],
            [-0.650079, 1.082126, -0.847871],
            [-0.140946, 0.490634, -0.201584],
            [-0.764848, -0.989799, 0.963692],
        ],
        [
            [0.670703, -2.015480, -0.708859],
            [0.151642, 1.580937, -1.368906],
            [1.939826, -0.130434, 1.242480],
            [-2.160644, 2.722743, 0.273715],
        ],
    ]
)
"""First three dimensions of three plans by ``PI0Pytorch.sample_actions`` of LeRobot 0.6.1 (on
transformers 5.5.4) with the weights of ``conftest.py`` and the inputs below, two cameras, a third
masked, and the words padded to 48 tokens. Run once, outside this repository."""


@pytest.fixture(scope="module")
def policy(checkpoint: Path) -> PI0Policy:
    return PI0Policy(PI0Options(checkpoint=checkpoint))


@pytest.fixture(scope="module")
def inputs() -> dict[str, Any]:
    """Two cameras, five words, a state and three draws of noise."""
    rng = np.random.default_rng(5)
    pixels = rng.uniform(-1, 1, (1, 2, 3, 28, 28)).astype(np.float32)
    state = rng.standard_normal((1, 32)).astype(np.float32)
    noise = rng.standard_normal((3, 4, 32)).astype(np.float32)
    return {
        "pixels": torch.tensor(pixels),
        "ids": torch.tensor([[2, 7, 9, 30, 4]]),
        "state": torch.tensor(state),
        "noise": torch.tensor(noise),
    }


def plans(policy: PI0Policy, inputs: dict[str, Any], noise: Any, steps: int = 10) -> Any:
    prefix = encode_prefix(policy.model, inputs["ids"], inputs["pixels"])
    return integrate(policy.model, prefix, inputs["state"], noise, steps).actions


def test_equals_lerobot(policy: PI0Policy, inputs: dict[str, Any]) -> None:
    ours = plans(policy, inputs, inputs["noise"])
    np.testing.assert_allclose(ours[:, :, :3], LEROBOT, atol=1e-5)


@pytest.mark.parametrize("steps", [1, 10])
def test_equals_transformers_own_sampling(
    policy: PI0Policy, inputs: dict[str, Any], steps: int
) -> None:
    image_tokens = torch.full((1, 8), policy.config.model.vlm_config.image_token_id)
    ids = torch.cat([image_tokens, inputs["ids"]], dim=1)
    for row in inputs["noise"]:
        theirs = policy.model.sample_actions(
            state=inputs["state"],
            input_ids=ids,
            pixel_values=inputs["pixels"],
            noise=row[None].clone(),
            attention_mask=torch.ones_like(ids),
            pixel_attention_mask=torch.ones(1, 2, dtype=torch.bool),
            num_steps=steps,
        )
        ours = plans(policy, inputs, row[None], steps)
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0.0)


def test_draws_that_share_a_prefix_equal_runs_of_their_own(
    policy: PI0Policy, inputs: dict[str, Any]
) -> None:
    together = plans(policy, inputs, inputs["noise"])
    alone = torch.cat([plans(policy, inputs, row[None]) for row in inputs["noise"]])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0.0)
    assert float((alone[0] - alone[1]).abs().max()) > 0.1


def test_the_prefix_runs_once_for_all_draws(
    policy: PI0Policy, inputs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    vlm, calls = policy.model.model.vlm, []
    real = vlm.forward

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(kwargs["inputs_embeds"].shape)
        return real(*args, **kwargs)

    monkeypatch.setattr(vlm, "forward", counted)
    plans(policy, inputs, inputs["noise"])
    assert calls == [(1, 13, 32)]


def test_noise_depends_on_seed_and_step_alone() -> None:
    few, many = normal_noise(3, 8, (2, 4, 32)), normal_noise(3, 8, (9, 4, 32))
    assert np.array_equal(few, many[:2])
    assert not np.array_equal(few, normal_noise(3, 9, (2, 4, 32)))
    assert not np.array_equal(few, normal_noise(4, 8, (2, 4, 32)))
    assert abs(float(many.std()) - 1.0) < 0.1


def test_every_input_moves_the_plan(policy: PI0Policy, inputs: dict[str, Any]) -> None:
    plain = plans(policy, inputs, inputs["noise"])
    changes = {
        "pixels": -inputs["pixels"],
        "ids": inputs["ids"].flip(1),
        "state": inputs["state"] + 1.0,
    }
    for name, value in changes.items():
        moved = plans(policy, {**inputs, name: value}, inputs["noise"])
        assert float((moved - plain).abs().max()) > 1e-3, name
