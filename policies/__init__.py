"""Policies: from an image and an instruction to an action."""

from policies.base import Observation, Policy, PolicyOutput
from policies.registry import POLICIES, PolicySpec, list_policies, load_policy

__all__ = [
    "POLICIES",
    "Observation",
    "Policy",
    "PolicyOutput",
    "PolicySpec",
    "list_policies",
    "load_policy",
]
