"""The scripted expert as a policy; it sees the simulator's state, not the picture."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from monitor.errors import MonitorError
from policies.base import Observation, PolicyOutput

__all__ = ["ExpertPolicy", "NotBoundError"]


class NotBoundError(MonitorError, RuntimeError):
    """A privileged policy was asked before it was given its environment."""


@final
class ExpertPolicy:
    """Privileged: reads object poses from the environment it is bound to."""

    needs_image = False
    """Blind by design: the check before a run asks it nothing about pictures."""

    def __init__(self) -> None:
        self.name = "expert"
        self.signals: frozenset[str] = frozenset()
        self._env: Any = None

    def bind(self, env: Any) -> None:
        """Give it the environment whose state it may read."""
        self._env = env

    def reset(self, instruction: str) -> None:
        """Nothing to forget; it acts on the state alone."""

    def act(self, observation: Observation) -> PolicyOutput:
        """The expert's action for the named object.

        Raises:
            NotBoundError: before :meth:`bind`.
        """
        if self._env is None:
            msg = "the expert reads the simulator's state: call policy.bind(env) first"
            raise NotBoundError(msg)
        from envs.widowx.expert import expert_action

        return PolicyOutput(action=np.asarray(expert_action(self._env), dtype=np.float64))
