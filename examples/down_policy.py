"""A policy: moves down, with logits that grow unsure near the table.

vlawatch run --env widowx-put-on --policy down_policy:DownPolicy --scenes 0
"""

import numpy as np

from policies import Observation, PolicyOutput


class DownPolicy:
    """Ignores its image, and says so."""

    name = "down"
    signals = frozenset({"token_logits", "token_ids"})
    needs_image = False

    def reset(self, instruction: str) -> None:
        """Begin an episode with this instruction."""

    def act(self, observation: Observation) -> PolicyOutput:
        """Return a step of 1 cm down and the logits of three tokens over 32 classes."""
        height_m = 0.3 if observation.tcp_position is None else observation.tcp_position[2]
        logits = np.zeros((3, 32), dtype=np.float32)
        logits[:, 16] = 30.0 * max(height_m, 0.0)
        action = np.array([0.0, 0.0, -0.01, 0.0, 0.0, 0.0, 1.0])
        return PolicyOutput(action=action, token_logits=logits, token_ids=logits.argmax(axis=1))
