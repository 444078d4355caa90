from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from monitor.rollout.preflight.chance import means_apart
from monitor.rollout.preflight.sensitivity import check_sensitivity, distance
from policies import Observation, PolicyOutput, load_policy

IMAGE = np.random.default_rng(0).integers(0, 256, (16, 16, 3)).astype(np.uint8)


class Made:
    """Logits from the image's mean and the instruction, as configured."""

    name = "made"
    signals: frozenset[str] = frozenset()

    def __init__(self, *, sees: bool, reads: bool, chance: float = 0.0) -> None:
        self.sees, self.reads, self.chance = sees, reads, chance
        self.rng = np.random.default_rng(0)

    def reset(self, instruction: str) -> None:
        pass

    def act(self, observation: Observation) -> PolicyOutput:
        logits = np.zeros((7, 16))
        if self.sees:
            logits[:, 0] += observation.image.mean() / 50.0
        if self.reads:
            words = observation.instruction.split()
            logits[:, 1] += sum(i * len(word) for i, word in enumerate(words)) / 50.0
        logits += self.chance * self.rng.standard_normal(logits.shape)
        return PolicyOutput(action=np.zeros(7), token_logits=logits)


@pytest.mark.parametrize("sees", [True, False])
@pytest.mark.parametrize("reads", [True, False])
def test_image_and_instruction_sensitivity_are_separate(sees: bool, reads: bool) -> None:
    report = check_sensitivity(Made(sees=sees, reads=reads), IMAGE, "put the red can on the plate")
    assert (report.sees, report.reads) == (sees, reads)
    assert report.fault == (None if sees else "VISION_BYPASS")
    assert report.repeat == 0.0
    assert report.measure == "token distribution"


def test_randomness_does_not_count_as_image_sensitivity() -> None:
    policy = Made(sees=False, reads=False, chance=0.3)
    assert check_sensitivity(policy, IMAGE, "put the red can on the plate").fault == "VISION_BYPASS"


def test_a_policy_that_ignores_the_image_is_refused() -> None:
    report = check_sensitivity(load_policy("hold"), IMAGE, "wait")
    assert report.fault == "VISION_BYPASS"
    assert report.measure == "action"


def test_distance_is_total_variation_of_the_worst_token() -> None:
    def answer(probabilities: Any) -> PolicyOutput:
        return PolicyOutput(action=np.zeros(7), token_logits=np.log(probabilities))

    one = answer(np.array([[0.5, 0.5], [0.9, 0.1]]))
    other = answer(np.array([[0.5, 0.5], [0.6, 0.4]]))
    assert distance(one, other) == pytest.approx(0.3)


def test_distance_of_actions_is_relative() -> None:
    one = PolicyOutput(action=np.array([0.01, 0.0]))
    other = PolicyOutput(action=np.array([-0.01, 0.0]))
    assert distance(one, other) == pytest.approx(1.0)
    assert distance(one, one) == 0.0
    assert distance(one, PolicyOutput(action=np.zeros(3))) == 1.0


class Flow:
    """Chunks from noise that a reset fixes; the image moves one small dimension of them."""

    name = "flow"
    signals = frozenset({"chunk", "samples"})

    def __init__(self, *, sees: bool, change: float | None = None) -> None:
        self.sees, self.change = sees, change

    def reset(self, instruction: str) -> None:
        self.rng = np.random.default_rng(0)

    def act(self, observation: Observation) -> PolicyOutput:
        draws = self.rng.standard_normal((3, 4, 2)) * [1.0, 1e-3]
        if self.sees:
            draws[..., 1] += observation.image.mean() * 1e-7
        return PolicyOutput(action=draws[0, 0], chunk=draws[0], samples=draws[1:, 0])

    def prefix_change(self, observation: Observation) -> float | None:
        return self.change


def test_drawn_actions_are_compared_dimension_by_dimension() -> None:
    report = check_sensitivity(Flow(sees=True), IMAGE, "put the red can on the plate")
    assert (report.measure, report.repeat, report.sees, report.mixes) == (
        "chunk",
        0.0,
        True,
        None,
    )
    assert check_sensitivity(Flow(sees=False), IMAGE, "wait").fault == "VISION_BYPASS"


@pytest.mark.parametrize(("change", "fault"), [(0.0, "PREFIX_CAUSAL"), (0.01, None), (None, None)])
def test_a_declared_bidirectional_prefix_must_be_one(
    change: float | None, fault: str | None
) -> None:
    assert check_sensitivity(Flow(sees=True, change=change), IMAGE, "put it there").fault == fault
    assert check_sensitivity(Flow(sees=True, change=change), IMAGE, "").prefix is None


def test_other_inputs_are_the_same_in_every_question() -> None:
    class Placed(Made):
        def act(self, observation: Observation) -> PolicyOutput:
            assert observation.tcp_position == (0.1, 0.2, 0.3)
            return super().act(observation)

    seen = {"image": IMAGE * 0, "tcp_position": (0.1, 0.2, 0.3)}
    assert check_sensitivity(Placed(sees=True, reads=True), IMAGE, "put it", sensed=seen).sees


class Server(Flow):
    """Samples from noise that a reset does not fix, as a policy server does."""

    def __init__(self, *, sees: bool) -> None:
        super().__init__(sees=sees)
        self.rng = np.random.default_rng(1)

    def reset(self, instruction: str) -> None:
        pass

    def act(self, observation: Observation) -> PolicyOutput:
        draws = self.rng.standard_normal((5, 4, 2))
        if self.sees:
            draws[..., 1] += observation.image.mean() / 50.0
        return PolicyOutput(action=draws[0, 0], chunk=draws[0], samples=draws[1:, 0])


@pytest.mark.parametrize("sees", [True, False])
def test_a_policy_with_unfixed_noise_is_compared_by_means(sees: bool) -> None:
    report = check_sensitivity(Server(sees=sees), IMAGE, "put the red can on the plate")
    assert (report.measure, report.sees, report.reads) == ("mean action", sees, False)
    assert report.repeat == 0.0
    assert report.fault == (None if sees else "VISION_BYPASS")


def test_chance_rarely_counts_as_a_difference() -> None:
    rng = np.random.default_rng(0)
    sets = rng.standard_normal((2, 2000, 8, 7))
    taken = sum(means_apart(one, other) > 0.0 for one, other in zip(*sets, strict=True))
    assert taken <= 2
    assert means_apart(sets[0, 0], sets[1, 0] + 6.0) > 0.8
