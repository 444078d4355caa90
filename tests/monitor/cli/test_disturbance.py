"""A disturbance that an environment does not have is refused before anything is run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from monitor.cli.names import check_disturbance
from monitor.errors import ConfigError


def test_a_mistyped_disturbance_is_answered_with_the_near_one() -> None:
    env = SimpleNamespace(unwrapped=SimpleNamespace(disturbances=("object_pushed", "lights")))
    check_disturbance(env, "object_pushed")
    with pytest.raises(ConfigError, match="object_pushed"):
        check_disturbance(env, "object_pshed")


def test_an_environment_that_lists_none_is_asked_itself() -> None:
    check_disturbance(SimpleNamespace(unwrapped=SimpleNamespace()), "earthquake")
