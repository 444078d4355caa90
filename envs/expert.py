"""The scripted expert of an environment: privileged, for demonstrations and to check a setup."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.errors import MonitorError

__all__ = ["NoExpertError", "ask_expert", "has_expert"]


class NoExpertError(MonitorError, AttributeError):
    """An environment has no scripted expert."""


def has_expert(env: Any) -> bool:
    """Whether :func:`ask_expert` has somebody to ask."""
    core = getattr(env, "unwrapped", env)
    return callable(getattr(core, "expert_action", None)) or isinstance(
        getattr(core, "expert", None), str
    )


def ask_expert(env: Any) -> NDArray[np.float64]:
    """The action that brings the task nearer to its end, from the simulator's state.

    An environment has an expert by a method ``expert_action()``, or by naming a function of the
    environment in an attribute ``expert = "module:function"``.

    Args:
        env: the environment, in any state.

    Returns:
        Action in the environment's units, shape ``(7,)``.

    Raises:
        NoExpertError: if it has none.
    """
    core = getattr(env, "unwrapped", env)
    if callable(method := getattr(core, "expert_action", None)):
        return np.asarray(method(), dtype=np.float64)
    named = getattr(core, "expert", None)
    if not isinstance(named, str):
        msg = "this environment has no scripted expert; choose another policy"
        raise NoExpertError(msg)
    module, _, function = named.partition(":")
    ask = getattr(importlib.import_module(module), function)
    return np.asarray(ask(env), dtype=np.float64)
