"""Every field of a ``Step``, declared once: who gives it, its shape, its unit, its meaning.

The loop, the gymnasium wrapper, ``capture``, the reader of environments and the wire derive their
lists of fields from this table. It imports nothing, so that policies and environments may use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

__all__ = [
    "ENV_SIGNALS",
    "LOOP_SIGNALS",
    "OBSERVED_SIGNALS",
    "POLICY_SIGNALS",
    "SIGNALS",
    "Signal",
    "Source",
]

Source = Literal["policy", "robot", "task", "loop"]


@dataclass(frozen=True, slots=True)
class Signal:
    """One field of :class:`monitor.records.Step`.

    Attributes:
        name: name of the field.
        source: who gives it: the policy, the robot's sensors, the task (what only a simulator or
            a person knows), or the loop that drives them.
        shape: shape of an array, a text for each size that varies; ``()`` for a number or a flag;
            None for what is not an array.
        unit: unit, "1" for a pure number, "" where there is none.
        meaning: meaning in a few words.
        privileged: whether only a simulator knows it: the monitor may use it, no policy sees it.
    """

    name: str
    source: Source
    shape: tuple[int | str, ...] | None
    unit: str
    meaning: str
    privileged: bool = False

    @property
    def rank(self) -> int:
        """Number of axes; 0 for what is not an array."""
        return len(self.shape or ())


_ROWS: Final = (
    Signal("action", "policy", ("D",), "environment units", "action that the policy wants"),
    Signal("token_logits", "policy", ("N", "V"), "nat", "logits of the action tokens"),
    Signal("token_ids", "policy", ("N",), "", "chosen ids, counted as columns of token_logits"),
    Signal("action_token_range", "policy", None, "", "half-open range of the action bins within V"),
    Signal("tcp_position", "robot", (3,), "m", "position of the tool centre point, base frame"),
    Signal("tcp_quaternion", "robot", (4,), "1", "orientation of the tool, w, x, y, z, base frame"),
    Signal("goal_distance", "task", (), "m", "distance left in this phase of the task", True),
    Signal("samples", "policy", ("K", "D"), "environment units", "further sampled actions"),
    Signal("chunk", "policy", ("H", "D"), "environment units", "action chunk; first row is action"),
    Signal("hidden", "policy", ("F",), "1", "features of the policy, for probes"),
    Signal("image", "robot", ("H", "W", 3), "", "image that the policy sees, RGB, uint8"),
    Signal("gripper", "robot", (), "1", "measured opening, 0 closed to 1 open"),
    Signal("latency_s", "loop", (), "s", "time that the policy took"),
    Signal("success", "task", (), "", "the task's own verdict at this moment", True),
    Signal("policy_error", "loop", None, "", "text of the exception that the policy raised"),
    Signal("env_error", "loop", None, "", "text of the exception that the environment raised"),
    Signal("decode_ok", "policy", (), "", "whether the policy's tokens decoded to an action"),
    Signal("joint_positions", "robot", ("J",), "rad or m", "joint positions"),
    Signal("extra", "policy", None, "", "scalars that the policy measured itself, by metric id"),
)

SIGNALS: Final[Mapping[str, Signal]] = MappingProxyType({row.name: row for row in _ROWS})
"""Every field of ``Step`` by name, in the order of the record."""


def _given_by(*sources: Source) -> tuple[str, ...]:
    return tuple(row.name for row in _ROWS if row.source in sources)


POLICY_SIGNALS: Final = tuple(name for name in _given_by("policy") if name != "action")
"""What a policy may report in addition to its action."""
OBSERVED_SIGNALS: Final = _given_by("robot")
"""What the robot measures: a policy may see it too."""
ENV_SIGNALS: Final = tuple(name for name in _given_by("robot", "task") if name != "success")
"""What an environment may offer in observation or info; ``success`` has a reader of its own."""
LOOP_SIGNALS: Final = _given_by("loop")
"""What only the loop knows."""
