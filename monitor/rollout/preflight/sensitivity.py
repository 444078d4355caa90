"""Does a policy look at the picture and read the instruction? Asked before it may move anything."""

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

__all__ = ["ProbeReport", "distance", "probe_policy"]

VISION_BYPASS: Final = "VISION_BYPASS"
PREFIX_CAUSAL: Final = "PREFIX_CAUSAL"
TOKENS: Final = "token distribution"
ROUNDS: Final = 8
"""Answers to each question of a policy whose chance a reset does not fix."""
MIN_MIX: Final = 1e-6
"""Relative change below which the start of a prefix has not seen its end; causal ones give 0."""
NEGLIGIBLE: Final = 1e-6
"""Share of the largest number below which a dimension of a plan only holds rounding."""
MIN_MOVE: Final = 1e-3
"""Total variation, or share of the largest action, below which an answer has not moved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReport:
    """How far the policy's answer moves from its answer to the plain question.

    Distances are the largest total variation among action tokens for a policy with logits. For one
    that draws plans from noise they are the largest change among all drawn actions, relative to
    the dimension's largest number: with the noise fixed, as a reset fixes it, that change comes
    from the question alone. Else they are the largest change of an action's component, relative to
    the larger of the two actions. Where the same question, asked again after a reset, gets another
    action, each is asked several times and the means are compared, see
    :func:`monitor.rollout.preflight.chance.means_apart`.

    Attributes:
        measure: "token distribution", "plan", "action" or "mean action".
        repeat: distance when the same question is asked again: the policy's own chance.
        pictures: distance by picture: black, white, noise.
        instructions: distance by instruction: words shuffled, words reversed, empty.
        sees: some picture moves the answer by more than its own chance.
        reads: some instruction does.
        prefix: how far the first token of the model's prefix moves, in [0, 1], when words that
            come after it change; None for a policy that does not promise attention both ways.
    """

    measure: str
    repeat: float
    pictures: Mapping[str, float]
    instructions: Mapping[str, float]
    sees: bool
    reads: bool
    prefix: float | None = None

    @property
    def mixes(self) -> bool | None:
        """Whether the prefix's tokens see each other, as promised; None where nothing is."""
        return None if self.prefix is None else self.prefix > MIN_MIX

    @property
    def fault(self) -> str | None:
        """``VISION_BYPASS`` where the picture does not matter, ``PREFIX_CAUSAL``, or None."""
        if not self.sees:
            return VISION_BYPASS
        return PREFIX_CAUSAL if self.mixes is False else None


def probe_policy(
    policy: Policy,
    image: Any,
    instruction: str,
    *,
    seed: int = 0,
    sensed: Mapping[str, Any] | None = None,
) -> ProbeReport:
    """Ask a policy about changed pictures and instructions.

    A policy whose prefix is promised to attend both ways has ``prefix_change(observation)``, which
    says how far the first token moves, in [0, 1], when the words after it change their places.

    Args:
        policy: reset before every question.
        image: a real picture, uint8 ``(H, W, 3)``.
        instruction: a real instruction.
        seed: of the noise picture and the shuffled words.
        sensed: what else the policy may see, the same in every question: fields of
            :class:`policies.Observation` such as ``tcp_position``.
    """
    picture = np.asarray(image)
    rng = np.random.default_rng(seed)
    noise = rng.integers(0, 256, picture.shape).astype(np.uint8)
    pictures = {
        "black": np.zeros_like(picture),
        "white": np.full_like(picture, 255),
        "noise": noise,
    }
    ask = partial(_ask, policy, {**(sensed or {}), "image": picture, "instruction": instruction})
    measure, far = _judge(ask)
    repeat = far()
    by_picture = {name: far(image=changed) for name, changed in pictures.items()}
    by_instruction = {
        name: far(instruction=text) for name, text in _instructions(instruction, seed).items()
    }
    # Chance alone must not pass for sight; twice the repeat's distance leaves it some room.
    floor = max(MIN_MOVE, 2.0 * repeat)
    return ProbeReport(
        measure=measure,
        repeat=repeat,
        pictures=by_picture,
        instructions=by_instruction,
        sees=any(value > floor for value in by_picture.values()),
        reads=any(value > floor for value in by_instruction.values()),
        prefix=_prefix_change(policy, picture, instruction),
    )


def distance(one: Any, other: Any) -> float:
    """Distance in [0, 1] between two answers, see :class:`ProbeReport`."""
    if one.token_logits is not None and other.token_logits is not None:
        left, right = _probabilities(one.token_logits), _probabilities(other.token_logits)
        if left.shape == right.shape:
            return float(np.abs(left - right).sum(axis=-1).max() / 2.0)
    if _measure(one) == _measure(other) == "plan":
        return _plan_distance(_drawn(one), _drawn(other))
    first, second = _array(one.action), _array(other.action)
    if first.shape != second.shape:
        return 1.0
    scale = max(float(np.abs(first).max(initial=0.0)), float(np.abs(second).max(initial=0.0)))
    return 0.0 if scale == 0.0 else float(np.abs(first - second).max() / (2.0 * scale))


def _judge(ask: Callable[..., Any]) -> tuple[str, Callable[..., float]]:
    """How to measure this policy, and how far its answer to a changed question is by that."""
    plain = ask()
    measure = _measure(plain)
    if measure == TOKENS or distance(plain, ask()) <= MIN_MOVE:
        return measure, lambda **changed: distance(plain, ask(**changed))
    # It draws by chance, and a reset does not fix it: a server, say. Only means can be compared.
    plain_rows = _first_actions(ask)
    return "mean action", lambda **changed: means_apart(
        plain_rows, _first_actions(partial(ask, **changed))
    )


def _first_actions(ask: Callable[[], Any]) -> NDArray[np.float64]:
    """Actions of the present step in several answers to one question, ``(rows, D)``."""
    answers = [ask() for _ in range(ROUNDS)]
    given = [one for answer in answers for one in (answer.action, answer.samples)]
    return np.concatenate([np.atleast_2d(_array(one)) for one in given if one is not None])


def _measure(answer: Any) -> str:
    if answer.token_logits is not None:
        return TOKENS
    drawn = any(getattr(answer, name, None) is not None for name in ("chunk", "samples"))
    return "plan" if drawn else "action"


def _drawn(answer: Any) -> NDArray[np.float64]:
    """Every action of an answer, ``(rows, D)``: of the plan, and those drawn beside it."""
    given = (answer.action, answer.chunk, answer.samples)
    return np.concatenate([np.atleast_2d(_array(one)) for one in given if one is not None])


def _plan_distance(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
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
