"""Conformance checks for any environment, built in or a user's own adapter.

The checks test what the values of :mod:`envs.base` mean, not only their shapes: the tool moves as
commanded in the declared frame and unit, reported values describe the current state rather than an
earlier one, and an episode can be repeated.

As a library::

    findings = check_env(lambda: make_env("widowx-put-on"))

In a test of your own adapter::

    @pytest.fixture(scope="module")
    def trial():
        with Trial(MyEnv, expert=my_expert) as trial:
            yield trial

    @pytest.mark.parametrize("name", CHECKS)
    def test_contract(trial, name):
        finding = run_check(name, trial)
        assert finding.outcome is not Outcome.FAILED, finding.detail
"""

from envs.conformance.battery import CHECKS, Check, Finding, Outcome, check_env, run_check
from envs.conformance.trial import Trial
from envs.tolerance import Tolerance

__all__ = [
    "CHECKS",
    "Check",
    "Finding",
    "Outcome",
    "Tolerance",
    "Trial",
    "check_env",
    "run_check",
]
