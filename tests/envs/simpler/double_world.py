"""Bodies, robot and camera of the SimplerEnv double: what SAPIEN 2 offers, without physics.

Names, shapes, types and numbers come from ``facts.json``, which scripts/record_simpler.py read from
the real one; what is written here is only how they move.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envs.pose import between, inverse, multiply, rotation_matrix

FloatArray = NDArray[np.float64]

FOLLOW = {"widowx": 0.75, "google_robot": 0.35}
"""Share of the way to its aim that the arm makes in a step."""
FINGERS = {
    "widowx": ("left_finger_link", "right_finger_link"),
    "google_robot": ("link_finger_left", "link_finger_right"),
}
REACH_M = 0.03


class Pose:
    """Position and quaternion (w, x, y, z) with SAPIEN's operators."""

    def __init__(self, p: ArrayLike = (0, 0, 0), q: ArrayLike = (1, 0, 0, 0)) -> None:
        self.p = np.array(p, dtype=np.float32)
        self.q = np.array(q, dtype=np.float32)

    @classmethod
    def of(cls, pose: ArrayLike) -> Pose:
        seven = np.asarray(pose, dtype=np.float64)
        return cls(seven[:3], seven[3:])

    @property
    def seven(self) -> FloatArray:
        return np.concatenate([self.p, self.q]).astype(np.float64)

    def inv(self) -> Pose:
        return Pose.of(inverse(self.seven))

    def __mul__(self, other: Pose) -> Pose:
        return Pose.of(multiply(self.seven, other.seven))


class Body:
    """An actor or a link."""

    def __init__(self, name: str, pose: Pose, *, drawn: bool = True, shapes: int = 1) -> None:
        self.name = name
        self.pose = pose
        self.drawn = drawn
        self._shapes = shapes
        self.velocity = np.zeros(3)

    def get_visual_bodies(self) -> list[Any]:
        shapes = [object()] if self.drawn else []
        return [SimpleNamespace(get_render_shapes=lambda: shapes)]

    def get_collision_shapes(self) -> list[Any]:
        return [object()] * self._shapes

    def set_pose(self, pose: Pose) -> None:
        self.pose = pose

    def set_velocity(self, velocity: ArrayLike) -> None:
        self.velocity = np.asarray(velocity, dtype=np.float64)

    def set_angular_velocity(self, velocity: ArrayLike) -> None:
        assert np.shape(velocity) == (3,)

    def lock_motion(self, *axes: int) -> None:
        assert len(axes) == 6


class Robot:
    """An arm that follows what it is told; poses in the base frame, shape ``(7,)``."""

    def __init__(self, kind: str, facts: Mapping[str, Any], base: ArrayLike) -> None:
        self.kind = kind
        self.pose = Pose.of(base)
        self.tcp = np.array(facts["tcp"])
        self.aim = self.tcp.copy()
        self.qpos = np.array(facts["qpos"], dtype=np.float32)
        self.closedness = float(facts["closedness"])
        self.wanted = self.closedness
        self.held: Body | None = None
        self.parents: dict[str, str | None] = facts["links"]

    def get_qpos(self) -> NDArray[np.float32]:
        return self.qpos

    def get_links(self) -> list[Any]:
        return [SimpleNamespace(name=name) for name in self.parents]

    def get_joints(self) -> list[Any]:
        return [_Joint(child, parent) for child, parent in self.parents.items()]

    @property
    def world(self) -> FloatArray:
        return multiply(self.pose.seven, self.tcp)

    def move(self, action: NDArray[np.float32]) -> None:
        """A delta of the aim (WidowX) or of the measured pose (Google Robot), in the base frame."""
        start = self.aim if self.kind == "widowx" else self.tcp
        angle = float(np.linalg.norm(action[3:6]))
        axis = action[3:6] / max(angle, 1e-9)
        quaternion = [0, 0, 0, np.cos(angle / 2), *(np.sin(angle / 2) * axis)]
        follow = FOLLOW[self.kind]
        self.aim = np.concatenate(
            [start[:3] + action[:3], multiply(quaternion, [0, 0, 0, *start[3:]])[3:]]
        )
        turned = self.aim[3:] * np.sign(self.aim[3:] @ self.tcp[3:])
        self.tcp = self.tcp + follow * (np.concatenate([self.aim[:3], turned]) - self.tcp)
        self.tcp[3:] /= np.linalg.norm(self.tcp[3:])

    def squeeze(self, command: float, near: Iterable[Body]) -> None:
        """Absolute, +1 opens (WidowX), or a change, +1 closes (Google Robot)."""
        if self.kind == "widowx":
            self.wanted = (1.0 - command) / 2
        else:
            self.wanted = float(np.clip(self.wanted + 0.5 * command, 0.0, 0.83))
        stop = 1.0
        if self.wanted > self.closedness and self.held is None:
            self.held = next((body for body in near if self._between_fingers(body)), None)
        if self.held is not None:
            stop = 0.53
            if self.wanted < 0.4:
                self.held = None
        self.closedness += 0.8 * (min(self.wanted, stop) - self.closedness)

    def _between_fingers(self, body: Body) -> bool:
        return bool(np.linalg.norm(self.world[:3] - body.pose.p) < REACH_M)


