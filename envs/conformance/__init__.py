"""A battery that any environment is put through, ours or a user's own adapter.

It tests what the values of :mod:`envs.base` mean, not only their shapes: that the tool goes where
the action says, in the frame and unit it says, that nothing is remembered which should be true now,
and that an episode can be run again.

As a library::

    findings = check_env(lambda: make_env("widowx-put-on"))

In a test of one's own adapter::

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
