"""Reading what environments return: old and new gym API, one env of a batch, tensors.

Everything here accepts ``(obs, info)`` or a bare observation from ``reset``, the 5-tuple of
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
    """An environment returned something that is neither API's."""


class OldApiWarning(UserWarning):
    """An environment speaks the gym API of before 0.26."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transition:
    """What one ``reset`` or ``step`` returned, of one environment.

    Attributes:
        observation: as the environment gave it.
        info: as the environment gave it; empty where it gave none.
        reward: reward of the step; None where it is unknown.
        terminated: the task ended.
        truncated: the time limit or another limit of the environment ended the episode.
    """

    observation: Any
    info: Mapping[str, Any]
    reward: float | None = None
    terminated: bool = False
    truncated: bool = False

    @property
    def success(self) -> bool | None:
        """Whether the task is solved now; None where the environment does not say."""
        for name in ("success", "is_success"):
            if name in self.info:
                value = _single(self.info[name])
                # None and NaN are no verdict; bool() would make a failure and a success of them.
                return None if value is None or value != value else bool(value)
        return None

    def sensed(self) -> dict[str, Any]:
        """The monitor's inputs that the environment offers, from observation and info.

        Names are those of :class:`monitor.records.Step`; what is absent is left out.
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

    A ``reset`` of the old one takes neither seed nor options: the seed then goes to ``env.seed``,
    where there is one, and a warning says once that scenes cannot be told apart.

    Args:
        env: with a ``reset``.
        seed: None leaves it out.
        options: None leaves them out.
    """
    asked = {"seed": seed, "options": options}
    given = {name: value for name, value in asked.items() if value is not None}
    taken = _keywords(env.reset)
    unknown = [name for name in given if taken is not None and name not in taken]
    if unknown:
        words = " and no ".join(unknown)
        _warn_once(f"reset() takes no {words}: every scene of this environment is the same to us")
    if "seed" in unknown and callable(getattr(env, "seed", None)):
        env.seed(seed)
    return env.reset(**{name: value for name, value in given.items() if name not in unknown})


def _keywords(function: Any) -> set[str] | None:
    """Names that a function takes; None where it takes any, or does not say."""
    try:
        parameters = signature(function).parameters
    except (TypeError, ValueError):
        return None
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return None
    return set(parameters)


def read_reset(returned: Any) -> Transition:
    """Read what ``reset`` returned."""
    if isinstance(returned, tuple) and len(returned) == 2 and isinstance(returned[1], Mapping):
        return Transition(observation=returned[0], info=returned[1])
    _warn_once("reset() returned a bare observation, not (observation, info)")
    return Transition(observation=returned, info={})


def read_step(returned: Any) -> Transition:
    """Read what ``step`` returned.

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
    # An environment that resets itself hands the last picture of the old episode over here.
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
    """A boolean out of a bool, an array or a tensor of one element.

    Example:
        >>> read_flag(np.array([True]))
        True

    Raises:
        TransitionError: if it holds several: that is a batch, which a VectorMonitor takes.
    """
    return bool(_single(value))


def read_number(value: Any) -> float | None:
    """A finite float out of a number, an array or a tensor of one element, else None."""
    try:
        number = float(_single(value))
    except (TypeError, ValueError):
        return None
    return number if np.isfinite(number) else None


def unbatch(value: Any, rank: int) -> Any:
    """Drop leading axes of length 1 beyond the rank that one environment has.

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
    """Low and high of the action space of one environment, each ``(D,)``; a batch of one is read.

    Raises:
        TransitionError: if the space has none.
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
        msg = (
            f"got {count} values where one environment gives one; use num_envs=1, or VectorMonitor"
        )
        raise TransitionError(msg)
    return value.item() if hasattr(value, "item") else value


def _warn_once(what: str) -> None:
    """Say once per process that an environment is of the old API."""
    if what in _warned:
        return
    _warned.add(what)
    warnings.warn(f"{what}; the old gym API is read as well", OldApiWarning, stacklevel=3)


_warned: set[str] = set()
