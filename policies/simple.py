"""Blind policies: random motion and standing still."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from policies.base import FloatArray, Observation, PolicyOutput

__all__ = ["HoldPolicy", "RandomPolicy"]

_LOW = np.array([-0.05, -0.05, -0.05, -0.25, -0.25, -0.25, -1.0])


@final
class RandomPolicy:
    """Uniform actions; the same seed gives the same actions in every episode.

    Args:
        seed: random seed; the generator restarts at each reset.
        action_low: lower end per dimension, shape ``(D,)``; taken from the environment by ``bind``.
        action_high: upper end per dimension.
    """

    needs_image = False
    """Blind by design: the check before a run asks it nothing about images."""

    def __init__(
        self,
        *,
        seed: int = 0,
        action_low: FloatArray | None = None,
        action_high: FloatArray | None = None,
    ) -> None:
        self.name = "random"
        self.signals: frozenset[str] = frozenset()
        self._seed = seed
        self._low = np.asarray(_LOW if action_low is None else action_low, dtype=np.float64)
        self._high = np.asarray(-_LOW if action_high is None else action_high, dtype=np.float64)
        self._rng = np.random.default_rng(seed)

    def bind(self, env: Any) -> None:
        """Take the bounds of the environment's action space."""
        self._low = np.asarray(env.action_space.low, dtype=np.float64)
        self._high = np.asarray(env.action_space.high, dtype=np.float64)

    def reset(self, instruction: str) -> None:
        """Start the same sequence again."""
        self._rng = np.random.default_rng(self._seed)

    def act(self, observation: Observation) -> PolicyOutput:
        """Draw an action."""
        return PolicyOutput(action=self._rng.uniform(self._low, self._high))


@final
class HoldPolicy:
    """Stays where it is with an open gripper.

    >>> import numpy as np
    >>> policy = HoldPolicy()
    >>> policy.act(Observation(image=np.zeros((2, 2, 3), np.uint8))).action.tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    """

    needs_image = False
    """Blind by design: the check before a run asks it nothing about images."""

    def __init__(self) -> None:
        self.name = "hold"
        self.signals: frozenset[str] = frozenset()

    def reset(self, instruction: str) -> None:
        """Nothing to forget."""

    def act(self, observation: Observation) -> PolicyOutput:
        """No motion, gripper open."""
        return PolicyOutput(action=np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]))
