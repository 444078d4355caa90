"""The numbers of one step that stages read."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

from monitor.stage.layout import Vector, array


@dataclass(slots=True)
class StepRow:
    """One step of one robot in floats; NaN is unknown.

    Attributes:
        action: ``(dim,)`` in environment units. Beyond the D numbers of the action, up to the
            next multiple of :data:`PADDING`, elements are 0.
        position: ``(3,)`` of the tool, metres.
        orientation: ``(4,)`` of the tool, unit quaternion w, x, y, z.
        gripper: Measured opening in [0, 1].
        goal_distance: Metres.
        success: 1 where the task reports success, 0 where it does not.
        latency_s: Seconds.
        alpha: Geometric mean probability of the chosen tokens.
        action_mass: Least probability that a token's action bins hold together.
        tokens_outside: Number of tokens whose likeliest or chosen class is not an action bin.
        logits_id: Fingerprint of the logits, a whole number.
        image_id: Fingerprint of the image, a whole number.
        image_std: Standard deviation of the image's values, on the scale 0 to 255.
    """

    action: Vector = array("dim", start=0.0)
    position: Vector = array(3)
    orientation: Vector = array(4)
    gripper: float = nan
    goal_distance: float = nan
    success: float = nan
    latency_s: float = nan
    alpha: float = nan
    action_mass: float = nan
    tokens_outside: float = nan
    logits_id: float = nan
    image_id: float = nan
    image_std: float = nan


PADDING = 8
"""Actions are padded to a multiple of this, so that 1 to 8 numbers share one compilation."""


def padded(dim: int) -> int:
    """Return the length of ``StepRow.action`` for D numbers.

    >>> padded(7), padded(8), padded(14)
    (8, 8, 16)
    """
    return -(-dim // PADDING) * PADDING
