"""A double of SimplerEnv: the surface that our adapter reads, with the real one's traps.

The traps are on purpose, so that an adapter which does not undo them fails its tests: options are
written into, an environment that is not rebuilt remembers, a pick and a touch stay true for good,
one shader serves the whole process, a missing file leaves a body that is felt and not seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from double_base import FACTS, RENDER_CONFIG, FakeSim
from double_tasks import (
    FakeCloseDrawer,
    FakeDrawer,
    FakeMoveNear,
    FakePair,
    FakePick,
    FakePutInDrawer,
)

from envs.simpler.tasks import TASKS, Kind

FAMILIES: dict[Kind, type[FakeSim]] = {
    Kind.PICK: FakePick,
    Kind.MOVE_NEAR: FakeMoveNear,
    Kind.PUT_ON: FakePair,
    Kind.PUT_IN: FakePair,
    Kind.OPEN_DRAWER: FakeDrawer,
    Kind.CLOSE_DRAWER: FakeCloseDrawer,
    Kind.PUT_IN_DRAWER: FakePutInDrawer,
}


def _recorded(name: str) -> Mapping[str, Any]:
    """Facts of a task, or of the first recorded one of its kind and robot."""
    task, facts = TASKS[name], FACTS["tasks"]
    alike = (n for n in facts if TASKS[n].kind is task.kind and TASKS[n].robot == task.robot)
    found: Mapping[str, Any] = facts[name if name in facts else next(alike)]
    return found


def _environment(name: str) -> type[FakeSim]:
    task, facts = TASKS[name], _recorded(name)
    camera = facts["camera"]
    config = SimpleNamespace(
        width=camera["width"], height=camera["height"], intrinsic=np.array(camera["intrinsic"])
    )
    robots = {
        facts["robot_uid"]: SimpleNamespace(
            get_default_config=lambda: SimpleNamespace(cameras=[config])
        )
    }
    members = {"facts": facts, "camera_name": task.camera, "SUPPORTED_ROBOTS": robots}
    return type(name, (FAMILIES[task.kind],), members)


def modules() -> dict[str, ModuleType]:
    """The modules of SimplerEnv by name, as if installed."""
    table = {name: (row["uid"], dict(row["kwargs"])) for name, row in FACTS["table"].items()}
    known = {
        row["uid"]: SimpleNamespace(
            cls=_environment(name), max_episode_steps=row["max_episode_steps"], default_kwargs={}
        )
        for name, row in FACTS["table"].items()
    }
    made = {
        name: ModuleType(name)
        for name in (
            "simpler_env",
            "mani_skill2_real2sim",
            "mani_skill2_real2sim.utils",
            "mani_skill2_real2sim.utils.registration",
            "mani_skill2_real2sim.envs",
            "mani_skill2_real2sim.envs.sapien_env",
        )
    }
    made["simpler_env"].__dict__.update(ENVIRONMENT_MAP=table, ENVIRONMENTS=list(table))
    made["mani_skill2_real2sim.utils.registration"].__dict__.update(REGISTERED_ENVS=known)
    sapien = SimpleNamespace(render_config=RENDER_CONFIG)
    made["mani_skill2_real2sim.envs.sapien_env"].__dict__.update(sapien=sapien)
    return made
