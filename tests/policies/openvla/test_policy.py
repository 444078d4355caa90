"""openvla-mini: the same class with the small tower."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from monitor.errors import ConfigError  # noqa: E402
from policies import Observation, Policy, load_policy  # noqa: E402

RED, BLUE = "put the red cube on the plate", "put the blue can on the plate"


@pytest.fixture(scope="module")
def image() -> Any:
    return np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)


@pytest.fixture
def policy(mini_checkpoint: Path) -> Any:
    return load_policy("openvla-mini", checkpoint=mini_checkpoint)


def test_it_is_a_policy(policy: Any) -> None:
    assert isinstance(policy, Policy)
    assert policy.name == "openvla-mini"
    assert policy.signals == {"token_logits", "token_ids", "hidden", "normalized_action"}


def test_output_has_the_promised_shapes(policy: Any, image: Any) -> None:
    out = policy.act(Observation(image=image, instruction=RED))
    assert out.action.shape == out.normalized_action.shape == (7,)
    assert out.token_ids.shape == (7,)
    assert out.token_logits.shape == (7, 336)
    assert out.action_token_range == (64, 320)
    assert out.samples is None
    assert np.isfinite(out.hidden).all()


def test_ids_are_the_largest_logits(policy: Any, image: Any) -> None:
    out = policy.act(Observation(image=image, instruction=RED))
    np.testing.assert_array_equal(out.token_ids, out.token_logits.argmax(axis=1))


def test_cached_decoding_equals_one_pass_over_the_whole_sequence(policy: Any, image: Any) -> None:
    out = policy.act(Observation(image=image, instruction=RED))
    ids = torch.tensor([policy._ids(RED)])
    pixels = torch.from_numpy(policy.preprocess(image))
    with torch.inference_mode():
        logits, _ = policy.model(ids, pixels, torch.from_numpy(out.token_ids)[None])
    np.testing.assert_allclose(out.token_logits, logits[0].numpy(), atol=1e-5)


def test_padding_of_the_prompt_changes_nothing(policy: Any, image: Any) -> None:
    ids = torch.tensor([policy._ids(RED)])
    padded = torch.cat([ids, ids.new_zeros(1, 5)], dim=1)
    mask = torch.cat([torch.ones_like(ids), ids.new_zeros(1, 5)], dim=1)
    pixels = torch.from_numpy(policy.preprocess(image))
    actions = torch.full((1, 7), 100)
    with torch.inference_mode():
        plain, _ = policy.model(ids, pixels, actions)
        masked, _ = policy.model(padded, pixels, actions, mask)
    np.testing.assert_allclose(plain.numpy(), masked.numpy(), atol=1e-5)


def test_same_input_same_output(policy: Any, image: Any) -> None:
    seen = Observation(image=image, instruction=RED)
    first, second = policy.act(seen), policy.act(seen)
    np.testing.assert_array_equal(first.token_logits, second.token_logits)


def test_instruction_and_picture_both_matter(policy: Any, image: Any) -> None:
    logits = policy.act(Observation(image=image, instruction=RED)).token_logits
    other = policy.act(Observation(image=image, instruction=BLUE)).token_logits
    black = policy.act(Observation(image=image * 0, instruction=RED)).token_logits
    assert np.abs(logits - other).max() > 1e-3
    assert np.abs(logits - black).max() > 1e-3


def test_reset_gives_the_instruction_where_the_observation_has_none(
    policy: Any, image: Any
) -> None:
    policy.reset(RED)
    bare = policy.act(Observation(image=image)).token_logits
    named = policy.act(Observation(image=image, instruction=RED)).token_logits
    np.testing.assert_array_equal(bare, named)


def test_samples_start_again_at_reset_and_leave_the_action_alone(
    mini_checkpoint: Path, policy: Any, image: Any
) -> None:
    sampler: Any = load_policy("openvla-mini", checkpoint=mini_checkpoint, samples=5, seed=3)
    seen = Observation(image=image, instruction=RED)
    sampler.reset(RED)
    first = sampler.act(seen)
    later = sampler.act(seen)
    sampler.reset(RED)
    again = sampler.act(seen)
    assert first.samples.shape == (5, 7)
    np.testing.assert_array_equal(first.samples, again.samples)
    assert np.abs(first.samples - later.samples).max() > 0
    np.testing.assert_array_equal(first.action, policy.act(seen).action)


def test_deep_copy_continues_alike(policy: Any, image: Any) -> None:
    twin = copy.deepcopy(policy)
    seen = Observation(image=image, instruction=RED)
    np.testing.assert_array_equal(policy.act(seen).action, twin.act(seen).action)


def test_bad_pictures_are_refused_with_their_shape(policy: Any) -> None:
    with pytest.raises(ValueError, match=r"\(H, W, 3\) uint8 RGB, got shape \(4, 4\) float64"):
        policy.act(Observation(image=np.zeros((4, 4)), instruction=RED))  # type: ignore[arg-type]


def test_unknown_dtype_is_named(mini_checkpoint: Path) -> None:
    with pytest.raises(ConfigError, match="unknown dtype 'float8'"):
        load_policy("openvla-mini", checkpoint=mini_checkpoint, dtype="float8")
