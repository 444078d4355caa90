"""Says what this machine lacks for the main job, and the command that mends each thing.

``gather`` looks, ``judge`` turns what was found into checks and touches nothing. Standard library
only, so that it runs where half of the installation is broken.
"""

from monitor.doctor.checks import Check, exit_code, judge, to_text
from monitor.doctor.facts import Facts, Probe
from monitor.doctor.machine import gather
from monitor.doctor.requirements import Requirement

__all__ = [
    "Check",
    "Facts",
    "Probe",
    "Requirement",
    "examine",
    "exit_code",
    "gather",
    "judge",
    "to_text",
]


def examine(*, render: bool = True) -> tuple[Check, ...]:
    """Look at this machine and judge it.

    Args:
        render: also render a picture, which takes some seconds.
    """
    return judge(gather(render=render))
