"""Hold: stay where the arm is, the gripper as it was last commanded."""

from __future__ import annotations

from math import isnan, nan
from typing import final

from monitor.control.recovery import RecoveryContext
from monitor.control.retreat import neutral_action
from monitor.records import FloatArray
from monitor.stage import Setup
from monitor.stage.gripper import closing


@final
class Hold:
    """A recovery that waits for the policy to see a way on."""

    def __init__(self, setup: Setup) -> None:
        self._neutral = neutral_action(setup)
        self._gripper = setup.gripper
        self._column = setup.gripper.column(setup.dim)
        self.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self._command = nan

    def observe(self, context: RecoveryContext, well: bool) -> None:
        """Keep what the policy last asked of the gripper."""
        if context.action is not None and self._column >= 0:
            commands, given = self._gripper, context.action[self._column]
            wish = closing(given, self._command, commands.opens, commands.closes, commands.relative)
            self._command = self._command if isnan(wish) else given

    def act(self, context: RecoveryContext) -> FloatArray:
        """Return an action without motion."""
        action = self._neutral.copy()
        if self._column >= 0 and not isnan(self._command) and not self._gripper.relative:
            action[self._column] = self._command
        return action
