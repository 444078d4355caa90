"""Disturbances: each disturbance is fixed by its name and the scene index.

They make real failures in quantity for studies of a monitor. What happens, when and how hard is
drawn from the scene index alone, so that the same disturbed scene can be run again with another
monitor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["DISTURBANCES", "Disturbance", "make_disturbance"]

DISTURBANCES: Final = {
    "object_pushed": "the named object is hit and slides away after the policy has started",
    "object_removed": "the named object disappears after the policy has started",
    "camera_shifted": "the policy's camera is moved sideways and turned",
    "lights_changed": "the lights are dimmed and tinted",
    "unseen_colour": "the named object has a colour that training never showed",
    "action_noise": "Gaussian noise is added to the translation of every action",
    "action_delay": "every action reaches the arm some steps late",
}
"""Name and meaning of each."""

_SALT: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """One disturbance with its drawn size.

    Attributes:
        name: key of :data:`DISTURBANCES`.
        start_step: step before which nothing happens (object disturbances).
        push_m_s: horizontal velocity given to the object, metres per second, shape ``(2,)``.
        camera_offset_m: displacement of the camera in the world, shape ``(3,)``.
        light: factor on red, green and blue of every light.
        noise_std_m: standard deviation of the translation noise.
        delay_steps: how many control steps an action waits.
    """

    name: str
    start_step: int
    push_m_s: tuple[float, float]
    camera_offset_m: tuple[float, float, float]
    light: tuple[float, float, float]
    noise_std_m: float
    delay_steps: int

    def noise(self, index: int, step: int) -> NDArray[np.float64]:
        """Translation noise of one step, metres, shape ``(3,)``; zero for other disturbances."""
        if self.name != "action_noise":
            return np.zeros(3)
        return np.random.default_rng([_SALT, index, step]).normal(0.0, self.noise_std_m, 3)


def make_disturbance(name: str, index: int) -> Disturbance:
    """Draw disturbance ``name`` for scene ``index``.

    Raises:
        ValueError: if the disturbance does not exist; the message lists those that exist.

    >>> make_disturbance("action_delay", 3) == make_disturbance("action_delay", 3)
    True
    """
    if name not in DISTURBANCES:
        msg = f"unknown disturbance {name!r}; known: {', '.join(sorted(DISTURBANCES))}"
        raise ValueError(msg)
    rng = np.random.default_rng([_SALT, sorted(DISTURBANCES).index(name), index])
    angle = rng.uniform(0.0, 2 * np.pi)
    speed = rng.uniform(0.5, 0.9)
    side = rng.choice([-1.0, 1.0])
    dim = rng.uniform(0.25, 0.55)
    return Disturbance(
        name=name,
        start_step=int(rng.integers(3, 11)),
        push_m_s=(float(speed * np.cos(angle)), float(speed * np.sin(angle))),
        camera_offset_m=(
            float(rng.uniform(-0.03, 0.03)),
            float(side * rng.uniform(0.05, 0.11)),
            float(rng.uniform(-0.04, 0.04)),
        ),
        light=(
            float(dim * rng.uniform(0.6, 1.4)),
            float(dim * rng.uniform(0.6, 1.4)),
            float(dim * rng.uniform(0.6, 1.4)),
        ),
        noise_std_m=float(rng.uniform(0.012, 0.025)),
        delay_steps=int(rng.integers(2, 5)),
    )
