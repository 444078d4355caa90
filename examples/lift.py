"""A recovery: lift the tool by 1 cm per step, the gripper as it was last commanded.

In the monitor's configuration: ``recovery: {behavior: "lift:Lift"}``.
"""

import numpy as np

from monitor.control import RecoveryContext
from monitor.stage import Setup


class Lift:
    """Rises straight up; for actions whose first three numbers are a translation in metres."""

    STEP_M = 0.01

    def __init__(self, setup: Setup) -> None:
        self._dim = setup.dim
        self._column = setup.gripper.column(setup.dim)
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._gripper = 0.0

    def observe(self, context: RecoveryContext, well: bool) -> None:
        """Keep the gripper's command of a step at which the policy acts."""
        if context.action is not None and self._column >= 0:
            self._gripper = context.action[self._column]

    def act(self, context: RecoveryContext) -> np.ndarray:
        """Return the action of one step in RECOVER."""
        action = np.zeros(self._dim)
        action[2] = self.STEP_M
        if self._column >= 0:
            action[self._column] = self._gripper
        return action
