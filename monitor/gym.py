"""A gymnasium wrapper that puts a monitor around any environment, for any loop."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any, Final, final

import gymnasium
import numpy as np

from monitor.adapt import adapt_config
from monitor.config import MonitorConfig
from monitor.env_api import (
    Transition,
    TransitionError,
    action_bounds,
    read_reset,
    read_step,
    reset_env,
    unbatch,
)
from monitor.errors import DimensionError
from monitor.pipeline import Monitor
from monitor.records import Decision, Step
from monitor.signals import POLICY_SIGNALS

__all__ = ["MonitoredEnv"]

ATTACHED: Final = (*POLICY_SIGNALS, "policy_error", "latency_s")
"""Fields of ``Step`` that a caller may attach to the next action."""
GYMNASIUM: Final = ("action_space", "observation_space", "metadata", "spec", "render_mode")
DECLARED: Final = ("control_dt_s", "robot", "translation_q99_m")
"""What :func:`monitor.adapt.adapt_config` asks an environment for."""


class _AnyEnv(gymnasium.Env[Any, Any]):
    """Adapts an object that only has ``reset`` and ``step`` to a gymnasium environment."""

    def __init__(self, env: Any) -> None:
        self.inner = env
        for name in (*GYMNASIUM, *DECLARED):
            if hasattr(env, name):
                setattr(self, name, getattr(env, name))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return reset_env(self.inner, seed=seed, options=options)

    def step(self, action: Any) -> Any:
        return self.inner.step(action)

    def render(self) -> Any:
        return self.inner.render()

    def close(self) -> None:
        if hasattr(self.inner, "close"):
            self.inner.close()


@final
class MonitoredEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Check every action before the environment receives it.

    The wrapper works with gymnasium 0.28 to 1.x, with the old gym API (4-tuples, bare reset) and
    with batched environments of size 1. ``info["monitor"]`` is the
    :class:`monitor.records.Decision` of the step. While the monitor recovers, its retreat is sent
    instead of the action. After a halt the environment is not stepped again: the last observation
    is returned with ``truncated`` true.

    Args:
        env: environment, or any object with ``reset`` and ``step``.
        monitor: monitor, reset at every episode; None makes one from what the environment
            declares.
        task: key of the task, used if ``info["task"]`` is missing.
        measure_latency: whether the time between returning an observation and receiving an action
            counts as the policy's latency, if :meth:`attach` does not give it.

    Example:
        >>> class Still:
        ...     action_space = gymnasium.spaces.Box(-1.0, 1.0, (7,))
        ...     def reset(self, **options): return {}, {"instruction": "wait"}
        ...     def step(self, action): return {}, 0.0, False, False, {}
        >>> env = MonitoredEnv(Still())
        >>> observation, info = env.reset()
        >>> *_, truncated, info = env.step(np.full(7, np.nan))
        >>> truncated, info["monitor"].mode.value
        (True, 'HALT')
    """

    def __init__(
        self,
        env: Any,
        monitor: Monitor | None = None,
        *,
        task: str | None = None,
        measure_latency: bool = True,
    ) -> None:
        super().__init__(env if isinstance(env, gymnasium.Env) else _AnyEnv(env))
        self.monitor = _monitor_for(self.env) if monitor is None else monitor
        self._task = task
        self._measure_latency = measure_latency
        self._attached: dict[str, Any] = {}
        self._now = Transition(observation=None, info={})
        self._handed_out: float | None = None
        self._halted: Decision | None = None

    def attach(self, **signals: Any) -> None:
        """Attach signals of the policy to the action of the next ``step``.

        Args:
            **signals: fields of :class:`monitor.records.Step` that a policy gives, for example
                ``token_logits`` and ``token_ids``.

        Raises:
            TypeError: if a field is not one that a policy gives.
        """
        unknown = sorted(set(signals) - set(ATTACHED))
        if unknown:
            msg = f"unknown signal(s) {', '.join(unknown)}; allowed: {', '.join(ATTACHED)}"
            raise TypeError(msg)
        self._attached = signals

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode of the environment and of the monitor."""
        self._now = read_reset(reset_env(self.env, seed=seed, options=options))
        self._attached = {}
        self._halted = None
        instruction = str(self._now.info.get("instruction", ""))
        self.monitor.reset(instruction=instruction, task=self._now.info.get("task", self._task))
        self._handed_out = perf_counter()
        return self._now.observation, dict(self._now.info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Check an action and send what may be sent.

        Args:
            action: shape ``(D,)``, or ``(1, D)`` for a batch of one.
        """
        decision = self._halted or self.monitor.update(self._inputs(action))
        self._attached = {}
        if decision.action is None:
            self._halted = decision
            return self._now.observation, 0.0, False, True, self._info(decision)
        sent = decision.action.astype(self.env.action_space.dtype or np.float64, copy=False)
        shape = self.env.action_space.shape
        self._now = read_step(self.env.step(sent.reshape(shape) if shape else sent))
        self._handed_out = perf_counter()
        now = self._now
        reward = 0.0 if now.reward is None else now.reward
        return now.observation, reward, now.terminated, now.truncated, self._info(decision)

    def _inputs(self, action: Any) -> Step:
        given = {"action": unbatch(action, 1), **self._attached}
        if self._measure_latency and "latency_s" not in given and self._handed_out is not None:
            given["latency_s"] = perf_counter() - self._handed_out
        return Step(**self._now.sensed(), success=self._now.success, **given)

    def _info(self, decision: Decision) -> dict[str, Any]:
        info: Mapping[str, Any] = self._now.info
        return {**info, "monitor": decision}


def _monitor_for(env: Any) -> Monitor:
    try:
        low, high = action_bounds(env)
    except TransitionError as error:
        msg = f"{error}; or pass your own monitor"
        raise DimensionError(msg) from error
    return Monitor(adapt_config(MonitorConfig(), env), action_low=low, action_high=high)
