"""pi0-mini: π0's class with a small encoder; its flow against transformers' forward pass."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from monitor.errors import ConfigError  # noqa: E402
from monitor.rollout.preflight.sensitivity import check_sensitivity  # noqa: E402
from policies import Observation, Policy, load_policy  # noqa: E402
from policies.checkpoint import tensor_files  # noqa: E402
from policies.openvla.prompt import prompt_ids  # noqa: E402
from policies.pi0.flow import join  # noqa: E402
from policies.pi0.policy import PI0Policy  # noqa: E402
from policies.registry import packaged_checkpoint  # noqa: E402
from policies.sampling import normal_noise  # noqa: E402
from policies.tokenizer import load_tokenizer  # noqa: E402

RED, BLUE = "put the red cube on the plate", "put the blue can on the plate"


@pytest.fixture(scope="module")
def policy() -> Any:
    return load_policy("pi0-mini")


@pytest.fixture(scope="module")
def out(policy: Any, table_picture: Any) -> Any:
    policy.reset(RED)
    return policy.act(Observation(image=table_picture))


def test_it_is_pi0_with_few_parameters(policy: Any) -> None:
    assert isinstance(policy, Policy)
    assert type(policy) is PI0Policy
    assert policy.name == "pi0-mini"
    assert policy.signals == {"samples", "chunk", "extra", "hidden", "normalized_action"}
    assert 0.3e6 < sum(one.numel() for one in policy.model.parameters()) < 1.5e6
    (weights,) = tensor_files(Path(policy.checkpoint))
    assert weights.stat().st_size < 2.3e6


def test_output_has_the_promised_shapes(out: Any) -> None:
    assert out.action.shape == out.normalized_action.shape == (7,)
    assert out.chunk.shape == (4, 7)
    np.testing.assert_array_equal(out.chunk[0], out.action)
    assert out.samples.shape == (4, 7)
    assert out.token_ids is None
    assert out.token_logits is None
    assert np.isfinite(out.hidden).all()
    assert set(out.extra) == {"PI0-DV", "PI0-SPREAD", "PI0-OVERLAP"}


def test_plan_equals_euler_steps_on_transformers_own_forward_pass(
    policy: Any, table_picture: Any, out: Any
) -> None:
    """Without a cache, the whole sequence again at each step, the last mile in NumPy."""
    model, vlm = policy.model, policy.model.model.vlm
    pixels = torch.from_numpy(policy.preprocess(table_picture))
    ids = torch.tensor([policy.inputs.ids(RED)])
    x = normal_noise(0, 0, (5, 4, 7))[:1]
    with torch.inference_mode():
        words = vlm.get_input_embeddings()(ids)
        embedded = join(model, vlm.vision_tower(pixels, words).tokens, words)
        for step in range(10):
            field = model(
                state=torch.zeros(1, 1),
                noise=torch.from_numpy(x),
                timestep=torch.tensor([1.0 - step / 10]),
                inputs_embeds=embedded,
                pixel_values=pixels,
                attention_mask=torch.ones(embedded.shape[:2], dtype=torch.long),
            ).logits.numpy()
            x = x - field / 10
    scaling = policy.statistics.action
    plan = x[0].astype(np.float64)
    np.testing.assert_allclose(plan * scaling.factor + scaling.center, out.chunk, atol=2e-6)


def test_the_question_is_put_around_the_instruction(policy: Any) -> None:
    asked = prompt_ids(load_tokenizer(packaged_checkpoint("openvla-mini")), RED)
    assert policy.inputs.ids(RED) == policy.inputs.ids(RED.title()) == asked
    assert 0 not in asked


def test_picture_and_instruction_both_matter(policy: Any, table_picture: Any, out: Any) -> None:
    policy.reset(BLUE)
    other = policy.act(Observation(image=table_picture)).normalized_action
    policy.reset(RED)
    black = policy.act(Observation(image=table_picture * 0)).normalized_action
    for changed in (other, black):
        assert np.abs(out.normalized_action - changed).max() > 1e-2


def test_the_check_before_a_run_passes(policy: Any, table_picture: Any) -> None:
    report = check_sensitivity(policy, table_picture, RED)
    assert (report.measure, report.repeat) == ("chunk", 0.0)
    assert (report.sees, report.reads, report.mixes, report.fault) == (True, True, True, None)


def test_reset_starts_the_noise_again_and_a_copy_continues_alike(
    policy: Any, table_picture: Any, out: Any
) -> None:
    seen = Observation(image=table_picture, instruction=RED)
    for one in (policy, copy.deepcopy(policy)):
        one.reset(RED)
        first, later = one.act(seen), one.act(seen)
        np.testing.assert_array_equal(first.chunk, out.chunk)
        np.testing.assert_array_equal(first.samples, out.samples)
        assert first.extra["PI0-OVERLAP"] is None
        assert later.extra["PI0-OVERLAP"] > 0.0
        assert np.abs(first.samples - later.samples).max() > 0


def test_another_seed_draws_another_plan_and_fewer_samples_change_nothing(
    table_picture: Any, out: Any
) -> None:
    seen = Observation(image=table_picture, instruction=RED)
    assert np.abs(load_policy("pi0-mini", seed=1).act(seen).action - out.action).max() > 1e-6
    alone = load_policy("pi0-mini", samples=0).act(seen)
    assert alone.samples is None
    np.testing.assert_allclose(alone.action, out.action, atol=1e-6)


def test_its_language_head_says_nothing_and_is_refused() -> None:
    with pytest.raises(ConfigError, match="all zero"):
        load_policy("pi0-mini", expert_scores=True)
