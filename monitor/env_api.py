"""Readers of what environments return: old and new gym API, one env of a batch, tensors.

They accept ``(obs, info)`` or a bare observation from ``reset``, the 5-tuple of
gymnasium or the 4-tuple of gym from ``step``, and flags and numbers of shape ``()`` or ``(1,)``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.errors import MonitorError
from monitor.signals import ENV_SIGNALS, SIGNALS

__all__ = [
    "OldApiWarning",
    "Transition",
    "TransitionError",
    "action_bounds",
    "read_flag",
    "read_number",
    "read_reset",
    "read_step",
    "reset_env",
    "unbatch",
]


class TransitionError(MonitorError, TypeError):
    """An environment returned something that fits neither API."""


class OldApiWarning(UserWarning):
    """An environment uses the gym API from before 0.26."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transition:
    """Result of one ``reset`` or ``step`` of one environment.

    Attributes:
        observation: observation as the environment returned it.
        info: info as the environment returned it; empty if it returned none.
        reward: reward of the step; None if unknown.
        terminated: whether the task ended.
        truncated: whether the time limit or another limit of the environment ended the episode.
    """

    observation: Any
    info: Mapping[str, Any]
    reward: float | None = None
    terminated: bool = False
    truncated: bool = False

    @property
    def success(self) -> bool | None:
        """Whether the task is solved now; None if the environment does not report it."""
        for name in ("success", "is_success"):
            if name in self.info:
                value = _single(self.info[name])
                # None and NaN are not a verdict; bool() would turn them into False and True.
                return None if value is None or value != value else bool(value)
        return None

    def sensed(self) -> dict[str, Any]:
        """Return the monitor's inputs found in observation and info.

        Keys are fields of :class:`monitor.records.Step`; absent ones are left out.
        """
        found: dict[str, Any] = {}
        sources = [self.info]
        if isinstance(self.observation, Mapping):
            sources.insert(0, self.observation)
        for name in ENV_SIGNALS:
            for source in sources:
                if source.get(name) is not None:
                    found[name] = unbatch(source[name], SIGNALS[name].rank)
                    break
        return found


def reset_env(env: Any, *, seed: int | None, options: Mapping[str, Any] | None) -> Any:
    """Reset an environment of either API and return what it returns.

    A ``reset`` of the old API takes neither seed nor options: the seed then goes to ``env.seed``
    if that exists, and one warning says that scenes cannot be distinguished.

    Args:
        env: environment with a ``reset``.
        seed: random seed; None leaves it out.
        options: reset options; None leaves them out.
    """
    asked = {"seed": seed, "options": options}
    given = {name: value for name, value in asked.items() if value is not None}
    taken = _keywords(env.reset)
    unknown = [name for name in given if taken is not None and name not in taken]
    if unknown:
        words = " or ".join(unknown)
        _warn_once(f"reset() does not take {words}: the scenes cannot be distinguished")
    if "seed" in unknown and callable(getattr(env, "seed", None)):
        env.seed(seed)
    return env.reset(**{name: value for name, value in given.items() if name not in unknown})


def _keywords(function: Any) -> set[str] | None:
    """Return the parameter names of a function; None if it takes any, or they are unknown."""
    try:
        parameters = signature(function).parameters
    except (TypeError, ValueError):
        return None
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return None
    return set(parameters)


def read_reset(returned: Any) -> Transition:
    """Return the result of ``reset`` as a transition."""
    if isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], Mapping):
        return Transition(observation=returned[0], info=returned[1])
    _warn_once("reset() returned a bare observation, not (observation, info)")
    return Transition(observation=returned, info={})


def read_step(returned: Any) -> Transition:
    """Return the result of ``step`` as a transition.

    Raises:
        TransitionError: if it is neither a 4-tuple nor a 5-tuple.
    """
    if not isinstance(returned, tuple) or len(returned) not in (4, 5):
        got = f"{len(returned)}-tuple" if isinstance(returned, tuple) else type(returned).__name__
        msg = f"step() returned {got}; expected (obs, reward, terminated, truncated, info)"
        raise TransitionError(msg)
    observation, reward, *ends, info = returned
    info = info if isinstance(info, Mapping) else {}
    if len(ends) == 2:
        terminated, truncated = read_flag(ends[0]), read_flag(ends[1])
    else:
        _warn_once("step() returned a 4-tuple, not (obs, reward, terminated, truncated, info)")
        truncated = read_flag(info.get("TimeLimit.truncated", False))
        terminated = read_flag(ends[0]) and not truncated
    # An environment that resets itself returns the last observation of the old episode here.
    final = info.get("final_info")
    if isinstance(final, Mapping) and (terminated or truncated):
        observation = info.get("final_observation", info.get("final_obs", observation))
        info = final
    return Transition(
        observation=observation,
        info=info,
        reward=read_number(reward),
        terminated=terminated,
        truncated=truncated,
    )


def read_flag(value: Any) -> bool:
    """Return the boolean in a bool, an array or a tensor of one element.

    Example:
        >>> read_flag(np.array([True]))
        True

    Raises:
        TransitionError: if it holds several: that is a batch, for a VectorMonitor.
    """
    return bool(_single(value))


def read_number(value: Any) -> float | None:
    """Return the finite float in a number, an array or a tensor of one element, else None."""
    try:
        number = float(_single(value))
    except (TypeError, ValueError):
        return None
    return number if np.isfinite(number) else None


def unbatch(value: Any, rank: int) -> Any:
    """Remove leading axes of length 1 beyond the rank of a single environment.

    Example:
        >>> unbatch(np.zeros((1, 3)), rank=1).shape
        (3,)
    """
    if rank == 0:
        size = getattr(value, "size", None)
        count = value.numel() if callable(getattr(value, "numel", None)) else size
        return value.reshape(-1)[0] if count == 1 and hasattr(value, "reshape") else value
    while getattr(value, "ndim", 0) > rank and value.shape[0] == 1:
        value = value[0]
    return value


def action_bounds(env: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the bounds of the action space of one environment, or of a batch of size 1.

    Returns:
        Low and high, each ``(D,)``, environment units.

    Raises:
        TransitionError: if the action space has no bounds.
    """
    space = env.action_space
    if not (hasattr(space, "low") and hasattr(space, "high")):
        msg = f"the action space is {space}; expected a Box with finite low < high"
        raise TransitionError(msg)
    low, high = (unbatch(np.asarray(end, dtype=np.float64), 1) for end in (space.low, space.high))
    return low, high


def _single(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        value = np.asarray(value)
    count = value.numel() if callable(getattr(value, "numel", None)) else getattr(value, "size", 1)
    if count != 1:
        msg = f"got {count} values, expected one per environment; use num_envs=1, or VectorMonitor"
        raise TransitionError(msg)
    return value.item() if hasattr(value, "item") else value


def _warn_once(what: str) -> None:
    """Warn once per process that an environment uses the old API."""
    if what in _warned:
        return
    _warned.add(what)
    warnings.warn(f"{what}; reading it as the old gym API", OldApiWarning, stacklevel=3)


_warned: set[str] = set()
