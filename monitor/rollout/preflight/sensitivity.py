"""Check that a policy responds to the image and the instruction, before it moves anything."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.rollout.preflight.chance import means_apart
from policies import Observation, Policy

__all__ = ["SensitivityReport", "check_sensitivity", "distance"]

VISION_BYPASS: Final = "VISION_BYPASS"
PREFIX_CAUSAL: Final = "PREFIX_CAUSAL"
TOKENS: Final = "token distribution"
ROUNDS: Final = 8
"""Answers per question of a policy that is random even after a reset."""
MIN_MIX: Final = 1e-6
"""Relative change below which the start of a prefix does not attend to its end."""
NEGLIGIBLE: Final = 1e-6
"""Fraction of the largest value below which a dimension of a chunk holds rounding errors."""
MIN_MOVE: Final = 1e-3
"""Total variation, or fraction of the largest action, below which an answer is the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitivityReport:
    """Distances of the policy's answers to changed inputs from its answer to the original one.

    For a policy with logits, a distance is the largest total variation over the action tokens. For
    a policy that samples chunks from noise, it is the largest change of any sampled action
    relative to the dimension's largest value: a reset fixes the noise, so that only the input
    changes the answer. For any other policy it is the largest change of a component relative to
    the larger of the two actions. If a policy answers the same input differently after a reset,
    every input is repeated and the means are compared, see
    :func:`monitor.rollout.preflight.chance.means_apart`.

    Attributes:
        measure: "token distribution", "chunk", "action" or "mean action".
        repeat: distance for the same input again: the policy's randomness.
        images: distance by image: black, white, noise.
        instructions: distance by instruction: words shuffled, words reversed, empty.
        sees: whether some image changes the answer by more than the policy's randomness.
        reads: whether some instruction does.
        prefix: change of the first token of the model's prefix, in [0, 1], when words after it
            change; None for a policy that does not declare bidirectional attention.
    """

    measure: str
    repeat: float
    images: Mapping[str, float]
    instructions: Mapping[str, float]
    sees: bool
    reads: bool
    prefix: float | None = None

    @property
    def mixes(self) -> bool | None:
        """Whether the prefix's tokens attend to each other; None if that is not declared."""
        return None if self.prefix is None else self.prefix > MIN_MIX

    @property
    def fault(self) -> str | None:
        """``VISION_BYPASS`` if the image has no effect, ``PREFIX_CAUSAL``, or None."""
        if not self.sees:
            return VISION_BYPASS
        return PREFIX_CAUSAL if self.mixes is False else None


def check_sensitivity(
    policy: Policy,
    image: Any,
    instruction: str,
    *,
    seed: int = 0,
    sensed: Mapping[str, Any] | None = None,
) -> SensitivityReport:
    """Measure how a policy responds to changed images and instructions.

    A policy with a bidirectional prefix has ``prefix_change(observation)``, which returns the
    change of the first token, in [0, 1], when the words after it swap places.

    Args:
        policy: policy; it is reset before every question.
        image: a real image, uint8 ``(H, W, 3)``.
        instruction: a real instruction.
        seed: random seed of the noise image and the shuffled words.
        sensed: further inputs of the policy, the same in every question: fields of
            :class:`policies.Observation` such as ``tcp_position``.
    """
    original = np.asarray(image)
    rng = np.random.default_rng(seed)
    noise = rng.integers(0, 256, original.shape).astype(np.uint8)
    images = {
        "black": np.zeros_like(original),
        "white": np.full_like(original, 255),
        "noise": noise,
    }
    ask = partial(_ask, policy, {**(sensed or {}), "image": original, "instruction": instruction})
    measure, far = _distance_of(ask)
    repeat = far()
    by_image = {name: far(image=changed) for name, changed in images.items()}
    by_instruction = {
        name: far(instruction=text) for name, text in _instructions(instruction, seed).items()
    }
    # Randomness must not count as a response; twice the repeat's distance leaves a margin.
    floor = max(MIN_MOVE, 2.0 * repeat)
    return SensitivityReport(
        measure=measure,
        repeat=repeat,
        images=by_image,
        instructions=by_instruction,
        sees=any(value > floor for value in by_image.values()),
        reads=any(value > floor for value in by_instruction.values()),
        prefix=_prefix_change(policy, original, instruction),
    )


