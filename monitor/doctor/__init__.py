"""Report what this machine lacks to run policies in simulation, with the command to fix it.

``gather`` inspects the machine; ``judge`` turns the facts into checks and is pure. Standard
library only, so that it runs on a broken installation.
"""

from monitor.doctor.checks import Check, exit_code, judge, to_text
from monitor.doctor.facts import Facts, ProcessResult
from monitor.doctor.machine import gather
from monitor.doctor.requirements import Requirement

__all__ = [
    "Check",
    "Facts",
    "ProcessResult",
    "Requirement",
    "examine",
    "exit_code",
    "gather",
    "judge",
    "to_text",
]


def examine(*, render: bool = True) -> tuple[Check, ...]:
    """Inspect this machine and judge it.

    Args:
        render: whether to render an image too, which takes some seconds.
    """
    return judge(gather(render=render))
