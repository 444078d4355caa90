"""The four tasks, by the names that SimplerEnv gave them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from monitor.errors import unknown_name

__all__ = ["TASKS", "BridgeTask", "bridge_task"]

_SCENES = "mani_skill.envs.tasks.digital_twins.bridge_dataset_eval.put_on_in_scene"


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeTask:
    """One task and what ManiSkill needs for it.

    Attributes:
        name: as SimplerEnv calls it.
        summary: what is to be done.
        twin: ``module:Class`` of ManiSkill's environment.
        kind: kind of task, for calibrations and rules.
        object: model that is to be moved.
        target: model that it is to be moved to.
        furniture: models that also stand there.
        table: sizes of models, a file of ``custom/``.
        stage: mesh of the room.
        photograph: image shown behind the scene.
        scene_count: start configurations; SimplerEnv evaluates the first 24 of each task.
        horizon_steps: steps per episode, as ManiSkill registers them.
    """

    name: str
    summary: str
    twin: str
    kind: str
    object: str
    target: str
    furniture: tuple[str, ...] = ()
    table: str = "info_bridge_custom_v0.json"
    stage: str = "bridge_table_1_v1.glb"
    photograph: str = "bridge_real_eval_1.png"
    scene_count: int = 24
    horizon_steps: int = 60


TASKS: Final[Mapping[str, BridgeTask]] = MappingProxyType(
    {
        task.name: task
        for task in (
            BridgeTask(
                name="widowx_carrot_on_plate",
                summary="put carrot on plate",
                twin=f"{_SCENES}:PutCarrotOnPlateInScene",
                kind="put-on",
                object="bridge_carrot_generated_modified",
                target="bridge_plate_objaverse_larger",
            ),
            BridgeTask(
                name="widowx_spoon_on_towel",
                summary="put the spoon on the towel",
                twin=f"{_SCENES}:PutSpoonOnTableClothInScene",
                kind="put-on",
                object="bridge_spoon_generated_modified",
                target="table_cloth_generated_shorter",
            ),
            BridgeTask(
                name="widowx_stack_cube",
                summary="stack the green block on the yellow block",
                twin=f"{_SCENES}:StackGreenCubeOnYellowCubeBakedTexInScene",
                kind="put-on",
                object="baked_green_cube_3cm",
                target="baked_yellow_cube_3cm",
                table="info_bridge_custom_baked_tex_v0.json",
            ),
            BridgeTask(
                name="widowx_put_eggplant_in_basket",
                summary="put eggplant into yellow basket",
                twin=f"{_SCENES}:PutEggplantInBasketScene",
                kind="put-in",
                object="eggplant",
                target="dummy_sink_target_plane",
                furniture=("sink",),
                stage="bridge_table_1_v2.glb",
                photograph="bridge_sink.png",
                scene_count=64,
                horizon_steps=120,
            ),
        )
    }
)
"""Every task by name."""


def bridge_task(name: str) -> BridgeTask:
    """The task of this name.

    Raises:
        ValueError: if there is none; the message says which come near.
    """
    if name not in TASKS:
        raise ValueError(unknown_name("bridge task", name, TASKS))
    return TASKS[name]
