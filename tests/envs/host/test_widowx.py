"""The embedded environment in another process, through the battery that it passes in this one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from envs.conformance import Outcome, Trial, run_check
from envs.expert import ask_expert
from envs.host.hosted import HostedEnv

pytestmark = pytest.mark.slow

# What a process of its own could break; physics is the same there.
CHECKS = (
    "attributes",
    "spaces",
    "observation",
    "info",
    "object_poses",
    "contacts",
    "unknown_option",
    "bad_action",
    "aliasing",
    "objects_drawn",
)


@pytest.fixture(scope="module")
def trial() -> Iterator[Trial]:
    with Trial(lambda: HostedEnv("widowx-put-on"), expert=ask_expert) as made:
        yield made


@pytest.mark.parametrize("name", CHECKS)
def test_the_hosted_environment_keeps_the_contract(trial: Trial, name: str) -> None:
    finding = run_check(name, trial)
    assert finding.outcome is Outcome.PASSED, finding.detail
