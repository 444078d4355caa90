"""Scenes of the uncertainty study and of VLATest, in the words of SimplerEnv's reset."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from envs.layout import Layout
from envs.simpler.scene import SceneStart
from envs.simpler.tasks import TASKS, Kind, SimplerTask
from monitor.errors import ConfigError

__all__ = ["add_all_models", "instruction", "layout_start", "read_layout", "takes_layouts"]

_WORDS: Final[Mapping[str, str]] = {
    "pick": "pick {}",
    "move-near": "move {} near {}",
    "put-on": "put {} on {}",
    "put-in": "put {} into yellow basket",
}


def takes_layouts(task: SimplerTask) -> bool:
    """Whether a task can be reset with other objects: one object of any kind, or a pair."""
    if task.kind is Kind.PICK:
        return not task.orientations
    return task.kind in (Kind.MOVE_NEAR, Kind.PUT_ON, Kind.PUT_IN)


def read_layout(task: SimplerTask, given: Any) -> Layout:
    """A layout as an option of reset gives it.

    Raises:
        ConfigError: if it is none, or one for another kind of task.
    """
    if not isinstance(given, Mapping):
        msg = f"layout must be a mapping with kind, source, target and objects, got {given!r}"
        raise ConfigError(msg)
    layout = Layout.from_json(given)
    if not takes_layouts(task) or layout.kind != task.kind.value:
        fitting = [t.name for t in TASKS.values() if takes_layouts(t) and t.kind == layout.kind]
        msg = (
            f"{task.name!r} cannot be reset to layout kind {layout.kind!r}; that is taken by: "
            f"{', '.join(fitting)}"
        )
        raise ConfigError(msg)
    return layout


def layout_start(layout: Layout, scene: int) -> SceneStart:
    """Return the reset options of a layout.

    Raises:
        ConfigError: if the scene's number is negative.
    """
    if scene < 0:
        msg = f"scene {scene} does not exist; scenes of a file are numbered from 0"
        raise ConfigError(msg)
    if layout.target is None:
        placement = layout.objects[layout.source]
        placed = {"init_xy": list(placement.xy), "init_rot_quat": list(placement.quaternion)}
        options: dict[str, Any] = {"model_id": layout.source, "obj_init_options": placed}
        return SceneStart(scene, {**options, "reconfigure": True})
    names = list(layout.objects)
    pair = {
        "source_obj_id": names.index(layout.source),
        "target_obj_id": names.index(layout.target),
        "init_xys": np.array([placement.xy for placement in layout.objects.values()]),
        "init_rot_quats": np.array([placement.quaternion for placement in layout.objects.values()]),
    }
    options = {"model_ids": names, "obj_init_options": pair, "reconfigure": True}
    return SceneStart(scene, options)


def add_all_models(sim: Any) -> None:
    """Let every model be built that any of SimplerEnv's tables of sizes lists, not one table's."""
    for table in sorted(Path(sim.asset_root).glob("info_*.json")):
        for name, row in json.loads(table.read_text()).items():
            sim.model_db.setdefault(name, row)


def instruction(layout: Layout, sim: Any) -> str:
    """The sentence for a layout, with names as SimplerEnv says them.

    Its own tasks say fixed sentences, whatever lies on the table.
    """
    said = [
        sim._get_instruction_obj_name(name)
        for name in (layout.source, layout.target)
        if name is not None
    ]
    return _WORDS[layout.kind].format(*said)
