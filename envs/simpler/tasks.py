"""The tasks that SimplerEnv ships ready-made, as facts; nothing is imported to know them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from monitor.errors import unknown_name

__all__ = ["TASKS", "Kind", "SimplerTask", "simpler_task"]

PICK_GRID: Final = 5
"""Positions along x and along y of the published coke-can protocol."""
_PICK_SCENES: Final = PICK_GRID**2


class Kind(str, Enum):
    """What is to be done; the value is ``info["task"]``."""

    PICK = "pick"
    MOVE_NEAR = "move-near"
    PUT_ON = "put-on"
    PUT_IN = "put-in"
    OPEN_DRAWER = "open-drawer"
    CLOSE_DRAWER = "close-drawer"
    PUT_IN_DRAWER = "put-in-drawer"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimplerTask:
    """A task by SimplerEnv's own name.

    Attributes:
        name: as ``simpler_env.make`` takes it.
        kind: what is to be done.
        robot: name of a :class:`envs.robot.RobotSpec`.
        camera: camera that SimplerEnv's policies see through.
        horizon_steps: steps per episode.
        scene_count: start configurations; None where SimplerEnv draws them.
        orientations: how the can lies, in the order of the scenes; empty for other tasks.
    """

    name: str
    kind: Kind
    robot: str
    camera: str
    horizon_steps: int
    scene_count: int | None
    orientations: tuple[str, ...] = ()


def _widowx(name: str, kind: Kind, horizon_steps: int = 60) -> SimplerTask:
    return SimplerTask(
        name=f"widowx_{name}",
        kind=kind,
        robot="widowx",
        camera="3rd_view_camera",
        horizon_steps=horizon_steps,
        scene_count=24,
    )


def _google(
    name: str,
    kind: Kind,
    horizon_steps: int,
    scene_count: int | None = None,
    orientations: tuple[str, ...] = (),
) -> SimplerTask:
    return SimplerTask(
        name=f"google_robot_{name}",
        kind=kind,
        robot="google_robot",
        camera="overhead_camera",
        horizon_steps=horizon_steps,
        scene_count=len(orientations) * _PICK_SCENES if orientations else scene_count,
        orientations=orientations,
    )


def _drawers(verb: str, kind: Kind, horizon_steps: int) -> Iterable[SimplerTask]:
    for which in ("", "top_", "middle_", "bottom_"):
        yield _google(f"{verb}_{which}drawer", kind, horizon_steps)


_ALL: Final = (
    _google("pick_coke_can", Kind.PICK, 80, None, ("lr_switch", "laid_vertically", "upright")),
    _google("pick_horizontal_coke_can", Kind.PICK, 80, None, ("lr_switch",)),
    _google("pick_vertical_coke_can", Kind.PICK, 80, None, ("laid_vertically",)),
    _google("pick_standing_coke_can", Kind.PICK, 80, None, ("upright",)),
    _google("pick_object", Kind.PICK, 80),
    _google("move_near_v0", Kind.MOVE_NEAR, 80, 60),
    _google("move_near_v1", Kind.MOVE_NEAR, 80, 60),
    _google("move_near", Kind.MOVE_NEAR, 80, 60),
    *_drawers("open", Kind.OPEN_DRAWER, 113),
    *_drawers("close", Kind.CLOSE_DRAWER, 113),
    *_drawers("place_in_closed", Kind.PUT_IN_DRAWER, 200),
    _google("place_apple_in_closed_top_drawer", Kind.PUT_IN_DRAWER, 200),
    _widowx("spoon_on_towel", Kind.PUT_ON),
    _widowx("carrot_on_plate", Kind.PUT_ON),
    _widowx("stack_cube", Kind.PUT_ON),
    _widowx("put_eggplant_in_basket", Kind.PUT_IN, 120),
)

TASKS: Final[Mapping[str, SimplerTask]] = MappingProxyType({task.name: task for task in _ALL})
"""Every task by name.

Sources: ``ENVIRONMENTS`` of ``simpler_env/__init__.py``, the ``max_episode_steps`` with which
``mani_skill2_real2sim`` registers them, ``_xy_configs`` and ``_quat_configs`` (4·3·2 or 2·4·3),
``triplets`` (5·6·2 = 60), and the grid of ``scripts/rt1_pick_coke_can_visual_matching.sh``.
"""


def simpler_task(name: str) -> SimplerTask:
    """The task of this name.

    Raises:
        ValueError: if there is none; the message says which come near.
    """
    if name not in TASKS:
        raise ValueError(unknown_name("SimplerEnv task", name, TASKS))
    return TASKS[name]