def distance(one: Any, other: Any) -> float:
    """Return the distance of two answers in [0, 1], see :class:`SensitivityReport`."""
    if one.token_logits is not None and other.token_logits is not None:
        left, right = _probabilities(one.token_logits), _probabilities(other.token_logits)
        if left.shape == right.shape:
            return float(np.abs(left - right).sum(axis=-1).max() / 2.0)
    if _measure(one) == _measure(other) == "chunk":
        return _chunk_distance(_drawn(one), _drawn(other))
    first, second = _array(one.action), _array(other.action)
    if first.shape != second.shape:
        return 1.0
    scale = max(float(np.abs(first).max(initial=0.0)), float(np.abs(second).max(initial=0.0)))
    return 0.0 if scale == 0.0 else float(np.abs(first - second).max() / (2.0 * scale))


def _distance_of(ask: Callable[..., Any]) -> tuple[str, Callable[..., float]]:
    """Return the measure for this policy, and its distance by that measure to a changed input."""
    plain = ask()
    measure = _measure(plain)
    if measure == TOKENS or distance(plain, ask()) <= MIN_MOVE:
        return measure, lambda **changed: distance(plain, ask(**changed))
    # Random even after a reset, like a server: only means can be compared.
    plain_rows = _first_actions(ask)
    return "mean action", lambda **changed: means_apart(
        plain_rows, _first_actions(partial(ask, **changed))
    )


def _first_actions(ask: Callable[[], Any]) -> NDArray[np.float64]:
    """Return the actions of the current step from several answers, ``(rows, D)``."""
    answers = [ask() for _ in range(ROUNDS)]
    given = [one for answer in answers for one in (answer.action, answer.samples)]
    return np.concatenate([np.atleast_2d(_array(one)) for one in given if one is not None])


def _measure(answer: Any) -> str:
    if answer.token_logits is not None:
        return TOKENS
    drawn = any(getattr(answer, name, None) is not None for name in ("chunk", "samples"))
    return "chunk" if drawn else "action"


def _drawn(answer: Any) -> NDArray[np.float64]:
    """Return every action of an answer, ``(rows, D)``: of the chunk and of the samples."""
    given = (answer.action, answer.chunk, answer.samples)
    return np.concatenate([np.atleast_2d(_array(one)) for one in given if one is not None])


def _chunk_distance(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    if one.shape != other.shape:
        return 1.0
    scale = np.maximum(np.abs(one).max(axis=0), np.abs(other).max(axis=0))
    moved = np.abs(one - other).max(axis=0)
    live = scale > NEGLIGIBLE * scale.max(initial=0.0)
    return float((moved[live] / (2.0 * scale[live])).max(initial=0.0))


def _prefix_change(policy: Policy, image: NDArray[Any], instruction: str) -> float | None:
    ask = getattr(policy, "prefix_change", None)
    if not callable(ask) or not instruction:
        return None
    policy.reset(instruction)
    change = ask(Observation(image=image, instruction=instruction))
    return None if change is None else float(change)


def _ask(policy: Policy, plain: Mapping[str, Any], **changed: Any) -> Any:
    seen = Observation(**{**plain, **changed})
    policy.reset(seen.instruction)
    return policy.act(seen)


def _instructions(instruction: str, seed: int) -> dict[str, str]:
    words = instruction.split()
    shuffled = list(words)
    random.Random(seed).shuffle(shuffled)
    return {
        "shuffled": " ".join(shuffled),
        "reversed": " ".join(reversed(words)),
        "empty": "",
    }


def _probabilities(logits: Any) -> NDArray[np.float64]:
    values = _array(logits)
    values = np.exp(values - values.max(axis=-1, keepdims=True))
    return np.asarray(values / values.sum(axis=-1, keepdims=True), dtype=np.float64)


def _array(value: Any) -> NDArray[np.float64]:
    if hasattr(value, "detach"):
        value = value.detach().double().cpu().numpy()
    return np.asarray(value, dtype=np.float64)
