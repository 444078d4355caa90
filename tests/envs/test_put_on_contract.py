"""The embedded WidowX task is put through the same battery as every other environment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from envs.conformance import CHECKS, Outcome, Trial, run_check

pytestmark = [
    pytest.mark.slow,
    # SAPIEN and gymnasium warn about themselves while they are imported.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture(scope="module")
def trial() -> Iterator[Trial]:
    from envs import make_env

    def make() -> Any:
        return make_env("widowx-put-on", horizon_steps=45, render_size=(48, 64))

    with Trial(make, scenes=(0, 3)) as trial:
        yield trial


@pytest.mark.parametrize("check", CHECKS)
def test_the_battery(trial: Trial, check: str) -> None:
    finding = run_check(check, trial)
    assert finding.outcome is Outcome.PASSED, finding.detail


def test_contacts_name_objects_as_the_instruction_does(trial: Trial) -> None:
    start = trial.start()[1].info
    resting = {frozenset(contact[:2]) for contact in start["contacts"] or ()}
    assert frozenset({start["object"], "table"}) in resting
    assert start["object"] in start["instruction"]