class Arm:
    """The controller of the arm."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot

    @property
    def _target_pose(self) -> Pose:
        return Pose.of(self._robot.aim)


class _Joint:
    def __init__(self, child: str, parent: str | None) -> None:
        self._child, self._parent = child, parent

    def get_child_link(self) -> Any:
        return SimpleNamespace(name=self._child)

    def get_parent_link(self) -> Any:
        return None if self._parent is None else SimpleNamespace(name=self._parent)


@cache
def _room(height: int, width: int) -> NDArray[np.float32]:
    """The picture of an empty room, shape ``(height, width, 3)``; not to be written into."""
    rows, columns = np.mgrid[0:height, 0:width]
    return np.stack([rows / height, columns / width, 0.4 + 0 * rows], axis=2).astype(np.float32)


class Camera:
    """A pinhole camera that draws bodies as squares.

    Args:
        facts: as recorded.
        changes: of its configuration.
        carried: from the base that it was recorded on to the base that it rides on now.
    """

    def __init__(
        self, facts: Mapping[str, Any], changes: Mapping[str, Any], carried: FloatArray
    ) -> None:
        self.camera_cfg = SimpleNamespace(pose=Pose.of(facts["mounted"]))
        self.width = int(changes.get("width", facts["width"]))
        self.height = int(changes.get("height", facts["height"]))
        self._intrinsic = np.array(changes.get("intrinsic", facts["intrinsic"]), dtype=np.float64)
        back = np.eye(4)
        back[:3, :3] = rotation_matrix(inverse(carried)[3:])
        back[:3, 3] = inverse(carried)[:3]
        self._extrinsic = np.array(facts["extrinsic"]) @ back
        self._room = _room(self.height, self.width)
        self._home, self.local = self.camera_cfg.pose, self.camera_cfg.pose

    @property
    def camera(self) -> Camera:
        return self

    def set_local_pose(self, pose: Pose) -> None:
        self.local = pose

    def get_intrinsic_matrix(self) -> FloatArray:
        return self._intrinsic

    def get_extrinsic_matrix(self) -> FloatArray:
        x, y, z = between(self._home.seven, self.local.seven)[:3]
        moved = self._extrinsic.copy()
        moved[:3, 3] -= np.array([-y, -z, x])  # SAPIEN looks along x, the matrix along z
        return moved

    def draw(
        self, bodies: Iterable[Body], tool: FloatArray, light: FloatArray, back: Any
    ) -> dict[str, NDArray[Any]]:
        """The textures that the real one gives: colour in 0-1, and segmentation."""
        colour = np.ones((self.height, self.width, 4), dtype=np.float32)
        shade = np.asarray(light if back is None else back, dtype=np.float32)
        np.multiply(self._room, shade, out=colour[..., :3])
        spots: list[tuple[Any, int, Any]] = [
            *((b.pose.p, 16, (0.9, 0.2, 0.1)) for b in bodies if b.drawn),
            (tool, 6, (0.1, 0.1, 0.1)),
        ]
        for position, size, rgb in spots:
            seen = self._intrinsic @ (self.get_extrinsic_matrix()[:3] @ [*position, 1.0])
            column, row = (seen[:2] / seen[2]).clip(-1e4, 1e4)
            tall, wide = self.height / size, self.width / size / 1.3
            rows = slice(max(0, int(row - tall)), max(0, int(row + tall)))
            columns = slice(max(0, int(column - wide)), max(0, int(column + wide)))
            colour[rows, columns, :3] = np.array(rgb) * light
        return {
            "Color": colour,
            "Segmentation": np.zeros((self.height, self.width, 4), dtype=np.uint32),
        }


def touch(one: Body | str, other: Body | str, force_n: float, sim_freq: float) -> Any:
    """A contact with one point."""
    names = [body if isinstance(body, str) else body.name for body in (one, other)]
    impulse = np.array([0.0, 0.0, force_n / sim_freq])
    return SimpleNamespace(
        actor0=SimpleNamespace(name=names[0]),
        actor1=SimpleNamespace(name=names[1]),
        points=[SimpleNamespace(impulse=impulse)],
    )
