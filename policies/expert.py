"""The scripted expert as a policy; it sees the simulator's state, not the image."""

from __future__ import annotations

from typing import Any, final

from envs.expert import ask_expert
from monitor.errors import MonitorError
from policies.base import Observation, PolicyOutput

__all__ = ["ExpertPolicy", "NotBoundError"]


class NotBoundError(MonitorError, RuntimeError):
    """A privileged policy was asked before it was given its environment."""


@final
class ExpertPolicy:
    """Privileged: asks the scripted expert of the environment it is bound to."""

    needs_image = False
    """Blind by design: the check before a run asks it nothing about images."""

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
        """The expert's action.

        Raises:
            NotBoundError: before :meth:`bind`.
            NoExpertError: if the environment has none.
        """
        if self._env is None:
            msg = "the expert reads the simulator's state: call policy.bind(env) first"
            raise NotBoundError(msg)
        return PolicyOutput(action=ask_expert(self._env))
