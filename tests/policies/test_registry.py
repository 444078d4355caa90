from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitor.errors import ConfigError, MissingExtraError
from policies import Observation, Policy, list_policies, load_policy
from policies.action import PUBLISHED
from policies.registry import packaged_checkpoint

MINIS = ("openvla-mini", "spatialvla-mini", "pi0-mini")
SEEN = Observation(image=np.zeros((4, 4, 3), np.uint8), instruction="wave")


def test_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'openvla-mini'"):
        load_policy("openvla-mni")


def test_unknown_argument_is_named() -> None:
    with pytest.raises(ConfigError, match=r"policy 'hold': .*speed"):
        load_policy("hold", speed=3)


def test_missing_checkpoint_argument_is_named() -> None:
    with pytest.raises(ConfigError, match=r"policy 'openvla' needs checkpoint=: Folder with"):
        load_policy("openvla")


TOY = """
from policies import PolicyOutput

class Toy:
    name, signals = "toy", frozenset()

    def __init__(self, gain=1.0):
        self.gain = gain

    def reset(self, instruction):
        pass

    def act(self, observation):
        return PolicyOutput(action=[self.gain] * 7)
"""


def test_a_class_of_another_module_is_loaded_outright(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy_policy.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    policy: Any = load_policy("toy_policy:Toy", gain=2.0)
    assert policy.act(SEEN).action[0] == 2.0
    with pytest.raises(ConfigError, match=r"toy_policy:Toy'.*'gian'; did you mean 'gain'\?"):
        load_policy("toy_policy:Toy", gian=2.0)
    with pytest.raises(ConfigError, match=r"did you mean 'Toy'\?"):
        load_policy("toy_policy:Toi")
    with pytest.raises(ConfigError, match="this Python has no module 'no_such_policy'"):
        load_policy("no_such_policy:Toy")


def test_a_module_that_lacks_something_says_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy_broken.py").write_text("import no_such_framework")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtraError, match="no_such_framework"):
        load_policy("toy_broken:Toy")


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
    assert set(list_policies()[name].signals) == load_policy(name, **options).signals


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


def test_an_option_that_is_none_takes_the_default_of_its_name(mini_checkpoint: Path) -> None:
    pytest.importorskip("torch")
    policy: Any = load_policy("openvla-mini", checkpoint=None, prompt="v01")
    assert policy.checkpoint == packaged_checkpoint("openvla-mini")
    assert policy.options.prompt == "v01"
    other: Any = load_policy("openvla-mini", checkpoint=mini_checkpoint)
    assert other.checkpoint == mini_checkpoint
    assert other.name == "openvla-mini"


def test_listing_imports_nothing_heavy() -> None:
    code = (
        "import sys, policies; [one.options and one.arguments() "
        "for one in policies.list_policies().values()]; "
        "print([m for m in ('torch', 'transformers', 'gymnasium', 'sapien') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
