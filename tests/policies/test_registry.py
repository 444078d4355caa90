from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from monitor.errors import ConfigError
from policies import Observation, Policy, list_policies, load_policy
from policies.action import PUBLISHED

MINIS = ("openvla-mini", "spatialvla-mini", "pi0-mini")
SIGNALS = {"logits", "samples", "chunk", "hidden", "extra"}
SEEN = Observation(image=np.zeros((4, 4, 3), np.uint8), instruction="wave")


def test_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'openvla-mini'"):
        load_policy("openvla-mni")


def test_unknown_argument_is_named() -> None:
    with pytest.raises(ConfigError, match=r"policy 'hold': .*speed"):
        load_policy("hold", speed=3)


def test_missing_checkpoint_argument_is_named() -> None:
    pytest.importorskip("torch")
    with pytest.raises(ConfigError, match=r"policy 'openvla': .*checkpoint"):
        load_policy("openvla")


def test_every_entry_has_a_summary() -> None:
    assert {"openvla", *MINIS, "expert", "random", "hold"} <= set(list_policies())
    assert all(spec.summary for spec in list_policies().values())


def test_listed_robots_are_those_with_a_published_convention() -> None:
    listed = {(name, robot) for name, spec in list_policies().items() for robot in spec.robots}
    assert listed == set(PUBLISHED)


@pytest.mark.parametrize("name", [*MINIS, "random", "hold"])
def test_listed_signals_are_those_that_the_policy_offers(name: str) -> None:
    options: dict[str, Any] = {}
    if name in MINIS:
        pytest.importorskip("torch")
        options = {"samples": 1}
    offered = load_policy(name, **options).signals
    short = {"logits" if one == "token_logits" else one for one in offered}
    assert set(list_policies()[name].signals) == short & SIGNALS


@pytest.mark.parametrize("name", ["random", "hold"])
def test_simple_policies_keep_the_contract(name: str) -> None:
    policy = load_policy(name)
    assert isinstance(policy, Policy)
    policy.reset("wave")
    first = policy.act(SEEN)
    policy.reset("wave")
    np.testing.assert_array_equal(policy.act(SEEN).action, first.action)
    assert first.action.shape == (7,)
    assert first.token_logits is None


def test_listing_imports_nothing_heavy() -> None:
    code = (
        "import sys, policies; policies.list_policies(); "
        "print([m for m in ('torch', 'transformers', 'gymnasium', 'sapien') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
