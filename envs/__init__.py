"""Simulation environments behind one contract."""

from envs.registry import ENVS, EnvSpec, list_envs, make_env

__all__ = ["ENVS", "EnvSpec", "list_envs", "make_env"]
