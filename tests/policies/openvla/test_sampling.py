"""Samples come from one prefill and are what as many separate inferences would give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from monitor.errors import ConfigError  # noqa: E402
from policies import Observation, load_policy  # noqa: E402
from policies.sampling import gumbel_noise  # noqa: E402

RED = "put the red cube on the plate"


@pytest.fixture(scope="module")
def image() -> Any:
    return np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def golden(shared: Path) -> Any:
    folder = shared / "golden" / "openvla_tiny"
    return load_policy("openvla", checkpoint=folder, unnorm_key="bridge_orig")


@pytest.fixture(scope="module")
def inputs(shared: Path) -> Any:
    found = np.load(shared / "golden" / "openvla_tiny" / "inputs.npz")
    ids = torch.from_numpy(found["input_ids"]).long()
    return torch.cat([ids, ids.new_tensor([[29871]])], 1), torch.from_numpy(found["pixel_values"])


def shipped(**kwargs: Any) -> Any:
    return load_policy("openvla-mini", **kwargs)


def test_first_tokens_are_distributed_as_the_softmax_of_a_full_inference(
    golden: Any, inputs: Any
) -> None:
    temperature, count = 2.0, 1500
    noise = torch.from_numpy(gumbel_noise(0, 0, (count, 1, 256)))
    out = golden.model.decode(*inputs, tokens=1, noise=noise, temperature=temperature)
    plain = golden.infer(input_ids=inputs[0], pixel_values=inputs[1])
    low, high = plain.action_token_range
    logits = plain.token_logits[0, low:high].astype(np.float64) / temperature
    expected = count * np.exp(logits - np.logaddexp.reduce(logits))
    seen = np.bincount(out.ids[1:, 0].numpy() - low, minlength=256)
    # Rare tokens share a cell, as the chi-square test asks for at least five expected in each.
    order = np.argsort(expected)
    rare = order[np.cumsum(expected[order]) < 5.0]
    cells = [np.append(np.delete(x, rare), x[rare].sum()) for x in (expected, seen)]
    statistic = float(((cells[1] - cells[0]) ** 2 / cells[0]).sum())
    freedom = len(cells[0]) - 1
    assert freedom > 20, "too few tokens are likely here for the test to say anything"
    assert statistic < freedom + 4.0 * np.sqrt(2.0 * freedom)
    # The test can fail: the same draws do not fit another temperature.
    other = golden.model.decode(*inputs, tokens=1, noise=noise, temperature=0.5 * temperature)
    wrong = np.bincount(other.ids[1:, 0].numpy() - low, minlength=256)
    worse = np.append(np.delete(wrong, rare), wrong[rare].sum())
    assert ((worse - cells[0]) ** 2 / cells[0]).sum() > freedom + 8.0 * np.sqrt(2.0 * freedom)


def test_a_batch_of_continuations_equals_separate_runs_without_a_cache(
    golden: Any, inputs: Any
) -> None:
    ids, pixels = inputs
    noise = torch.from_numpy(gumbel_noise(7, 0, (3, 4, 256)))
    out = golden.model.decode(ids, pixels, tokens=4, noise=noise, temperature=1.5)
    low, high = golden.config.action_token_range
    for k in range(3):
        chosen: list[int] = []
        for step in range(4):
            # Whole sequence again; the last column is a place holder that nothing attends to.
            forced = torch.tensor([[*chosen, low]])
            with torch.inference_mode():
                logits, _ = golden.model(ids, pixels, forced)
            heat = torch.softmax(logits[0, -1, low:high].float() / 1.5, dim=-1)
            chosen.append(int((heat.log() * 1.5 + 1.5 * noise[k, step]).argmax()) + low)
        assert out.ids[k + 1].tolist() == chosen


def test_cold_samples_are_the_greedy_action(image: Any) -> None:
    for temperature in (0.0, 1e-5):
        policy = shipped(samples=3, temperature=temperature)
        out = policy.act(Observation(image=image, instruction=RED))
        np.testing.assert_array_equal(out.samples, np.tile(out.action, (3, 1)))


def test_the_action_and_its_logits_do_not_depend_on_sampling(image: Any) -> None:
    seen = Observation(image=image, instruction=RED)
    plain, sampled = shipped().act(seen), shipped(samples=8).act(seen)
    np.testing.assert_array_equal(sampled.token_ids, plain.token_ids)
    np.testing.assert_allclose(sampled.token_logits, plain.token_logits, atol=1e-4)
    assert sampled.samples.shape == (8, 7)
    assert np.ptp(sampled.samples, axis=0).max() > 0


def test_seed_and_step_fix_what_is_drawn(image: Any) -> None:
    seen = Observation(image=image, instruction=RED)
    policy = shipped(samples=4, seed=3)
    policy.reset(RED)
    policy.act(Observation(image=image * 0, instruction=RED))
    second = policy.act(seen).samples
    other = shipped(samples=2, seed=3)
    other.reset(RED)
    other.act(seen)
    np.testing.assert_array_equal(other.act(seen).samples, second[:2])
    other.reset(RED)
    assert np.abs(other.act(seen).samples - second[:2]).max() > 0
    foreign = shipped(samples=2, seed=4)
    foreign.act(seen)
    assert np.abs(foreign.act(seen).samples - second[:2]).max() > 0


@pytest.mark.parametrize("bad", [{"samples": -1}, {"temperature": -0.5}])
def test_negative_options_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="from 0 up"):
        shipped(**bad)
